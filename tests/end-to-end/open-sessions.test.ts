/** What a reload, and a stop, mean for sessions that are open: turns, realtime responses, and connections to vendors. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { talk } from './sockets.ts';
import { type CallRow, modelAt, startTestbed, type Testbed, until } from './testbed.ts';

/** A token of the input costs so many micro-USD, and one of the output twice as many. */
const priced = (version: number) => ({ input: version, cache_read: version, output: 2 * version });
const modelsOf = (version: number) => ({
  translated: { ...modelAt('chat'), price: priced(version) },
  relayed: { ...modelAt('relayed'), price: priced(version) },
  voice: { ...modelAt('voice'), kind: 'realtime', context: '32k', price: priced(version) },
});

async function withTestbed(check: (testbed: Testbed) => Promise<void>): Promise<void> {
  const keys = 'vendor-key-of-the-sandbox';
  await using testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      chat: { keys, speaks: { chat: `${sandbox}/v1` } },
      relayed: { keys, speaks: { responses: `${sandbox}/v1` }, dialect: { responses: { websocket: true } } },
      voice: { keys, speaks: { 'openai-realtime': `${sandbox}/v1` } },
    }),
    models: modelsOf(1),
    more: { websockets: { per_key: 8 }, server: { drain: { grace: '50ms', deadline: '20s' } } },
  });
  await check(testbed);
}

/** Applies other sections. */
async function reload(testbed: Testbed, changed: Record<string, object>): Promise<void> {
  const file = join(testbed.gateway.directory, 'gateway.yaml');
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => {
    const name = line.split(':', 1)[0]!;
    return name in changed ? `${name}: ${JSON.stringify(changed[name])}` : line;
  });
  await writeFile(file, lines.join('\n'));
  const { problems, changes } = await testbed.gateway.gateway.reload();
  assert.deepEqual(problems, []);
  assert.deepEqual(
    changes.map(({ section, restart }) => [section, restart]).sort(),
    Object.keys(changed)
      .map((name) => [name, false])
      .sort(),
  );
}

const slow = 'Slowly [[sandbox: tokens=30 chunks=30 chunk_delay=40ms]]';
const paid = ({ cost, classes: { input = 0, cache_read: read = 0, output = 0, reasoning = 0 } }: CallRow) =>
  cost / 1_000n / BigInt(input + read + 2 * (output + reasoning));

for (const model of ['translated', 'relayed'])
  test(`a reload keeps the price of a running turn; the next one on the connection has the new price (${model})`, () =>
    withTestbed(async (testbed) => {
      const customer = await testbed.customer();
      const client = await talk(testbed.origin, customer.key);
      client.send({ type: 'response.create', model, store: false, input: slow });
      await until('it has begun', () => client.messages.length > 4);
      await reload(testbed, { models: { ...modelsOf(3), sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
      const first = (await client.next()).at(-1);
      assert.equal(first.type, 'response.completed');
      const more = { model, store: false, input: 'And now?', previous_response_id: first.response.id };
      assert.equal((await client.turn(more)).at(-1).response.previous_response_id, first.response.id);
      // A model that is gone is an error of the turn, not of the connection.
      const { translated: _translated, relayed: _relayed, ...others } = modelsOf(3);
      await reload(testbed, { models: { ...others, sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
      const gone = (await client.turn({ model, input: 'Hello' })).at(-1);
      assert.deepEqual([gone.status, gone.error.code], [404, 'model_not_found']);
      await client.close();
      const { charges } = await testbed.records(customer, 2);
      assert.deepEqual(charges.map(paid), [1n, 3n]);
      await testbed.audit();
    }));

test('a reload keeps a realtime session open; responses that begin after it have the new price', () =>
  withTestbed(async (testbed) => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key, '/v1/realtime?model=voice');
    const done = () => client.messages.filter(({ type }) => type === 'response.done').length;
    const respond = async (count: number) => {
      client.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      });
      client.send({ type: 'response.create', response: { output_modalities: ['text'] } });
      await until('the response is done', () => done() === count);
    };
    await respond(1);
    await reload(testbed, { models: { ...modelsOf(3), sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
    await respond(2);
    await respond(3);
    await client.close();
    // One of them opened the session, and costs nothing.
    const { charges } = await testbed.records(customer, 4);
    assert.deepEqual(charges.map(paid), [1n, 3n, 3n]);
    await testbed.audit();
  }));

test('new limits apply to connections opened later, and close none', () =>
  withTestbed(async (testbed) => {
    const customer = await testbed.customer();
    const clients = [await talk(testbed.origin, customer.key), await talk(testbed.origin, customer.key)];
    await reload(testbed, { websockets: { per_key: 1 } });
    await assert.rejects(talk(testbed.origin, customer.key), /429/);
    for (const client of clients) {
      const last = (await client.turn({ model: 'translated', input: 'Hello' })).at(-1);
      assert.equal(last.type, 'response.completed');
      await client.close();
    }
  }));

test('a stop waits for a turn over WebSocket at the vendor, and leaves no connection there', () =>
  withTestbed(async (testbed) => {
    const customer = await testbed.customer();
    const [busy, idle] = [await talk(testbed.origin, customer.key), await talk(testbed.origin, customer.key)];
    await idle.turn({ model: 'relayed', store: false, input: 'Hello' });
    busy.send({ type: 'response.create', model: 'relayed', store: false, input: slow });
    await until('it has begun', () => busy.messages.length > 4);
    const stopping = testbed.gateway.gateway.stop();
    assert.equal(await idle.closed, 1012);
    assert.equal(await busy.closed, 1012);
    assert.equal(busy.messages.at(-1).type, 'response.completed');
    await stopping;
    const { complete, cut, open } = testbed.sandbox.bill();
    assert.deepEqual({ complete, cut, open }, { complete: 2, cut: 0, open: 0 });
  }));
