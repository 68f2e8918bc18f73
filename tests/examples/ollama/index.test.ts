/** A wire protocol from outside: the code of the built-in plugin `ollama`, as an author would have it in a folder of their own. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startGateway, startVendor, type TestGateway, type Vendor } from 'model-gateway/testing';

/** Where the gateway is installed as a package the plugin was copied here; else it is copied now. */
const made = join(import.meta.dirname, 'plugin');
const isMade = existsSync(made);
const folder = isMade ? made : mkdtempSync(join(tmpdir(), 'ollama-outside-'));
let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  if (!isMade) (await import('./outside.ts')).copyOutside(folder);
  vendor = await startVendor();
  gateway = await startGateway({
    plugins: ['providers', 'models', 'route', 'protocol-convert', folder],
    providers: { local: { keys: 'any', speaks: { ollama: vendor.origin } } },
    models: { llama: { owned_by: 'local', targets: ['local'], price: 'free' } },
  });
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
  if (!isMade) rmSync(folder, { recursive: true });
});

const line = (more: object) => `${JSON.stringify({ model: 'llama', created_at: '2026-01-01T00:00:00Z', ...more })}\n`;
const end = { done: true, done_reason: 'stop', prompt_eval_count: 7, eval_count: 2 };

test('a client of another protocol gets a whole answer', async () => {
  vendor.play({ body: line({ message: { role: 'assistant', content: 'Hello' }, ...end }) });
  const answer = await gateway.post('/v1/messages', {
    model: 'llama',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'Hi' }],
  });
  const body = (await answer.json()) as { content: unknown; usage: { input_tokens: number; output_tokens: number } };
  assert.deepEqual(body.content, [{ type: 'text', text: 'Hello', citations: null }]);
  assert.deepEqual([body.usage.input_tokens, body.usage.output_tokens], [7, 2]);
  assert.equal(vendor.requests.at(-1)!.url, '/api/chat');
});

test('a client of another protocol gets a stream', async () => {
  const pieces = ['Hel', 'lo'].map((content) => line({ message: { role: 'assistant', content }, done: false }));
  vendor.play({
    headers: { 'content-type': 'application/x-ndjson' },
    body: pieces.join('') + line({ message: { role: 'assistant', content: '' }, ...end }),
  });
  const answer = await gateway.post('/v1/chat/completions', {
    model: 'llama',
    stream: true,
    messages: [{ role: 'user', content: 'Hi' }],
  });
  const text = await answer.text();
  assert.match(text, /"content":"Hel"[\s\S]*"content":"lo"[\s\S]*\[DONE\]/);
});
