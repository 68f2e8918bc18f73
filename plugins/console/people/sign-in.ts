/** The answers under `/console/api/auth`: better-auth, behind the console's own checks and in its error shape. */
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { withNulField } from '../../../core/json/nul-field.ts';
import { refuseForeign } from '../origin.ts';
import type { People } from '../people.ts';
import type { Auth, AuthParts } from './auth.ts';
import { authPath } from './auth-names.ts';
import { signedByFirst, tokenByFirst } from './cookies.ts';
import type { Secrets } from './secrets.ts';
import type { PeopleStore } from './store.ts';

export type SignIn = (request: Request, origin: string) => Promise<Response>;

/** Without a configured origin there is one for each name that the gateway is called by. */
const mostOrigins = 8;

export interface SignInParts extends AuthParts {
  readonly people: People;
  readonly store: PeopleStore;
}

/** Addresses that lead through a provider. */
const throughProvider = /^\/(?:sign-in\/social|link-social|callback\/|oauth2\/)/;
/** So often at most a provider is looked for that could not be reached. */
const lookAgainMs = 10_000;

export function createSignIn(parts: SignInParts): SignIn {
  // Sign-in by password uses an instance without providers, so it works while a provider is down.
  const plain = { ...parts, settings: { ...parts.settings, oidc: [] } };
  const own = keepAuths(plain);
  const foreign = keepAuths(parts);
  const handle = async (request: Request, origin: string, path: string): Promise<Response> => {
    if (parts.settings.oidc.length === 0 || !throughProvider.test(path)) return (await own.at(origin)).handler(request);
    const again = request.clone();
    const response = await (await foreign.at(origin)).handler(request);
    // What it says of itself is read when the instance is made.
    if (response.status !== 404 || parts.throttle.take('look for providers', 1, lookAgainMs) > 0) return response;
    foreign.forget(origin);
    return (await foreign.at(origin)).handler(again);
  };
  return async function signIn(given, origin) {
    try {
      const request = renewed(given, parts.secrets);
      await refuseNul(request);
      refuseForeign({ method: request.method, header: (name) => request.headers.get(name) ?? undefined }, origin);
      const path = new URL(request.url).pathname.slice(authPath.length);
      if (request.method === 'POST' && path === '/revoke-session') return await revokeSession(parts, request);
      return await inOneShape(await handle(request, origin, path));
    } catch (error) {
      const { status, code, kind, message, field } = toGatewayError(error);
      if (kind === 'internal') parts.log.error({ reason: reasonOf(error) }, 'signing in failed inside the gateway');
      const shown = { code: code ?? kind, message, ...(field === undefined ? {} : { field }) };
      return Response.json({ error: shown }, { status });
    }
  };
}

/** With what an older secret has signed signed by the first. */
function renewed(request: Request, secrets: Secrets): Request {
  if (secrets.length === 1) return request;
  const url = new URL(request.url);
  const token = url.searchParams.get('token');
  if (token !== null) url.searchParams.set('token', tokenByFirst(token, secrets));
  const copy = new Request(url, request);
  const cookie = request.headers.get('cookie');
  if (cookie !== null) copy.headers.set('cookie', signedByFirst(cookie, secrets));
  return copy;
}

async function refuseNul(request: Request): Promise<void> {
  const body = await request.clone().text();
  if (!hasNul(request.url) && !hasNul(body)) return;
  const message = 'A text of this request has the character U+0000.';
  const error = new GatewayError('invalid_request', message, { code: 'invalid_text' });
  throw withNulField(error, { query: new URL(request.url).searchParams, body: Buffer.from(body) });
}

const hasNul = (text: string) => /%00|\\u0000|\0/.test(text);

/** Packages that auth.ts imports. */
const packages = [
  '@better-auth/core/db/adapter',
  'better-auth/adapters/drizzle',
  'better-auth/crypto',
  'better-auth/api',
  'better-auth/plugins',
  '@better-auth/passkey',
];
let loaded: ReturnType<typeof loadAuth> | undefined;

/** Half of the modules of this program, which a start need not wait for. One package in a turn, so that streams go on in between. */
async function loadAuth() {
  for (const name of packages) {
    await import(name);
    await setImmediate();
  }
  return import('./auth.ts');
}

function keepAuths(parts: AuthParts) {
  const auths = new Map<string, Auth>();
  return {
    async at(origin: string): Promise<Auth> {
      loaded ??= loadAuth();
      const { createAuth } = await loaded;
      let auth = auths.get(origin);
      if (auth === undefined) {
        if (auths.size >= mostOrigins) auths.delete(auths.keys().next().value!);
        auth = createAuth(parts, origin);
        auths.set(origin, auth);
      }
      return auth;
    },
    forget: (origin: string) => void auths.delete(origin),
  };
}

/** Without the statement and its parameters, which may be hashes of passwords. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return String(cause instanceof Error ? cause.message : (error as Error).name).slice(0, 300);
}

/** Lists show sessions by their hashes; better-auth would look for the token itself. */
async function revokeSession({ people, store }: SignInParts, request: Request): Promise<Response> {
  const actor = await people.identify(request.headers);
  if (actor?.kind !== 'person')
    return Response.json({ error: { code: 'unauthenticated', message: 'Sign in first.' } }, { status: 401 });
  const body = (await request.json().catch(() => ({}))) as { token?: unknown };
  if (typeof body.token === 'string') await store.endSession(actor.id, body.token);
  return Response.json({ status: true });
}

/** Its errors are `{code, message}`; ours go beside them, as everywhere else. */
async function inOneShape(response: Response): Promise<Response> {
  if (response.status < 400) return response;
  const text = await response.text();
  let body: { code?: unknown; message?: unknown } = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // No body, or a page: only the status is known.
  }
  const message = typeof body.message === 'string' ? body.message : 'This could not be done.';
  const code = typeof body.code === 'string' ? body.code.toLowerCase() : codeOf(response.status);
  const headers = new Headers(response.headers);
  headers.set('content-type', 'application/json');
  headers.delete('content-length');
  const wait = headers.get('x-retry-after');
  if (wait !== null) headers.set('retry-after', wait);
  return new Response(JSON.stringify({ error: { code, message } }), { status: response.status, headers });
}

function codeOf(status: number): string {
  if (status === 429) return 'rate_limited';
  if (status === 401) return 'unauthenticated';
  return status === 404 ? 'not_found' : 'invalid_request';
}
