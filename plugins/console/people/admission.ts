/** Who may begin a session or an account: blocked people, second factors used twice, domains that sign in by their provider. */
import { createHmac } from 'node:crypto';
import { APIError } from 'better-auth/api';
import { eq, lte, sql } from 'drizzle-orm';
import { askCompany } from '../company/required.ts';
import { addressHeader } from './auth-names.ts';
import type { AuthParts } from './auth-parts.ts';
import { arrival } from './providers/arrival.ts';
import { applyClaims } from './providers/claimed.ts';
import type { MailDomains } from './providers/mail-domains.ts';
import { hashSecret } from './secrets.ts';
import { admitSignUp } from './sign-up.ts';

const mostNameLength = 100;
export const mostEmailLength = 200;

/** Resolves with the person's address. */
async function refuseBlocked({ orm, tables: { user } }: AuthParts, personId: string): Promise<string> {
  const [found] = await orm
    .select({ blocked: user.blocked, email: user.email })
    .from(user)
    .where(eq(user.id, personId));
  if (found?.blocked === false) return found.email;
  throw new APIError('FORBIDDEN', { code: 'BLOCKED', message: 'This account is blocked. Ask the operator.' });
}

export async function admitSession(parts: AuthParts, personId: string, context: HookContext) {
  const email = await refuseBlocked(parts, personId);
  const vouched = arrival.getStore()?.vouched;
  if (vouched === undefined && parts.domains.byProviderOnly(email)) throw asksProvider(parts.domains, email);
  await refuseElsewhere(parts, email, vouched?.provider.id);
  if (context?.path === '/two-factor/verify-totp') await useCode(parts, personId, context.body);
  if (vouched === undefined) return undefined;
  const { provider, claims } = vouched;
  const address = context?.headers?.get(addressHeader) ?? '';
  await applyClaims(parts, { personId, provider, claims, address });
  const { id: providerId, company } = provider;
  if (company === undefined) return { data: { providerId } };
  await parts.joinCompany({ personId, email, company, by: providerId, claims, address });
  return { data: { providerId, companyAccountId: company.accountId } };
}

type HookContext = { path?: string; body?: unknown; headers?: Headers | undefined } | null;

/** A provider may vouch for an address; a form does not. No sign-up sets a role. */
export async function admit(parts: AuthParts, { name, email }: { name: string; email: string }, context: HookContext) {
  const { domains, links, orm } = parts;
  refuseLong({ name, email });
  const { invite } = (context?.body ?? {}) as { invite?: unknown };
  const invitation = typeof invite === 'string' ? invite : undefined;
  const provider = arrival.getStore()?.vouched?.provider;
  const vouched = provider !== undefined;
  await refuseElsewhere(parts, email, provider?.id);
  const wanted = { email: email.toLowerCase(), invitation, vouched };
  const policy = domains.signUpOf(email, provider?.company?.isForeign ? 'owner' : vouched);
  await admitSignUp(policy, links, orm, wanted);
  return { data: { role: 'client', blocked: false } };
}

/** Addresses by which passwords come to be: people of some domains have none. */
const withPassword = new Set([
  '/sign-in/email',
  '/sign-up/email',
  '/request-password-reset',
  '/send-verification-email',
]);

export async function refuseByPath(parts: AuthParts, path: string, email: string, body: unknown) {
  const { domains, orm, tables } = parts;
  const refuse = async (address: string) => {
    if (domains.byProviderOnly(address)) throw asksProvider(domains, address);
    await refuseElsewhere(parts, address, undefined);
  };
  if (withPassword.has(path) && email !== '') await refuse(email);
  if (path === '/reset-password') {
    const { token } = (body ?? {}) as { token?: unknown };
    const { verification, user } = tables;
    const [person] = await orm
      .select({ email: user.email })
      .from(verification)
      .innerJoin(user, eq(user.id, verification.value))
      .where(eq(verification.identifier, hashSecret(`reset-password:${token}`)));
    if (person !== undefined) await refuse(person.email);
  }
  // An ID token may have been seen by others, as in the address of a page; only one that comes for a code of ours counts.
  const { idToken } = (body ?? {}) as { idToken?: unknown };
  if (path === '/link-social' || (path === '/sign-in/social' && idToken !== undefined))
    throw new APIError('NOT_FOUND', { code: 'not_available', message: 'Sign in on the page of the provider.' });
}

/** `by`: id of the provider that vouches for them. */
async function refuseElsewhere({ requiredFor }: AuthParts, email: string, by: string | undefined): Promise<void> {
  const required = await requiredFor(email);
  if (required === undefined || required.id === by) return;
  throw new APIError('FORBIDDEN', { code: 'use_company', message: askCompany(email, required) });
}

const asksProvider = (domains: MailDomains, email: string) =>
  new APIError('BAD_REQUEST', { code: 'use_provider', message: domains.askProvider(email) });

export function refuseLong({ name = '', email = '' }: { name?: string | undefined; email?: string | undefined }): void {
  if (name.length > mostNameLength || email.length > mostEmailLength || /\p{Cc}/u.test(name))
    throw new APIError('BAD_REQUEST', {
      code: 'TOO_LONG',
      message: 'A name has at most 100 characters, an address 200.',
    });
}

/** A code is accepted one period of 30 s before and after its own, and once more where the clock comes back to that after a jump. */
const rememberedMs = 2 * 24 * 3_600_000;

/** Codes of second factors are good once, in all processes (RFC 6238, section 5.2). */
async function useCode({ orm, tables, clock, secrets }: AuthParts, userId: string, body: unknown): Promise<void> {
  const code = String((body as { code?: unknown }).code).replace(/\D/g, '');
  // By each secret, as another process may have one of them alone.
  const ids = secrets.map((secret) => `code:${createHmac('sha256', secret).update(`${userId} ${code}`).digest('hex')}`);
  const { verification } = tables;
  const now = new Date(clock.now());
  const expiresAt = new Date(clock.now() + rememberedMs);
  const rows = ids.map((id) => ({ id, identifier: id, value: '', expiresAt, createdAt: now, updatedAt: now }));
  const taken = await orm
    .insert(verification)
    .values(rows)
    .onConflictDoUpdate({
      target: verification.id,
      set: { expiresAt, updatedAt: now },
      setWhere: lte(verification.expiresAt, now),
    })
    .returning({ id: sql`1` });
  if (taken.length < ids.length)
    throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE', message: 'This code was used.' });
}
