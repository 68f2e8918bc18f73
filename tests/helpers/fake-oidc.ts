/** A stand-in for an OpenID Connect provider: discovery, keys, a page that asks the person, and the token endpoint with PKCE. */
import { createHash, createSign, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeProvider {
  readonly issuer: string;
  readonly port: number;
  /** Whom the next code stands for. */
  claims: Record<string, unknown>;
  /** Nonce of the current flow: the page at `/authorize` sets it, and so does a test without that page. */
  nonce: string | undefined;
  challenge: string | undefined;
  /** What is wrong about its tokens: claims over the right ones, `none` as their algorithm, a key that is not its own, or no ID token at all. */
  wrong: { readonly claims?: Record<string, unknown>; readonly signed?: 'none' | 'other key' | 'not at all' };
  /** While it is, everything is answered with 500. */
  isDown: boolean;
  close(): void;
}

/** It knows one client, `gateway`. `name`: what it calls itself, where it is reached by a proxy alone. */
export async function startProvider(name?: string): Promise<FakeProvider> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' };
  const server = createServer(
    (incoming, outgoing) =>
      void answer(incoming).then((body) => {
        const status = body === undefined || made.isDown ? 500 : 200;
        const isPage = typeof body === 'string';
        outgoing.writeHead(status, { 'content-type': isPage ? 'text/html; charset=utf-8' : 'application/json' });
        outgoing.end(isPage ? body : JSON.stringify(body ?? {}));
      }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const issuer = name ?? `http://127.0.0.1:${port}`;
  const made: FakeProvider = {
    issuer,
    port,
    claims: {},
    nonce: undefined,
    challenge: undefined,
    wrong: {},
    isDown: false,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return made;

  async function answer(incoming: IncomingMessage): Promise<object | string | undefined> {
    let body = '';
    for await (const chunk of incoming) body += chunk;
    const url = new URL(incoming.url!, issuer);
    if (url.pathname === '/.well-known/openid-configuration')
      return {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['RS256'],
      };
    if (url.pathname === '/keys') return { keys: [jwk] };
    if (url.pathname === '/userinfo') return made.claims;
    if (url.pathname === '/authorize') return page(url.searchParams);
    return url.pathname === '/token' ? token(new URLSearchParams(body)) : undefined;
  }

  /** Asks the person, who goes on by a link. */
  function page(query: URLSearchParams): string {
    made.nonce = query.get('nonce') ?? undefined;
    made.challenge = query.get('code_challenge') ?? undefined;
    const back = new URL(query.get('redirect_uri')!);
    back.searchParams.set('code', 'one');
    back.searchParams.set('state', query.get('state')!);
    return `<!doctype html><title>Provider</title><link rel=icon href=data:,><a href="${back.href.replaceAll('&', '&amp;')}">Continue as ${made.claims['name']}</a>`;
  }

  function token(form: URLSearchParams): object | undefined {
    const verifier = form.get('code_verifier') ?? '';
    if (createHash('sha256').update(verifier).digest('base64url') !== made.challenge) return undefined;
    const now = Math.floor(Date.now() / 1_000);
    const own = { iss: issuer, aud: 'gateway', iat: now, exp: now + 300, nonce: made.nonce };
    const claims = { ...made.claims, ...own, ...made.wrong.claims };
    const { signed } = made.wrong;
    const head = [{ alg: signed === 'none' ? 'none' : 'RS256', kid: 'one', typ: 'JWT' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const key = signed === 'other key' ? generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey : privateKey;
    const signature = signed === 'none' ? '' : createSign('RSA-SHA256').update(head).sign(key, 'base64url');
    const idToken = signed === 'not at all' ? {} : { id_token: `${head}.${signature}` };
    return { access_token: 'access', token_type: 'Bearer', expires_in: 300, ...idToken };
  }
}
