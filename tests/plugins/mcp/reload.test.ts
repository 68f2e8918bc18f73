/** Settings of tool servers that change while the gateway serves, and what failed calls cost where servers bill them. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { until } from '../../helpers/until.ts';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld({ servers: ', price: { call: 0.5, failed: true }' });
});
after(() => world.stop());

async function change(from: RegExp, to: string): Promise<void> {
  const file = join(world.gateway.directory, 'gateway.yaml');
  const text = await readFile(file, 'utf8');
  assert.match(text, from);
  await writeFile(file, text.replaceAll(from, to));
  const { problems } = await world.gateway.gateway.reload();
  assert.deepEqual(problems, []);
}

test('a call that fails costs its price where the server bills it, and one of an unknown tool nothing', async () => {
  const { id, key } = await world.account('10');
  const connected = await world.client(key, 'modern');
  assert.equal((await connected.callTool({ name: 'new__fails' })).isError, true);
  await world.charges(id, 1);
  await assert.rejects(connected.callTool({ name: 'old__throws' }), { code: -32_602 });
  await world.charges(id, 2);
  await assert.rejects(connected.callTool({ name: 'new__big' }), /did not answer as it should/);
  await world.charges(id, 3);
  await assert.rejects(connected.callTool({ name: 'new__nothing' }), /Unknown tool/);
  assert.equal(await world.balance(id), 8_500_000_000n);
  await connected.close();
});

test('changed servers serve new requests, and sessions of the earlier ones end with the last call that uses them', async () => {
  const { id, key } = await world.account('10');
  const connected = await world.client(key, 'modern');
  const calls = () => world.servers.legacy.seen.filter(({ method }) => method === 'tools/call').length;
  const before = calls();
  const gone = new AbortController();
  const slow = connected.callTool({ name: 'old__slow', arguments: { ms: 60_000 } }, { signal: gone.signal });
  await until('the call at the server', () => calls() > before);
  await change(/call: 0\.5/g, 'call: 2');
  await connected.callTool({ name: 'old__echo' });
  assert.equal((await world.charges(id, 1))[0]!.change, '-2.00');
  assert.deepEqual(world.servers.legacy.closed, [], 'a call runs in the earlier session');
  gone.abort();
  await assert.rejects(slow);
  await until('the end of the earlier session', () => world.servers.legacy.closed.length === 1);
  // It cost what it cost when it began.
  assert.ok((await world.charges(id, 2)).some(({ change: by }) => by === '-0.50'));
});

test('a reload that changes another section keeps the connections to servers', async () => {
  const { key } = await world.account('10');
  const connected = await world.client(key, 'modern');
  await connected.callTool({ name: 'old__echo' });
  const opened = () => world.servers.legacy.seen.filter(({ method }) => method === 'initialize').length;
  const [before, closed] = [opened(), world.servers.legacy.closed.length];
  await change(/free: \{ price: 0 \}/g, 'free: { price: 0, multiplier: 2 }');
  await connected.callTool({ name: 'old__echo' });
  assert.deepEqual([opened(), world.servers.legacy.closed.length], [before, closed]);
});
