/** What public advisories about other gateways describe, tried here: SECURITY.md names each test. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { dialectNames, dialects } from './dialects.ts';
import { modelAt, startTestbed } from './testbed.ts';

const canaries = { replay: `replay-canary-${randomBytes(8).toString('hex')}`, sandbox: 'sandbox-canary-key' };
const testbed = await startTestbed({
  keys: canaries,
  providers: ({ replay }) => ({ hidden: { keys: 'hidden-canary-key', speaks: { chat: `${replay}/v1` } } }),
  models: { hidden: modelAt('hidden') },
});
after(() => testbed.stop());
const customer = await testbed.customer();
const hello = { model: 'sandbox', prompt: 'hello' };

/** Each way in which a key may come. */
const carriers: readonly ((key: string) => { headers?: Record<string, string>; query?: string })[] = [
  (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  (key) => ({ headers: { 'x-api-key': key } }),
  (key) => ({ headers: { 'x-goog-api-key': key } }),
  (key) => ({ query: `key=${encodeURIComponent(key)}` }),
];

const send = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(testbed.origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

test('advisory: a key that is SQL is refused and changes nothing', async () => {
  const before = (await testbed.rows('keys')).length;
  for (const crafted of [
    "' OR '1'='1",
    "sk-x' UNION SELECT * FROM api_keys --",
    "'; DROP TABLE api_keys; --",
    `${customer.key}' --`,
    `${customer.key}"; select pg_sleep(30); --`,
    '\\"); delete from accounts; --',
    '$1',
    '%',
  ]) {
    for (const carrier of carriers) {
      const { headers, query } = carrier(crafted);
      const path = query === undefined ? '/v1/chat/completions' : `/v1/chat/completions?${query}`;
      const answer = await send(path, dialects.chat.body(hello), headers);
      assert.equal(answer.status, 401, crafted);
      assert.doesNotMatch(await answer.text(), /select|syntax|relation|api_keys/i);
    }
  }
  assert.equal((await testbed.rows('keys')).length, before);
  assert.equal((await testbed.call(customer, 'chat', hello)).status, 200);
});

/** The first line of what is answered to a request with exactly these lines. */
async function raw(lines: readonly string[]): Promise<string> {
  const { port } = new URL(testbed.origin);
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text.split('\r\n')[0]!;
}

test('advisory: a Host header decides neither the called address nor whether a key is needed', async () => {
  for (const host of [
    'localhost/health?',
    'localhost/healthz#',
    'x/v1/models/../../healthz?a=',
    'healthz',
    'localhost:80/healthz',
    'localhost\\healthz',
    'localhost/console/',
    '/healthz',
    '127.0.0.1@localhost/healthz',
  ]) {
    for (const path of ['/v1/tasks', '/console/api/admin/accounts', '/console/api/admin/people']) {
      const line = await raw([`GET ${path} HTTP/1.1`, `Host: ${host}`, 'connection: close']);
      assert.match(line, /^HTTP\/1\.1 (?:400|401|403|404|421) /, `${host} ${path}`);
    }
  }
  for (const name of [
    'x-original-url',
    'x-rewrite-url',
    'x-forwarded-prefix',
    'x-http-method-override',
    'x-forwarded-uri',
  ]) {
    const lines = ['GET /v1/tasks HTTP/1.1', 'Host: localhost', `${name}: /healthz`, 'connection: close'];
    assert.match(await raw(lines), / 401 /, name);
  }
});

test('advisory: no header, query, path or key suffix of a client chooses the upstream or its key', async () => {
  testbed.replay.play({
    headers: { 'content-type': 'application/json' },
    body: '{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}',
  });
  const evil = 'http://127.0.0.1:1';
  const headers = {
    'x-portkey-custom-host': evil,
    'x-portkey-provider': 'hidden',
    'x-portkey-config': JSON.stringify({ custom_host: evil, provider: 'hidden' }),
    'x-portkey-forward-headers': 'authorization',
    'x-litellm-api-base': evil,
    'x-api-base': evil,
    'x-base-url': evil,
    'x-channel-id': '3',
    'channel-id': '3',
    'x-provider': 'hidden',
  };
  const bearer = { authorization: `Bearer ${customer.key}` };
  const question = dialects.chat.body({ model: 'replay', prompt: 'hello' });
  for (const path of [
    '/v1/chat/completions',
    '/v1/chat/completions?channel=3&channelid=3&api_base=http%3A%2F%2F127.0.0.1%3A1',
  ]) {
    const { status } = await send(path, question, { ...bearer, ...headers });
    assert.equal(status, 200);
    const seen = testbed.replay.requests.at(-1)!;
    assert.equal(seen.headers.authorization, `Bearer ${canaries.replay}`);
    assert.equal(new URL(seen.url!, testbed.replay.origin).pathname, '/v1/chat/completions');
    assert.equal(seen.headers.host, new URL(testbed.replay.origin).host);
    assert.doesNotMatch(JSON.stringify(seen.headers), /portkey|channel|127\.0\.0\.1:1"/);
  }
  for (const suffix of ['-3', '#3', '-hidden', ':3', '/3'])
    assert.equal(
      (await send('/v1/chat/completions', question, { authorization: `Bearer ${customer.key}${suffix}` })).status,
      401,
    );
  for (const path of ['/v1/oneapi/proxy/3/v1/chat/completions', '/v1/channel/3/chat/completions', '/proxy/3'])
    assert.equal((await send(path, question, bearer)).status, 404);
  for (const model of ['hidden/replay', 'hidden#1/replay', 'replay#2', '../hidden'])
    assert.equal((await send('/v1/chat/completions', { ...question, model }, bearer)).status, 404);
});

test('advisory: what a key may call is the same whichever header brings it', async () => {
  const { accountId } = await testbed.customer();
  const { key } = await testbed.gateway.gateway
    .find(accountAdmin)!
    .createKey(accountId, { name: 'one', models: ['sandbox'] });
  const before = testbed.replay.requests.length;
  for (const name of dialectNames) {
    const forbidden = { model: 'replay', prompt: 'hello' };
    for (const carrier of carriers) {
      const { headers, query } = carrier(key);
      const path = dialects[name].path(forbidden);
      const answer = await send(
        query === undefined ? path : `${path}?${query}`,
        dialects[name].body(forbidden),
        headers,
      );
      assert.ok(answer.status === 403 || answer.status === 404, `${name}: ${answer.status}`);
      await answer.text();
    }
  }
  assert.equal(testbed.replay.requests.length, before);
});

test('advisory: orders for local commands are no addresses here', async () => {
  const body = { transport: 'stdio', command: 'touch', args: ['/tmp/never'], env: {} };
  const bearer = { authorization: `Bearer ${customer.key}` };
  for (const path of ['/mcp-rest/test/connection', '/mcp-rest/test/tools/list', '/v1/mcp', '/mcp'])
    assert.equal((await send(path, body, bearer)).status, 404, path);
});

function sources(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(directory, name));
}

test('advisory: nothing that serves requests runs programs or evaluates text', () => {
  const running = /from 'node:(?:child_process|vm)'|new Function\(|[^.\w]eval\(/;
  const found = ['core', 'plugins'].flatMap(sources).filter((file) => running.test(readFileSync(file, 'utf8')));
  // A command opens the browser of its user; the embedded database is a process of its own, of a file of ours.
  assert.deepEqual(found, ['core/process/connect/connect.ts', 'plugins/storage/embedded/keeper.ts']);
});

test('advisory: the console puts no text of others into a page as HTML', () => {
  const raw = /dangerouslySetInnerHTML|\.innerHTML\s*=|insertAdjacentHTML|document\.write/;
  assert.deepEqual(
    sources('plugins/console/web/src').filter((file) => raw.test(readFileSync(file, 'utf8'))),
    [],
  );
});

test('advisory: each package is installed by the hash of its content, and its scripts do not run in the image', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { integrity?: string; link?: boolean }>;
  };
  const loose = Object.entries(packages).filter(
    ([name, { integrity }]) => name !== '' && !integrity?.startsWith('sha512-'),
  );
  assert.deepEqual(loose, []);
  for (const [line] of readFileSync('docker/Dockerfile', 'utf8').matchAll(/^RUN .*\bnpm (?:ci|install|i)\b.*$/gm))
    assert.match(line, /npm ci .*--ignore-scripts/);
});

test('each test that SECURITY.md names is there', () => {
  const table = readFileSync('SECURITY.md', 'utf8').split('## What happened elsewhere')[1]!.split('\n## ')[0]!;
  const rows = table.split('\n').filter((line) => /^\| (?!where|---)/.test(line));
  assert.ok(rows.length >= 20);
  for (const row of rows) {
    const named = [
      ...row
        .split(' | ')
        .at(-1)!
        .matchAll(/((?:`[^`]+`(?:, )?)+) \(([\w/-]+)\)/g),
    ];
    assert.ok(named.length > 0, row);
    for (const [, titles, file] of named) {
      const text = readFileSync(`tests/${file}.test.ts`, 'utf8');
      for (const [, title] of titles!.matchAll(/`([^`]+)`/g))
        for (const part of title!.split('…').map((piece) => piece.trim()))
          assert.ok(text.includes(part), `${file}: ${part}`);
    }
  }
});
