/** The guardrail over HTTP before chat, embeddings and images, with a service that judges, is slow, or answers garbage. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  chatAnswer,
  type Script,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

let vendor: Vendor;
let service: Vendor;
let gateway: TestGateway;
let key: string;

before(async () => {
  [vendor, service] = await Promise.all([startVendor(), startVendor()]);
  vendor.play(chatAnswer('Noted.'));
  const at = `${vendor.origin}/v1`;
  const of = (kind: string) => ({ kind, owned_by: 'vendor', targets: ['vendor'], price: 'free' });
  gateway = await startGateway(
    {
      plugins: [
        ...['storage', 'files', 'auth', './', 'providers', 'models', 'prompts', 'billing', 'route', 'protocol-convert'],
        ...['endpoints', 'task-store'],
      ],
      screening: { url: `${service.origin}/judge`, within: '4s', allow_private: true },
      'task-store': { expose: ['images'] },
      providers: {
        vendor: { keys: 'vendor-key', speaks: { chat: at, 'openai-embeddings': at, 'openai-images': at } },
      },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' }, e: of('embedding'), i: of('image') },
    },
    { from: import.meta.dirname },
  );
  await gateway.run('accounts create', { name: 'ada' });
  key = ((await gateway.run('keys create', { account: 'ada', name: 'test' })) as { key: string }).key;
});
after(async () => {
  await gateway?.stop();
  await Promise.all([vendor.stop(), service.stop()]);
});
beforeEach(() => {
  service.requests.length = 0;
  vendor.requests.length = 0;
});

const verdict = (body: object): Script => ({ body: JSON.stringify(body) });
const post = (path: string, body: object) => gateway.post(path, body, { authorization: `Bearer ${key}` });
const chat = (content: string) => post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content }] });
const requests = {
  chat,
  embeddings: (input: string) => post('/v1/embeddings', { model: 'e', input }),
  images: (prompt: string) => post('/v1/images/generations', { model: 'i', prompt }),
};

for (const [operation, request] of Object.entries(requests)) {
  test(`${operation}: the service reads the text, and a refused one is not sent`, async () => {
    service.play(verdict({ refused: 'This text is not allowed here.' }));
    const answer = await request('a text');
    assert.equal(answer.status, 403);
    assert.match(await answer.text(), /This text is not allowed here/);
    const [judged] = service.requests.map(({ body }) => JSON.parse(body.toString()));
    assert.equal(judged.operation, operation);
    assert.ok(judged.texts.includes('a text'));
    assert.equal(vendor.requests.length, 0);
  });
}

test('a text that the service accepts is judged once and answered', async () => {
  service.play(verdict({}));
  assert.equal((await chat('a text')).status, 200);
  assert.equal(service.requests.length, 1);
});

const broken: Record<string, Script> = {
  'is too slow': { headDelayMs: 30_000 },
  'answers garbage': { body: 'garbage' },
  'answers an error': { status: 500, body: '{}' },
};
for (const [what, script] of Object.entries(broken)) {
  test(`a service that ${what}: the request is refused as one that can be repeated, and nothing is sent`, async () => {
    service.play(script);
    const answer = await chat('a text');
    assert.equal(answer.status, 503);
    assert.notEqual(answer.headers.get('x-should-retry'), 'false');
    assert.equal(vendor.requests.length, 0);
  });
}
