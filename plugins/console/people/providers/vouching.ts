/** Who a provider's person is here: verified claims, the rules of mail domains, and which account may be joined with which identity. */
import { APIError } from 'better-auth/api';
import { and, eq } from 'drizzle-orm';
import type { Host } from '../../../../core/contract/contract.ts';
import { isObject, textOf, tryParse } from '../../../../core/json/json.ts';
import type { Orm } from '../../../common/domain/database.ts';
import type { OidcProvider } from '../../config.ts';
import type { PeopleTables } from '../tables.ts';
import { arrival } from './arrival.ts';
import { type Claims, claimAt } from './claims.ts';
import { type Discovered, ProviderFault, plainIssuer, readJson } from './discovery.ts';
import { domainOf, isPlainAddress, type MailDomains } from './mail-domains.ts';

interface VouchingParts {
  readonly orm: Orm;
  readonly tables: PeopleTables;
  readonly fetch: Host['fetch'];
  readonly domains: MailDomains;
}

export interface Tokens {
  readonly idToken?: string | undefined;
  readonly accessToken?: string | undefined;
}

const mostTokenLength = 128 * 1024;
const mostNameLength = 100;

/** What better-auth makes or finds a person by. Throws APIError with the code that the sign-in page has words for. */
export async function personOf(parts: VouchingParts, provider: OidcProvider, { userInfo }: Discovered, tokens: Tokens) {
  return vouchFor(parts, provider, await claimsOf(parts, provider, userInfo, tokens));
}

/** For claims that were found right. */
export async function vouchFor(parts: VouchingParts, provider: OidcProvider, claims: Claims) {
  const sub = textOf(claims['sub'])!;
  await admitIdentity(parts, provider, claims, sub);
  const email = claims['email'] as string;
  const store = arrival.getStore();
  if (store !== undefined) store.vouched = { provider, claims };
  return { sub, email: email.toLowerCase(), emailVerified: isVerified(provider, claims), name: nameOf(claims, email) };
}

/** Claims of the ID token, which better-auth has verified before, and of the page of claims where it lacks some. */
async function claimsOf(
  { fetch }: VouchingParts,
  provider: OidcProvider,
  userInfo: string | undefined,
  { idToken, accessToken }: Tokens,
): Promise<Claims> {
  // Without an ID token neither issuer nor nonce would have been checked.
  if (idToken === undefined || idToken.length > mostTokenLength) throw refusal('unable_to_get_user_info');
  const claims = tryParse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString());
  if (!isObject(claims) || !isOurs(claims, provider)) throw refusal('unable_to_get_user_info');
  const wanted = [provider.verified_claim, ...[...provider.roles, ...provider.plans].map(({ claim }) => claim)];
  const isWhole = claims['email'] !== undefined && wanted.every((path) => claimAt(claims, path) !== undefined);
  if (isWhole || userInfo === undefined || accessToken === undefined) return claims;
  const more = await readJson(fetch, userInfo, accessToken).catch((error: unknown) => {
    throw error instanceof ProviderFault ? refusal('provider_unreachable') : error;
  });
  const isOther = claims['email'] !== undefined && more['email'] !== undefined && more['email'] !== claims['email'];
  // Or what one says of an address would count for the other.
  if (more['sub'] !== claims['sub'] || isOther) throw refusal('unable_to_get_user_info');
  return { ...more, ...claims };
}

/** Beside the signature: https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation */
function isOurs(claims: Claims, { issuer, client_id }: OidcProvider): boolean {
  const { iss, aud, azp, exp, sub } = claims;
  const audience = [aud].flat();
  return (
    typeof iss === 'string' &&
    plainIssuer(iss) === plainIssuer(issuer) &&
    audience.includes(client_id) &&
    (audience.length === 1 || azp === client_id) &&
    (azp === undefined || azp === client_id) &&
    typeof exp === 'number' &&
    typeof sub === 'string' &&
    /^[^\p{Cc}]{1,255}$/u.test(sub)
  );
}

const isVerified = ({ verified_claim }: OidcProvider, claims: Claims) =>
  [true, 'true', 1, '1'].includes(claimAt(claims, verified_claim) as string);

function nameOf(claims: Claims, email: string): string {
  const names = [claims['name'], claims['preferred_username'], email.split('@')[0]];
  const shown = names.map((name) => (typeof name === 'string' ? name.replace(/\p{Cc}+/gu, ' ').trim() : ''));
  return shown.find((name) => name !== '')!.slice(0, mostNameLength);
}

/** A known identity is its `sub` alone. A new one gets or joins an account by its mail address, which must be verified. */
async function admitIdentity(parts: VouchingParts, provider: OidcProvider, claims: Claims, sub: string): Promise<void> {
  const { orm, tables, domains } = parts;
  const { account, user } = tables;
  const [known] = await orm
    .select({ id: account.id })
    .from(account)
    .where(and(eq(account.providerId, provider.id), eq(account.accountId, sub)));
  const given = claims['email'];
  if (known === undefined || provider.domains.length > 0) {
    if (given === undefined) throw refusal('email_not_found');
    if (!isPlainAddress(given)) throw refusal('email_not_usable');
    if (!isVerified(provider, claims)) throw refusal('email_not_verified');
  } else if (!isPlainAddress(given)) throw refusal('email_not_found');
  refuseDomain(domains, provider, given);
  if (known !== undefined) return;
  const email = given.toLowerCase();
  const [person] = await orm
    .select({ id: user.id, role: user.role, verified: user.emailVerified })
    .from(user)
    .where(eq(user.email, email));
  if (person === undefined) return;
  if (!person.verified || !mayJoin(provider, person.role, email)) throw refusal('account_not_linked');
  const [other] = await orm
    .select({ id: account.id })
    .from(account)
    .where(and(eq(account.userId, person.id), eq(account.providerId, provider.id)));
  // The address has gone to another person there, as it may when somebody has left.
  if (other !== undefined) throw refusal('other_identity');
}

/** An account with rights is joined only by the operator's own provider that its domain belongs to. */
const mayJoin = (provider: OidcProvider, role: string, email: string) =>
  role === 'client' || (provider.company === undefined && provider.domains.includes(domainOf(email)));

function refuseDomain(domains: MailDomains, provider: OidcProvider, email: string): void {
  const owners = domains.providersOf(email);
  if (provider.company?.isForeign && owners.length > 0) throw refusal('other_provider');
  const own = provider.company?.isForeign ? [provider] : owners;
  if (own.some(({ id, domains: names }) => id === provider.id && names.includes(domainOf(email)))) return;
  if (provider.domains.length > 0) throw refusal('wrong_domain');
  if (owners.length > 0) throw refusal('other_provider');
}

const refusal = (code: string) =>
  new APIError('FORBIDDEN', { code, message: 'The provider does not sign this person in here.' });
