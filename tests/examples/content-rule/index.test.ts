/** The content rule for clients of every protocol: conversations, embeddings, images, speech, forms. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chatAnswer, startGateway, startVendor, type TestGateway, type Vendor } from 'model-gateway/testing';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  const at = `${vendor.origin}/v1`;
  const speaks = {
    ...{ chat: at, 'openai-embeddings': at, 'gemini-embeddings': at, 'cohere-rerank': at, 'openai-moderations': at },
    ...{ 'openai-speech': at, 'openai-transcriptions': at },
  };
  const of = (kind: string) => ({ kind, owned_by: 'vendor', targets: ['vendor'], price: 'free' });
  gateway = await startGateway(
    {
      // Its place does not matter: the rules run where `prompts` stands.
      plugins: ['./', 'prompts', 'providers', 'models', 'route', 'protocol-convert', 'endpoints'],
      'content-rule': { refused: ['banana'], mask_addresses: true },
      providers: { vendor: { keys: 'vendor-key', speaks } },
      models: {
        m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' },
        ...{ e: of('embedding'), r: of('rerank'), mod: of('moderation'), s: of('speech'), t: of('transcription') },
      },
    },
    { from: import.meta.dirname },
  );
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

const user = (content: unknown) => ({ role: 'user', content });
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
/** Where a text may stand. */
const requests: Record<string, (text: string) => [path: string, body: object]> = {
  chat: (text) => ['/v1/chat/completions', { model: 'm', messages: [user(text)] }],
  'a tool result of chat': (text) => [
    '/v1/chat/completions',
    {
      model: 'm',
      messages: [
        user('?'),
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c', content: text },
      ],
      tools: [tool],
    },
  ],
  'a description of chat': (text) => [
    '/v1/chat/completions',
    { model: 'm', messages: [user('?')], tools: [{ ...tool, function: { ...tool.function, description: text } }] },
  ],
  responses: (text) => ['/v1/responses', { model: 'm', input: text }],
  messages: (text) => ['/v1/messages', { model: 'm', max_tokens: 9, messages: [user([{ type: 'text', text }])] }],
  'counted messages': (text) => ['/v1/messages/count_tokens', { model: 'm', messages: [user(text)] }],
  gemini: (text) => ['/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text }] }] }],
  completions: (text) => ['/v1/completions', { model: 'm', prompt: text }],
  embeddings: (text) => ['/v1/embeddings', { model: 'e', input: ['x', text] }],
  'embeddings of Google': (text) => ['/v1beta/models/e:embedContent', { content: { parts: [{ text }] } }],
  rerank: (text) => ['/v2/rerank', { model: 'r', query: '?', documents: ['x', text] }],
  moderations: (text) => ['/v1/moderations', { model: 'mod', input: text }],
  speech: (text) => ['/v1/audio/speech', { model: 's', voice: 'alloy', input: text }],
};

const post = (path: string, body: string | FormData) =>
  fetch(gateway.origin + path, {
    method: 'POST',
    ...(typeof body === 'string' ? { headers: { 'content-type': 'application/json' } } : {}),
    body,
  });

for (const [where, request] of Object.entries(requests)) {
  test(`${where}: a word is refused in any spelling, and nothing is sent`, async () => {
    const [path, body] = request('One Banana, please.');
    const sent = vendor.requests.length;
    const answer = await post(path, JSON.stringify(body).replace('Banana', 'B\\u0061nana'));
    assert.equal(answer.status, 403, await answer.clone().text());
    assert.equal(answer.headers.get('x-should-retry'), 'false');
    assert.match(await answer.text(), /has a word that is not allowed here/);
    assert.equal(vendor.requests.length, sent);
  });

  if (where === 'counted messages') continue;
  test(`${where}: an address is masked before the vendor gets it`, async () => {
    const [path, body] = request('Write to ada@example.com today.');
    const sent = vendor.requests.length;
    await (await post(path, JSON.stringify(body))).text();
    assert.equal(vendor.requests.length, sent + 1);
    assert.match(vendor.requests.at(-1)!.body.toString(), /Write to \[address\] today\./);
  });
}

test('texts of a form are read and changed, and its file keeps every byte', async () => {
  const form = (prompt: string) => {
    const data = new FormData();
    data.set('model', 't');
    data.set('prompt', prompt);
    data.set('file', new Blob([new Uint8Array([1, 2, 3, 250])]), 'a.mp3');
    return data;
  };
  assert.equal((await post('/v1/audio/transcriptions', form('banana'))).status, 403);
  await (await post('/v1/audio/transcriptions', form('of ada@example.com, in Paris'))).text();
  const body = vendor.requests.at(-1)!.body;
  assert.match(body.toString(), /of \[address\], in Paris/);
  assert.ok(body.includes(Buffer.from([1, 2, 3, 250])));
});

test('a word that two parts of a message share is found', async () => {
  const parts = [
    { type: 'text', text: 'ba' },
    { type: 'text', text: 'nana' },
  ];
  assert.equal((await gateway.post('/v1/chat/completions', { model: 'm', messages: [user(parts)] })).status, 403);
});

test('a request without a finding keeps every byte', async () => {
  const body = '{ "model":"m",  "messages":[{"role":"user","content":"caf\\u00e9"}], "some_new_member": 1.0 }';
  assert.equal((await post('/v1/chat/completions', body)).status, 200);
  assert.equal(vendor.requests.at(-1)!.body.toString(), body);
});

test('a relayed request that is changed differs only in the text', async () => {
  const body = (text: string) => `{ "model":"m",  "messages":[{"role":"user","content":"${text}"}], "seed": 1.0 }`;
  assert.equal((await post('/v1/chat/completions', body('ada@example.com'))).status, 200);
  assert.equal(vendor.requests.at(-1)!.body.toString(), body('[address]'));
});
