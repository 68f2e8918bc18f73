/** Access tokens for servers: one for all who wait, another when it ends or is refused, and none to be seen. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { Tokens, withToken } from '../../../plugins/mcp/tokens.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';
import { type ApiServer, contacts, startApi } from './api-server.ts';
import { openWorld, type World } from './world.ts';

interface Asked {
  readonly authorization: string | undefined;
  readonly form: Record<string, string>;
}

let service: Server;
const asked: Asked[] = [];
/** What the service answers next; absent: a token with its number. */
let answers: { readonly status: number; readonly body: object }[] = [];
/** Answers wait for it. */
let held: Promise<void> | undefined;
let api: ApiServer;
let world: World;
const url = () => `http://127.0.0.1:${(service.address() as AddressInfo).port}/token`;

before(async () => {
  service = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    asked.push({ authorization: request.headers.authorization, form: Object.fromEntries(new URLSearchParams(text)) });
    const number = asked.length;
    await held;
    const { status, body } = answers.shift() ?? {
      status: 200,
      body: { access_token: `t${number}`, token_type: 'Bearer', expires_in: 3600 },
    };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => void service.listen(0, '127.0.0.1', resolve));
  api = await startApi();
  const file = join(temporaryDirectory(), 'crm.json');
  await writeFile(file, JSON.stringify(contacts));
  const oauth = `oauth: { client: "my app", secret: "se:cret", token_url: "${url()}", allow_private: true`;
  world = await openWorld({
    servers: `, ${oauth}, scope: "read write" }`,
    apis: `    crm: { url: "${api.origin}", openapi: "${file}", allow_private: true, price: { call: 0.5, failed: true }, ${oauth}, secret_in: body } }\n`,
  });
});
after(async () => {
  await world.stop();
  await api.stop();
  service.close();
  service.closeAllConnections();
});
beforeEach(() => {
  asked.length = 0;
  answers = [];
});

test('servers of both eras and an API get a token of their own, by one request for all calls at once', async () => {
  const { key } = await world.account('100');
  const connected = await world.client(key, 'modern');
  const names = ['new__echo', 'old__echo', 'crm__deleteContact'];
  const calls = names.flatMap((name) => Array.from({ length: 20 }, () => name));
  await Promise.all(
    calls.map((name) => connected.callTool({ name, arguments: name.startsWith('crm') ? { id: '1' } : {} })),
  );
  assert.equal(asked.length, 3);
  const [form] = asked.filter(({ authorization }) => authorization === undefined);
  assert.deepEqual(form!.form, { grant_type: 'client_credentials', client_id: 'my app', client_secret: 'se:cret' });
  const header = `Basic ${Buffer.from('my+app:se%3Acret').toString('base64')}`;
  const others = asked.filter(({ authorization }) => authorization === header);
  assert.deepEqual(
    others.map(({ form: { resource } }) => resource).toSorted(),
    [world.servers.modern, world.servers.legacy].map(({ origin }) => `${origin}/mcp`).toSorted(),
  );
  assert.ok(others.every(({ form: { scope } }) => scope === 'read write'));
  for (const { seen } of Object.values(world.servers))
    assert.match(seen.at(-1)!.headers['authorization'] as string, /^Bearer t\d$/);
  assert.match(api.seen.at(-1)!.headers['authorization'] as string, /^Bearer t\d$/);
  const log = world.gateway.lines.join('\n');
  assert.doesNotMatch(log, /se:cret|se%3Acret|Bearer t\d/);
  await connected.close();
});

test('a service that gives no token makes the call fail before it is sent, and at no cost even where failures cost', async () => {
  const other = await openWorld({
    apis: `    crm: { url: "${api.origin}", openapi: "${api.origin}/openapi.json", allow_private: true, price: { call: 0.5, failed: true }, oauth: { client: a, secret: "se:cret", token_url: "${url()}", allow_private: true } }\n    far: { url: "${api.origin}", openapi: "${api.origin}/openapi.json", allow_private: true, oauth: { client: a, secret: "se:cret", token_url: "${url()}" } }\n`,
  });
  try {
    const { id, key } = await other.account('10');
    const connected = await other.client(key, 'modern');
    const call = (name: string) => connected.callTool({ name, arguments: { id: '1' } });
    const sent = api.seen.length;
    answers = [{ status: 401, body: { error: 'invalid_client', error_description: 'se:cret is wrong' } }];
    await assert.rejects(call('crm__deleteContact'), /cannot be reached now/);
    answers = [{ status: 200, body: { access_token: 'x', token_type: 'mac' } }];
    await assert.rejects(call('crm__deleteContact'), /cannot be reached now/);
    await assert.rejects(call('far__deleteContact'), /cannot be reached now/);
    assert.deepEqual([asked.length, api.seen.length], [2, sent]);
    assert.equal(await other.balance(id), 10_000_000_000n);
    const log = other.gateway.lines.join('\n');
    assert.match(log, /status 401 \(invalid_client\)/);
    assert.doesNotMatch(log, /se:cret/);
    // A call that its client cancels before it is sent costs nothing.
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    const post = (message: object) =>
      fetch(`${other.gateway.origin}/mcp`, {
        method: 'POST',
        headers: {
          ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json', 'mcp-session-id': 'one' },
          ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      }).then((answer) => answer.text());
    const params = { name: 'crm__deleteContact', arguments: { id: 'left' } };
    const left = post({ id: 7, method: 'tools/call', params }).catch(() => '');
    await until('the request for a token', () => asked.length === 3);
    await post({ method: 'notifications/cancelled', params: { requestId: 7 } });
    release();
    await left;
    await call('crm__deleteContact');
    assert.deepEqual([asked.length, api.seen.length], [3, sent + 1]);
    assert.equal((await other.charges(id, 1)).length, 1);
    assert.equal(await other.balance(id), 9_500_000_000n);
  } finally {
    await other.stop();
  }
});

test('a token is renewed before it ends, outlives a service that is away, and is replaced when it is refused', async () => {
  let now = 0;
  let state: number | 'away' = 0;
  const host = {
    clock: { now: () => now, monotonic: () => now },
    log: { warn: () => {} },
    fetch: async () => {
      if (state === 'away') throw new Error('away');
      return Response.json({ access_token: `t${++state}`, expires_in: 100 });
    },
  };
  const settings = {
    client: 'c',
    secret: 's',
    token_url: 'https://x.example',
    secret_in: 'header',
    allow_private: false,
  } as const;
  const tokens = new Tokens(host as never, 'crm', settings as never, undefined);
  assert.equal(await tokens.header(), 'Bearer t1');
  now = 69_999;
  assert.equal(await tokens.header(), 'Bearer t1');
  now = 70_000;
  assert.deepEqual(await Promise.all([tokens.header(), tokens.header()]), ['Bearer t2', 'Bearer t2']);
  state = 'away';
  now = 140_000;
  assert.equal(await tokens.header(), 'Bearer t2', 'it is valid still');
  now = 170_000;
  await assert.rejects(tokens.header(), { name: 'Unavailable' });
  state = 2;
  assert.equal(await tokens.header(), 'Bearer t3');
  tokens.refused('Bearer t3');
  assert.equal(await tokens.header(), 'Bearer t3', 'a token that was just given is not asked for again');
  now += 5_000;
  tokens.refused('Bearer t1');
  assert.equal(await tokens.header(), 'Bearer t3', 'another one was refused');
  tokens.refused('Bearer t3');
  assert.equal(await tokens.header(), 'Bearer t4');
  now += 5_000;
  const sent: (string | undefined)[] = [];
  const send = async ({ authorization }: { readonly authorization?: string }) => {
    sent.push(authorization);
    return new Response(null, { status: authorization === 'Bearer t5' ? 200 : 401 });
  };
  assert.equal((await withToken(tokens, send)).status, 200);
  assert.deepEqual(sent, ['Bearer t4', 'Bearer t5']);
  const refusing = async () => new Response(null, { status: 401 });
  assert.equal((await withToken(tokens, refusing)).status, 401, 'a server that refuses all tokens is not asked twice');
});
