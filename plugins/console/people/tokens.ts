/** Bearer tokens with an operator's rights, for scripts: shown once, kept as hashes. */
import { and, desc, eq, gt, isNull, lt, or } from 'drizzle-orm';
import type { Clock, Random } from '../../../core/contract.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { Orm } from '../../../core/vocabulary.ts';
import type { Actor } from '../actor.ts';
import type { Tokens } from '../people.ts';
import { hashSecret, makeSecret } from './secrets.ts';
import type { HouseTables } from './tables.ts';

const prefix = 'op-';
const shownLength = 10;
const mostTokens = 1_000;
/** So often at most it is written when a token was used. */
const noteUseMs = 60_000;

export interface TokenStore extends Tokens {
  /** Whose `authorization` header it is; undefined: nobody's. */
  identify(authorization: string | null): Promise<Actor | undefined>;
}

export function openTokens(
  orm: Orm,
  { tokens }: HouseTables,
  { clock, random, newId }: { readonly clock: Clock; readonly random: Random; readonly newId: () => string },
): TokenStore {
  const now = () => new Date(clock.now());
  const view = (row: typeof tokens.$inferSelect) => ({
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    createdBy: row.createdBy,
    createdAt: row.createdAt.getTime(),
    expiresAt: row.expiresAt?.getTime(),
    lastUsedAt: row.lastUsedAt?.getTime(),
  });
  return {
    async list() {
      const rows = await orm
        .select()
        .from(tokens)
        .where(isNull(tokens.revokedAt))
        .orderBy(desc(tokens.createdAt))
        .limit(mostTokens);
      return rows.map(view);
    },

    async create({ name, expiresAt, createdBy }) {
      const token = makeSecret(random, prefix);
      const row = {
        id: newId(),
        name,
        prefix: token.slice(0, shownLength),
        hash: hashSecret(token),
        createdBy,
        createdAt: now(),
        expiresAt: expiresAt === undefined ? null : new Date(expiresAt),
      };
      const [made] = await orm.insert(tokens).values(row).returning();
      return { view: view(made!), token };
    },

    async revoke(tokenId) {
      const revoked = await orm
        .update(tokens)
        .set({ revokedAt: now() })
        .where(and(eq(tokens.id, tokenId), isNull(tokens.revokedAt)))
        .returning({ id: tokens.id });
      if (revoked.length === 0) throw new GatewayError('not_found', 'There is no such token.', { field: 'id' });
    },

    async identify(authorization) {
      const token = /^bearer (op-[\w-]{43})$/i.exec(authorization ?? '')?.[1];
      if (token === undefined) return undefined;
      const [row] = await orm
        .select()
        .from(tokens)
        .where(
          and(
            eq(tokens.hash, hashSecret(token)),
            isNull(tokens.revokedAt),
            or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now())),
          ),
        );
      if (row === undefined) return undefined;
      const before = new Date(clock.now() - noteUseMs);
      if (row.lastUsedAt === null || row.lastUsedAt < before)
        await orm
          .update(tokens)
          .set({ lastUsedAt: now() })
          .where(and(eq(tokens.id, row.id), or(isNull(tokens.lastUsedAt), lt(tokens.lastUsedAt, before))));
      return { kind: 'token', id: row.id, label: row.name, role: 'operator' };
    },
  };
}
