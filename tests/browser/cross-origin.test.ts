/** A page of another origin calls the demo gateway in a real browser, by fetch and by the official client. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { build, type Rollup } from 'vite';
import { type Demo, model, startDemo } from '../sdk/demo.ts';
import { after, before, test } from './browser-test.ts';
import { launchBrowser } from './chromium.ts';

/** The official client, bundled as a page would have it. */
let client = '';
const site = createServer((incoming, outgoing) => {
  const isScript = incoming.url === '/client.js';
  outgoing.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
  outgoing.end(isScript ? client : '<!doctype html><title>A page</title>');
});
let demo: Demo;
let browser: Browser;
let page: Page;

before(async () => {
  await once(site.listen(0, '127.0.0.1'), 'listening');
  [demo, browser, client] = await Promise.all([startDemo(), launchBrowser(), bundle()]);
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
});
after(async () => {
  await browser?.close();
  await demo?.stop();
  site.close();
});

async function bundle(): Promise<string> {
  const lib = { entry: 'node_modules/openai/index.mjs', formats: ['es'] as const, fileName: 'client' };
  const options = { lib: { ...lib, formats: [...lib.formats] }, write: false, minify: false };
  const built = (await build({ configFile: false, logLevel: 'silent', build: options })) as Rollup.RollupOutput[];
  return built[0]!.output[0].code;
}

interface Sent {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** What the page's script sees of an answer; an answer that it may not read is a failed fetch. */
function send(path: string, init: Pick<RequestInit, 'method' | 'credentials'> & Sent = {}) {
  const request = { path: demo.origin + path, init };
  return page.evaluate(async ({ path: url, init: options }) => {
    try {
      const answer = await fetch(url, options);
      const headers = Object.fromEntries(answer.headers);
      return { status: answer.status, headers, body: await answer.text() };
    } catch (error) {
      return { failed: (error as Error).name };
    }
  }, request);
}

test('the official client in a browser gets whole and streamed answers', async () => {
  const said = await page.evaluate(
    async ({ origin, key, name }) => {
      const address = '/client.js';
      const { default: OpenAI } = await import(address);
      const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, dangerouslyAllowBrowser: true, maxRetries: 0 });
      const messages = [{ role: 'user', content: 'Hello from a page' }];
      const whole = await client.chat.completions.create({ model: name, messages });
      let streamed = '';
      for await (const chunk of await client.chat.completions.create({ model: name, messages, stream: true }))
        streamed += chunk.choices[0]?.delta?.content ?? '';
      const response = await client.responses.create({ model: name, input: 'Hello from a page' });
      const models = await client.models.list();
      const refused = await client.chat.completions
        .create({ model: 'none-such', messages })
        .catch((error: unknown) => error);
      return {
        whole: whole.choices[0].message.content,
        id: whole._request_id,
        streamed,
        response: response.output_text,
        models: models.data.length,
        refused: { status: refused.status, id: refused.requestID, message: refused.message },
      };
    },
    { origin: demo.origin, key: demo.keys.good, name: model },
  );
  for (const text of [said.whole, said.streamed, said.response]) assert.match(text, /Hello from a page/);
  assert.ok(said.models > 1);
  assert.match(said.id, /^[0-9a-f-]{36}$/);
  assert.equal(said.refused.status, 404);
  assert.match(said.refused.id, /^[0-9a-f-]{36}$/);
  assert.match(said.refused.message, /none-such/);
});

test('a page reads refusals with their request ids and retry-after', async () => {
  const headers = { authorization: `Bearer ${demo.keys.tight}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify({ model, messages: [{ role: 'user', content: 'a' }] }) };
  await send('/v1/chat/completions', init);
  const limited = await send('/v1/chat/completions', init);
  assert.equal(limited.status, 429);
  assert.match(limited.headers!['retry-after']!, /^\d+$/);
  assert.match(limited.headers!['x-request-id']!, /^[0-9a-f-]{36}$/);
  const limits = Object.keys(limited.headers!).filter((name) => name.startsWith('x-ratelimit-'));
  assert.ok(limits.length > 0, Object.keys(limited.headers!).join());
  const unknown = await send('/v1/nothing', { method: 'PATCH', headers, body: '{}' });
  assert.equal(unknown.status, 404);
  const keyless = await send('/v1/messages', {
    ...init,
    headers: { 'anthropic-version': '2023-06-01', 'x-api-key': 'wrong' },
  });
  assert.equal(keyless.status, 401);
});

test('a page of another origin cannot read the console, with or without a session', async () => {
  for (const path of ['/console/', '/console/api/me', '/console/api/auth/get-session']) {
    assert.deepEqual(await send(path), { failed: 'TypeError' });
    assert.deepEqual(await send(path, { credentials: 'include' }), { failed: 'TypeError' });
    assert.deepEqual(await send(path, { headers: { authorization: 'Bearer x' } }), { failed: 'TypeError' });
  }
  assert.deepEqual(await send('/v1/models', { credentials: 'include' }), { failed: 'TypeError' });
});
