/** What a reload, and a stop, mean for sessions that are open: turns, realtime responses, and connections to vendors. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CallRow, type House, modelAt, startHouse, until } from './house.ts';
import { talk } from './sockets.ts';

/** A token of the input costs so many micro-USD, and one of the output twice as many. */
const priced = (version: number) => ({ input: version, cache_read: version, output: 2 * version });
const modelsOf = (version: number) => ({
  translated: { ...modelAt('chat'), price: priced(version) },
  relayed: { ...modelAt('relayed'), price: priced(version) },
  voice: { ...modelAt('voice'), kind: 'realtime', context: '32k', price: priced(version) },
});

async function housed(check: (house: House) => Promise<void>): Promise<void> {
  const keys = 'vendor-key-of-the-sandbox';
  const house = await startHouse({
    providers: ({ sandbox }) => ({
      chat: { keys, speaks: { chat: `${sandbox}/v1` } },
      relayed: { keys, speaks: { responses: `${sandbox}/v1` }, dialect: { responses: { websocket: true } } },
      voice: { keys, speaks: { 'openai-realtime': `${sandbox}/v1` } },
    }),
    models: modelsOf(1),
    more: { websockets: { per_key: 8 }, server: { drain: { grace: '50ms', deadline: '20s' } } },
  });
  try {
    await check(house);
  } finally {
    await house.stop();
  }
}

/** Applies other sections. */
async function reload(house: House, changed: Record<string, object>): Promise<void> {
  const file = join(house.gateway.directory, 'gateway.yaml');
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => {
    const name = line.split(':', 1)[0]!;
    return name in changed ? `${name}: ${JSON.stringify(changed[name])}` : line;
  });
  await writeFile(file, lines.join('\n'));
  const { problems, changes } = await house.gateway.gateway.reload();
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
  test(`a reload lets a turn go on at its price; the next one on the connection has the new one (${model})`, () =>
    housed(async (house) => {
      const customer = await house.customer();
      const client = await talk(house.origin, customer.key);
      client.send({ type: 'response.create', model, store: false, input: slow });
      await until('it has begun', () => client.messages.length > 4);
      await reload(house, { models: { ...modelsOf(3), sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
      const first = (await client.next()).at(-1);
      assert.equal(first.type, 'response.completed');
      const more = { model, store: false, input: 'And now?', previous_response_id: first.response.id };
      assert.equal((await client.turn(more)).at(-1).response.previous_response_id, first.response.id);
      // A model that is gone is an error of the turn, not of the connection.
      const { translated: _translated, relayed: _relayed, ...others } = modelsOf(3);
      await reload(house, { models: { ...others, sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
      const gone = (await client.turn({ model, input: 'Hello' })).at(-1);
      assert.deepEqual([gone.status, gone.error.code], [404, 'model_not_found']);
      await client.close();
      const { charges } = await house.books(customer, 2);
      assert.deepEqual(charges.map(paid), [1n, 3n]);
      await house.audit();
    }));

test('a reload leaves a realtime session open; what begins after it has the new price', () =>
  housed(async (house) => {
    const customer = await house.customer();
    const client = await talk(house.origin, customer.key, '/v1/realtime?model=voice');
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
    await reload(house, { models: { ...modelsOf(3), sandbox: modelAt('sandbox'), replay: modelAt('replay') } });
    await respond(2);
    await respond(3);
    await client.close();
    // One of them opened the session, and costs nothing.
    const { charges } = await house.books(customer, 4);
    assert.deepEqual(charges.map(paid), [1n, 3n, 3n]);
    await house.audit();
  }));

test('new bounds hold for connections that are opened then, and close none', () =>
  housed(async (house) => {
    const customer = await house.customer();
    const clients = [await talk(house.origin, customer.key), await talk(house.origin, customer.key)];
    await reload(house, { websockets: { per_key: 1 } });
    await assert.rejects(talk(house.origin, customer.key), /429/);
    for (const client of clients) {
      const last = (await client.turn({ model: 'translated', input: 'Hello' })).at(-1);
      assert.equal(last.type, 'response.completed');
      await client.close();
    }
  }));

test('a stop finishes a turn that runs over WebSocket at the vendor, and leaves no connection there', () =>
  housed(async (house) => {
    const customer = await house.customer();
    const [busy, idle] = [await talk(house.origin, customer.key), await talk(house.origin, customer.key)];
    await idle.turn({ model: 'relayed', store: false, input: 'Hello' });
    busy.send({ type: 'response.create', model: 'relayed', store: false, input: slow });
    await until('it has begun', () => busy.messages.length > 4);
    const stopping = house.gateway.gateway.stop();
    assert.equal(await idle.closed, 1012);
    assert.equal(await busy.closed, 1012);
    assert.equal(busy.messages.at(-1).type, 'response.completed');
    await stopping;
    const { complete, cut, open } = house.sandbox.bill();
    assert.deepEqual({ complete, cut, open }, { complete: 2, cut: 0, open: 0 });
  }));
