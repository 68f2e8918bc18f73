/** Suites of a mutant in their process: the first failing test ends them, a loop is cut, and nothing is written into the tree. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runSuites } from './suites-process.ts';

const file = 'core/tools/near-names.ts';
const suites = ['tests/core/near-names.test.ts', 'tests/core/parse.test.ts'].map((suite) => ({
  file: suite,
  limitMs: 60_000,
}));
const text = readFileSync(file, 'utf8');

test('without a mutant every file passes; with it the first failing test is named', async () => {
  const before = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' });
  const { failure, ended } = await runSuites({ suites });
  assert.deepEqual([failure, ended.map(({ passed }) => passed)], [undefined, [true, true]]);
  const changed = text.replace('edits >= least', 'edits < least');
  assert.notEqual(changed, text);
  const { failure: found } = await runSuites({ suites, mutant: { file, text: changed } });
  assert.equal(found?.file, 'tests/core/near-names.test.ts');
  assert.doesNotMatch(found.test, /^\(/);
  assert.equal(execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }), before);
});

test('an endless mutant is stopped at its time limit, and one that cannot be loaded is detected', async () => {
  const [suite] = suites;
  const loop = { file, text: `${text}\nfor (;;) {}\n` };
  const { failure } = await runSuites({ suites: [{ ...suite!, limitMs: 1_500 }], mutant: loop });
  assert.equal(failure?.test, '(its time is over)');
  const broken = { file, text: `${text}\nthrow new Error('not loaded');\n` };
  assert.equal((await runSuites({ suites: [suite!], mutant: broken })).failure?.file, suite!.file);
});
