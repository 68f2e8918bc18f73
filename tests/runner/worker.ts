/** A process of the runner: runs the tests of one file after another, each file as a test around its own. */
import { resolve } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { removeTemporaryDirectories } from '../helpers/temporary-directory.ts';
import { endProcess } from './end.ts';
import { takeFiles } from './queue.ts';

// A test that waits for what never comes is cut by its time; it must not end the process, and with it the other files.
const alive = setInterval(() => undefined, 60_000);
let isDone = false;
process.once('exit', () => {
  if (!isDone) process.exitCode ||= 1;
});
for (const { file, timeoutMs } of takeFiles()) {
  await test(file, { timeout: timeoutMs }, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
  removeTemporaryDirectories();
}
isDone = true;
clearInterval(alive);
await endProcess();
