/** A program without a key finds out where to get one, its person signs in by the browser, and it calls tools with a key of their terms. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  Client,
  type OAuthClientProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { Browser } from '../console/browser.ts';
import { openWorld, type World } from './world.ts';

let world: World;
let person: Browser;
before(async () => {
  world = await openWorld({ below: ', console', more: 'console: { sign_up: open }' });
  person = new Browser(world.gateway.origin);
  const body = { email: 'ada@example.test', password: 'a long enough password', name: 'Ada' };
  assert.equal((await person.send('/auth/sign-up/email', { body })).status, 200);
});
after(() => world.stop());

const back = 'http://127.0.0.1:39181/callback';

/** What a program keeps. */
class Memory implements OAuthClientProvider {
  readonly redirectUrl = back;
  readonly clientMetadata = { client_name: 'Test program', redirect_uris: [back] };
  led: URL | undefined;
  #client: StoredOAuthClientInformation | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #verifier = '';
  state = () => 'its own note';
  clientInformation = () => this.#client;
  tokens = () => this.#tokens;
  codeVerifier = () => this.#verifier;
  saveClientInformation(client: StoredOAuthClientInformation) {
    this.#client = client;
  }
  saveTokens(tokens: StoredOAuthTokens) {
    this.#tokens = tokens;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  redirectToAuthorization(address: URL) {
    this.led = address;
  }
}

/** Where a browser that opens this address is led. */
async function openedAt(address: string | URL) {
  const answer = await fetch(address, { redirect: 'manual' });
  const location = answer.headers.get('location');
  return {
    status: answer.status,
    location: location === null ? undefined : new URL(location),
    text: await answer.text(),
  };
}

const terms = { name: 'Test program', cap: { amount: '5', every: 'month' } };

for (const path of ['/mcp', '/mcp/some', '/mcp/gateway'])
  test(`a program of the official library that has no key signs its person in at ${path}, and calls with the key that they grant`, async () => {
    const { origin } = world.gateway;
    const memory = new Memory();
    const transport = () => new StreamableHTTPClientTransport(new URL(path, origin), { authProvider: memory });
    const first = transport();
    const client = () => new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
    await assert.rejects(client().connect(first), UnauthorizedError);
    const { led } = memory;
    assert.equal(led?.searchParams.get('resource'), origin + path);
    const page = await openedAt(led!);
    assert.deepEqual([page.status, page.location?.origin, page.location?.pathname], [302, origin, '/console/connect']);
    const code = page.location!.searchParams.get('code')!;
    const { json: seen } = await person.send(`/connect/requests/${code}`);
    assert.deepEqual([seen.program, seen.machine, seen.returnsTo], ['Test program', '', 'http://127.0.0.1:39181']);
    const { json: granted } = await person.send(`/connect/requests/${code}/grant`, { body: terms });
    const given = new URL(granted.location);
    assert.equal(given.origin + given.pathname, back);
    assert.deepEqual([given.searchParams.get('state'), given.searchParams.get('iss')], ['its own note', origin]);
    await first.finishAuth(given.searchParams);
    const connected = client();
    await connected.connect(transport());
    const { tools } = await connected.listTools();
    assert.ok(tools.length > 1);
    await connected.close();
    // It is a key as any other: its owner sees it, and takes it back.
    const { rows } = (await person.send('/keys')).json;
    const [made] = rows.filter(({ revokedAt }: { revokedAt: string | null }) => revokedAt === null);
    assert.deepEqual([made.name, made.cap], ['Test program', { amount: '5.00', every: 'month' }]);
    assert.equal((await person.send(`/keys/${made.id}`, { method: 'DELETE' })).status, 200);
    memory.led = undefined;
    await assert.rejects(client().connect(transport()), UnauthorizedError);
    assert.ok(memory.led !== undefined, 'it is led to sign in again');
  });

test('the metadata of each address name it as the resource, and a refused request names them', async () => {
  const { origin } = world.gateway;
  for (const path of ['', '/mcp', '/mcp/some', '/mcp/gateway']) {
    const address = `${origin}/.well-known/oauth-protected-resource${path}`;
    const metadata = (await (await fetch(address)).json()) as Record<string, unknown>;
    assert.deepEqual([metadata['resource'], metadata['authorization_servers']], [origin + path, [origin]]);
    if (path === '') continue;
    for (const headers of [{}, { authorization: 'Bearer sk-wrong' }]) {
      const answer = await fetch(origin + path, { method: 'POST', headers, body: '{}' });
      assert.deepEqual(
        [answer.status, answer.headers.get('www-authenticate')],
        [401, `Bearer resource_metadata="${address}"`],
      );
    }
  }
  const server = (await (await fetch(`${origin}/.well-known/oauth-authorization-server`)).json()) as { issuer: string };
  assert.equal(server.issuer, origin);
});

const verifier = 'v'.repeat(43);
const challenge = hash('sha256', verifier, 'base64url');

async function registered(redirect_uris: readonly unknown[] = [back]) {
  const answer = await fetch(`${world.gateway.origin}/console/api/connect/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Another', redirect_uris }),
  });
  return { status: answer.status, ...((await answer.json()) as { client_id: string; error?: string }) };
}

const authorized = (query: Record<string, string>) =>
  openedAt(`${world.gateway.origin}/console/api/connect/authorize?${new URLSearchParams(query)}`);

const asking = (client_id: string, more: Record<string, string> = {}) => ({
  ...{ client_id, redirect_uri: back, response_type: 'code', state: 's' },
  ...{ code_challenge: challenge, code_challenge_method: 'S256', ...more },
});

async function token(form: Record<string, string>) {
  const body = new URLSearchParams({ grant_type: 'authorization_code', redirect_uri: back, ...form });
  const answer = await fetch(`${world.gateway.origin}/console/api/connect/token`, { method: 'POST', body });
  const json = (await answer.json()) as { error?: string; access_token?: string };
  return json.error ?? json.access_token;
}

/** The code that a browser brings back when the person has granted. */
async function grantedCode(client_id: string, more: Record<string, string> = {}) {
  const page = await authorized(asking(client_id, more));
  const path = `/connect/requests/${page.location!.searchParams.get('code')}/grant`;
  return new URL((await person.send(path, { body: terms })).json.location).searchParams.get('code')!;
}

test('a program registers only addresses to which a code may go', async () => {
  const refused = [
    ...[
      'http://evil.example/cb',
      'javascript://x/%0aalert(1)',
      'data:text/html,x',
      'https://a.example/#x',
      'file:///x',
    ],
    ...['https://user:name@a.example/', 'http://localhost.evil.example/', 'http://127.0.0.1@evil.example/', '', 7],
  ];
  for (const address of refused) {
    const { status, error } = await registered([address]);
    assert.deepEqual([status, error], [400, 'invalid_redirect_uri'], String(address));
  }
  for (const address of ['https://a.example/cb', 'http://localhost/cb', 'http://[::1]:7/cb', 'cursor://x.y/cb'])
    assert.equal((await registered([address])).status, 201, address);
});

test('a browser is led to no address that its program has not registered, whatever else is asked', async () => {
  const { client_id: id } = await registered();
  const wrong: [Record<string, string>, field: string][] = [
    [asking(id, { redirect_uri: 'http://127.0.0.1:39181/other' }), 'redirect_uri'],
    [asking(id, { redirect_uri: 'http://localhost:39181/callback' }), 'redirect_uri'],
    [asking(id, { redirect_uri: 'https://evil.example/callback' }), 'redirect_uri'],
    [asking(`${id}x`), 'client_id'],
    [asking(id.replace(/\.[^.]*$/, '.')), 'client_id'],
    [asking('https://127.0.0.1/program.json'), 'client_id'],
    [asking('somebody'), 'client_id'],
  ];
  for (const [query, field] of wrong) {
    const { status, location, text } = await authorized(query);
    assert.deepEqual([status, location, JSON.parse(text).error.field], [400, undefined, field]);
  }
  // A program on the person's machine listens at another port each time.
  const other = await authorized(asking(id, { redirect_uri: 'http://127.0.0.1:40000/callback' }));
  assert.equal(other.location?.pathname, '/console/connect');
});

test('other faults of a request go back to its program, with its note and the issuer', async () => {
  const { client_id: id } = await registered();
  const wrong: [Record<string, string>, error: string][] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ code_challenge: '' }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
  ];
  for (const [more, error] of wrong) {
    const { location } = await authorized(asking(id, more));
    const { searchParams: given } = location!;
    assert.equal(location!.origin + location!.pathname, back);
    assert.deepEqual([given.get('error'), given.get('state'), given.get('iss')], [error, 's', world.gateway.origin]);
  }
  const page = await authorized(asking(id));
  const path = `/connect/requests/${page.location!.searchParams.get('code')}/deny`;
  const { searchParams: denied } = new URL((await person.send(path, { method: 'POST' })).json.location);
  assert.deepEqual([denied.get('error'), denied.get('state'), denied.has('code')], ['access_denied', 's', false]);
});

test('a code is good once, for the program that has begun, and a wrong proof uses it up', async () => {
  const { client_id: id } = await registered();
  const { client_id: other } = await registered(['https://other.example/cb', back]);
  const right = { client_id: id, code_verifier: verifier };
  const wrong: Record<string, string>[] = [
    { ...right, code_verifier: 'w'.repeat(43) },
    { client_id: id },
    { ...right, client_id: other },
    { ...right, redirect_uri: 'http://127.0.0.1:1/callback' },
  ];
  for (const form of wrong) {
    const code = await grantedCode(id);
    assert.equal(await token({ ...form, code }), 'invalid_grant', JSON.stringify(form));
    assert.equal(await token({ ...right, code }), 'invalid_grant', 'it is used up');
  }
  const code = await grantedCode(id);
  assert.equal(
    await token({ ...right, code, grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: code }),
    'invalid_grant',
  );
  assert.equal(await token({ ...right, code, resource: 'https://other.example' }), 'invalid_target');
  const both = await Promise.all([token({ ...right, code }), token({ ...right, code })]);
  assert.equal(both.filter((one) => one?.startsWith('sk-')).length, 1);
  assert.ok(both.includes('invalid_grant'));
});

test('an address that leads browsers here without end is refused for a while', async () => {
  const statuses = new Set<number>();
  for (let count = 0; count < 61; count++) statuses.add((await authorized(asking('somebody'))).status);
  assert.deepEqual([...statuses], [400, 429]);
});

test('with an error shape of the gateway, errors of tools stay JSON-RPC and say where to sign in, and others have the shape', async () => {
  const shaped = await openWorld({ plugins: 'error-shape,', below: ', console, openapi' });
  try {
    const { origin } = shaped.gateway;
    const ask = async (path: string, key: string, method = 'POST') => {
      const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
      const message = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'new__nothing' } };
      const body = method === 'POST' ? { body: JSON.stringify(message) } : {};
      const answer = await fetch(origin + path, { method, headers, ...body });
      // biome-ignore lint/suspicious/noExplicitAny: errors of several shapes
      const json = (await answer.json()) as any;
      return { status: answer.status, challenge: answer.headers.get('www-authenticate'), json };
    };
    for (const path of ['/mcp', '/mcp/some', '/mcp/gateway'])
      for (const key of ['', 'sk-wrong']) {
        const { status, challenge, json } = await ask(path, key);
        assert.deepEqual([status, json.jsonrpc, typeof json.error.data.code], [401, '2.0', 'string']);
        const metadata = `${origin}/.well-known/oauth-protected-resource${path}`;
        assert.equal(challenge, `Bearer resource_metadata="${metadata}"`);
        assert.equal(((await (await fetch(metadata)).json()) as { resource: string }).resource, origin + path);
      }
    const { key } = await shaped.account('0');
    const { json: lost } = await ask('/mcp/else', key);
    assert.deepEqual([lost.id, lost.error.data.code], [7, 'unknown_bundle']);
    // Clients of earlier revisions ask for a stream of the server's own first.
    const stream = await ask('/mcp', key, 'GET');
    assert.deepEqual([stream.status, stream.json.jsonrpc], [405, '2.0']);
    assert.deepEqual(Object.keys((await ask('/openapi.json', key, 'PUT')).json), ['code', 'message']);
    // biome-ignore lint/suspicious/noExplicitAny: a document of many shapes
    const { paths } = (await (await fetch(`${origin}/openapi.json`)).json()) as any;
    const errorOf = (path: string, method: string) => JSON.stringify(paths[path][method].responses.default);
    assert.doesNotMatch(errorOf('/mcp', 'post'), /schemas\/Error/);
    assert.match(errorOf('/openapi.json', 'get'), /responses\/Error/);
  } finally {
    await shaped.stop();
  }
});
