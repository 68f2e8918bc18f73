/** The answers under `/console/api/auth`: better-auth, behind the console's own checks and in its error shape. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { withNulField } from '../../../core/json/nul-field.ts';
import type { Companies } from '../company/companies.ts';
import type { SamlProvider } from '../company/saml/parts.ts';
import type { OidcProvider } from '../config.ts';
import { refuseForeign } from '../origin.ts';
import type { People } from '../people.ts';
import { authPath } from './auth-names.ts';
import type { AuthParts } from './auth-parts.ts';
import { keepAuths, providerAuths } from './auths.ts';
import { sessionTokenOf, signedByFirst, tokenByFirst } from './cookies.ts';
import { sessionHash } from './hashed-sessions.ts';
import { arrival } from './providers/arrival.ts';
import type { Secrets } from './secrets.ts';
import type { PeopleStore } from './store.ts';

export type SignIn = (request: Request, origin: string) => Promise<Response>;

export interface SignInParts extends AuthParts {
  readonly people: People;
  readonly store: PeopleStore;
  readonly oidc: readonly OidcProvider[];
  readonly companies: Pick<Companies, 'found' | 'placed' | 'fetch' | 'requiredFor' | 'saml'>;
  readonly sessionCookie: string;
}

/** Changes by which people would sign in without their provider. */
const ownWays = new Set(['/change-password', '/passkey/verify-registration', '/passkey/generate-register-options']);
const signInPage = '/console/sign-in';
/** What people do who were signed in by the provider of an account, and what leads to signing in: not how else they sign in. */
const openToCompanies =
  /^\/(?:get-session|sign-out|sign-in\/.*|sign-up\/.*|callback\/.*|list-sessions|revoke-.*|request-password-reset|reset-password.*|verify-email|send-verification-email|two-factor\/verify-.*|passkey\/(?:generate-authenticate-options|verify-authentication))$/;
const notByCompany = () =>
  new GatewayError('forbidden', 'You are signed in by your company. This is changed by those who sign in themselves.', {
    code: 'company_session',
  });

export function createSignIn(parts: SignInParts): SignIn {
  const through = providerAuths(parts, (provider) =>
    provider.company?.isForeign ? parts.companies.fetch : parts.fetch,
  );
  const ways: Ways = { plain: keepAuths(parts), through };
  return async function signIn(given, origin) {
    const path = new URL(given.url).pathname.slice(authPath.length);
    const isBack = path.startsWith('/callback/');
    try {
      const request = renewed(given, parts.secrets);
      await refuseNul(request);
      refuseForeign({ method: request.method, header: (name) => request.headers.get(name) ?? undefined }, origin);
      const response = await inOneShape(await answerOf(parts, ways, { request, origin, path }));
      return isBack && response.status >= 400 ? backWith(await codeIn(response), response) : response;
    } catch (error) {
      const { status, code, kind, message, field } = toGatewayError(error);
      if (kind === 'internal') parts.log.error({ reason: reasonOf(error) }, 'signing in failed inside the gateway');
      const shown = { code: code ?? kind, message, ...(field === undefined ? {} : { field }) };
      return isBack ? backWith(shown.code) : Response.json({ error: shown }, { status });
    }
  };
}

interface Asked {
  readonly request: Request;
  readonly origin: string;
  readonly path: string;
}

/** The sign-in itself; and for each provider one of its own, so that one that is down holds no other up. */
interface Ways {
  readonly plain: ReturnType<typeof keepAuths>;
  readonly through: ReturnType<typeof providerAuths>;
}

async function answerOf(parts: SignInParts, { plain, through }: Ways, asked: Asked): Promise<Response> {
  const { request, origin, path } = asked;
  if (request.method === 'POST' && path === '/revoke-session') return revokeSession(parts, request);
  if (!openToCompanies.test(path)) {
    const actor = await parts.people.identify(request.headers);
    if (actor?.company !== undefined) throw notByCompany();
    if (ownWays.has(path) && actor?.kind === 'person' && parts.domains.byProviderOnly(actor.label))
      throw new GatewayError('invalid_request', parts.domains.askProvider(actor.label), { code: 'use_provider' });
  }
  const provider = await providerOf(parts, asked);
  if (provider?.saml !== undefined) return samlAnswer(parts, plain, { ...provider, saml: provider.saml }, asked);
  if (provider === undefined) {
    const leaving = path === '/sign-out' ? await leavingOf(parts, through, request) : undefined;
    const response = await (await plain.at(origin)).handler(request);
    return leaving === undefined || response.status >= 400 ? response : signedOut(response, leaving, origin);
  }
  return (await through.at(origin, provider)).handler(request);
}

/** Leaves for a provider that speaks SAML, or comes back from it. */
async function samlAnswer(parts: SignInParts, plain: Ways['plain'], provider: SamlProvider, asked: Asked) {
  const { request, origin, path } = asked;
  const { saml } = parts.companies;
  if (path === '/sign-in/social') {
    const { leave } = await import('../company/saml/leaving.ts');
    return leave(saml, provider, request, origin);
  }
  const { enter } = await import('../company/saml/entering.ts');
  return enter(saml, provider, asked, async (asserting, last) => {
    const auth = await plain.at(origin);
    return arrival.run({ fetch: parts.fetch, asserting }, () => auth.handler(last));
  });
}

/** Where a request leads through a provider: which one. */
async function providerOf(
  { oidc, companies }: SignInParts,
  { request, path }: Asked,
): Promise<OidcProvider | undefined> {
  let id: unknown = /^\/callback\/([a-z0-9-]+)$/.exec(path)?.[1];
  if (path === '/sign-in/social')
    id = (
      (await request
        .clone()
        .json()
        .catch(() => undefined)) as { provider?: unknown } | undefined
    )?.provider;
  if (id === undefined) return undefined;
  const configured = oidc.find((one) => one.id === id);
  if (configured !== undefined) return companies.placed(configured);
  const provider = typeof id === 'string' ? await companies.found(id) : undefined;
  if (provider === undefined)
    throw new GatewayError('not_found', 'There is no such provider.', { code: 'oauth_provider_not_found' });
  return provider;
}

/** A navigation that fails shows its reason on the page where people sign in. */
function backWith(code: string, response?: Response): Response {
  const headers = new Headers({ location: `${signInPage}?error=${encodeURIComponent(code)}` });
  for (const cookie of response?.headers.getSetCookie() ?? []) headers.append('set-cookie', cookie);
  return new Response(null, { status: 302, headers });
}

const codeIn = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code;

// ------------------------------------------------------------------------------------------------- signing out elsewhere

interface Leaving {
  readonly provider: OidcProvider;
  readonly endSession: string;
  readonly idToken: string | null;
}

/** Where a session that began at a provider ends: asked before it has ended here. */
async function leavingOf(
  { store, oidc, secrets, sessionCookie }: SignInParts,
  through: Ways['through'],
  request: Request,
): Promise<Leaving | undefined> {
  const token = sessionTokenOf(request.headers.get('cookie'), sessionCookie, secrets);
  const begun = token === undefined ? undefined : await store.identityOf(sessionHash(token));
  const provider = oidc.find(({ id, sign_out }) => id === begun?.providerId && sign_out === 'provider');
  if (begun === undefined || provider === undefined) return undefined;
  // Signing out here does not wait for a provider that is down, and does not fail with it.
  const discovered = await through.discovered(provider).catch(() => undefined);
  if (discovered?.endSession === undefined) return undefined;
  return { provider, endSession: discovered.endSession, idToken: begun.idToken };
}

/** https://openid.net/specs/openid-connect-rpinitiated-1_0.html */
function signedOut(response: Response, { provider, endSession, idToken }: Leaving, origin: string): Response {
  const url = new URL(endSession);
  if (idToken !== null) url.searchParams.set('id_token_hint', idToken);
  url.searchParams.set('client_id', provider.client_id);
  url.searchParams.set('post_logout_redirect_uri', origin + signInPage);
  const headers = new Headers(response.headers);
  headers.delete('content-length');
  return new Response(JSON.stringify({ success: true, url: url.href }), { status: 200, headers });
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
