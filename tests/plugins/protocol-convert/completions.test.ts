/** `POST /v1/completions`: relayed byte for byte where a vendor has it, made by a conversation of one turn elsewhere, whole and streamed. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { type RunningVendor, startVendor } from '../../../plugins/sandbox/vendor.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { type Client, clientOf } from '../task-store/clients.ts';

let vendor: RunningVendor;
let native: Server;
let gateway: TestGateway;
let alice: Client;
const seen: { url: string; body: string }[] = [];

const whole =
  '{ "id": "cmpl-1","object":"text_completion", "created":1,"model":"m1","choices":[{"text":" there","index":0,"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}';
const chunks = [
  'data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m1","choices":[{"text":" th","index":0,"finish_reason":null}]}\n\n',
  'data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m1","choices":[{"text":"ere","index":0,"finish_reason":"stop"}]}\n\n',
];
const usageChunk =
  'data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n';
const done = 'data: [DONE]\n\n';

const yamlOf = (origin: string, own: string) => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, billing, route, protocol-convert]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  native: { keys: k, speaks: { completions: "${own}/v1" } }
  chat: { keys: vendor-key, speaks: { chat: "${origin}/v1" } }
  responses: { keys: vendor-key, speaks: { responses: "${origin}/v1" } }
  messages: { keys: vendor-key, speaks: { messages: "${origin}" } }
  gemini: { keys: vendor-key, speaks: { gemini: "${origin}/v1beta" } }
models:
  native: { owned_by: tests, targets: [native/m1], price: { input: 1, output: 2 } }
${['chat', 'responses', 'messages', 'gemini'].map((name) => `  ${name}: { owned_by: tests, targets: [${name}/m], max_output: 1000, price: { input: 1, output: 2 } }`).join('\n')}
`;

before(async () => {
  vendor = await startVendor({ key: 'vendor-key' });
  native = createServer(async (incoming, outgoing) => {
    let body = '';
    for await (const chunk of incoming) body += String(chunk);
    seen.push({ url: incoming.url ?? '', body });
    const { stream, stream_options: options } = JSON.parse(body) as { stream?: boolean; stream_options?: object };
    outgoing.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
    outgoing.end(stream ? chunks.join('') + (options ? usageChunk : '') + done : whole);
  });
  await new Promise<void>((resolve) => native.listen(0, '127.0.0.1', resolve));
  const own = `http://127.0.0.1:${(native.address() as AddressInfo).port}`;
  gateway = await startGateway(yamlOf(vendor.origin, own));
  alice = await clientOf(gateway, 'alice');
});
after(async () => {
  await gateway?.stop();
  await vendor?.close();
  native?.close();
});

const post = (body: object) =>
  fetch(`${gateway.origin}/v1/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const client = () => new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: alice.key });

test('a vendor that has completions gets the bytes, suffix and tokens included, and its answer is passed on and paid', async () => {
  const before = await alice.balance();
  const answer = await post({ model: 'native', prompt: [1, 2, 3], suffix: '!', echo: true, logprobs: 2, best_of: 3 });
  assert.equal(await answer.text(), whole);
  const sent = seen.at(-1)!;
  assert.equal(sent.url, '/v1/completions');
  assert.equal(sent.body, '{"model":"m1","prompt":[1,2,3],"suffix":"!","echo":true,"logprobs":2,"best_of":3}');
  await alice.hasPaid(before, 5n * 1_000n + 2n * 2_000n);
  const streamed = await post({ model: 'native', prompt: 'Hello', stream: true });
  assert.equal(await streamed.text(), chunks.join('') + done);
  await alice.hasPaid(before, 2n * (5n * 1_000n + 2n * 2_000n));
});

for (const model of ['chat', 'responses', 'messages', 'gemini'])
  test(`${model}: an official client has the text, whole and streamed, and pays what the vendor bills`, async () => {
    const before = await alice.balance();
    const answer = await client().completions.create({ model, prompt: 'Say hello', max_tokens: 200, stop: ['@@'] });
    const [choice] = answer.choices;
    assert.deepEqual([answer.object, choice!.index, choice!.finish_reason], ['text_completion', 0, 'stop']);
    assert.match(choice!.text, /\w/);
    assert.match(answer.id, /^cmpl-/);
    const { prompt_tokens: input, completion_tokens: output } = answer.usage!;
    await alice.hasPaid(before, BigInt(input * 1_000 + output * 2_000));
    let text = '';
    let finish: string | null = null;
    const options = { include_usage: true };
    let total = 0;
    for await (const chunk of await client().completions.create({
      ...{ model, prompt: ['Say hello'], max_tokens: 200, stream: true, stream_options: options },
    })) {
      assert.equal(chunk.object, 'text_completion');
      text += chunk.choices[0]?.text ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
      total = chunk.usage?.total_tokens ?? total;
    }
    assert.deepEqual([text, finish, total > 0], [choice!.text, 'stop', true]);
  });

test('a setting that a conversation has no place for is refused by its field and costs nothing; without effect it may stand there', async () => {
  const before = await alice.balance();
  const refused: [string, object][] = [
    ['suffix', { suffix: 'end' }],
    ['echo', { echo: true }],
    ['logprobs', { logprobs: 1 }],
    ['best_of', { best_of: 3 }],
    ['prompt', { prompt: [1, 2] }],
    ['prompt', { prompt: ['a', 'b'] }],
    ['prompt', { prompt: null }],
  ];
  for (const [field, more] of refused) {
    const answer = await post({ model: 'chat', prompt: 'Hello', ...more });
    const { error } = (await answer.json()) as { error: { param: string } };
    assert.deepEqual([answer.status, error.param], [400, field]);
  }
  await alice.hasPaid(before, 0n);
  assert.equal(
    (await post({ model: 'chat', prompt: 'Hi', suffix: null, echo: false, best_of: 1, logprobs: null })).status,
    200,
  );
});

test('an error of the vendor, before and inside a stream, is an error to the client', async () => {
  assert.equal((await post({ model: 'messages', prompt: 'x [[sandbox: status=400]]' })).status, 400);
  const stream = await post({ model: 'messages', prompt: 'x [[sandbox: mid_error]]', stream: true });
  assert.match(await stream.text(), /data: \{"error":/);
});

test('clients of other protocols are never translated for a vendor of completions', async () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  const { status } = await alice.send('POST', '/v1/chat/completions', { model: 'native', messages });
  assert.equal(status, 422);
});
