/** Sessions under guardrails: messages of clients, and answers in texts, tool arguments and sound, in the realtime protocol and in Gemini Live. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { startGateway, startVendor, type TestGateway, type Vendor } from '../../../plugins/common/author/testing.ts';
import { type Message, type Talk, talk } from '../../end-to-end/sockets.ts';
import { fc } from '../../helpers/properties.ts';
import { until } from '../../helpers/until.ts';

const sessions = new WebSocketServer({ host: '127.0.0.1', port: 0 });
const received: Message[] = [];
let vendor: WebSocket;
let gateway: TestGateway;
let key: string;
let judge: Vendor;

const live = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';

before(async () => {
  if (sessions.address() === null) await once(sessions, 'listening');
  sessions.on('connection', (socket, { url = '' }) => {
    vendor = socket;
    if (url.includes('realtime')) socket.send('{"type":"session.created","session":{}}');
    socket.on('message', (data) => {
      const message = JSON.parse(String(data));
      received.push(message);
      if ('setup' in message) socket.send('{"setupComplete":{}}');
    });
  });
  const at = `http://127.0.0.1:${(sessions.address() as AddressInfo).port}`;
  const names = ['strict', 'open', 'masks', 'prompts', 'restores', 'asks'];
  judge = await startVendor();
  const words = { type: 'words', list: ['banana'], message: 'No fruit.' };
  const model = { kind: 'realtime', owned_by: 'x', targets: ['talks'], price: 'free' };
  gateway = await startGateway({
    plugins: [
      ...['storage', 'files', 'auth', 'providers', 'models', 'guardrails', 'prompts', 'billing', 'route'],
      ...['protocol-convert', 'endpoints', 'websockets'],
    ],
    providers: {
      talks: { keys: 'k', speaks: { 'openai-realtime': `${at}/v1`, 'gemini-live': at } },
      judge: { keys: 'k', speaks: { 'openai-moderations': `${judge.origin}/v1` } },
    },
    models: {
      ...Object.fromEntries(names.map((name) => [name, model])),
      mod: { kind: 'moderation', owned_by: 'x', targets: ['judge'], price: { input: 10 } },
    },
    guardrails: {
      checks: {
        all: { ...words, as: 'answer' },
        sent: { ...words, on: ['prompt'], beside: true },
        restores: { type: 'patterns', find: ['email'], on: ['prompt'], do: 'mask', restore: true },
        asks: { type: 'moderation', model: 'mod', message: 'No fruit.' },
        mail: { type: 'patterns', find: ['email'], on: ['answer'], do: 'mask' },
      },
      policies: {
        strict: ['all'],
        open: { checks: ['all'], uncovered: 'allow' },
        masks: ['mail'],
        prompts: ['sent'],
        restores: ['restores'],
        asks: ['asks'],
      },
      apply: names.map((policy) => ({ policy, models: [policy] })),
      stream: { release: 12, overlap: 24 },
    },
  });
  await gateway.run('accounts create', { name: 'ada', credit: '1' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'ada' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await judge?.stop();
  for (const client of sessions.clients) client.terminate();
  sessions.close();
});
beforeEach(() => {
  received.length = 0;
});

const openRealtime = (model: string) => talk(gateway.origin, key, `/v1/realtime?model=${model}`);
async function openLive(model: string): Promise<Talk> {
  const client = await talk(gateway.origin, key, `${live}?key=${key}`);
  client.send({ setup: { model: `models/${model}` } });
  await until('the session is set up', () => client.messages.some((message) => 'setupComplete' in message));
  return client;
}

const item = { response_id: 'r', item_id: 'i', output_index: 0, content_index: 0 };
const delta = (name: string, text: string) => ({ type: `response.${name}.delta`, ...item, delta: text });
const usage = { total_tokens: 2, input_tokens: 1, output_tokens: 1 };

/** An answer of the realtime protocol as a vendor sends it, its text in these pieces; sound with a transcript where it has some. */
function spoken(pieces: readonly string[], sound: readonly string[] | undefined, id = 'r'): object[] {
  const text = pieces.join('');
  const name = sound === undefined ? 'output_text' : 'output_audio_transcript';
  const part = sound === undefined ? { type: 'output_text', text } : { type: 'output_audio', transcript: text };
  const message = { id: `i-${id}`, type: 'message', role: 'assistant', content: [part] };
  const done = sound === undefined ? { text } : { transcript: text };
  return [
    { type: 'response.created', response: { id, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', response_id: id, item: { ...message, content: [] } },
    ...(sound ?? []).map((bytes) => delta('output_audio', bytes)),
    ...pieces.map((piece) => delta(name, piece)),
    ...(sound === undefined ? [] : [{ type: 'response.output_audio.done', ...item }]),
    ...(sound !== undefined && pieces.length === 0 ? [] : [{ type: `response.${name}.done`, ...item, ...done }]),
    { type: 'response.content_part.done', ...item, part },
    { type: 'conversation.item.done', item: message },
    { type: 'response.output_item.done', response_id: id, item: message },
    { type: 'response.done', response: { id, status: 'completed', output: [message], usage } },
  ].map((event) => ({
    ...event,
    ...('response_id' in event ? { response_id: id } : {}),
    ...('item_id' in event ? { item_id: `i-${id}` } : {}),
  }));
}

async function answered(client: Talk, events: readonly object[]): Promise<Message[]> {
  const before = client.messages.length;
  client.send({ type: 'response.create' });
  await until('the vendor is asked', () => received.some(({ type }) => type === 'response.create'));
  for (const event of events) vendor.send(JSON.stringify(event));
  await until('the response is done', () => client.messages.slice(before).some(({ type }) => type === 'response.done'));
  return client.messages.slice(before);
}

test("a client's message in which a check finds something is refused, and the next one is sent", async () => {
  for (const model of ['strict', 'open', 'prompts']) {
    received.length = 0;
    const client = await openRealtime(model);
    client.send(said('a banana'));
    await until('it is refused', () => client.messages.some(({ error: one }) => one?.message === 'No fruit.'));
    client.send(said('a pear'));
    await until('the vendor has it', () => received.length === 1);
    assert.match(JSON.stringify(received[0]), /a pear/);
    await client.close();
  }
});

const said = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
});

test('masked texts of a message come back in the answers of its session, in texts and arguments, wherever it is cut; words of sound stay', async () => {
  const client = await openRealtime('restores');
  for (const [index, pieces] of [['I wrote to [EMA', 'IL-1', '] and to [EMAIL-9].'], ['[EMAIL-1]']].entries()) {
    received.length = 0;
    client.send(said('Write to ada@example.com.'));
    await until('the vendor has it', () => received.length === 1);
    assert.match(JSON.stringify(received[0]), /Write to \[EMAIL-1\]\./);
    const got = await answered(client, spoken(pieces, undefined, `r${index}`));
    const shown = index === 0 ? 'I wrote to ada@example.com and to [EMAIL-9].' : 'ada@example.com';
    assert.equal(got.map(({ delta: one = '' }) => one).join(''), shown);
    assert.equal(got.at(-1).response.output[0].content[0].text, shown);
    assert.doesNotMatch(JSON.stringify(got), /EMAIL-1/);
  }
  received.length = 0;
  const call = { id: 'i', type: 'function_call', name: 'send', arguments: '{"to":"[EMAIL-1]"}' };
  const called = await answered(client, [
    { type: 'response.created', response: { id: 'c', output: [] } },
    ...['{"to":"[EMA', 'IL-1]"}'].map((one) => ({ ...delta('function_call_arguments', one), response_id: 'c' })),
    { type: 'response.function_call_arguments.done', ...item, response_id: 'c', arguments: call.arguments },
    { type: 'response.done', response: { id: 'c', status: 'completed', output: [call], usage } },
  ]);
  assert.equal(called.map(({ delta: one = '' }) => one).join(''), '{"to":"ada@example.com"}');
  assert.equal(called.at(-1).response.output[0].arguments, '{"to":"ada@example.com"}');
  received.length = 0;
  const events = spoken(['I wrote to [EMAIL-1].'], ['AAAA'], 's');
  assert.deepEqual(await answered(client, events), events);
  await client.close();
  const other = await openRealtime('restores');
  received.length = 0;
  const theirs = await answered(other, spoken(['I wrote to [EMAIL-1].'], undefined));
  assert.match(theirs.at(-1).response.output[0].content[0].text, /to \[EMAIL-1\]\./);
  await other.close();
});

test('masked messages and instructions that the vendor repeats are shown as the client has sent them, and what it has heard stays', async () => {
  const client = await openRealtime('restores');
  client.send(said('Write to ada@example.com.'));
  client.send({ type: 'session.update', session: { instructions: 'You work for bob@example.com.' } });
  await until('the vendor has both', () => received.length === 2);
  const [{ item: masked }, { session }] = received as [Message, Message];
  assert.match(JSON.stringify(masked), /Write to \[EMAIL-1\]\./);
  assert.match(session.instructions, /^You work for \[EMAIL-2\]\.$/);
  const own = { id: 'own', status: 'completed', ...masked };
  const result = {
    id: 'result',
    type: 'function_call_output',
    call_id: 'c',
    output: 'sent to [EMAIL-1] and [EMAIL-9]',
  };
  const events = [
    ...['created', 'added', 'done', 'retrieved'].map((name) => ({ type: `conversation.item.${name}`, item: own })),
    { type: 'conversation.item.added', item: result },
    { type: 'session.updated', session: { type: 'realtime', ...session } },
    { type: 'error', error: { type: 'invalid_request_error', message: 'Invalid value: [EMAIL-2].' } },
  ];
  const heard = {
    type: 'conversation.item.input_audio_transcription.completed',
    ...{ item_id: 'h', content_index: 0, transcript: '[EMAIL-1]' },
  };
  const plain = {
    type: 'conversation.item.added',
    item: { ...own, id: 'plain', content: said('a pear').item.content },
  };
  const before = client.messages.length;
  for (const event of [...events, heard, plain]) vendor.send(JSON.stringify(event));
  await until('all have come', () => client.messages.length === before + events.length + 2);
  const shown = JSON.parse(
    JSON.stringify(events).replaceAll('[EMAIL-1]', 'ada@example.com').replaceAll('[EMAIL-2]', 'bob@example.com'),
  );
  assert.deepEqual(client.messages.slice(before), [...shown, heard, plain]);
  await client.close();
});

test('masked texts of a live message come back in the turn of the model', async () => {
  const client = await openLive('restores');
  received.length = 0;
  const turns = [{ role: 'user', parts: [{ text: 'Write to ada@example.com.' }] }];
  client.send({ clientContent: { turns, turnComplete: true } });
  await until('the vendor has it', () => received.length === 1);
  assert.match(JSON.stringify(received[0]), /Write to \[EMAIL-1\]\./);
  const { got } = await lived(client, turn(says('I wrote to [EMAI'), says('L-1], as you asked.')));
  const texts = got.flatMap(({ serverContent }) => serverContent?.modelTurn?.parts ?? []);
  assert.equal(texts.map((one: { text: string }) => one.text).join(''), 'I wrote to ada@example.com, as you asked.');
  await client.close();
});

test('a check that asks a model judges messages and answers of a session, for the account of its key', async () => {
  const client = await openRealtime('asks');
  const verdict = (flagged: boolean) =>
    judge.play({
      body: JSON.stringify({
        ...{ id: 'x', model: 'mod', results: [{ flagged, categories: {} }] },
        usage: { prompt_tokens: 5, total_tokens: 5 },
      }),
    });
  verdict(true);
  client.send(said('a banana'));
  await until('it is refused', () => client.messages.some(({ error: one }) => one?.message === 'No fruit.'));
  assert.match(judge.requests[0]!.body.toString(), /a banana/);
  verdict(false);
  client.send(said('a pear'));
  await until('the vendor has it', () => received.length === 1);
  received.length = 0;
  const events = spoken(['A pear.'], undefined);
  assert.deepEqual(await answered(client, events), events);
  verdict(true);
  received.length = 0;
  const got = await answered(client, spoken(['A banana.'], undefined, 'two'));
  assert.doesNotMatch(JSON.stringify(got), /banana/);
  assert.match(JSON.stringify(got), /content_policy_violation/);
  await client.close();
  const charged = async () =>
    ((await gateway.run('ledger', { name: 'ada' })) as { rows: { change: string }[] }).rows.some(
      ({ change }) => Number(change) < 0,
    );
  await until('the account has paid for the verdicts', charged);
});

test('a realtime answer in which nothing is found leaves as it came: texts in their order, sound before the end of its transcript', async () => {
  const client = await openRealtime('strict');
  for (const sound of [undefined, ['AAAA', 'BBBB']]) {
    received.length = 0;
    const events = spoken(['A pear, ', 'an apple ', 'and a plum, and nothing more than that.'], sound);
    const got = await answered(client, events);
    const sorted = (list: readonly object[]) => list.map((one) => JSON.stringify(one)).toSorted();
    assert.deepEqual(sorted(got), sorted(events));
    const types = got.map(({ type }) => type);
    if (sound === undefined) assert.deepEqual(got, events);
    else
      assert.ok(
        types.lastIndexOf('response.output_audio.delta') < types.indexOf('response.output_audio_transcript.done'),
      );
  }
  await client.close();
});

test('a realtime answer with a forbidden word is an error and a cancelled response: no text of it and no sound, wherever it is cut', async () => {
  const client = await openRealtime('strict');
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 20 }), fc.boolean(), async (length, hasSound) => {
      received.length = 0;
      const text = 'It is a nice ripe yellow banana from far away, and more of it follows.';
      const pieces = text.match(new RegExp(`.{1,${length}}`, 'g'))!;
      const got = await answered(client, spoken(pieces, hasSound ? ['AAAA', 'BBBB'] : undefined, `r${count++}`));
      const all = JSON.stringify(got);
      const said = got.map(({ delta: one = '' }) => one).join('');
      assert.ok('It is a nice ripe yellow '.startsWith(said), said);
      assert.doesNotMatch(all, /banana|AAAA|BBBB|more of it/);
      assert.equal(got.filter(({ type }) => type === 'error').length, 1);
      assert.equal(got.find(({ type }) => type === 'error').error.code, 'content_policy_violation');
      const { response } = got.at(-1);
      assert.deepEqual([response.status, response.status_details.reason], ['incomplete', 'content_filter']);
      assert.deepEqual([response.output, response.usage], [[], usage]);
      await until('it is cancelled', () => received.some(({ type }) => type === 'response.cancel'));
    }),
    { numRuns: 12 },
  );
  const events = spoken(['A pear.'], undefined, 'after');
  received.length = 0;
  assert.deepEqual(await answered(client, events), events);
  await client.close();
});

test('masked text stands in each message of a realtime answer, arguments of tools are checked whole, and masked words of sound are refused', async () => {
  const client = await openRealtime('masks');
  const got = JSON.stringify(await answered(client, spoken(['Write to ada@exa', 'mple.com now.'], undefined)));
  assert.doesNotMatch(got, /ada@|mple\.com/);
  assert.equal(got.match(/Write to \[EMAIL-1\] now\./g)?.length, 6);
  const call = { id: 'i', type: 'function_call', name: 'send', arguments: '{"to":"ada@example.com"}' };
  received.length = 0;
  const called = await answered(client, [
    { type: 'response.created', response: { id: 'c', output: [] } },
    ...['{"to":"ada@', 'example.com"}'].map((piece) => ({
      ...delta('function_call_arguments', piece),
      response_id: 'c',
    })),
    { type: 'response.function_call_arguments.done', ...item, response_id: 'c', arguments: call.arguments },
    { type: 'response.done', response: { id: 'c', status: 'completed', output: [call], usage } },
  ]);
  assert.doesNotMatch(JSON.stringify(called), /ada@/);
  assert.equal(called.at(-1).response.output[0].arguments, '{"to":"[EMAIL-1]"}');
  received.length = 0;
  const sound = JSON.stringify(await answered(client, spoken(['Write to ada@example.com now.'], ['AAAA'], 's')));
  assert.doesNotMatch(sound, /ada@|AAAA/);
  assert.match(sound, /content_policy_violation/);
  await client.close();
});

test('sound without a transcript is refused, unless the policy allows what cannot be checked', async () => {
  for (const model of ['strict', 'open']) {
    received.length = 0;
    const client = await openRealtime(model);
    const got = JSON.stringify(await answered(client, spoken([], ['AAAA'])));
    assert.equal(/AAAA/.test(got), model === 'open');
    assert.equal(/guardrail_not_applicable/.test(got), model === 'strict');
    await client.close();
  }
});

const turn = (...contents: object[]) => [
  ...contents.map((serverContent) => ({ serverContent })),
  { serverContent: { turnComplete: true }, usageMetadata: { promptTokenCount: 1, responseTokenCount: 1 } },
];
const says = (text: string) => ({ modelTurn: { parts: [{ text }] } });
const sounds = (data: string) => ({ modelTurn: { parts: [{ inlineData: { mimeType: 'audio/pcm', data } }] } });

/** Until the turn is complete or the session is closed; its close code. */
async function lived(client: Talk, events: readonly object[]): Promise<{ got: Message[]; code: number | undefined }> {
  const before = client.messages.length;
  for (const event of events) vendor.send(JSON.stringify(event));
  let code: number | undefined;
  void client.closed.then((closed) => {
    code = closed;
  });
  const isOver = () =>
    code !== undefined || client.messages.slice(before).some(({ serverContent }) => serverContent?.turnComplete);
  await until('the turn is over', isOver);
  return { got: client.messages.slice(before), code };
}

test('a live answer in which nothing is found leaves as it came, its sound at the end of the turn', async () => {
  const client = await openLive('strict');
  const texts = turn(says('A pear, '), says('an apple '), says('and a plum, and nothing more than that.'));
  assert.deepEqual((await lived(client, texts)).got, texts);
  const heard = turn(sounds('AAAA'), { outputTranscription: { text: 'A pear.' } }, sounds('BBBB'));
  const { got } = await lived(client, heard);
  assert.deepEqual(got.slice(-3), [heard[0], heard[2], heard[3]]);
  assert.deepEqual(got[0], heard[1]);
  await client.close();
});

test('a live answer with a forbidden word closes the session with its reason: no text of it and no sound', async () => {
  const turns = [
    turn(says('It is a nice ban'), says('ana from far away.')),
    turn(sounds('AAAA'), { outputTranscription: { text: 'a ban' } }, { outputTranscription: { text: 'ana' } }),
    turn({ modelTurn: { parts: [{ text: 'a ban' }, { text: 'ana' }] } }),
    [{ toolCall: { functionCalls: [{ id: '1', name: 'eat', args: { what: 'a banana' } }] } }],
    turn(sounds('AAAA')),
  ];
  for (const [index, events] of turns.entries()) {
    const client = await openLive('strict');
    const { got, code } = await lived(client, events);
    assert.doesNotMatch(JSON.stringify(got), /ban|ana|AAAA/, String(index));
    assert.equal(code, 1008);
  }
});

test('a live call of a tool does not wait for the end of the turn, and its masked arguments are still an object', async () => {
  const client = await openLive('masks');
  const calls = { toolCall: { functionCalls: [{ id: '1', name: 'send', args: { to: 'ada@example.com', n: 1 } }] } };
  for (const event of [{ serverContent: says('I write.') }, calls]) vendor.send(JSON.stringify(event));
  await until('the call is there', () => client.messages.some((message) => 'toolCall' in message));
  assert.deepEqual(client.messages.at(-1).toolCall.functionCalls, [
    { id: '1', name: 'send', args: { to: '[EMAIL-1]', n: 1 } },
  ]);
  assert.deepEqual(client.messages.at(-2), { serverContent: says('I write.') });
  await client.close();
});
