/** Links that admit a person once: the first operator, and invited people. Kept as hashes. */
import { and, eq, gt, isNull, lt, or } from 'drizzle-orm';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import { hashSecret, makeSecret } from './secrets.ts';
import type { ConsoleTables } from './tables.ts';

export const resetPath = (token: string) => `/console/reset-password?token=${encodeURIComponent(token)}`;
export const firstPath = (secret: string) => `/console/first?token=${encodeURIComponent(secret)}`;
export const invitePath = (secret: string, email: string) =>
  `/console/sign-up?invite=${encodeURIComponent(secret)}&email=${encodeURIComponent(email)}`;

export const joinPath = (secret: string, email: string) =>
  `/console/sign-up?join=${encodeURIComponent(secret)}&email=${encodeURIComponent(email)}`;

const dayMs = 24 * 3_600_000;
const firstOperatorLastsMs = dayMs;
const invitationLastsMs = 7 * dayMs;
const keptMs = 30 * dayMs;

export type LinkKind = 'first_operator' | 'invitation';

export interface LinkParts {
  readonly orm: Orm;
  readonly tables: ConsoleTables;
  readonly clock: Clock;
  readonly random: Random;
}

export type Links = ReturnType<typeof openLinks>;

export function openLinks({ orm, tables: { links }, clock, random }: LinkParts) {
  const now = () => new Date(clock.now());
  const open = (kind: LinkKind) => and(eq(links.kind, kind), isNull(links.usedAt), gt(links.expiresAt, now()));
  const usable = (secret: string, kind: LinkKind) => and(eq(links.hash, hashSecret(secret)), open(kind));
  return {
    /** Resolves with the secret, which is returned only here. */
    async make(kind: LinkKind, email?: string): Promise<string> {
      const secret = makeSecret(random, '');
      const lastsMs = kind === 'first_operator' ? firstOperatorLastsMs : invitationLastsMs;
      const expiresAt = new Date(clock.now() + lastsMs);
      const row = { hash: hashSecret(secret), kind, email: email ?? null, expiresAt, createdAt: now() };
      await orm.insert(links).values(row);
      return secret;
    },

    /** Uses the link up, in one statement: of two who come at once, one gets false. */
    async use(transaction: Orm, secret: string, kind: LinkKind, email?: string): Promise<boolean> {
      const matching = email === undefined ? usable(secret, kind) : and(usable(secret, kind), eq(links.email, email));
      const used = await transaction
        .update(links)
        .set({ usedAt: now() })
        .where(matching)
        .returning({ hash: links.hash });
      return used.length === 1;
    },

    /** Whether it would be taken now; asked before anything that costs time. */
    async isUsable(secret: string, kind: LinkKind): Promise<boolean> {
      const [found] = await orm.select({ hash: links.hash }).from(links).where(usable(secret, kind));
      return found !== undefined;
    },

    /** Whether an invitation of this address waits: for those who come by a provider that vouches for the address. */
    async isInvited(email: string): Promise<boolean> {
      const waiting = and(open('invitation'), eq(links.email, email));
      return (await orm.select({ hash: links.hash }).from(links).where(waiting).limit(1)).length > 0;
    },

    ...ends(orm, links, clock),
  };
}

function ends(orm: Orm, links: ConsoleTables['links'], clock: Clock) {
  const now = () => new Date(clock.now());
  return {
    /** No link of this kind, or for this address, opens anything any more. */
    async close(transaction: Orm, kind: LinkKind, email?: string): Promise<void> {
      const matching = and(eq(links.kind, kind), isNull(links.usedAt));
      await transaction
        .update(links)
        .set({ usedAt: now() })
        .where(email === undefined ? matching : and(matching, eq(links.email, email)));
    },

    /** One that is taken back, by its hash. */
    async withdraw(hash: string): Promise<void> {
      await orm
        .update(links)
        .set({ usedAt: now() })
        .where(and(eq(links.hash, hash), isNull(links.usedAt)));
    },

    /** Drops links that expired long ago. */
    async prune(): Promise<void> {
      const before = new Date(clock.now() - keptMs);
      await orm.delete(links).where(or(lt(links.expiresAt, before), lt(links.usedAt, before)));
    },
  };
}
