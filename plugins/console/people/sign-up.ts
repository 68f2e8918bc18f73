/** Sign-up: open to everyone, by invitation, or closed. */
import { APIError } from 'better-auth/api';
import { and, eq, lt, notExists } from 'drizzle-orm';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Links } from './links.ts';
import type { PeopleTables } from './tables.ts';

export type SignUpPolicy = 'open' | 'invite' | 'closed';

/** Throws if this sign-up is not allowed. An invitation is for one address, and is used up by it. */
export async function admitSignUp(
  policy: SignUpPolicy,
  links: Links,
  orm: Orm,
  wanted: { readonly email: string; readonly invitation: string | undefined; readonly vouched: boolean },
): Promise<void> {
  if (policy === 'open') return;
  if (policy === 'invite') {
    const { email, invitation, vouched } = wanted;
    if (invitation !== undefined && (await links.use(orm, invitation, 'invitation', email))) return;
    if (vouched && (await links.isInvited(email))) return links.close(orm, 'invitation', email);
  }
  const message =
    policy === 'closed' ? 'Sign-up is closed here. Ask the operator.' : 'You need an invitation for this address.';
  // Not a 403: where addresses are confirmed, better-auth hides those behind an answer that looks like success.
  throw new APIError('BAD_REQUEST', { code: 'SIGN_UP_NOT_ALLOWED', message });
}

const crashedAfterMs = 60_000;

/** A crash between a person and their password leaves a person who can never sign in: the next sign-up begins again. */
export async function removeHalfMade(
  orm: Orm,
  { user, account, passkey }: PeopleTables,
  email: string,
  clock: Clock,
): Promise<void> {
  const before = new Date(clock.now() - crashedAfterMs);
  const identities = orm.select({ id: account.id }).from(account).where(eq(account.userId, user.id));
  const passkeys = orm.select({ id: passkey.id }).from(passkey).where(eq(passkey.userId, user.id));
  await orm
    .delete(user)
    .where(
      and(
        eq(user.email, email),
        eq(user.emailVerified, false),
        lt(user.createdAt, before),
        notExists(identities),
        notExists(passkeys),
      ),
    );
}
