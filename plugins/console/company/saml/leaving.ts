/** The way to an identity provider: a request of our own, remembered in a sealed cookie of the browser that was sent. */
import { openText, sealText } from '../../config-history/seal.ts';
import { authPath } from '../../people/auth-names.ts';
import { cookieOf } from '../../people/cookies.ts';
import { SAML } from './packages.ts';
import { type SamlParts, type SamlProvider, samlAddresses } from './parts.ts';

/** Signing in at the provider may take so long. */
const lastsMs = 600_000;
const longestPath = 1_000;

/** What was asked, by this browser. */
export interface Begun {
  readonly provider: string;
  readonly request: string;
  readonly relay: string;
  /** Path of this gateway that people come back to. */
  readonly next: string;
  readonly until: number;
}

export async function leave(
  parts: SamlParts,
  provider: SamlProvider,
  request: Request,
  origin: string,
): Promise<Response> {
  const { random, clock } = parts;
  const { callbackURL } = ((await request.json().catch(() => ({}))) ?? {}) as { callbackURL?: unknown };
  const begun: Begun = {
    provider: provider.id,
    request: `_${random.bytes(20).toString('hex')}`,
    relay: random.bytes(20).toString('hex'),
    next: pathOf(callbackURL),
    until: clock.now() + lastsMs,
  };
  const { acs, entityId } = samlAddresses(origin, provider.id);
  const saml = new SAML({
    idpCert: [...provider.saml.certificates],
    issuer: entityId,
    callbackUrl: acs,
    entryPoint: provider.saml.entry,
    // The provider knows best how its people prove who they are, and by what name it knows them.
    disableRequestedAuthnContext: true,
    identifierFormat: null,
    generateUniqueId: () => begun.request,
  });
  const url = await saml.getAuthorizeUrlAsync(begun.relay, undefined, {});
  const sealed = sealText(JSON.stringify(begun), cookieName(parts, origin), parts.secrets(), random);
  return Response.json(
    { url, redirect: true },
    { headers: { 'set-cookie': cookie(parts, origin, sealed, lastsMs / 1_000) } },
  );
}

/** No other site. */
const pathOf = (wanted: unknown): string =>
  typeof wanted === 'string' && wanted.length <= longestPath && /^\/console(?:\/(?!\/)[!-[\]-~]*)?$/.test(wanted)
    ? wanted
    : '/console/';

const cookieName = ({ cookiePrefix }: SamlParts, origin: string) =>
  `${origin.startsWith('https:') ? '__Secure-' : ''}${cookiePrefix}.saml`;

/** Lax: it is sent when the browser comes back by an address, not with the provider's form. */
function cookie(parts: SamlParts, origin: string, value: string, maxAge: number): string {
  const secure = origin.startsWith('https:') ? '; Secure' : '';
  return `${cookieName(parts, origin)}=${encodeURIComponent(value)}; Path=${authPath}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`;
}

export const endedCookie = (parts: SamlParts, origin: string) => cookie(parts, origin, '', 0);

/** undefined: this browser has begun nothing, or too long ago. */
export function begunBy(parts: SamlParts, request: Request, origin: string): Begun | undefined {
  const name = cookieName(parts, origin);
  const sealed = cookieOf(request.headers.get('cookie'), name);
  const text = sealed === undefined ? undefined : openText(sealed, name, parts.secrets());
  if (text === undefined) return undefined;
  const begun = JSON.parse(text) as Begun;
  return begun.until > parts.clock.now() ? begun : undefined;
}
