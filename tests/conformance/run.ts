/** `npm run conformance [-- DIR]`: runs each suite behind the page of conformance, writes its counts, then the page. DIR: a checkout of Open Responses. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { countedFiles } from './suites.ts';

const notTested = 77;
const directories = process.argv.slice(2);

/** One after another: two processes would write the same file. */
const commands: readonly (readonly string[])[] = [
  ['matrix'],
  ['test:files', '--', '--workers', '1', ...countedFiles()],
  ['test:python'],
  ['test:go'],
  ['test:clients'],
  ['test:clients', '--', '--fleet'],
  ['test:mcp'],
  ['test:open-webui'],
  ...directories.map((directory) => ['test:open-responses', '--', directory]),
];

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = (words: readonly string[], environment: Record<string, string> = {}) =>
  spawnSync('npm', ['run', '--silent', ...words], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  }).status;

const ends = commands.map((words) => [words[0]!, run(words, { RECORD_RESULTS: 'yes' })] as const);
run(['docs']);
for (const [name, status] of ends)
  if (status !== 0) console.log(`${name}: ${status === notTested ? 'could not be run, its rows stay' : 'failed'}`);
process.exitCode = ends.every(([, status]) => status === 0 || status === notTested) ? 0 : 1;
