/** Pages of other origins: preflights, the headers that let them read answers, and the origins that an operator allows. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readGatewayFile } from '../../core/gateway/config.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

let upstreamCalls = 0;
const upstream = createServer((_incoming, outgoing) => {
  upstreamCalls += 1;
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  outgoing.write('data: 1\n\n');
  outgoing.end('data: 2\n\n');
});
let open: TestGateway;
let listed: TestGateway;
let closed: TestGateway;

before(async () => {
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  open = await startGateway(passthrough(''));
  listed = await startGateway(
    passthrough('cors: { origins: ["https://app.example.com/", app://obsidian.md, "null"] }'),
  );
  closed = await startGateway(passthrough('cors: { origins: off }'));
});
after(async () => {
  for (const gateway of [open, listed, closed]) await gateway?.stop();
  upstream.close();
});

function passthrough(server: string): string {
  const { port } = upstream.address() as AddressInfo;
  return `gateway: test\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "http://127.0.0.1:${port}" }\nserver: { body_limit: 1KB, ${server} }\n`;
}

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** By node:http: `fetch` would not send a chosen origin everywhere. */
async function call(to: TestGateway, method: string, headers: Record<string, string>, body = '', path = '/v1/x') {
  const { hostname, port } = new URL(to.origin);
  const sent = request({ hostname, port, method, path, headers, agent: false });
  sent.end(body);
  const [answer] = await once(sent, 'response');
  let text = '';
  for await (const chunk of answer) text += chunk;
  return { status: answer.statusCode, headers: answer.headers, body: text } as Seen;
}

const page = 'https://app.example.com';
const requesting = {
  origin: page,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,x-stainless-os',
};
const cors = ({ headers }: Seen) => Object.keys(headers).filter((name) => /^access-control|^vary$/.test(name));

test('the gateway itself answers a preflight, for every address and requested header', async () => {
  const before = upstreamCalls;
  for (const path of ['/v1/x', '/nothing/here', '/healthz']) {
    const answer = await call(open, 'OPTIONS', requesting, '', path);
    assert.equal(answer.status, 204);
    assert.equal(answer.body, '');
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    assert.equal(answer.headers['access-control-allow-headers'], requesting['access-control-request-headers']);
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      assert.match(String(answer.headers['access-control-allow-methods']), new RegExp(`\\b${method}\\b`));
    assert.match(String(answer.headers['access-control-max-age']), /^\d+$/);
    assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  }
  assert.equal(upstreamCalls, before);
});

test('pages can read answers, streams, refusals and health checks with all of their headers', async () => {
  const answers = [
    await call(open, 'POST', { origin: page }, '{}'),
    await call(open, 'POST', { origin: page }, 'x'.repeat(2_000)),
    await call(open, 'POST', { origin: page, 'content-encoding': 'unheard-of' }, '{}'),
    await call(open, 'GET', { origin: page }, '', '/readyz'),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 413, 422, 200],
  );
  for (const { headers } of answers) {
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.equal(headers['access-control-expose-headers'], '*');
    assert.equal(headers['access-control-allow-credentials'], undefined);
  }
  assert.equal(answers[0]!.body, 'data: 1\n\ndata: 2\n\n');
});

test('a call without an origin gets no header more', async () => {
  assert.deepEqual(cors(await call(open, 'POST', {}, '{}')), []);
  assert.deepEqual(cors(await call(listed, 'POST', {}, '{}')), []);
});

test("OPTIONS without a preflight's headers is handled as any other request", async () => {
  const { origin: _, ...without } = requesting;
  const plain = await call(open, 'OPTIONS', without);
  const named = await call(open, 'OPTIONS', { origin: page });
  assert.equal(plain.status, named.status);
  assert.notEqual(plain.status, 204);
});

test('listed origins are allowed by name, and others are refused before any work', async () => {
  for (const origin of [page, 'app://obsidian.md', 'null']) {
    const answer = await call(listed, 'OPTIONS', { ...requesting, origin });
    assert.equal(answer.status, 204);
    assert.equal(answer.headers['access-control-allow-origin'], origin);
    assert.equal(answer.headers['vary'], 'origin');
    assert.equal((await call(listed, 'POST', { origin }, '{}')).headers['access-control-allow-origin'], origin);
  }
  for (const origin of ['https://evil.example', 'http://app.example.com', 'https://app.example.com.evil.example']) {
    const answer = await call(listed, 'OPTIONS', { ...requesting, origin });
    assert.equal(answer.status, 403);
    assert.deepEqual(cors(answer), ['vary']);
    assert.deepEqual(cors(await call(listed, 'POST', { origin }, '{}')), ['vary']);
  }
});

test('when switched off, no answer has a header of it, also that of a preflight', async () => {
  const answer = await call(closed, 'OPTIONS', requesting);
  assert.notEqual(answer.status, 204);
  assert.deepEqual(cors(answer), []);
  assert.deepEqual(cors(await call(closed, 'POST', { origin: page }, '{}')), []);
});

test('invalid header names in a preflight are not returned', async () => {
  const answer = await call(open, 'OPTIONS', { ...requesting, 'access-control-request-headers': 'a;b="c"' });
  assert.equal(answer.headers['access-control-allow-headers'], undefined);
});

test('the setting accepts only origins, and names the mistake in others', () => {
  const file = join(temporaryDirectory(), 'gateway.yaml');
  const read = (value: string) => {
    writeFileSync(file, `gateway: test\nplugins: [passthrough]\nserver: { cors: { origins: ${value} } }\n`);
    return readGatewayFile(file, {});
  };
  for (const value of ['"*"', 'off', 'false', '[http://localhost:3000]', '["chrome-extension://abc", "null"]'])
    read(value);
  for (const value of ['[app.example.com]', '["https://a.example/path"]', '["*"]', '[]', 'some'])
    assert.throws(() => read(value), /server\.cors\.origins/, value);
});
