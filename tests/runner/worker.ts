/** A process of the runner: runs the tests of one file after another, each file as a test around its own. */
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { countTests } from '../conformance/suites.ts';
import { removeTemporaryDirectories } from '../helpers/temporary-directory.ts';
import { endProcess } from './end.ts';
import { enter } from './file-test.ts';
import { takeFiles } from './queue.ts';
import { countFile } from './times.ts';

const { href: url } = new URL('./file-test.ts', import.meta.url);
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test' ? { url, format: 'module-typescript', shortCircuit: true } : next(specifier, context),
});

// A test that waits for what never comes is cut by its time; it must not end the process, and with it the other files.
const alive = setInterval(() => undefined, 60_000);
let isDone = false;
process.once('exit', () => {
  if (!isDone) process.exitCode ||= 1;
});
const { TEST_TIMES: times } = process.env;
let running = '';
// Node fails the run for such an error, but does not say which file it came from.
for (const event of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(event, (error) => console.error(`While ${running} ran:`, error));
for (const { file, timeoutMs } of takeFiles()) {
  if (times !== undefined && running === '') countFile(times, '(starts of processes)');
  running = file;
  await test(file, { timeout: timeoutMs }, async (context) => {
    enter(context);
    countTests(file, context);
    await import(pathToFileURL(resolve(file)).href);
  });
  removeTemporaryDirectories();
  if (times !== undefined) countFile(times, file);
}
isDone = true;
clearInterval(alive);
await endProcess();
