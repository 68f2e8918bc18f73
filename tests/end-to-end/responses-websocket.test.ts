/** Responses over WebSocket: the rules of its transport, with upstreams of all four protocols. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Message, refusal, talk } from './sockets.ts';
import { modelAt, startTestbed, type Testbed, until } from './testbed.ts';

const upstreams = ['chat', 'responses', 'messages', 'gemini'] as const;
let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox, replay }) =>
      Object.fromEntries(
        upstreams
          .map((name) => [
            `only-${name}`,
            { keys: 'vendor-key-of-the-sandbox', speaks: { [name]: addressOf(name, sandbox) } },
          ])
          .concat([
            ['replayed', { keys: 'k', speaks: { responses: `${replay}/v1` } }],
            ['chatting', { keys: 'k', speaks: { chat: `${replay}/v1` } }],
          ]),
      ),
    models: {
      ...Object.fromEntries(upstreams.map((name) => [`by-${name}`, modelAt(`only-${name}`)])),
      replayed: modelAt('replayed'),
      blind: { ...modelAt('chatting'), traits: { inputs: [] } },
    },
    offers: { single: { price: 0, limits: { concurrency: 1 } } },
    more: { websockets: { per_key: 3, queue: 2, message: '64KB' } },
  });
});
after(() => testbed.stop());

const addressOf = (name: string, origin: string) =>
  name === 'messages' ? origin : name === 'gemini' ? `${origin}/v1beta` : `${origin}/v1`;

const hello = { model: 'sandbox', input: 'Hello [[sandbox: tokens=20]]' };
const typesOf = (messages: readonly Message[]) => messages.map(({ type }) => type);
const textOf = (message: Message) =>
  message.response.output
    .flatMap((item: Message) => item.content ?? [])
    .map((part: Message) => part.text)
    .join('');

for (const name of upstreams)
  test(`a turn has the events and the charge of a POST (${name})`, async () => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key);
    const question = { ...hello, model: `by-${name}` };
    const messages = await client.turn(question);
    await client.close();
    const posted = await testbed.call(customer, 'responses', {
      model: `by-${name}`,
      prompt: question.input,
      stream: true,
    });
    const events = [...posted.text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!));
    assert.deepEqual(typesOf(messages), typesOf(events));
    assert.deepEqual(
      messages.map((message) => message.sequence_number),
      events.map((event) => event.sequence_number),
    );
    assert.equal(messages[0].type, 'response.created');
    const last = messages.at(-1);
    assert.equal(last.type, 'response.completed');
    assert.equal(last.response.usage.output_tokens, 20);
    const { charges } = await testbed.records(customer, 2);
    assert.equal(charges.length, 2);
    assert.equal(charges[0]!.cost, charges[1]!.cost);
    await testbed.audit();
  });

for (const name of upstreams)
  test(`without storing, a turn continues the last one on this connection alone (${name})`, async () => {
    const customer = await testbed.customer();
    const client = await talk(testbed.origin, customer.key);
    const base = { model: `by-${name}`, store: false };
    const first = (await client.turn({ ...base, input: 'The word is heliotrope. [[sandbox: tokens=20]]' })).at(
      -1,
    ).response;
    const more = { input: [{ type: 'message', role: 'user', content: 'And now?' }] };
    const [{ input: alone = 0 } = {}] = testbed.sandbox
      .bill()
      .recent.slice(-1)
      .map(({ usage }) => usage);
    const second = (await client.turn({ ...base, ...more, previous_response_id: first.id })).at(-1).response;
    assert.equal(second.status, 'completed');
    assert.equal(second.previous_response_id, first.id);
    // The vendor got the whole conversation: it is longer than what was sent.
    assert.ok(testbed.sandbox.bill().recent.at(-1)!.usage.input! > alone);
    const elsewhere = await talk(testbed.origin, customer.key);
    const lost = (await elsewhere.turn({ ...base, ...more, previous_response_id: second.id })).at(-1);
    assert.deepEqual(
      [lost.type, lost.status, lost.error.code, lost.error.param],
      ['error', 400, 'previous_response_not_found', 'previous_response_id'],
    );
    assert.equal(lost.error.message, `Previous response with id '${second.id}' not found.`);
    // The connection stays open.
    assert.equal((await elsewhere.turn({ ...base, input: 'Hello' })).at(-1).type, 'response.completed');
    await Promise.all([client.close(), elsewhere.close()]);
    assert.equal((await testbed.records(customer, 3)).charges.length, 3);
  });

test('a stored response is found on any connection', async () => {
  const customer = await testbed.customer();
  const [one, other] = [await talk(testbed.origin, customer.key), await talk(testbed.origin, customer.key)];
  const first = (await one.turn({ ...hello, model: 'by-chat' })).at(-1).response;
  const again = { model: 'by-chat', input: 'And?', previous_response_id: first.id };
  assert.equal((await one.turn(again)).at(-1).type, 'response.completed');
  assert.equal((await other.turn(again)).at(-1).type, 'response.completed');
  await Promise.all([one.close(), other.close()]);
});

test('a failed turn evicts the response that it continued', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const base = { model: 'by-chat', store: false };
  const first = (await client.turn({ ...base, input: 'Hello' })).at(-1).response;
  const failed = (await client.turn({ ...base, model: 'nowhere', input: 'x', previous_response_id: first.id })).at(-1);
  assert.deepEqual([failed.type, failed.status, failed.error.code], ['error', 404, 'model_not_found']);
  const gone = (await client.turn({ ...base, input: 'x', previous_response_id: first.id })).at(-1);
  assert.equal(gone.error.code, 'previous_response_not_found');
  await client.close();
});

test("a turn with an unsupported member is refused by the member's name, and the connection stays open", async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const refused: [object | string, string | null][] = [
    [{ type: 'response.create', ...hello, stream: false }, 'stream'],
    [{ type: 'response.create', ...hello, stream_options: {} }, 'stream_options'],
    [{ type: 'response.create', ...hello, background: true }, 'background'],
    [{ type: 'response.create', ...hello, generate: 'no' }, 'generate'],
    [{ type: 'response.create', ...hello, previous_response_id: 7 }, 'previous_response_id'],
    [{ type: 'response.cancel' }, 'type'],
    [{ ...hello }, 'type'],
    ['nothing', null],
    ['[]', null],
    ['{"type":"response.create"', null],
    [{ type: 'response.create', input: 'x' }, 'model'],
  ];
  for (const [message, field] of refused) {
    client.send(message);
    const last = (await client.next()).at(-1);
    assert.deepEqual(
      [last.type, last.status, last.error.type],
      ['error', 400, 'invalid_request_error'],
      JSON.stringify(message),
    );
    assert.equal(last.error.param ?? null, field, JSON.stringify(message));
  }
  // What coding clients send is understood.
  assert.equal(
    (await client.turn({ ...hello, stream: true, client_metadata: { a: 'b' } })).at(-1).type,
    'response.completed',
  );
  const laned = await client.turn({ ...hello, stream_id: 'lane 1' });
  assert.ok(laned.every(({ stream_id }) => stream_id === 'lane 1'));
  await client.close();
  assert.equal((await testbed.records(customer, 2)).charges.length, 2);
});

test('a warm-up answers without output and charge, and can be continued', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const long = 'word '.repeat(400);
  const warm = await client.turn({ model: 'by-messages', input: long, generate: false, store: false });
  assert.deepEqual(typesOf(warm), ['response.created', 'response.completed']);
  assert.deepEqual(warm.at(-1).response.output, []);
  const next = { model: 'by-messages', input: [], store: false, previous_response_id: warm.at(-1).response.id };
  const answer = (await client.turn(next)).at(-1);
  assert.equal(answer.type, 'response.completed');
  assert.ok(answer.response.usage.input_tokens > 300);
  await client.close();
  assert.equal((await testbed.records(customer, 1)).charges.length, 1);
});

test('a turn of a model without images continues one with an image, stored or on the connection alone', async () => {
  const customer = await testbed.customer();
  const picture = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==' };
  const shown = [{ role: 'user', content: [{ type: 'input_text', text: 'See. [[sandbox: tokens=20]]' }, picture] }];
  const chunk = (delta: object, finish: string | null, more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
  const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
  const body = `${chunk({ role: 'assistant', content: 'Done.' }, null)}${chunk({}, 'stop', { usage })}data: [DONE]\n\n`;
  const client = await talk(testbed.origin, customer.key);
  for (const store of [true, false]) {
    const first = (await client.turn({ model: 'by-chat', store, input: shown })).at(-1).response;
    testbed.replay.play({ headers: { 'content-type': 'text/event-stream' }, body });
    const next = { model: 'blind', store, input: 'Go on.', previous_response_id: first.id };
    const last = (await client.turn(next)).at(-1);
    assert.equal(last.type, 'response.completed', JSON.stringify(last));
    const sent = testbed.replay.requests.at(-1)!.body.toString();
    assert.match(sent, /\(image that cannot be shown\)/);
    assert.doesNotMatch(sent, /iVBORw0KGgo/);
    const refused = (await client.turn({ ...next, input: shown, previous_response_id: last.response.id })).at(-1);
    assert.equal(refused.type, 'error');
    assert.match(refused.error.param, /^input\[\d\]\.content\[1\]$/);
  }
  await client.close();
});

test('turns wait for one another in order, and more than the bound are refused', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const client = await talk(testbed.origin, customer.key);
  const slow = { ...hello, input: 'Slowly [[sandbox: tokens=20 chunk_delay=20ms]]' };
  for (let turn = 0; turn < 4; turn += 1)
    client.send({ type: 'response.create', ...slow, metadata: { turn: String(turn) } });
  await until('all have ended', () => client.messages.filter(({ type }) => type === 'response.completed').length === 3);
  const refused = client.messages.filter(({ type }) => type === 'error');
  assert.deepEqual(
    refused.map(({ status, error }) => [status, error.code]),
    [[429, 'rate_limit_exceeded']],
  );
  const heads = client.messages.filter(({ type }) => type === 'response.created' || type === 'response.completed');
  assert.deepEqual(typesOf(heads), Array.from({ length: 3 }, () => ['response.created', 'response.completed']).flat());
  assert.deepEqual(
    heads.filter((_, index) => index % 2 === 0).map(({ response }) => response.metadata.turn),
    ['0', '1', '2'],
  );
  await client.close();
  await testbed.records(customer, 3);
});

test('refused upgrades are HTTP answers: no key, a wrong key, too many connections', async () => {
  const customer = await testbed.customer();
  const none = await refusal(testbed.origin, '/v1/responses', {});
  assert.deepEqual([none.status, none.json.error.code], [401, 'invalid_api_key']);
  assert.equal((await refusal(testbed.origin, '/v1/responses', { authorization: 'Bearer x' })).status, 401);
  const open = await Promise.all([1, 2, 3].map(() => talk(testbed.origin, customer.key)));
  const full = await refusal(testbed.origin, '/v1/responses', { authorization: `Bearer ${customer.key}` });
  assert.deepEqual([full.status, full.json.error.code, full.headers['retry-after']], [429, 'rate_limit_exceeded', '5']);
  await open.pop()!.close();
  const again = () => talk(testbed.origin, customer.key).catch(() => undefined);
  open.push(await until('its place is free', again));
  await Promise.all(open.map((client) => client.close()));
});

test('each turn without money gets an error event, and a top-up applies to the next turn', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n });
  const client = await talk(testbed.origin, customer.key);
  const refused = (await client.turn(hello)).at(-1);
  assert.deepEqual([refused.type, refused.status], ['error', 402]);
  await testbed.credit(customer, 10_000_000_000n);
  assert.equal((await client.turn(hello)).at(-1).type, 'response.completed');
  await client.close();
});

test('binary messages close the connection with 1003, large ones with 1009', async () => {
  const customer = await testbed.customer();
  const binary = await talk(testbed.origin, customer.key);
  binary.socket.send(Buffer.from('{}'), { binary: true });
  assert.equal(await binary.closed, 1003);
  assert.equal(binary.messages[0].error.type, 'invalid_request_error');
  const large = await talk(testbed.origin, customer.key);
  large.send({ type: 'response.create', ...hello, input: 'x'.repeat(70_000) });
  assert.equal(await large.closed, 1009);
});

test('a vendor that breaks off in the middle: response.failed, and the received part is charged once', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  const frame = (data: object & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] };
  const body =
    frame({ type: 'response.created', sequence_number: 0, response } as never) +
    frame({
      type: 'response.output_text.delta',
      sequence_number: 1,
      delta: 'Once upon a time',
      item_id: 'm',
      output_index: 0,
      content_index: 0,
    } as never);
  testbed.replay.play({ headers: { 'content-type': 'text/event-stream' }, body, dieAfter: body.length });
  const messages = await client.turn({ model: 'replayed', input: 'x' });
  assert.equal(messages.at(-1).type, 'response.failed');
  assert.ok(!typesOf(messages).includes('error'));
  testbed.replay.play({ status: 503, body: '{"error":{"message":"busy"}}' });
  const busy = (await client.turn({ model: 'replayed', input: 'x' })).at(-1);
  assert.deepEqual([busy.type, busy.status], ['error', 503]);
  await client.close();
  assert.equal((await testbed.records(customer, 2)).charges.length, 1);
  await testbed.audit();
});

test('a client that disconnects in the middle is charged for the received part, and its slot is freed', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const client = await talk(testbed.origin, customer.key);
  client.send({ type: 'response.create', ...hello, input: 'Slowly [[sandbox: tokens=2000 chunk_delay=20ms]]' });
  await until('it has begun', () => client.messages.length > 4);
  client.socket.terminate();
  const { charges } = await testbed.records(customer);
  assert.equal(charges.length, 1);
  assert.equal(charges[0]!.reason, 'client_left');
});

test('a client that does not read makes the vendor wait, and gets all when it reads', async () => {
  const customer = await testbed.customer();
  const client = await talk(testbed.origin, customer.key);
  client.socket.pause();
  client.send({
    type: 'response.create',
    ...hello,
    input: 'Much [[sandbox: tokens=60000]]',
    max_output_tokens: 60_000,
  });
  await pause(1_500);
  assert.equal((await testbed.calls(customer)).length, 0);
  client.socket.resume();
  const last = (await client.next()).at(-1);
  assert.equal(last.response.usage.output_tokens, 60_000);
  assert.ok(textOf(last).length > 100_000);
  await client.close();
  assert.equal((await testbed.records(customer)).charges[0]!.classes.output, 60_000);
});
