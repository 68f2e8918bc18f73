/** The embedded database's process starts while the gateway still loads: one, for the first database, and for nothing else. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keepEmbeddedProcesses, useEmbedded } from '../../../plugins/storage/embedded/keeper.ts';
import storage from '../../../plugins/storage/index.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

// As gateways have it.
keepEmbeddedProcesses(false);

const directory = temporaryDirectory();
await fillDirectory(directory);

const started: ChildProcess[] = [];
subscribe('child_process', (message) => {
  started.push((message as { process: ChildProcess }).process);
});

async function openAndClose(): Promise<void> {
  const embedded = await useEmbedded(directory, 'serve', fakeHost().log);
  assert(embedded.alive());
  await embedded.release();
}

test('the process that was started early opens the database', async () => {
  storage.warmUp!({ database: 'postgres://db.example/gateway' });
  assert.equal(started.length, 0);
  storage.warmUp!(undefined);
  storage.warmUp!({ database: 'embedded' });
  assert.equal(started.length, 1);
  await openAndClose();
  assert.equal(started.length, 1);
  assert.equal(started[0]!.exitCode, 0);
});

test('a process that has died meanwhile is replaced', async () => {
  started.length = 0;
  storage.warmUp!(undefined);
  started[0]!.kill('SIGKILL');
  await once(started[0]!, 'exit');
  await openAndClose();
  assert.equal(started.length, 2);
});

test('a gateway with a refused file ends, and has made nothing', async () => {
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
  // Its errors' pipe is closed once all processes that have it have ended.
  await once(child, 'close');
  assert.match(text, /colour/);
  assert.equal(existsSync(join(home, 'data')), false);
});
