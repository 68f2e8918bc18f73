/** The content rule for clients of four protocols, relayed and translated. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chatAnswer, startGateway, startVendor, type TestGateway, type Vendor } from 'model-gateway/testing';

let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  gateway = await startGateway(
    {
      // Its place does not matter: it runs where `protocol-convert` is in the chain.
      plugins: ['./', 'providers', 'models', 'route', 'protocol-convert'],
      'content-rule': { refused: ['banana'], mask_addresses: true },
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

const request = {
  chat: (text: string) => ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: text }] }],
  responses: (text: string) => ['/v1/responses', { model: 'm', input: text }],
  messages: (text: string) => [
    '/v1/messages',
    { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  ],
  gemini: (text: string) => ['/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts: [{ text }] }] }],
} satisfies Record<string, (text: string) => [string, object]>;

const post = (path: string, body: string) =>
  fetch(gateway.origin + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

for (const [client, send] of Object.entries(request)) {
  test(`${client}: a word is found however the client writes it, and nothing is sent`, async () => {
    const [path, body] = send('One Banana, please.');
    const sent = vendor.requests.length;
    const answer = await post(path, JSON.stringify(body).replace('Banana', 'B\\u0061nana'));
    assert.equal(answer.status, 403);
    assert.equal(answer.headers.get('x-should-retry'), 'false');
    assert.match(await answer.text(), /has a word that is not allowed here/);
    assert.equal(vendor.requests.length, sent);
  });

  test(`${client}: an address is masked, and the rest is as it was`, async () => {
    const [path, body] = send('Write to ada@example.com today.');
    const answer = await post(path, JSON.stringify(body));
    assert.equal(answer.status, 200, await answer.clone().text());
    assert.match(await answer.text(), /Noted\./);
    const sent = JSON.parse(vendor.requests.at(-1)!.body.toString());
    assert.match(JSON.stringify(sent.messages), /Write to \[address\] today\./);
    assert.equal(sent.model, 'm');
  });
}

test('a relayed request that is not changed keeps every byte', async () => {
  const body = '{ "model":"m",  "messages":[{"role":"user","content":"caf\\u00e9"}], "some_new_member": 1.0 }';
  assert.equal((await post('/v1/chat/completions', body)).status, 200);
  assert.equal(vendor.requests.at(-1)!.body.toString(), body);
});

test('one that is changed keeps the settings that the gateway knows', async () => {
  const messages = [{ role: 'user', content: 'ada@example.com' }];
  await post('/v1/chat/completions', JSON.stringify({ model: 'm', messages, temperature: 0.5, max_tokens: 7 }));
  const sent = JSON.parse(vendor.requests.at(-1)!.body.toString());
  assert.equal(sent.temperature, 0.5);
  assert.equal(sent.max_tokens ?? sent.max_completion_tokens, 7);
});
