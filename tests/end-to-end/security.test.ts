/** Secrets stay inside, clients cannot steer what goes upstream, and nothing of the vendors' but the answer comes back. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { database } from '../../plugins/common/domain/database.ts';
import type { Script } from '../helpers/vendor.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type Customer, modelAt, type Reply, readReply, speaks, startTestbed, type Testbed, until } from './testbed.ts';

/** None looks like a vendor's key, so no pattern finds them: they must not get out at all. */
const canaries = {
  sandbox: 'Canary.Sandbox.4d1f7a',
  replay: 'Canary.Replay.9b23ce',
  twin1: 'Canary.TwinOne.77aa01',
  twin2: 'Canary.TwinTwo.77aa02',
  pepper: 'canary-pepper-of-this-gateway-5e01',
};

let testbed: Testbed;
let customer: Customer;
const answers: Reply[] = [];
const cases = 40;
let casesUsed = 0;

before(async () => {
  const numbers = Array.from({ length: cases }, (_, index) => index + 1);
  testbed = await startTestbed({
    keys: canaries,
    providers: ({ replay }) => ({
      twin: { keys: [canaries.twin1, canaries.twin2], speaks: speaks(replay) },
      ...Object.fromEntries(numbers.map((at) => [`vendor${at}`, { keys: canaries.replay, speaks: speaks(replay) }])),
    }),
    models: {
      twin: modelAt('twin'),
      ...Object.fromEntries(numbers.map((at) => [`model${at}`, modelAt(`vendor${at}`)])),
    },
    more: { auth: { secret: canaries.pepper } },
  });
  customer = await testbed.customer();
});
after(() => testbed.stop());

const nextModel = () => `model${++casesUsed}`;
const json = { 'content-type': 'application/json' };
const chatAnswer = JSON.stringify({
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
});

test('good and bad requests in all protocols leave no secret in any answer, log line or row', async () => {
  const echo = `{"error":{"message":"Your key ${canaries.replay} said: Bearer ${canaries.replay}","type":"bad_thing","param":"${canaries.replay}"}}`;
  const poor = await testbed.customer({ nanoUsd: 0n });
  for (const dialect of dialectNames) {
    for (const stream of [false, true]) {
      const send = async (
        model: string,
        prompt: string,
        who: Customer | undefined = customer,
        init: RequestInit = {},
      ) => answers.push(await testbed.call(who, dialect, { model, prompt, stream }, init));
      for (const order of ['tokens=9', 'status=400', 'status=500', 'html', 'mid_error', 'cut_after=2', 'no_usage'])
        await send('sandbox', `[[sandbox: ${order}]]`);
      for (const status of [400, 401, 404, 429, 503]) {
        testbed.replay.play({ status, headers: json, body: echo });
        await send(nextModel(), 'Hello');
        if (casesUsed === cases) casesUsed = 0;
      }
      testbed.replay.play({ dieAtOnce: true });
      await send('replay', 'Hello');
      await send('no-such-model', 'Hello');
      await send('sandbox', 'Hello', poor);
      await send('sandbox', 'Hello', { ...customer, key: `${customer.key.slice(0, -1)}_` });
      await send('sandbox', 'Hello', undefined);
      await send('sandbox', 'Hello', undefined, { body: '{', headers: dialects[dialect].key(customer.key) });
    }
  }
  const path = `/v1beta/models/sandbox:generateContent?key=${customer.key}`;
  const body = JSON.stringify({ contents: [{ parts: [{ text: 'Hello' }] }] });
  const byQuery = await readReply(await fetch(testbed.origin + path, { method: 'POST', headers: json, body }));
  assert.equal(byQuery.status, 200);
  answers.push(byQuery);
  for (const answer of answers) {
    const seen = answer.text + JSON.stringify([...answer.headers]);
    assertClean(seen, `the answer ${answer.status} ${seen}`);
  }
});

function assertClean(text: string, where: string): void {
  for (const [name, secret] of Object.entries({ ...canaries, client: customer.key })) {
    assert.ok(!text.includes(secret), `the secret "${name}" is in ${where.slice(0, 2_000)}`);
  }
}

test('an error inside a stream is returned without the key', async () => {
  const frame = `data: {"error":{"message":"The key ${canaries.replay} has expired","type":"server_error"}}\n\n`;
  const chunk = 'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n';
  for (const script of [frame, chunk + frame]) {
    testbed.replay.play({ headers: { 'content-type': 'text/event-stream' }, body: script });
    const answer = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello', stream: true });
    assert.match(answer.text, /"error"/);
    assertClean(answer.text, answer.text);
  }
});

test("members of a client's request that name upstreams are refused in the body and ignored elsewhere", async () => {
  for (const dialect of dialectNames) {
    for (const field of ['api_base', 'base_url', 'api_key', 'extra_headers']) {
      const more = { [field]: 'http://127.0.0.1:1' };
      const answer = await testbed.call(customer, dialect, { model: 'sandbox', prompt: 'Hello', more });
      assert.equal(answer.status, 400, `${dialect} ${field}`);
      assert.match(answer.text, new RegExp(field));
    }
  }
});

test("the vendor receives neither the client's credentials nor its cookies, hosts and forwarding headers", async () => {
  testbed.replay.play({ body: chatAnswer });
  for (const dialect of dialectNames) {
    const headers = {
      cookie: 'session=client-cookie',
      'proxy-authorization': 'Basic client-proxy',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-for': '10.9.8.7',
      forwarded: 'host=evil.example',
      'x-real-ip': '10.9.8.7',
      'x-api-base': 'http://evil.example',
      'openai-organization': 'org-evil',
      'openai-project': 'proj-evil',
      'x-goog-user-project': 'evil',
      'anthropic-dangerous-direct-browser-access': 'true',
      'user-agent': 'evil-client',
      origin: 'http://evil.example',
      referer: 'http://evil.example',
    };
    await testbed.call(customer, dialect, { model: 'replay', prompt: 'Hello' }, { headers });
    const seen = testbed.replay.requests.at(-1)!;
    assert.equal(seen.headers.host, new URL(testbed.replay.origin).host, dialect);
    assert.doesNotMatch(JSON.stringify(seen.headers), /evil|client|10\.9\.8\.7|browser/, dialect);
    const everything = seen.url + JSON.stringify(seen.headers) + seen.body.toString();
    assert.ok(!everything.includes(customer.key), dialect);
    assert.ok(JSON.stringify(seen.headers).includes(canaries.replay), dialect);
  }
  const path = `/v1beta/models/replay:generateContent?key=${customer.key}&%24alt=json&host=evil`;
  await fetch(testbed.origin + path, {
    method: 'POST',
    headers: json,
    body: '{"contents":[{"parts":[{"text":"x"}]}]}',
  });
  const last = testbed.replay.requests.at(-1)!;
  assert.equal(last.url, '/v1beta/models/replay:generateContent?host=evil', 'the query is data: the key is not in it');
  assert.equal(last.headers.host, new URL(testbed.replay.origin).host);
});

test('an absolute target, a second Host and a path with dots reach no upstream', async () => {
  const before = testbed.replay.requests.length;
  const { host, port } = new URL(testbed.replay.origin);
  const head = `content-type: application/json\r\nauthorization: Bearer ${customer.key}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`;
  const attempts = [
    `POST ${testbed.replay.origin}/v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\n${head}`,
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nhost: ${host}\r\n${head}`,
    `POST //127.0.0.1:${port}/v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\n${head}`,
    `POST /v1beta/models/..%2F..%2Fx:generateContent HTTP/1.1\r\nhost: ${host}\r\n${head}`,
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
  ];
  for (const attempt of attempts) assert.match(await raw(attempt), /^(?:HTTP\/1\.1 4\d\d |$)/, attempt);
  assert.equal(testbed.replay.requests.length, before);
});

async function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(testbed.origin).port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => {});
  socket.write(text);
  await once(socket, 'close');
  return received;
}

test("only the answer's own headers of a vendor are returned", async () => {
  const vendorHeaders = {
    'set-cookie': '__cf_bm=vendor-cookie; path=/',
    'openai-organization': 'org-vendor',
    'openai-processing-ms': '12',
    'anthropic-organization-id': 'vendor-uuid',
    server: 'vendor-server',
    via: '1.1 vendor-proxy',
    'cf-ray': 'vendor-ray',
    'x-ratelimit-remaining-requests': '17',
    'x-request-id': 'vendor-request',
    'access-control-allow-origin': '*',
    'www-authenticate': 'Bearer realm=vendor',
    'strict-transport-security': 'max-age=1',
    'alt-svc': 'h3=":443"',
    'x-should-retry': 'vendor',
    link: '<http://vendor.example>; rel=x',
  };
  const known =
    /^(?:content-type|content-length|date|connection|keep-alive|transfer-encoding|cache-control|x-request-id|request-id|x-should-retry|retry-after)$/;
  const stream = 'data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n';
  const scripts: [boolean, Script][] = [
    [false, { headers: { ...json, ...vendorHeaders }, body: chatAnswer }],
    [true, { headers: { 'content-type': 'text/event-stream', ...vendorHeaders }, body: stream }],
    [false, { status: 400, headers: { ...json, ...vendorHeaders }, body: '{"error":{"message":"no"}}' }],
    [false, { status: 500, headers: { ...json, ...vendorHeaders }, body: '{}' }],
  ];
  for (const [isStream, script] of scripts) {
    testbed.replay.play(script);
    const answer = await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello', stream: isStream });
    assert.equal(answer.status, script.status === 500 ? 502 : (script.status ?? 200));
    const unknown = [...answer.headers].filter(([name, value]) => !known.test(name) || /vendor/.test(value));
    assert.deepEqual(unknown, []);
  }
});

test('two credentials never share a socket', async () => {
  testbed.replay.play({ body: chatAnswer });
  const before = testbed.replay.requests.length;
  for (let round = 0; round < 10; round++) {
    await testbed.call(customer, 'chat', { model: 'twin', prompt: 'Hello' });
    await testbed.call(customer, 'chat', { model: 'replay', prompt: 'Hello' });
  }
  const sockets = new Map<number, Set<string>>();
  for (const { socket, headers } of testbed.replay.requests.slice(before)) {
    sockets.set(socket, (sockets.get(socket) ?? new Set()).add(headers.authorization!));
  }
  const seen = [...sockets.values()];
  assert.ok(seen.every((keys) => keys.size === 1));
  assert.equal(new Set(seen.flatMap((keys) => [...keys])).size, 3);
  assert.ok(sockets.size < 20, 'sockets are used again');
});

test('every invalid key gets the same 401', async () => {
  const stranger = await testbed.customer();
  const flipped = stranger.key.slice(0, -8) + [...stranger.key.slice(-8)].reverse().join('');
  const expiring = { name: 'short', expiresAt: new Date(Date.now() + 100) };
  const expired = await testbed.gateway.gateway.find(accounts)!.createKey(stranger.accountId, expiring);
  const revoked = await testbed.gateway.gateway.find(accounts)!.createKey(stranger.accountId, { name: 'revoked' });
  await testbed.gateway.gateway.commands.find(({ name }) => name === 'keys revoke')!.run({ key: revoked.id });
  const keys = ['x', 'sk-unknown', flipped, expired.key, revoked.key, "' or 1=1 --", 'a'.repeat(5_000)];
  await until('it has expired', () => Date.now() > expiring.expiresAt.getTime());
  for (const dialect of dialectNames) {
    const bodies = new Set<string>();
    for (const wrong of keys) {
      const answer = await testbed.call({ ...stranger, key: wrong }, dialect, { model: 'sandbox', prompt: 'Hello' });
      assert.equal(answer.status, 401, `${dialect} ${wrong.slice(0, 20)}`);
      bodies.add(answer.text.replace(/req_[0-9a-f-]+/, 'req_'));
    }
    assert.equal(bodies.size, 1, [...bodies].join('\n'));
  }
});

test('at the end no log line and no table row holds a secret, and the ledger passes its audit', async () => {
  const store = testbed.gateway.gateway.find(database)!;
  const written = () => testbed.gateway.lines.filter((line) => line.includes('"msg":"request"')).length;
  await until('the request rows are written', async () => (await testbed.rows('requests')).length === written());
  const tables = (await store.orm.execute(
    sql`select table_name as name from information_schema.tables where table_schema = ${store.schema}`,
  )) as unknown as { name: string }[];
  assert.ok(tables.length >= 8);
  for (const { name } of tables) {
    for (const row of await testbed.rows<object>(name))
      assertClean(JSON.stringify(row, bigintText), `the table ${name}`);
  }
  for (const line of testbed.gateway.lines) assertClean(line, line);
  await testbed.audit();
});

const bigintText = (_name: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
