/** The end of a sign-in by SAML: what a response says counts for the browser that has asked for it, once. */
import { eq } from 'drizzle-orm';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { authPath } from '../../people/auth-names.ts';
import type { Asserting } from '../../people/providers/arrival.ts';
import type { Claims } from '../../people/providers/claims.ts';
import { isPlainAddress } from '../../people/providers/mail-domains.ts';
import { handleIdOf } from './answer.ts';
import { begunBy, endedCookie } from './leaving.ts';
import type { SamlParts, SamlProvider } from './parts.ts';

/** What providers call these where the owner has named nothing. */
const mailNames = [
  'email',
  'mail',
  'emailaddress',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  'urn:oid:0.9.2342.19200300.100.1.3',
];
const shownNames = [
  'displayName',
  'name',
  'http://schemas.microsoft.com/identity/claims/displayname',
  'urn:oid:2.16.840.1.113730.3.1.241',
];

interface Kept {
  readonly provider: string;
  readonly relay: string;
  readonly inResponseTo: string;
  readonly nameId: string;
  readonly nameFormat: string;
  readonly attributes: Readonly<Record<string, readonly string[]>>;
}

/** `enter`: makes the session, as better-auth does it. */
export async function enter(
  parts: SamlParts,
  provider: SamlProvider,
  { request, origin }: { readonly request: Request; readonly origin: string },
  sessionFor: (asserting: Asserting, request: Request) => Promise<Response>,
): Promise<Response> {
  const begun = begunBy(parts, request, origin);
  const kept = await takeKept(parts, new URL(request.url).searchParams.get('saml') ?? '');
  const isOfBrowser =
    begun !== undefined &&
    kept !== undefined &&
    [begun.provider, kept.provider].every((id) => id === provider.id) &&
    begun.request === kept.inResponseTo &&
    begun.relay === kept.relay;
  if (!isOfBrowser) throw new GatewayError('forbidden', 'Sign in again.', { code: 'state_mismatch' });
  const asked = new Request(`${origin}${authPath}/company/enter`, { headers: request.headers });
  const response = await sessionFor({ provider, claims: claimsOf(provider, kept), next: begun.next }, asked);
  const headers = new Headers(response.headers);
  headers.append('set-cookie', endedCookie(parts, origin));
  return new Response(response.body, { status: response.status, headers });
}

async function takeKept(
  { orm, tables: { verification }, clock }: SamlParts,
  handle: string,
): Promise<Kept | undefined> {
  const [row] = await orm
    .delete(verification)
    .where(eq(verification.id, handleIdOf(handle)))
    .returning({ value: verification.value, expiresAt: verification.expiresAt });
  return row === undefined || row.expiresAt.getTime() <= clock.now() ? undefined : (JSON.parse(row.value) as Kept);
}

/** In the form of OpenID Connect: the company answers for addresses of domains that are its own. */
function claimsOf({ saml }: SamlProvider, { nameId, nameFormat, attributes }: Kept): Claims {
  const first = (names: readonly string[]) => names.map((name) => at(attributes, name)?.[0]).find((text) => text);
  const byName = isPlainAddress(nameId) && !nameFormat.endsWith(':persistent') ? nameId : undefined;
  const email = saml.emailAttribute === '' ? (first(mailNames) ?? byName) : first([saml.emailAttribute]);
  return { ...attributes, sub: nameId, email, email_verified: true, name: first(shownNames) };
}

const at = (attributes: Kept['attributes'], name: string) =>
  Object.hasOwn(attributes, name) ? attributes[name] : undefined;
