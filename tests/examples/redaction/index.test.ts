/** The redaction for clients of four protocols, relayed and translated, whole and streamed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  chatStream,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

const secret = 'sk-abcdefghijklmnop0123456789';
let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  gateway = await startGateway(
    {
      plugins: ['./', 'providers', 'models', 'route', 'protocol-convert'],
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
    },
    { from: import.meta.dirname },
  );
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

const text = 'x';
const request = {
  chat: (stream: boolean) => [
    '/v1/chat/completions',
    { model: 'm', messages: [{ role: 'user', content: text }], stream },
  ],
  responses: (stream: boolean) => ['/v1/responses', { model: 'm', input: text, stream }],
  messages: (stream: boolean) => [
    '/v1/messages',
    { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: text }], stream },
  ],
  gemini: (stream: boolean) => [
    `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text }] }] },
  ],
} satisfies Record<string, (stream: boolean) => [string, object]>;

const letters = (body: string) =>
  [...body.matchAll(/"(?:content|text|delta)":"([^"]*)"/g)].map(([, piece]) => piece).join('');

for (const [client, send] of Object.entries(request))
  for (const stream of [false, true])
    test(`${client}, ${stream ? 'streamed in single characters' : 'whole'}: a secret is replaced, wherever it is cut`, async () => {
      const said = `Use ${secret} for it.`;
      vendor.play(stream ? chatStream(...said) : chatAnswer(said));
      const [path, body] = send(stream);
      const answer = await gateway.post(path, body);
      assert.equal(answer.status, 200);
      const got = await answer.text();
      assert.match(letters(got), /Use \[secret\] for it\./);
      assert.doesNotMatch(letters(got), /sk-ab|6789/);
    });

test('a relayed answer without a secret keeps every byte, escapes and unknown members too', async () => {
  const body =
    '{ "id":"c", "object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"caf\\u00e9"},"finish_reason":"stop"}], "new_member": 1.0 }';
  vendor.play({ status: 200, headers: { 'content-type': 'application/json' }, body });
  assert.equal(await (await gateway.post('/v1/chat/completions', request.chat(false)[1])).text(), body);
});

test('a secret that the vendor escapes is found', async () => {
  const body = `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"${secret.replace('s', '\\u0073')}"},"finish_reason":"stop"}]}`;
  vendor.play({ status: 200, headers: { 'content-type': 'application/json' }, body });
  assert.match(await (await gateway.post('/v1/chat/completions', request.chat(false)[1])).text(), /"\[secret\]"/);
});

test('the strings of a tool call are searched in their decoded form', async () => {
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: 'f', arguments: `{"key":"${secret.replace('s', '\\u0073')}","n":1}` },
  };
  const choice = {
    index: 0,
    message: { role: 'assistant', content: null, tool_calls: [call] },
    finish_reason: 'tool_calls',
  };
  vendor.play({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'c', choices: [choice] }),
  });
  const answer = (await (await gateway.post('/v1/chat/completions', request.chat(false)[1])).json()) as {
    choices: [{ message: { tool_calls: [{ function: { arguments: string } }] } }];
  };
  const [{ function: called }] = answer.choices[0].message.tool_calls;
  assert.deepEqual(JSON.parse(called.arguments), { key: '[secret]', n: 1 });
});
