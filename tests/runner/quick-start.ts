/** Loaded before each process of the tests (`--import`): lets Node load the same few thousand modules for a third of the work. */
import hooks from 'node:async_hooks';
import crypto from 'node:crypto';
import { enableCompileCache, syncBuiltinESMExports } from 'node:module';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { isMainThread } from 'node:worker_threads';
import { resolveAuthorModules } from '../../core/gateway/resolution.ts';
import { rememberModules } from '../../core/process/loading.ts';

const workerPath = join(import.meta.dirname, 'worker.ts');

// What was stripped of its types and compiled once is read by the next process; by processes that a test starts, too.
process.env['NODE_COMPILE_CACHE'] ??= join(
  process.env['TEST_KEPT'] ?? tmpdir(),
  `gateway-test-compiled-${userInfo().uid}`,
);
enableCompileCache(process.env['NODE_COMPILE_CACHE']);
const requested = process.env['NODE_OPTIONS'] ?? '';
if (!requested.includes(import.meta.url))
  process.env['NODE_OPTIONS'] = `${requested} --import=${import.meta.url}`.trim();

// Processes that a test starts inherit the variable, but run no tests.
const isFile = /\.test\.m?[jt]sx?$/.test(process.argv[1] ?? '');
if (isMainThread && process.env['NODE_TEST_CONTEXT'] !== undefined && (isFile || process.argv[1] === workerPath)) {
  if (!isFile) await loadTestsWithoutHooks();
  const { endProcess, endWithAllStarted } = await import('./end.ts');
  endWithAllStarted();
  if (isFile) (await import('node:test')).after(endProcess);
}

// As in the embedded database's own process: little of it runs often enough in a test to be worth compiling twice.
setFlagsFromString('--wasm-tiering-budget=400000000');

rememberModules();
resolveAuthorModules();
hashPasswordsCheaply();

/** A password takes a tenth of a second of a processor, of which nothing depends; `passwords.test.ts` hashes one as a gateway does. */
function hashPasswordsCheaply(): void {
  const { scrypt } = crypto;
  crypto.scrypt = ((password, salt, length, options, done) =>
    scrypt(password, salt, length, { ...options, N: 2 }, done)) as typeof crypto.scrypt;
  syncBuiltinESMExports();
}

/** Loads `node:test` so that it makes no async hook; `file-test.ts` says why. */
async function loadTestsWithoutHooks(): Promise<void> {
  const { createHook } = hooks;
  const none = { enable: () => none, disable: () => none };
  hooks.createHook = () => none;
  await import('node:test');
  hooks.createHook = createHook;
}
