/** Transforms of answers where the answer is read later: in the lines of a batch, and in stored responses. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  chatAnswer,
  chatStream,
  type Script,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../plugins/common/author/testing.ts';

const secret = 'sk-abcdefghijklmnop0123456789';
const said = `Use ${secret} for it.`;
const changed = 'Use [secret] for it.';
const json = { 'content-type': 'application/json' };
let vendor: Vendor;
let gateway: TestGateway;
let key: string;

before(async () => {
  vendor = await startVendor();
  const keys = 'vendor-key';
  gateway = await startGateway(
    {
      plugins: [
        ...['storage', 'request-log', 'files', 'auth', './', 'providers', 'models', 'idempotency', 'billing', 'route'],
        ...['protocol-convert', 'uploads', 'batches'],
      ],
      providers: {
        chats: { keys, speaks: { chat: `${vendor.origin}/v1` } },
        responders: { keys, speaks: { responses: `${vendor.origin}/v1` } },
      },
      models: {
        translated: { owned_by: 'vendor', targets: ['chats'], price: 'free' },
        relayed: { owned_by: 'vendor', targets: ['responders'], price: 'free' },
      },
    },
    { from: join(import.meta.dirname, '../examples/redaction') },
  );
  await gateway.run('accounts create', { name: 'ada' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'test' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

async function call(method: string, path: string, body?: object): Promise<Response> {
  const isForm = body instanceof FormData;
  const headers = { authorization: `Bearer ${key}`, ...(isForm || body === undefined ? {} : json) };
  const sent = isForm ? body : body === undefined ? null : JSON.stringify(body);
  return fetch(gateway.origin + path, { method, headers, body: sent });
}

test('a batch line has the changed answer', async () => {
  vendor.play(chatAnswer(said));
  const line = {
    custom_id: 'one',
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'translated', messages: [{ role: 'user', content: 'x' }] },
  };
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([JSON.stringify(line)]), 'input.jsonl');
  const { id: input } = (await (await call('POST', '/v1/files', form)).json()) as { id: string };
  const order = { input_file_id: input, endpoint: '/v1/chat/completions', completion_window: '24h' };
  let batch = (await (await call('POST', '/v1/batches', order)).json()) as Record<string, string>;
  for (const until = Date.now() + 60_000; batch['status'] !== 'completed' && Date.now() < until; await pause(100))
    batch = (await (await call('GET', `/v1/batches/${batch['id']}`)).json()) as Record<string, string>;
  const output = await (await call('GET', `/v1/files/${batch['output_file_id']}/content`)).text();
  assert.equal(JSON.parse(output).response.body.choices[0].message.content, changed, output);
  assert.ok(!output.includes(secret));
});

const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' };
const part = { type: 'output_text', text: said, annotations: [] };
const response = {
  ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm' },
  output: [{ ...item, content: [part] }],
  usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
};

function wholeResponse(): Script {
  return { headers: json, body: JSON.stringify(response) };
}

function streamedResponse(): Script {
  const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
    ...[...said].map((delta) => ({ type: 'response.output_text.delta', ...at, delta })),
    { type: 'response.output_text.done', ...at, text: said },
    { type: 'response.content_part.done', ...at, part },
    { type: 'response.output_item.done', output_index: 0, item: response.output[0] },
    { type: 'response.completed', response },
  ];
  const frames = events.map(
    (event, sequence_number) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`,
  );
  return { headers: { 'content-type': 'text/event-stream' }, body: frames.join('') };
}

const plays = {
  translated: { whole: () => chatAnswer(said), stream: () => chatStream(...said) },
  relayed: { whole: wholeResponse, stream: streamedResponse },
};

for (const [model, play] of Object.entries(plays))
  for (const stream of [false, true])
    test(`a stored response of a ${model} call that was ${stream ? 'streamed' : 'whole'} is read and continued as changed`, async () => {
      vendor.play(stream ? play.stream() : play.whole());
      const first = await (await call('POST', '/v1/responses', { model, input: 'One?', store: true, stream })).text();
      assert.ok(first.includes(changed) && !first.includes(secret), first);
      const id = /"id":"(resp_[^"]+)"/.exec(first)?.[1];
      const stored = await call('GET', `/v1/responses/${id}`);
      const text = await stored.text();
      assert.equal(stored.status, 200, text);
      assert.ok(text.includes(changed) && !text.includes(secret), text);
      vendor.play(play.whole());
      const next = await call('POST', '/v1/responses', { model, input: 'Two?', previous_response_id: id });
      assert.equal(next.status, 200, await next.text());
      const sent = String(vendor.requests.at(-1)!.body);
      assert.ok(sent.includes(changed) && sent.includes('One?') && !sent.includes(secret), sent);
    });
