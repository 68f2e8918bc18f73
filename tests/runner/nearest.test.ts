/** What `npm run test:changed` chooses, and the lists that people read: suites in CONTRIBUTING.md, scripts in `npm run help`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { guards, nearestTests, testsOf } from './nearest.ts';
import { scripts } from './scripts.ts';

const quick = (...changed: string[]) => nearestTests(changed).quick;

test('a changed file brings the test of its name and those that import it first', () => {
  const tests = quick('plugins/common/domain/money.ts');
  assert.ok(tests.includes('tests/core/money.test.ts'));
  assert.ok(tests.length < 30, `${tests.length} files`);
  assert.ok(quick('tests/helpers/smtp-sink.ts').every((file) => readFileSync(file, 'utf8').includes('smtp-sink.ts')));
  assert.deepEqual(quick('tests/core/money.test.ts'), ['tests/core/money.test.ts']);
});

test('a file that no quick test imports brings the tests of its folder', () => {
  const tests = quick('plugins/auth/migrations/001-baseline.sql');
  assert.ok(tests.includes('tests/plugins/auth/auth.test.ts'));
});

test('a changed file brings the suites that guard its folder; slow ones are named apart', () => {
  const { quick: soon, slow } = nearestTests(['plugins/billing/index.ts']);
  assert.ok(soon.includes('tests/end-to-end/money.test.ts') && soon.includes('tests/architecture.test.ts'));
  assert.ok(slow.includes('tests/simulation/mutants.test.ts'));
  assert.ok(![...soon].some((file) => /\.process\.|\.history\.|simulation/.test(file)));
});

test('pages bring the test of their links, and deleted files the tests of their folder', () => {
  assert.deepEqual(quick('plugins/route/README.md'), ['tests/readme.test.ts']);
  assert.ok(quick('plugins/auth/no-longer-there.ts').includes('tests/plugins/auth/key.test.ts'));
  assert.deepEqual(quick('plugins/gone/index.ts'), ['tests/architecture.test.ts']);
});

test('the program lists the files changed since a commit', () => {
  const [latest] = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).split('\n');
  const program = ['tests/runner/changed.ts', '--list', '--against', latest!];
  assert.match(execFileSync(process.execPath, program, { encoding: 'utf8' }), /^\d+ changed files, \d+ test files/);
});

const code = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ');

test('each guard exists, and CONTRIBUTING.md has the same table', () => {
  const page = readFileSync('CONTRIBUTING.md', 'utf8');
  for (const { folders, suites } of guards) {
    for (const folder of folders) assert.ok(existsSync(folder), folder);
    for (const suite of suites) assert.ok(testsOf(suite).length > 0, suite);
    const row = `| ${code(folders)} | ${code(suites)} |`;
    assert.ok(page.includes(`${row}\n`), row);
  }
  assert.equal(page.match(/^\| `[^|]*\/`[^|]* \| `tests\/[^|]* \|$/gm)?.length, guards.length);
});

test('help has every script of package.json once, with a time and a purpose', () => {
  const named = Object.values(scripts).flat();
  const names = named.map(([script]) => script.split(' ')[0]!);
  const { scripts: all } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  assert.deepEqual(names.toSorted(), Object.keys(all).toSorted());
  assert.ok(named.every(([, time, purpose]) => time.length > 0 && purpose.length > 0));
  const text = execFileSync(process.execPath, ['tests/runner/help.ts', 'lint'], { encoding: 'utf8' });
  assert.match(text, /^While you write\n {2}lint/);
  assert.doesNotMatch(text, /bench/);
});
