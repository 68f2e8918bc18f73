/** Rules for prompts where the request is no plain call: orders of images and videos, lines of batches, turns and messages over WebSocket. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import {
  chatAnswer,
  checkGateway,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../plugins/common/author/testing.ts';
import { until } from '../helpers/until.ts';
import { talk } from './sockets.ts';

let vendor: Vendor;
const sessions = new WebSocketServer({ port: 0, host: '127.0.0.1' });
/** What a vendor of sessions has received. */
const received: string[] = [];
let gateway: TestGateway;
let key: string;
const from = join(import.meta.dirname, '../examples/content-rule');
const rule = { refused: ['banana'], mask_addresses: true };

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  if (sessions.address() === null) await once(sessions, 'listening');
  sessions.on('connection', (socket, { url = '' }) => {
    if (url.includes('realtime')) socket.send('{"type":"session.created","session":{}}');
    socket.on('message', (data) => {
      received.push(String(data));
      if (String(data).includes('"setup"')) socket.send('{"setupComplete":{}}');
    });
  });
  const talks = `http://127.0.0.1:${(sessions.address() as AddressInfo).port}`;
  const at = `${vendor.origin}/v1`;
  const entry = (kind: string, target = 'vendor') => ({ kind, owned_by: 'vendor', targets: [target], price: 'free' });
  gateway = await startGateway(
    {
      plugins: [
        ...[
          'storage',
          'request-log',
          'files',
          'auth',
          './',
          'providers',
          'models',
          'idempotency',
          'prompts',
          'billing',
        ],
        ...['route', 'protocol-convert', 'endpoints', 'websockets', 'uploads', 'batches', 'task-store'],
      ],
      'content-rule': rule,
      'task-store': { expose: ['images', 'videos'] },
      providers: {
        vendor: { keys: 'vendor-key', speaks: { chat: at, 'openai-images': at, 'ark-videos': at } },
        talks: { keys: 'vendor-key', speaks: { 'openai-realtime': `${talks}/v1`, 'gemini-live': talks } },
      },
      models: {
        m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' },
        ...{ i: entry('image'), v: entry('video'), talk: entry('realtime', 'talks') },
      },
    },
    { from },
  );
  await gateway.run('accounts create', { name: 'ada' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'test' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
  for (const client of sessions.clients) client.terminate();
  sessions.close();
});

function call(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> {
  const isForm = body instanceof FormData;
  const type = isForm || body === undefined ? {} : { 'content-type': 'application/json' };
  const sent = isForm ? body : body === undefined ? null : JSON.stringify(body);
  return fetch(gateway.origin + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...type, ...headers },
    body: sent,
  });
}

/** The body of the request that a vendor gets next. */
async function nextAtVendor(before: number, path: string): Promise<string> {
  const next = () => vendor.requests.slice(before).find(({ url }) => url.endsWith(path));
  await until('the vendor has the request', () => next() !== undefined);
  return next()!.body.toString();
}

const orders: Record<string, [path: string, order: (prompt: string) => Promise<Response>]> = {
  'an order of images': [
    '/images/generations',
    (prompt) => call('POST', '/v1/images/generations', { model: 'i', prompt }),
  ],
  'an edit in a form': [
    '/images/edits',
    (prompt) => {
      const form = new FormData();
      form.set('model', 'i');
      form.set('prompt', prompt);
      form.set('image', new Blob([Buffer.from('89504e470d0a1a0a', 'hex')], { type: 'image/png' }), 'a.png');
      return call('POST', '/v1/images/edits', form);
    },
  ],
  'an order of a video': [
    '/tasks',
    (prompt) =>
      call('POST', '/v1/contents/generations/tasks', { model: 'v', content: [{ type: 'text', text: prompt }] }),
  ],
};
for (const [title, [path, order]] of Object.entries(orders)) {
  test(`${title}: a refused word prevents the order, and sent texts are masked`, async () => {
    const before = vendor.requests.length;
    const refused = await order('a banana');
    assert.equal(refused.status, 403, await refused.text());
    await (await order('for ada@example.com')).text();
    const body = await nextAtVendor(before, path);
    assert.match(body, /for \[address\]/);
    assert.doesNotMatch(body, /banana|ada@/);
  });
}

test('a batch line is refused or masked by itself, and the others are executed', async () => {
  vendor.play(chatAnswer('Noted.'));
  const before = vendor.requests.length;
  const line = (id: string, content: string) =>
    JSON.stringify({
      ...{ custom_id: id, method: 'POST', url: '/v1/chat/completions' },
      body: { model: 'm', messages: [{ role: 'user', content }] },
    });
  const form = new FormData();
  form.set('purpose', 'batch');
  const lines = [line('bad', 'a banana'), line('masked', 'for ada@example.com')];
  form.set('file', new Blob([lines.join('\n')]), 'input.jsonl');
  const { id: input } = (await (await call('POST', '/v1/files', form)).json()) as { id: string };
  const order = { input_file_id: input, endpoint: '/v1/chat/completions', completion_window: '24h' };
  let batch = (await (await call('POST', '/v1/batches', order)).json()) as Record<string, string>;
  for (const end = Date.now() + 60_000; batch['status'] !== 'completed' && Date.now() < end; await pause(100))
    batch = (await (await call('GET', `/v1/batches/${batch['id']}`)).json()) as Record<string, string>;
  const content = async (id: string) => (await call('GET', `/v1/files/${batch[id]}/content`)).text();
  assert.match(await content('output_file_id'), /"custom_id":"masked"/);
  assert.match(await content('error_file_id'), /"custom_id":"bad".*content_rule/);
  // Orders of images may be made again meanwhile.
  const chats = vendor.requests.slice(before).filter(({ url }) => url.endsWith('/chat/completions'));
  assert.equal(chats.length, 1);
  assert.match(chats[0]!.body.toString(), /for \[address\]/);
});

test('a turn of responses over WebSocket is refused, and the next one is masked', async () => {
  vendor.play(chatAnswer('Noted.'));
  const client = await talk(gateway.origin, key);
  const turn = (input: string) => client.turn({ type: 'response.create', model: 'm', input });
  assert.equal((await turn('a banana')).at(-1).error.code, 'content_rule');
  const before = vendor.requests.length;
  await turn('for ada@example.com');
  assert.match(await nextAtVendor(before, '/chat/completions'), /for \[address\]/);
  await client.close();
});

const said = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
});

test('a refused message of a realtime session gets an error event, and the session continues', async () => {
  received.length = 0;
  const client = await talk(gateway.origin, key, '/v1/realtime?model=talk');
  client.send(said('a banana'));
  await until('it is refused', () => client.messages.some(({ error }) => error?.code === 'content_rule'));
  client.send(said('for ada@example.com'));
  client.send({ type: 'session.update', session: { instructions: 'as ada@example.com' } });
  await until('the vendor has both', () => received.length === 2);
  assert.match(received[0]!, /for \[address\]/);
  assert.match(received[1]!, /as \[address\]/);
  await client.close();
});

test('settings of a client secret pass the rules before they are stored', async () => {
  received.length = 0;
  const session = { type: 'realtime', model: 'talk', instructions: 'as ada@example.com' };
  const made = (await (await call('POST', '/v1/realtime/client_secrets', { session })).json()) as { value: string };
  const client = await talk(gateway.origin, made.value, '/v1/realtime?model=talk');
  await until('the vendor has them', () => received.length === 1);
  assert.match(received[0]!, /as \[address\]/);
  await client.close();
});

test('a live session has its setup masked, and a refused message ends it, as the protocol has no error event', async () => {
  received.length = 0;
  const path = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
  const client = await talk(gateway.origin, key, path, { 'x-goog-api-key': key });
  client.send({ setup: { model: 'models/talk', systemInstruction: { parts: [{ text: 'as ada@example.com' }] } } });
  await until('it is set up', () => client.messages.length > 0);
  assert.match(received[0]!, /as \[address\]/);
  client.send({ clientContent: { turns: [{ role: 'user', parts: [{ text: 'a banana' }] }], turnComplete: true } });
  assert.equal(await client.closed, 1008);
  assert.equal(received.length, 1);
});

const fileOf = (plugins: readonly string[], more = {}) => ({
  plugins,
  'content-rule': rule,
  providers: { vendor: { keys: 'vendor-key', speaks: { chat: 'https://vendor.example/v1' } } },
  models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
  ...more,
});

test('a rule whose point has no owner, and an owner below billing, are faults of the file', async () => {
  const tail = ['providers', 'models', 'route', 'protocol-convert'];
  assert.match((await checkGateway(fileOf(['./', ...tail]), { from })).join(), /point "prompts".*add "prompts"/);
  const late = ['./', 'storage', 'auth', 'providers', 'models', 'billing', 'prompts', 'route', 'protocol-convert'];
  assert.match((await checkGateway(fileOf(late), { from })).join(), /move "prompts" above "billing"/);
  const right = ['./', 'storage', 'auth', 'providers', 'models', 'prompts', 'billing', 'route', 'protocol-convert'];
  assert.deepEqual(await checkGateway(fileOf(right), { from }), []);
});
