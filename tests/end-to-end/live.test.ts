/** Gemini Live sessions and short-lived keys through the whole gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { cost } from '../../plugins/common/domain/money.ts';
import { type Message, refusal, talk } from './sockets.ts';
import { startTestbed, type Testbed, until } from './testbed.ts';

const price = { input: 0.5, input_audio: 3, input_image: 3, output: 2, output_audio: 12 };
const inNano = Object.fromEntries(Object.entries(price).map(([name, usd]) => [name, BigInt(usd * 1e9)]));
const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
const entry = (...targets: string[]) => ({ owned_by: 'test', kind: 'realtime', targets, context: '32k', price });

let testbed: Testbed;
/** What the gateway's clock is ahead. */
let aheadMs = 0;
before(async () => {
  testbed = await startTestbed({
    clock: { now: () => Date.now() + aheadMs, monotonic: () => performance.now() },
    providers: ({ sandbox }) => ({
      live: {
        keys: 'vendor-key-of-the-sandbox',
        speaks: { 'gemini-live': sandbox, 'openai-realtime': `${sandbox}/v1` },
      },
    }),
    models: { live: entry('live/live-2026'), voice: entry('live') },
  });
});
after(() => testbed.stop());

interface Live {
  readonly socket: WebSocket;
  readonly messages: Message[];
  readonly binary: boolean[];
  readonly closed: Promise<[code: number, reason: string]>;
  send(message: object, binary?: boolean): void;
}

async function open(address: string, headers: Record<string, string> = {}): Promise<Live> {
  const socket = new WebSocket(testbed.origin.replace('http', 'ws') + address, { headers });
  const messages: Message[] = [];
  const binary: boolean[] = [];
  const closed = new Promise<[number, string]>((resolve) => {
    socket.on('close', (code, reason) => resolve([code, reason.toString()]));
  });
  socket.on('message', (data, isBinary) => {
    messages.push(JSON.parse(String(data)));
    binary.push(isBinary);
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const send = (message: object, isBinary = false) =>
    socket.send(Buffer.from(JSON.stringify(message)), { binary: isBinary });
  return { socket, messages, binary, closed, send };
}

const setup = (model = 'models/live', more = {}) => ({ setup: { model, ...more } });
const turn = (text: string) => ({
  clientContent: { turns: [{ role: 'user', parts: [{ text }] }], turnComplete: true },
});
const ends = ({ messages }: Live) => messages.filter(({ serverContent }) => serverContent?.turnComplete === true);

test('live: the setup names the model, and each turn is charged by its modalities', async () => {
  const customer = await testbed.customer();
  const client = await open(path, { 'x-goog-api-key': customer.key });
  client.send(setup('models/live', { generationConfig: { responseModalities: ['AUDIO'] } }));
  await until('it is set up', () => client.messages.length > 0);
  assert.deepEqual(client.messages[0], { setupComplete: {} });
  client.send(turn('Hello, who is there?'), true);
  await until('the turn has ended', () => ends(client).length === 1);
  client.send({
    realtimeInput: { audio: { data: Buffer.alloc(64_000, 9).toString('base64'), mimeType: 'audio/pcm;rate=16000' } },
  });
  client.send({ realtimeInput: { audioStreamEnd: true } });
  await until('the second has', () => ends(client).length === 2);
  assert.ok(client.binary.every((one) => one));
  client.socket.close();
  const { calls, charges } = await testbed.records(customer, 3);
  assert.deepEqual(
    calls.map(({ model }) => model),
    ['live', 'live', 'live'],
  );
  assert.deepEqual(
    charges.map(({ classes, estimated, cost: paid }) => [
      estimated,
      classes.output_audio! > 0,
      classes.input_audio ?? 0,
      paid,
    ]),
    charges.map(({ classes }, index) => [
      false,
      true,
      index === 0 ? 0 : 20 + (charges[0]!.classes.output_audio ?? 0),
      cost(classes, inNano),
    ]),
  );
  assert.deepEqual(
    testbed.sandbox
      .bill()
      .recent.slice(-2)
      .map(({ model, usage }) => [model, usage]),
    charges.map(({ classes }) => ['live-2026', classes]),
  );
  await testbed.audit();
});

test('live: a key in the query is accepted; refusals after the upgrade close with a reason', async () => {
  const customer = await testbed.customer();
  const good = await open(`${path}?key=${customer.key}`);
  good.send(setup());
  await until('it is set up', () => good.messages.length > 0);
  good.send(setup());
  good.socket.close();
  const refused: [object, number, RegExp][] = [
    [setup('models/nowhere'), 1008, /does not exist|nowhere/],
    [turn('first'), 1008, /first message/],
  ];
  for (const [message, code, reason] of refused) {
    const client = await open(`${path}?key=${customer.key}`);
    client.send(message);
    const [closedWith, said] = await client.closed;
    assert.equal(closedWith, code);
    assert.match(said, reason);
  }
  const poor = await testbed.customer({ nanoUsd: 0n });
  const empty = await open(path, { 'x-goog-api-key': poor.key });
  empty.send(setup());
  assert.equal((await empty.closed)[0], 1008);
  const none = await refusal(testbed.origin, path, {});
  assert.deepEqual([none.status, none.json.error.status], [401, 'UNAUTHENTICATED']);
});

test('live: a turn left by its client is charged by the received part, and a dying vendor closes with 1011', async () => {
  const customer = await testbed.customer();
  const left = await open(path, { 'x-goog-api-key': customer.key });
  left.send(setup());
  left.send(turn('Hello [[sandbox: tokens=60 chunk_delay=10ms]]'));
  await until('it has begun', () => left.messages.length > 2);
  left.socket.terminate();
  const dying = await open(path, { 'x-goog-api-key': customer.key });
  dying.send(setup());
  dying.send(turn('Hello [[sandbox: tokens=60 cut_after=5]]'));
  assert.equal((await dying.closed)[0], 1011);
  const { charges } = await testbed.records(customer, 4);
  assert.equal(charges.length, 2);
  await testbed.audit();
});

async function secretOf(key: string, body: object, address = '/v1/realtime/client_secrets') {
  const answer = await fetch(testbed.origin + address, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Message };
}

test('a client secret opens sessions of its model with its settings, for the account of its key', async () => {
  const customer = await testbed.customer();
  const session = { type: 'realtime', model: 'voice', instructions: 'Be brief.' };
  const made = await secretOf(customer.key, { expires_after: { anchor: 'created_at', seconds: 60 }, session });
  assert.equal(made.status, 200);
  assert.match(made.json.value, /^ek_[0-9a-f]{64}$/);
  assert.deepEqual([made.json.session.model, made.json.session.type], ['voice', 'realtime']);
  assert.ok(Math.abs(made.json.expires_at - Date.now() / 1_000 - 60) < 30);
  const client = await talk(testbed.origin, made.json.value, '/v1/realtime');
  await until('the settings hold', () => client.messages.some(({ type }) => type === 'session.updated'));
  assert.equal(client.messages.find(({ type }) => type === 'session.updated').session.instructions, 'Be brief.');
  client.send({ type: 'response.create', response: { output_modalities: ['text'] } });
  await until('it answers', () => client.messages.some(({ type }) => type === 'response.done'));
  await client.close();
  assert.equal((await testbed.records(customer, 2)).charges.length, 1);
  const other = { authorization: `Bearer ${made.json.value}` };
  assert.equal((await refusal(testbed.origin, '/v1/realtime?model=live', other)).status, 403);
  // It is no key of the gateway.
  assert.equal(
    (await fetch(`${testbed.origin}/v1/chat/completions`, { method: 'POST', headers: other, body: '{}' })).status,
    401,
  );
  const older = await secretOf(customer.key, { model: 'voice' }, '/v1/realtime/sessions');
  assert.match(older.json.client_secret.value, /^ek_/);
});

test('client secrets: unsupported settings are refused by name, and a secret ends by expiry and with its key', async () => {
  const customer = await testbed.customer();
  const refused: [object, number, string | null][] = [
    [{}, 400, 'session.model'],
    [{ session: [] }, 400, 'session'],
    [{ session: { model: 'sandbox' } }, 404, 'session.model'],
    [{ session: { type: 'transcription' } }, 422, 'session.type'],
    [{ session: { model: 'voice' }, expires_after: { seconds: 9 } }, 400, 'expires_after.seconds'],
    [{ session: { model: 'voice', instructions: 'x'.repeat(70_000) } }, 413, null],
  ];
  for (const [body, status, field] of refused) {
    const { status: got, json } = await secretOf(customer.key, body);
    assert.deepEqual([got, json.error.param], [status, field], JSON.stringify(body).slice(0, 100));
  }
  assert.equal((await secretOf('nothing', { session: { model: 'voice' } })).status, 401);
  const made = await secretOf(customer.key, { session: { model: 'voice' } });
  const headers = { authorization: `Bearer ${made.json.value}` };
  const client = await talk(testbed.origin, made.json.value, '/v1/realtime?model=voice');
  const admin = testbed.gateway.gateway.find(accountAdmin)!;
  const [key] = await testbed
    .rows<{ id: string; account_id: string }>('keys')
    .then((rows) => rows.filter((row) => row.account_id === customer.accountId));
  await admin.revokeKey(customer.accountId, key!.id);
  const refused401 = async () => (await refusal(testbed.origin, '/v1/realtime', headers)).status === 401;
  await until('its secret is refused', refused401);
  // The session that is open ends before its next response.
  client.send({ type: 'response.create' });
  assert.equal(await client.closed, 1008);
  assert.equal((await refusal(testbed.origin, '/v1/realtime', { authorization: 'Bearer ek_0' })).status, 401);
});

const constrainedPath = path.replace('v1beta', 'v1alpha').concat('Constrained');

async function tokenOf(key: string, body: object, version = 'v1alpha') {
  const answer = await fetch(`${testbed.origin}/${version}/auth_tokens`, {
    method: 'POST',
    headers: { 'x-goog-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Message };
}

const inMs = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();

test('a token opens and continues its number of sessions, paid by the account of its key', async () => {
  const customer = await testbed.customer();
  const { json } = await tokenOf(customer.key, { uses: 2, bidi_generate_content_setup: { model: 'models/live' } });
  assert.deepEqual(Object.keys(json).sort(), ['expireTime', 'name', 'newSessionExpireTime', 'uses']);
  const client = await open(`${constrainedPath}?access_token=${json.name}`);
  client.send(setup('models/nowhere'));
  client.send(turn('Hello'));
  await until('the turn has ended', () => ends(client).length === 1);
  const second = await open(path, { authorization: `Token ${json.name}` });
  second.send(setup());
  await until('it is set up', () => second.messages.length > 0);
  const third = await open(`${path}?access_token=${json.name}`);
  third.send(setup());
  assert.deepEqual((await third.closed)[0], 1008);
  const resumed = await open(`${path}?access_token=${json.name}`);
  resumed.send(setup('models/live', { sessionResumption: { handle: 'h' } }));
  await until('it is set up again', () => resumed.messages.length > 0);
  for (const { socket } of [client, second, resumed]) socket.close();
  assert.equal((await testbed.records(customer, 4)).charges.length, 1);
  // It is no key of the gateway, and continues nothing that it has not begun.
  const headers = { 'x-goog-api-key': json.name };
  assert.equal((await fetch(`${testbed.origin}/v1beta/files`, { headers })).status, 401);
  const unused = (await tokenOf(customer.key, { uses: 0 }, 'v1beta')).json.name;
  const early = await open(`${path}?access_token=${unused}`);
  early.send(setup('models/live', { sessionResumption: { handle: 'h' } }));
  assert.equal((await early.closed)[0], 1008);
  await testbed.audit();
});

test('an expired token refuses new sessions first, then messages', async () => {
  const customer = await testbed.customer();
  const times = { uses: 0, newSessionExpireTime: inMs(300_000), expireTime: inMs(600_000) };
  const { name } = (await tokenOf(customer.key, times)).json;
  const client = await open(`${constrainedPath}?access_token=${name}`);
  client.send(setup());
  await until('it is set up', () => client.messages.length > 0);
  aheadMs = 301_000;
  const late = await open(`${constrainedPath}?access_token=${name}`);
  late.send(setup());
  assert.equal((await late.closed)[0], 1008);
  aheadMs = 601_000;
  client.send(turn('too late'));
  assert.deepEqual(await client.closed, [1008, 'The token has expired.']);
  assert.equal((await refusal(testbed.origin, `${constrainedPath}?access_token=${name}`, {})).status, 401);
  aheadMs = 0;
});

test('tokens: unsupported settings are refused by name, and a token ends with its key', async () => {
  const customer = await testbed.customer();
  const refused: [object, number, RegExp][] = [
    [{ uses: -1 }, 400, /"uses"/],
    [{ uses: 1.5 }, 400, /"uses"/],
    [{ expireTime: 'soon' }, 400, /"expireTime"/],
    [{ expireTime: inMs(-1_000) }, 400, /"expireTime"/],
    [{ newSessionExpireTime: inMs(21 * 3_600_000) }, 400, /"newSessionExpireTime"/],
    [{ bidiGenerateContentSetup: [] }, 400, /"bidiGenerateContentSetup"/],
    [{ bidiGenerateContentSetup: { model: 'models/sandbox' } }, 404, /sandbox/],
    [{ fieldMask: 'a..b' }, 400, /"fieldMask"/],
    [{ bidiGenerateContentSetup: { systemInstruction: 'x'.repeat(70_000) } }, 413, /64 KiB/],
  ];
  for (const [body, status, words] of refused) {
    const { status: got, json } = await tokenOf(customer.key, body);
    assert.equal(got, status, JSON.stringify(body).slice(0, 100));
    assert.match(json.error.message, words);
  }
  assert.equal((await tokenOf('nothing', {})).status, 401);
  const { name } = (await tokenOf(customer.key, { uses: 0 })).json;
  const [key] = await testbed
    .rows<{ id: string; account_id: string }>('keys')
    .then((rows) => rows.filter((row) => row.account_id === customer.accountId));
  await testbed.gateway.gateway.find(accountAdmin)!.revokeKey(customer.accountId, key!.id);
  const refused401 = async () => (await refusal(testbed.origin, `${path}?access_token=${name}`, {})).status === 401;
  await until('its token is refused', refused401);
  assert.equal((await refusal(testbed.origin, `${path}?access_token=auth_tokens/0`, {})).status, 401);
});
