/** A primary of a gateway without storage: workers are replaced, reloaded, killed and stopped without a database. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { count, fileOf, send, serve, until, write, written } from './serving.ts';

write('plain', 0);
const child = serve('--workers', '2', fileOf('plain'));
await until(() => count('a worker serves') === 2);

/** Process id of the worker that began to serve last. */
const lastPid = () => Number([...written().matchAll(/"pid":(\d+),"msg":"a worker serves"/g)].at(-1)![1]);

test('all workers listen at one address, and a reload reaches each', async () => {
  const ports = new Set(Array.from(written().matchAll(/"port":(\d+),"msg":"listening"/g), ([, port]) => port));
  assert.equal(ports.size, 1);
  write('plain', 1);
  child.kill('SIGHUP');
  await until(() => count('in force') === 2);
  assert.deepEqual(await Promise.all([send('plain'), send('plain'), send('plain'), send('plain')]), [
    '1',
    '1',
    '1',
    '1',
  ]);
});

test('a killed worker is replaced', async () => {
  process.kill(lastPid(), 'SIGKILL');
  await until(() => count('a worker serves') === 3);
  assert.equal(await send('plain'), '1');
});

test('a worker that ends on SIGTERM is replaced', async () => {
  process.kill(lastPid(), 'SIGTERM');
  await until(() => count('a worker serves') === 4);
  assert.equal(await send('plain'), '1');
});

test('a signal during a replacement of workers replaces them once more', async () => {
  for (let signal = 0; signal < 3; signal++) {
    child.kill('SIGUSR2');
    await pause(50);
  }
  await until(() => count('the workers are replaced') === 2);
  assert.equal(count('a worker serves'), 8);
  assert.equal(await send('plain'), '1');
});

test('SIGTERM ends all workers', async () => {
  child.kill('SIGTERM');
  assert.equal((await once(child, 'exit'))[0], 0);
  assert.throws(() => process.kill(lastPid(), 0));
});
