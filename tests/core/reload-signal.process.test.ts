/** SIGHUP of a real process: its gateways read their files again, each by itself, and go on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileOf, portOf, send, serve, until, write, written } from './serving.ts';

write('first', 0);
write('second', 0);
const child = serve(fileOf('first'), fileOf('second'));
await until(() => portOf('first') !== undefined && portOf('second') !== undefined);

test('SIGHUP applies a good file and refuses a broken one, and neither ends the process', async () => {
  write('first', 1);
  writeFileSync(fileOf('second'), 'gateway: second\nplugins: [passthrough]\npassthrough: { up: 1 }\n');
  child.kill('SIGHUP');
  await until(() => written().includes('in force') && written().includes('the running configuration stays'));
  assert.match(written(), /"gateway":"second".*second\.yaml:3/);
  assert.deepEqual([await send('first'), await send('second')], ['1', '0']);
  write('second', 1);
  child.kill('SIGHUP');
  await until(() => /"gateway":"second".*in force/.test(written()));
  assert.equal(await send('second'), '1');
});

test('SIGUSR2 does not end a process without workers', async () => {
  child.kill('SIGUSR2');
  await until(() => written().includes('without --workers'));
  assert.equal(await send('second'), '1');
});

test('SIGTERM ends a process in order after reload signals', async () => {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
});
