/** The lock of a data directory: one owner, also after crashes and with concurrent takers. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { lockDirectory, readOwner } from '../../../plugins/storage/embedded/lock.ts';

const taker = fileURLToPath(new URL('./lock-taker.ts', import.meta.url));

function newDirectory(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A process that tries once; it keeps what it got until it is killed. */
function startTaker(context: TestContext, directory: string): ChildProcess {
  const child = fork(taker, [directory], { execArgv: [] });
  context.after(() => child.kill('SIGKILL'));
  return child;
}

test('a taken directory is refused, and free again after its release', async (context) => {
  const directory = newDirectory(context);
  const lock = await lockDirectory(directory, 0);
  lock!.publish('/some/socket');
  assert.deepEqual(readOwner(directory), { pid: process.pid, gatewayPid: process.ppid, address: '/some/socket' });
  assert.equal(await lockDirectory(directory, 0), undefined);
  lock!.release();
  assert.equal(existsSync(join(directory, 'postgres.lock')), false);
  const next = await lockDirectory(directory, 0);
  assert.notEqual(next, undefined);
  next!.release();
});

test('a waiting process gets the directory when its owner releases it', async (context) => {
  const directory = newDirectory(context);
  const lock = await lockDirectory(directory, 0);
  setTimeout(() => lock!.release(), 120);
  const next = await lockDirectory(directory, 5_000);
  assert.notEqual(next, undefined);
  next!.release();
});

test('the lock of a killed owner is taken by exactly one of many takers', async (context) => {
  const directory = newDirectory(context);
  const owner = startTaker(context, directory);
  assert.deepEqual(await once(owner, 'message'), ['taken', undefined]);
  const refused = startTaker(context, directory);
  assert.deepEqual(await once(refused, 'message'), ['refused', undefined]);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  assert.equal(readOwner(directory)!.pid, owner.pid);
  const takers = Array.from({ length: 6 }, () => startTaker(context, directory));
  const answers = await Promise.all(takers.map(async (child) => (await once(child, 'message'))[0]));
  assert.deepEqual(answers.sort(), ['refused', 'refused', 'refused', 'refused', 'refused', 'taken']);
  assert.ok(takers.some(({ pid }) => pid === readOwner(directory)!.pid));
});

test('a lock file that names another live process, or is invalid, blocks no start', async (context) => {
  const directory = newDirectory(context);
  for (const text of [JSON.stringify({ pid: process.ppid, gatewayPid: 1, address: '' }), 'not json', '']) {
    writeFileSync(join(directory, 'postgres.lock'), text);
    const lock = await lockDirectory(directory, 0);
    assert.equal(readOwner(directory)!.pid, process.pid);
    lock!.release();
  }
});
