/** Files that share a process: each is run once, and what one of them does to the process fails the run but not the others. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Runs files of these texts, in one process as far as it lives. */
async function run(...texts: string[]): Promise<{ code: number; output: string }> {
  const directory = temporaryDirectory('run-');
  for (const [index, text] of texts.entries()) {
    writeFileSync(join(directory, `${index}.test.mjs`), `import { after, before, test } from 'node:test';\n${text}`);
  }
  const [start, runner] = ['quick-start.ts', 'run.ts'].map((name) => join(import.meta.dirname, name));
  const { NODE_TEST_CONTEXT: _, TEST_QUEUE: __, ...env } = process.env;
  const flags = [`--import=${start}`, runner!, '--workers=1', '--minutes=0.1', join(directory, '*.test.mjs')];
  return await new Promise((resolve) => {
    execFile(process.execPath, flags, { env, timeout: 100_000 }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: output + errors }),
    );
  });
}

test('hooks of a file run around its tests, and one process runs all files', async () => {
  const report = (name: string) => `
    before(() => console.log('${name} opens in', process.pid));
    after(() => console.log('${name} closes'));
    test('of ${name}', () => console.log('${name} is tested'));`;
  const { code, output } = await run(report('one'), report('two'));
  assert.equal(code, 0);
  const lines = output.split('\n').filter((line) => /^(?:one|two) /.test(line));
  assert.deepEqual(
    lines.map((line) => line.replace(/ in \d+/, '')),
    ['one opens', 'one is tested', 'one closes', 'two opens', 'two is tested', 'two closes'],
  );
  assert.equal(new Set(output.match(/opens in \d+/g)).size, 1);
  assert.equal(output.match(/✔ of (?:one|two)/g)?.length, 2);
});

test('after a failing test, an endless one and an unreadable file the rest is run, and the run fails', async () => {
  const { code, output } = await run(
    `test('fails', () => { throw new Error('as it is'); });`,
    `test('waits', () => new Promise(() => {}));`,
    `import './nothing.mjs';`,
    `test('is run behind them', () => {});`,
  );
  assert.equal(code, 1);
  assert.match(output, /✖ fails/);
  assert.match(output, /timed out after 6000ms/);
  assert.match(output, /Cannot find module/);
  assert.match(output, /✔ is run behind them/);
});

for (const [what, text] of [
  ['ends its process as if all were well', 'process.exit(0)'],
  ['kills its process', `process.kill(process.pid, 'SIGKILL')`],
] as const) {
  test(`a file that ${what}: the next process runs the others, and the run fails`, async () => {
    const { code, output } = await run(`test('ends', () => ${text});`, `test('is run behind it', () => {});`);
    assert.equal(code, 1);
    assert.match(output, /✔ is run behind it/);
  });
}

test('an error that no test waits for fails the run, and is shown with its file', async () => {
  const { code, output } = await run(
    `test('passes', () => {
      Promise.reject(new Error('behind its back'));
      return new Promise((done) => setTimeout(done, 50));
    });`,
    `test('is run behind it', () => {});`,
  );
  assert.equal(code, 1);
  assert.match(output, /While \S+\/0\.test\.mjs ran: Error: behind its back/);
  assert.match(output, /✔ is run behind it/);
});

test('hooks of a group run only for tests within it', async () => {
  const { code, output } = await run(`
    import { describe } from 'node:test';
    const reported = [];
    describe('a group', { concurrency: true }, () => {
      before(() => reported.push('opens'));
      after(() => reported.push('closes'));
      test('within', () => reported.push('within'));
    });
    test('behind', () => console.log('reported:', reported.join(), '!'));`);
  assert.equal(code, 0);
  assert.match(output, /reported: opens,within,closes !/);
  assert.match(output, /▶ a group\n\s+✔ within/);
});
