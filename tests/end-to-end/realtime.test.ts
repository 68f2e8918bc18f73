/** Realtime sessions through the whole gateway: relayed as they came, each response a charge of its own. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { cost } from '../../plugins/common/domain/money.ts';
import { type Message, refusal, type Talk, talk } from './sockets.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

const price = {
  ...{ input: 4, cache_read: 0.4, input_audio: 32, cache_read_audio: 0.4, input_image: 5, cache_read_image: 0.5 },
  ...{ output: 16, output_audio: 64 },
};
const inNano = Object.fromEntries(Object.entries(price).map(([name, usd]) => [name, BigInt(usd * 1e9)]));
const realtimeAt = (...targets: string[]) => ({ owned_by: 'test', kind: 'realtime', targets, context: '32k', price });

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    offers: { single: { price: 0, limits: { concurrency: 1 } }, slow: { price: 0, limits: { rpm: 3 } } },
    providers: ({ sandbox }) => ({
      voice: {
        keys: 'vendor-key-of-the-sandbox',
        speaks: { 'openai-realtime': `${sandbox}/v1`, 'openai-transcriptions': `${sandbox}/v1` },
      },
      locked: { keys: 'another-key', speaks: { 'openai-realtime': `${sandbox}/v1` } },
      gone: { keys: 'x', speaks: { 'openai-realtime': 'http://127.0.0.1:9/v1' } },
    }),
    models: {
      voice: realtimeAt('voice'),
      alias: realtimeAt('voice/voice-2026'),
      tried: realtimeAt('gone', 'locked', 'voice'),
      shut: realtimeAt('gone'),
      scribe: {
        owned_by: 'test',
        kind: 'transcription',
        targets: ['voice'],
        price: { input: 2.5, input_audio: 6, output: 10 },
      },
      'whisper-1': { owned_by: 'test', kind: 'transcription', targets: ['voice'], price: { audio: 0.36 } },
    },
    more: { websockets: { per_key: 3 } },
  });
});
after(() => testbed.stop());

const open = (customer: Customer, model = 'voice', headers = {}): Promise<Talk> =>
  talk(testbed.origin, customer.key, `/v1/realtime?model=${model}`, headers);
const typesOf = (messages: readonly Message[]) => messages.map(({ type }) => type);
const said = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
});
const inText = { type: 'response.create', response: { output_modalities: ['text'] } };

/** Waits for the next `response.done`. */
async function done(client: Talk, count = 1): Promise<Message> {
  const found = () => client.messages.filter(({ type }) => type === 'response.done');
  await until('the response is done', () => found().length >= count);
  return found()[count - 1].response;
}

test('a text session relays events as the vendor sends them, and each response is a charge', async () => {
  const customer = await testbed.customer();
  const before = await testbed.balance(customer);
  const client = await open(customer);
  await until('the session is created', () => client.messages.length > 0);
  assert.equal(client.messages[0].type, 'session.created');
  client.send(said('Hello, who is there?'));
  client.send(inText);
  const first = await done(client);
  assert.equal(first.status, 'completed');
  client.send(said('And again, please.'));
  client.send(inText);
  const second = await done(client, 2);
  assert.ok(second.usage.input_tokens > first.usage.input_tokens);
  await client.close();
  // The session itself costs nothing.
  const { calls, charges } = await testbed.records(customer, 3);
  assert.deepEqual(
    calls.map(({ settled }) => settled),
    [false, true, true],
  );
  assert.deepEqual(
    charges.map(({ classes }) => classes.output),
    [first, second].map(({ usage }) => usage.output_tokens),
  );
  assert.ok(
    charges.every(
      ({ estimated, provider, cost: paid, classes }) =>
        !estimated && provider === 'voice' && paid === cost(classes, inNano),
    ),
  );
  const paid = charges.reduce((sum, row) => sum + row.cost, 0n);
  assert.equal(await testbed.balance(customer), before - paid);
  await testbed.audit();
});

test('audio in and out is charged by kind of token, cached ones apart, and a transcription at its own price', async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  const input = { transcription: { model: 'scribe' }, turn_detection: null };
  client.send({ type: 'session.update', session: { type: 'realtime', audio: { input } } });
  for (let turn = 1; turn <= 2; turn += 1) {
    client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(480_000, 7).toString('base64') });
    client.send({ type: 'input_audio_buffer.commit' });
    client.send({ type: 'response.create' });
    await done(client, turn);
  }
  const audio = client.messages.filter(({ type }) => type === 'response.output_audio.delta');
  assert.ok(audio.length > 4 && audio.every(({ delta }) => Buffer.from(delta, 'base64').length % 2 === 0));
  await client.close();
  const { charges } = await testbed.records(customer, 5);
  const ofModel = (name: string) => charges.filter(({ model }) => model === name);
  assert.deepEqual(
    ofModel('scribe').map(({ classes }) => classes.input_audio),
    [100, 100],
  );
  assert.equal(ofModel('scribe')[0]!.cost, BigInt(100 * 6_000 + ofModel('scribe')[0]!.classes.output! * 10_000));
  const [first, second] = ofModel('voice');
  assert.deepEqual([first!.classes.input_audio, first!.classes.cache_read_audio], [100, undefined]);
  assert.ok(first!.classes.output_audio! > 0 && second!.classes.cache_read_audio! >= 64);
  assert.equal(second!.cost, cost(second!.classes, inNano));
  await testbed.audit();
});

test('an upstream that answers by itself when speech ends is charged by the second', async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  client.send({ type: 'session.update', session: { audio: { input: { transcription: { model: 'whisper-1' } } } } });
  const append = (value: number) =>
    client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(24_000, value).toString('base64') });
  for (const value of [30, 30, 30, 0, 0]) append(value);
  assert.equal((await done(client)).status, 'completed');
  await client.close();
  const { charges } = await testbed.records(customer, 3);
  assert.deepEqual(charges.map(({ model }) => model).sort(), ['voice', 'whisper-1']);
  assert.deepEqual(charges.find(({ model }) => model === 'whisper-1')!.classes, { audio: 2 });
});

test("a session's model cannot be changed, and its own name is sent as the upstream's name", async () => {
  const customer = await testbed.customer();
  const client = await open(customer, 'alias');
  client.send({ type: 'session.update', session: { model: 'voice', instructions: 'x' } });
  client.send('{"type":"session.update","session":{"mod\\u0065l":"other"}}');
  await until('both are refused', () => client.messages.filter(({ type }) => type === 'error').length === 2);
  const refused = client.messages.find(({ type }) => type === 'error').error;
  assert.deepEqual([refused.code, refused.param], ['model_cannot_change', 'session.model']);
  client.send({ type: 'session.update', session: { model: 'alias', instructions: 'Be brief.' } });
  await until('it is taken', () => client.messages.some(({ type }) => type === 'session.updated'));
  assert.deepEqual(
    client.messages
      .filter(({ type }) => type === 'session.updated')
      .map(({ session }) => [session.model, session.instructions]),
    [['voice-2026', 'Be brief.']],
  );
  await client.close();
});

test('failover happens before the first message; without a target the upgrade is refused over HTTP', async () => {
  const customer = await testbed.customer();
  const client = await open(customer, 'tried');
  client.send(said('Hello'));
  client.send(inText);
  assert.equal((await done(client)).status, 'completed');
  await client.close();
  const authorization = `Bearer ${customer.key}`;
  const refused: [string, number, string | null][] = [
    ['/v1/realtime?model=shut', 502, null],
    ['/v1/realtime?model=nowhere', 404, 'model_not_found'],
    ['/v1/realtime?model=sandbox', 400, 'model_kind'],
    ['/v1/realtime', 400, null],
    ['/v1/realtime?model=voice&call_id=x', 422, 'unsupported'],
  ];
  for (const [path, status, code] of refused) {
    const answer = await refusal(testbed.origin, path, { authorization });
    assert.deepEqual([answer.status, answer.json.error.code], [status, code], path);
    assert.ok(!JSON.stringify(answer.json).includes('127.0.0.1'));
  }
  assert.equal((await refusal(testbed.origin, '/v1/realtime?model=voice', {})).status, 401);
  const poor = await testbed.customer({ nanoUsd: 0n });
  assert.equal(
    (await refusal(testbed.origin, '/v1/realtime?model=voice', { authorization: `Bearer ${poor.key}` })).status,
    402,
  );
  const plain = await fetch(`${testbed.origin}/v1/realtime?model=voice`, { headers: { authorization } });
  assert.deepEqual([plain.status, ((await plain.json()) as Message).error.code], [426, 'upgrade_required']);
  const calls = await fetch(`${testbed.origin}/v1/realtime/calls`, {
    method: 'POST',
    body: 'v=0',
    headers: { authorization, 'content-type': 'application/sdp' },
  });
  assert.deepEqual([calls.status, calls.headers.get('x-should-retry')], [422, 'false']);
});

test('a key in the subprotocol is accepted, and the beta of the interface is relayed', async () => {
  const customer = await testbed.customer();
  const { WebSocket } = await import('ws');
  const socket = new WebSocket(`${testbed.origin.replace('http', 'ws')}/v1/realtime?model=voice`, [
    'realtime',
    `openai-insecure-api-key.${customer.key}`,
    'openai-beta.realtime-v1',
  ]);
  const types: string[] = [];
  socket.on('message', (data) => types.push(JSON.parse(String(data)).type));
  await new Promise((resolve) => socket.once('open', resolve));
  assert.equal(socket.protocol, 'realtime');
  socket.send(JSON.stringify(said('Hello')));
  socket.send(JSON.stringify(inText));
  await until('it is done', () => types.includes('response.done'));
  assert.ok(types.includes('response.text.delta') && !types.includes('response.output_text.delta'));
  socket.close();
  await testbed.records(customer, 2);
});

test('a session without money gets an error event, then 1008, and its running response is charged', async () => {
  const customer = await testbed.customer({ nanoUsd: 420_000_000n });
  const client = await open(customer);
  client.send(said('Much [[sandbox: tokens=3000]]'));
  client.send({ type: 'response.create' });
  assert.equal(await client.closed.then((code) => code), 1008);
  const last = client.messages.at(-1);
  assert.deepEqual([last.type, last.error.code], ['error', 'insufficient_balance']);
  const { charges } = await testbed.records(customer, 2);
  assert.equal(charges.length, 1);
  assert.equal(charges[0]!.estimated, false);
  await testbed.audit();
});

test('the next response waits for its own hold: a revoked key or an empty balance ends the session', async () => {
  const customer = await testbed.customer({ nanoUsd: 420_000_000n });
  const client = await open(customer);
  client.send(said('Hello [[sandbox: tokens=2000]]'));
  client.send({ type: 'response.create', response: { output_modalities: ['audio'] } });
  await until(
    'it ends',
    () =>
      client.socket.readyState === client.socket.CLOSED || client.messages.some(({ type }) => type === 'response.done'),
  );
  client.send(inText);
  assert.equal(await client.closed, 1008);
  await testbed.audit();
});

test('rate limits apply to each response: an error event, and the session continues', async () => {
  const customer = await testbed.customer({ plan: 'slow' });
  const client = await open(customer);
  for (let turn = 1; turn <= 2; turn += 1) {
    client.send(said('Hello'));
    client.send(inText);
    await done(client, turn);
  }
  client.send(inText);
  await until('it is refused', () => client.messages.some(({ type }) => type === 'error'));
  assert.equal(client.messages.at(-1).error.code, 'rate_limit_exceeded');
  assert.ok(client.socket.readyState === client.socket.OPEN);
  await client.close();
  await testbed.records(customer, 3);
});

test('a session takes one concurrency slot, and the connections of a key are bounded', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const client = await open(customer);
  for (let turn = 1; turn <= 3; turn += 1) {
    client.send(said('Hello'));
    client.send(inText);
    await done(client, turn);
  }
  const more = await Promise.all([open(customer), open(customer)].map((one) => one.catch(() => undefined)));
  const authorization = `Bearer ${customer.key}`;
  const opened = more.filter((one) => one !== undefined).length;
  assert.ok(opened >= 1);
  if (opened === 2)
    assert.equal((await refusal(testbed.origin, '/v1/realtime?model=voice', { authorization })).status, 429);
  await Promise.all([client, ...more].map((one) => one?.close()));
});

test("a client that disconnects in mid-response pays for the response's usage so far", async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  client.send(said('Slowly [[sandbox: tokens=500 chunk_delay=20ms]]'));
  client.send(inText);
  await until('it has begun', () => typesOf(client.messages).includes('response.output_text.delta'));
  client.socket.terminate();
  const { charges } = await testbed.records(customer, 2);
  assert.equal(charges.length, 1);
  assert.deepEqual(
    [charges[0]!.estimated, charges[0]!.classes.output! > 0, charges[0]!.classes.output! < 500],
    [false, true, true],
  );
  const billed = testbed.sandbox.bill().recent.at(-1)!;
  assert.equal(billed.usage.output, charges[0]!.classes.output);
  await testbed.audit();
});

test('a vendor that dies in the middle gives an error event, a close with 1011 and an estimated charge', async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  client.send(said('Hello [[sandbox: tokens=100 cut_after=5]]'));
  client.send(inText);
  assert.equal(await client.closed, 1011);
  assert.equal(client.messages.at(-1).error.code, 'session_ended');
  const { charges } = await testbed.records(customer, 2);
  assert.deepEqual(
    charges.map(({ estimated }) => estimated),
    [true],
  );
  await testbed.audit();
});

test('a session without a response costs nothing', async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(4_800).toString('base64') });
  await pause(100);
  await client.close();
  const { calls } = await testbed.records(customer, 2);
  assert.ok(calls.every(({ cost: paid }) => paid === 0n));
  await testbed.audit();
});

test('a client that does not read makes the vendor wait, and gets all messages in order', async () => {
  const customer = await testbed.customer();
  const client = await open(customer);
  client.socket.pause();
  client.send(said('Much [[sandbox: tokens=1500]]'));
  client.send({ type: 'response.create' });
  await pause(1_500);
  assert.ok(!typesOf(client.messages).includes('response.done'));
  client.socket.resume();
  await done(client);
  const numbers = client.messages.map(({ event_id: id }) => Number(id.split('_').at(-1)));
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  );
  await client.close();
});

test('messages are relayed unchanged, both ways, text and binary', async () => {
  const { startEcho } = await import('./echo.ts');
  const echo = await startEcho();
  const own = await startTestbed({
    providers: () => ({ echo: { keys: 'k', speaks: { 'openai-realtime': echo.origin } } }),
    models: { echo: realtimeAt('echo') },
  });
  try {
    const customer = await own.customer();
    const client = await talk(own.origin, customer.key, '/v1/realtime?model=echo');
    const got: [string, boolean][] = [];
    client.socket.removeAllListeners('message');
    client.socket.on('message', (data: Buffer, isBinary: boolean) => got.push([data.toString('hex'), isBinary]));
    const sent: [string, boolean][] = [];
    for (let index = 0; index < 300; index += 1) {
      const isBinary = index % 3 === 0;
      const bytes = isBinary ? randomBytes(index * 7) : Buffer.from(`{ "type" : "x",\t"n":${index}.0, "t":"é☃" }`);
      sent.push([bytes.toString('hex'), isBinary]);
      client.socket.send(bytes, { binary: isBinary });
    }
    await until('all are back', () => got.length === sent.length);
    assert.deepEqual(got, sent);
    assert.equal(echo.keys[0], 'Bearer k');
    client.socket.close();
    await own.records(customer, 2);
  } finally {
    await own.stop();
    await echo.stop();
  }
});

test("a vendor's error in mid-session is relayed without its key and addresses", async () => {
  const { startEcho } = await import('./echo.ts');
  const echo = await startEcho();
  const key = 'plainkeyofthevendor';
  const own = await startTestbed({
    providers: () => ({ echo: { keys: key, speaks: { 'openai-realtime': echo.origin } } }),
    models: { echo: realtimeAt('echo') },
  });
  try {
    const client = await talk(own.origin, (await own.customer()).key, '/v1/realtime?model=echo');
    const got: string[] = [];
    client.socket.removeAllListeners('message');
    client.socket.on('message', (data: Buffer) => got.push(data.toString()));
    const event = (type: string, error: string) =>
      `{ "type":"${type}",\t"error":{"message":"${error}","n":1.0}, "é":"☃" }`;
    const failed = (why: string) =>
      `{"type":"response.done","response":{"status":"failed","status_details":{"error":{"message":"${why}"}},"output":["http://kept.example.com"]}}`;
    const secret = `${key} of org-abc at ${echo.origin}`;
    const transcription = 'conversation.item.input_audio_transcription.failed';
    const large = `${'x'.repeat(70_000)}${key}`;
    const hidden = '{"type":"server_error","message":"The model reported an error."}';
    const pairs = [
      [event('error', secret), event('error', '*** of *** at ***')],
      [event('error', 'No such voice.'), event('error', 'No such voice.')],
      [event(transcription, secret), event(transcription, '*** of *** at ***')],
      [failed(secret), failed('*** of *** at ***')],
      [event('error', large), `{ "type":"error",\t"error":${hidden}, "é":"☃" }`],
      [`{"type":"error","message":"${secret}"}`, '{"type":"error","message":"*** of *** at ***"}'],
      [
        '{"type":"session.updated","text":"http://kept.example.com"}',
        '{"type":"session.updated","text":"http://kept.example.com"}',
      ],
    ];
    for (const [sent] of pairs) client.socket.send(sent!);
    await until('all are back', () => got.length === pairs.length);
    assert.deepEqual(
      got,
      pairs.map(([, shown]) => shown),
    );
    await client.close();
    const words = async () =>
      (await own.rows<{ story: string | null }>('calls')).flatMap(
        ({ story }) => story?.match(/route\.vendor,[^;]*/) ?? [],
      );
    await until('the row of the failed response has its words', async () => (await words()).length > 0);
    assert.deepEqual(await words(), ["route.vendor,1,'*** of *** at ***,,"]);
  } finally {
    await own.stop();
    await echo.stop();
  }
});

test('randomly cut and joined frames arrive whole and in order, and are charged the same', async () => {
  const events = [
    { type: 'session.created', session: {} },
    { type: 'response.created', response: { id: 'resp_1' } },
    ...Array.from({ length: 200 }, (_, index) => ({
      type: 'response.output_audio.delta',
      n: index,
      delta: 'A'.repeat(index * 31),
    })),
    {
      type: 'response.done',
      response: {
        id: 'resp_1',
        status: 'completed',
        usage: { input_tokens: 10, output_tokens: 7, output_token_details: { audio_tokens: 5 } },
      },
    },
  ];
  // The vendor says it twice: it is passed on twice, and charged once.
  events.push(events.at(-1)!);
  const { startRecording } = await import('./echo.ts');
  const vendor = await startRecording(events.map((event) => JSON.stringify(event)));
  const own = await startTestbed({
    providers: () => ({ recorded: { keys: 'k', speaks: { 'openai-realtime': vendor.origin } } }),
    models: { recorded: realtimeAt('recorded') },
  });
  try {
    const customer = await own.customer();
    for (let round = 1; round <= 5; round += 1) {
      const client = await talk(own.origin, customer.key, '/v1/realtime?model=recorded');
      client.send(inText);
      await done(client, 2);
      assert.deepEqual(client.messages, events);
      await client.close();
    }
    const { charges } = await own.records(customer, 10);
    assert.deepEqual(
      charges.map(({ classes }) => classes),
      Array.from({ length: 5 }, () => ({ input: 10, output: 2, output_audio: 5 })),
    );
    await own.audit();
  } finally {
    await own.stop();
    await vendor.stop();
  }
});

test('a stop closes idle sessions at once and others after their response, with 1012', async () => {
  const own = await startTestbed({
    providers: ({ sandbox }) => ({
      voice: { keys: 'vendor-key-of-the-sandbox', speaks: { 'openai-realtime': `${sandbox}/v1` } },
    }),
    models: { voice: realtimeAt('voice') },
    more: { server: { drain: { grace: '50ms', deadline: '20s' } } },
  });
  const customer = await own.customer();
  const [quiet, busy] = [
    await talk(own.origin, customer.key, '/v1/realtime?model=voice'),
    await talk(own.origin, customer.key, '/v1/realtime?model=voice'),
  ];
  busy.send(said('Slowly [[sandbox: tokens=40 chunk_delay=20ms]]'));
  busy.send(inText);
  await until('it has begun', () => typesOf(busy.messages).includes('response.output_text.delta'));
  const stopping = own.stop();
  assert.deepEqual([await quiet.closed, await busy.closed], [1012, 1012]);
  assert.equal((await done(busy)).usage.output_tokens, 40);
  await stopping;
});

test('a session at its maximum age ends with an error event', async () => {
  await using own = await startTestbed({
    providers: ({ sandbox }) => ({
      voice: { keys: 'vendor-key-of-the-sandbox', speaks: { 'openai-realtime': `${sandbox}/v1` } },
    }),
    models: { voice: realtimeAt('voice') },
    more: { websockets: { longest: '1s' } },
  });
  const customer = await own.customer();
  const client = await talk(own.origin, customer.key, '/v1/realtime?model=voice');
  assert.equal(await client.closed, 1001);
  assert.equal(client.messages.at(-1).error.code, 'session_expired');
});
