/** A server of tools that asks people to sign in, with a strict authorization server: it takes nothing that the protocol does not allow. */
import { hash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';

interface Code {
  readonly client: string;
  readonly redirect: string;
  readonly challenge: string;
  readonly person: string;
}

export interface GuardedServer {
  readonly origin: string;
  /** Who is signed in in the browser that comes to authorize. */
  person: string;
  /** Seconds that tokens are valid. */
  life: number;
  /** Status of the token endpoint, instead of its answer. */
  tokenStatus: number | undefined;
  /** Members of the metadata of the authorization server that are other ones. */
  metadata: Record<string, unknown>;
  /** Members of the metadata of the resource that are other ones. */
  resource: Record<string, unknown>;
  /** Requests to the token endpoint, by grant. */
  readonly grants: string[];
  readonly revoked: string[];
  /** What was wrong with requests. */
  readonly faults: string[];
  /** Ends every token and every way to others. */
  forget(): void;
  /** Ends the access tokens alone. */
  expire(): void;
  /** A client's tokens, as a browser would have brought them. */
  grant(client: string, person: string): { readonly access: string; readonly refresh: string };
  /** Set: the token service does nothing until it is over, and nothing for those who have left by then. */
  held: Promise<void> | undefined;
  stop(): Promise<void>;
}

export async function startGuardedServer(): Promise<GuardedServer> {
  const clients = new Map<string, readonly string[]>();
  const codes = new Map<string, Code>();
  const access = new Map<string, string>();
  const refresh = new Map<string, { readonly person: string; readonly client: string }>();
  const world = {
    ...{ origin: '', person: 'ada', life: 3_600, tokenStatus: undefined as number | undefined },
    ...{ metadata: {}, resource: {}, grants: [] as string[], revoked: [] as string[], faults: [] as string[] },
    forget() {
      access.clear();
      refresh.clear();
    },
    expire: () => access.clear(),
    held: undefined as Promise<void> | undefined,
    grant(client: string, person: string) {
      const { body } = issued(person, client);
      return { access: body.access_token, refresh: body.refresh_token };
    },
  };
  const fault = (text: string) => {
    world.faults.push(text);
    return { status: 400, body: { error: 'invalid_grant', error_description: text }, headers: {} };
  };
  const issued = (person: string, client: string) => {
    const [token, next] = [`at-${randomUUID()}`, `rt-${randomUUID()}`];
    access.set(token, person);
    refresh.set(next, { person, client });
    const body = { access_token: token, refresh_token: next, token_type: 'Bearer', expires_in: world.life };
    return { status: 200, body, headers: {} };
  };
  const token = (form: Record<string, string>) => {
    if (world.tokenStatus !== undefined) return { status: world.tokenStatus, body: {}, headers: {} };
    if (form['resource'] !== `${world.origin}/mcp`) return fault(`resource ${form['resource']}`);
    if (form['grant_type'] === 'refresh_token') {
      const known = refresh.get(form['refresh_token']!);
      // Each is good once.
      refresh.delete(form['refresh_token']!);
      if (known === undefined || known.client !== form['client_id']) return fault('refresh token');
      return issued(known.person, known.client);
    }
    const code = codes.get(form['code']!);
    codes.delete(form['code']!);
    if (code === undefined) return fault('code');
    if (code.client !== form['client_id'] || code.redirect !== form['redirect_uri']) return fault('client');
    if (hash('sha256', form['code_verifier'] ?? '', 'base64url') !== code.challenge) return fault('verifier');
    return issued(code.person, code.client);
  };
  const authorize = (query: URLSearchParams) => {
    const client = query.get('client_id') ?? '';
    const redirect = query.get('redirect_uri') ?? '';
    const isFit =
      clients.get(client)?.includes(redirect) === true &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      query.get('resource') === `${world.origin}/mcp`;
    if (!isFit) return fault(`authorize ${query}`);
    const code = randomUUID();
    codes.set(code, { client, redirect, challenge: query.get('code_challenge')!, person: world.person });
    const location = new URL(redirect);
    location.searchParams.set('code', code);
    location.searchParams.set('state', query.get('state')!);
    location.searchParams.set('iss', world.origin);
    return { status: 302, body: {}, headers: { location: location.href } };
  };
  const handler = (person: string) => createMcpHandler(() => toolsFor(person), { legacy: 'stateless' });
  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, world.origin);
    const text = await read(request);
    const form = Object.fromEntries(new URLSearchParams(text));
    const json = (status: number, body: object, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (url.pathname === '/mcp') {
      const person = access.get(request.headers.authorization?.replace('Bearer ', '') ?? '');
      const where = `Bearer resource_metadata="${world.origin}/where"`;
      if (person === undefined) return json(401, {}, { 'www-authenticate': where });
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const made = new Request(url, { method: request.method!, headers });
      const answer = await handler(person).fetch(made, {
        parsedBody: text === '' ? undefined : (JSON.parse(text) as object),
      });
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      return response.end(await answer.text());
    }
    if (url.pathname === '/where')
      return json(200, { resource: `${world.origin}/mcp`, authorization_servers: [world.origin], ...world.resource });
    if (url.pathname === '/.well-known/oauth-authorization-server')
      return json(200, { ...metadataOf(world.origin), ...world.metadata });
    if (url.pathname === '/register') {
      const client_id = `client-${clients.size + 1}`;
      const registered = JSON.parse(text) as { redirect_uris: string[] };
      clients.set(client_id, registered.redirect_uris);
      return json(201, { ...registered, client_id });
    }
    if (url.pathname === '/revoke') {
      world.revoked.push(form['token'] ?? '');
      refresh.delete(form['token'] ?? '');
      return json(200, {});
    }
    if (url.pathname === '/token') {
      world.grants.push(form['grant_type'] ?? '');
      await world.held;
      if (response.destroyed) return undefined;
    }
    const { status, body, headers } =
      url.pathname === '/authorize'
        ? authorize(url.searchParams)
        : url.pathname === '/token'
          ? token(form)
          : { status: 404, body: {}, headers: {} };
    return json(status, body, headers);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  world.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(world, {
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

const metadataOf = (origin: string) => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  revocation_endpoint: `${origin}/revoke`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
  authorization_response_iss_parameter_supported: true,
});

function toolsFor(person: string): Server {
  const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } });
  const tools = [{ name: 'whoami', inputSchema: { type: 'object' as const } }];
  server.setRequestHandler('tools/list', async () => ({ tools }));
  server.setRequestHandler('tools/call', async () => ({ content: [{ type: 'text', text: person }] }));
  return server;
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
