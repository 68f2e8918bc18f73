/** The embedded database's process starts while the gateway still loads, and makes a new database: one, for the first directory, and for nothing else. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { keepEmbeddedProcesses, useEmbedded } from '../../../plugins/storage/embedded/keeper.ts';
import { lockDirectory } from '../../../plugins/storage/embedded/lock.ts';
import storage from '../../../plugins/storage/index.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

// As gateways have it.
keepEmbeddedProcesses(false);

const directory = temporaryDirectory();
await fillDirectory(directory);

const place = { directory, schema: 'demo' };

const started: ChildProcess[] = [];
subscribe('child_process', (message) => {
  started.push((message as { process: ChildProcess }).process);
});

async function openAndClose(path = directory): Promise<void> {
  const embedded = await useEmbedded(path, 'serve', fakeHost().log);
  assert(embedded.alive());
  await embedded.release();
}

test('the process that was started early opens the database', async () => {
  storage.warmUp!({ database: 'postgres://db.example/gateway' }, place);
  assert.equal(started.length, 0);
  storage.warmUp!(undefined, place);
  storage.warmUp!({ database: 'embedded' }, place);
  assert.equal(started.length, 1);
  await openAndClose();
  assert.equal(started.length, 1);
  assert.equal(started[0]!.exitCode, 0);
});

test('a process that has died meanwhile is replaced', async () => {
  started.length = 0;
  storage.warmUp!(undefined, place);
  started[0]!.kill('SIGKILL');
  await once(started[0]!, 'exit');
  await openAndClose();
  assert.equal(started.length, 2);
});

test('a new database is made before it is opened, and is the one that is opened', async () => {
  started.length = 0;
  const path = join(temporaryDirectory(), 'new', 'data');
  storage.warmUp!(undefined, { directory: path, schema: 'demo' });
  while (!existsSync(join(path, 'postgres.mark'))) await pause(10);
  const { ino } = statSync(join(path, 'postgres/PG_VERSION'));
  await openAndClose(path);
  assert.equal(statSync(join(path, 'postgres/PG_VERSION')).ino, ino);
  assert.equal(started.length, 1);
});

test('a new database that is not opened is taken away with its folders, but for one that holds a file of another', async () => {
  for (const isShared of [false, true]) {
    started.length = 0;
    const home = temporaryDirectory();
    const path = join(home, 'new', 'data');
    storage.warmUp!(undefined, { directory: path, schema: 'demo' });
    while (!existsSync(join(path, 'postgres.mark'))) await pause(10);
    if (isShared) writeFileSync(join(path, 'journal'), '');
    started[0]!.disconnect();
    await once(started[0]!, 'exit');
    assert.deepEqual(readdirSync(home, { recursive: true }), isShared ? ['new', 'new/data', 'new/data/journal'] : []);
  }
});

test('a database that exists is opened by nothing but an order', async () => {
  started.length = 0;
  storage.warmUp!(undefined, place);
  started[0]!.disconnect();
  await once(started[0]!, 'exit');
  await openAndClose();
});

test('two that wait for a directory whose lock is taken away are not both its owners', async () => {
  const path = temporaryDirectory();
  const first = await lockDirectory(path, 0);
  const waiting = lockDirectory(path, 5_000);
  rmSync(join(path, 'postgres.guard'));
  first!.release();
  const second = await lockDirectory(path, 0);
  assert(second !== undefined);
  await pause(200);
  second.release();
  const third = await waiting;
  assert.equal(await lockDirectory(path, 0), undefined);
  third!.release();
});

test('a gateway with a refused file ends, and leaves nothing', async () => {
  const home = temporaryDirectory();
  const file = join(home, 'wrong.yaml');
  writeFileSync(file, 'gateway: wrong\nplugins: [storage, auth]\nauth: { colour: blue }\n');
  const child = spawn(process.execPath, ['core/process/main.ts', 'serve', file], {
    env: { ...process.env, DATA_DIR: join(home, 'data') },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  await once(child, 'close');
  assert.match(text, /colour/);
  // Its database's process ends a moment later.
  while (existsSync(join(home, 'data'))) await pause(20);
});
