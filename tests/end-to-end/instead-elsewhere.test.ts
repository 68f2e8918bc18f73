/** Models that serve for others where no plain call asks: turns of WebSockets, lines of batches, and models that are named by an alias. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { talk } from './sockets.ts';
import { type Customer, modelAt, speaks, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
let first: Vendor;
const large = 'sandbox-large';
/** Prices of the other model, in nano-USD a token. */
const dear = { input: 3, cache_read: 3, output: 6 };

before(async () => {
  first = await startVendor();
  const spoken = speaks(first.origin);
  const other = { ...modelAt({ provider: 'sandbox', model: 'sandbox' }), context: 1_000_000, price: dear };
  const own = { ...modelAt('first'), context: 8192 };
  testbed = await startTestbed({
    providers: () => ({
      first: { keys: 'first-key', speaks: spoken },
      chatting: { keys: 'chat-key', speaks: { chat: spoken.chat } },
    }),
    models: {
      [large]: { ...other, aliases: ['the-large-one'] },
      stands: {
        ...own,
        aliases: ['it-stands'],
        instead: { context_length: 'the-large-one', unavailable: ['the-large-one'] },
      },
      chats: { ...own, targets: ['chatting'], instead: { context_length: large, unavailable: [large] } },
    },
    more: { route: { breaker: { failures: 32 } } },
  });
});
after(async () => {
  await testbed.stop();
  await first.stop();
});

const json = { 'content-type': 'application/json' };
const prompt = 'Hello [[sandbox: tokens=20]]';
const refusal = (status: number, code: string) => ({
  ...{ status, headers: json },
  body: JSON.stringify({ error: { message: 'no', code, type: 'invalid_request_error' } }),
});
const failures = [refusal(400, 'context_length_exceeded'), refusal(503, 'overloaded')];

/** The one call was served by the other model, and costs what that does. */
async function checkServed(customer: Customer, had: bigint, of = 1): Promise<void> {
  const { calls } = await testbed.records(customer, of);
  const { model, cost, classes, absorbed, attempts } = calls.at(-1)!;
  assert.deepEqual([model, absorbed], [large, 0n]);
  assert.deepEqual(attempts.at(-1)!.bearer, 'client');
  assert.equal(cost, BigInt(classes.input!) * 3_000n + 20n * 6_000n);
  assert.equal(had - (await testbed.balance(customer)), cost);
  await testbed.audit();
}

for (const model of ['stands', 'it-stands', 'chats'])
  test(`a turn over WebSocket that "${model}" cannot serve is served by the other model, at its price`, async () => {
    for (const failure of failures) {
      const customer = await testbed.customer();
      const had = await testbed.balance(customer);
      const client = await talk(testbed.origin, customer.key);
      first.play(failure);
      const messages = await client.turn({ model, input: prompt });
      await client.close();
      assert.equal(messages.at(-1).type, 'response.completed', JSON.stringify(messages.at(-1)));
      await checkServed(customer, had);
    }
  });

test('a turn after one that another model has served continues with the whole conversation', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  first.play(failures[0]!);
  const served = (await client.turn({ model: 'stands', store: false, input: prompt })).at(-1).response;
  first.play(failures[1]!);
  const next = { model: 'stands', store: false, input: prompt, previous_response_id: served.id };
  assert.equal((await client.turn(next)).at(-1).type, 'response.completed');
  await client.close();
  const { calls } = await testbed.records(customer, 2);
  assert.deepEqual(
    calls.map(({ model }) => model),
    [large, large],
  );
  assert.ok(calls[1]!.classes.input! > calls[0]!.classes.input!, 'the earlier turn is part of it');
  await testbed.audit();
});

test('a call by an alias is served by the model that its settings name by an alias', async () => {
  for (const failure of failures) {
    const customer = await testbed.customer();
    const had = await testbed.balance(customer);
    first.play(failure);
    const reply = await testbed.call(customer, 'chat', { model: 'it-stands', prompt });
    assert.deepEqual([reply.status, reply.headers.get('x-gateway-model')], [200, large], reply.text);
    await checkServed(customer, had);
  }
  // A key that may call the model by its own name alone does not reach the other one.
  const bound = await testbed.customer({ models: ['stands'] });
  first.play(failures[0]!);
  assert.equal((await testbed.call(bound, 'chat', { model: 'it-stands', prompt })).status, 400);
});

test('each batch line is served by the other model, at its batch price', async () => {
  const customer = await testbed.customer();
  const had = await testbed.balance(customer);
  const post = async (path: string, body: FormData | object) => {
    const isForm = body instanceof FormData;
    const answer = await fetch(testbed.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.key}`, ...(isForm ? {} : json) },
      body: isForm ? body : JSON.stringify(body),
    });
    return (await answer.json()) as { id: string; status: string; request_counts: object };
  };
  const endpoint = '/v1/chat/completions';
  const lines = ['it-stands', 'chats', large].map((model, index) =>
    JSON.stringify({
      ...{ custom_id: `line-${index}`, method: 'POST', url: endpoint },
      body: { model, messages: [{ role: 'user', content: prompt }] },
    }),
  );
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([lines.join('\n')]), 'input.jsonl');
  first.play(failures[0]!, failures[0]!);
  const order = { input_file_id: (await post('/v1/files', form)).id, endpoint, completion_window: '24h' };
  const { id } = await post('/v1/batches', order);
  const read = () =>
    fetch(`${testbed.origin}/v1/batches/${id}`, { headers: { authorization: `Bearer ${customer.key}` } }).then(
      (answer) => answer.json() as Promise<{ status: string; request_counts: object }>,
    );
  const batch = await until('the batch has ended', async () => {
    const now = await read();
    return now.status === 'completed' ? now : undefined;
  });
  assert.deepEqual(batch.request_counts, { total: 3, completed: 3, failed: 0 });
  const { calls } = await testbed.records(customer, 3);
  assert.deepEqual(
    calls.map(({ model }) => model),
    [large, large, large],
  );
  // The third names it itself: all three cost the same.
  assert.equal(new Set(calls.map(({ cost }) => cost)).size, 1, JSON.stringify(calls.map(({ cost }) => String(cost))));
  assert.equal(
    had - (await testbed.balance(customer)),
    calls.reduce((sum, { cost }) => sum + cost, 0n),
  );
  await testbed.audit();
});
