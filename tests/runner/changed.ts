/**
 * `npm run test:changed -- [--list] [--slow] [--against main]`: runs the test files that are nearest to what has changed since the branch
 * left `main`, committed or not. `--list` prints them alone; `--slow` takes those along that need minutes, processes or a browser.
 */
import { execFileSync, spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { nearestTests } from './nearest.ts';

const { values } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    slow: { type: 'boolean', default: false },
    against: { type: 'string', default: 'main' },
  },
});

const git = (...words: string[]): string[] =>
  execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 26 })
    .split('\n')
    .filter((line) => line !== '');

/** A copy without that branch has what its remote calls so, or the work tree's own changes. */
function startOf(branch: string): string {
  for (const name of [branch, `origin/${branch}`]) {
    try {
      return git('merge-base', name, 'HEAD')[0]!;
    } catch {}
  }
  return 'HEAD';
}

const changed = [
  ...git('diff', '--name-only', '--no-renames', startOf(values.against)),
  ...git('ls-files', '--others', '--exclude-standard'),
];
const { quick, slow } = nearestTests(changed);
const files = values.slow ? [...quick, ...slow] : quick;
const isMore = slow.length > 0 && !values.slow;
const lines = [
  `${changed.length} changed files, ${files.length} test files`,
  ...files.map((file) => `  ${file}`),
  ...(isMore ? [`${slow.length} more need minutes (--slow, or npm run test:files -- FILE)`] : []),
  ...(isMore ? slow.map((file) => `  ${file}`) : []),
];
process.stdout.write(`${lines.join('\n')}\n`);
if (!values.list && files.length > 0) {
  const runner = ['--import', './tests/runner/quick-start.ts', 'tests/runner/run.ts', ...files];
  const child = spawn(process.execPath, runner, { stdio: 'inherit' });
  child.once('exit', (code) => process.exit(code ?? 1));
}
