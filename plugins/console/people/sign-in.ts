/** What is answered under `/console/api/auth`: better-auth, behind the house's own checks and in its error shape. */
import { toGatewayError } from '../../../core/errors.ts';
import { refuseForeign } from '../origin.ts';
import type { People } from '../people.ts';
import { type Auth, type AuthParts, createAuth } from './auth.ts';
import { authPath } from './auth-names.ts';
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
  // Without a provider nobody waits for one: whoever has a password comes in while it is down.
  const plain = { ...parts, settings: { ...parts.settings, oidc: [] } };
  const own = keepAuths((origin) => createAuth(plain, origin));
  const foreign = keepAuths((origin) => createAuth(parts, origin));
  const handle = async (request: Request, origin: string, path: string): Promise<Response> => {
    if (parts.settings.oidc.length === 0 || !throughProvider.test(path)) return own.at(origin).handler(request);
    const again = request.clone();
    const response = await foreign.at(origin).handler(request);
    // What it says of itself is read when the instance is made.
    if (response.status !== 404 || parts.throttle.take('look for providers', 1, lookAgainMs) > 0) return response;
    foreign.forget(origin);
    return foreign.at(origin).handler(again);
  };
  return async function signIn(request, origin) {
    try {
      refuseForeign({ method: request.method, header: (name) => request.headers.get(name) ?? undefined }, origin);
      const path = new URL(request.url).pathname.slice(authPath.length);
      if (request.method === 'POST' && path === '/revoke-session') return await revokeSession(parts, request);
      return await inOneShape(await handle(request, origin, path));
    } catch (error) {
      const { status, code, kind, message } = toGatewayError(error);
      if (kind === 'internal') parts.log.error({ reason: reasonOf(error) }, 'signing in failed inside the gateway');
      return Response.json({ error: { code: code ?? kind, message } }, { status });
    }
  };
}

function keepAuths(create: (origin: string) => Auth) {
  const auths = new Map<string, Auth>();
  return {
    at(origin: string): Auth {
      let auth = auths.get(origin);
      if (auth === undefined) {
        if (auths.size >= mostOrigins) auths.delete(auths.keys().next().value!);
        auth = create(origin);
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
  let told: { code?: unknown; message?: unknown } = {};
  try {
    told = JSON.parse(text) as typeof told;
  } catch {
    // No body, or a page: what is known is the status.
  }
  const message = typeof told.message === 'string' ? told.message : 'This could not be done.';
  const code = typeof told.code === 'string' ? told.code.toLowerCase() : codeOf(response.status);
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
