/** Bearer tokens with the rights of a role, for scripts: shown once, kept as hashes. */
import { and, desc, eq, gt, isNull, lt, or } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Actor } from '../actor.ts';
import type { Tokens, TokenView } from '../people.ts';
import { hashSecret, makeSecret } from './secrets.ts';
import type { ConsoleTables } from './tables.ts';

const prefix = 'op-';
const shownLength = 10;
const mostTokens = 1_000;
/** So often at most it is written when a token was used. */
const noteUseMs = 60_000;

export interface TokenStore extends Tokens {
  /** The owner of the token in an `authorization` header; undefined: unknown. */
  identify(authorization: string | null): Promise<Actor | undefined>;
}

type TokenRow = ConsoleTables['tokens']['$inferSelect'];

export function openTokens(
  orm: Orm,
  { tokens }: ConsoleTables,
  { clock, random, newId }: { readonly clock: Clock; readonly random: Random; readonly newId: () => string },
): TokenStore {
  const now = () => new Date(clock.now());
  const valid = (hash: string) =>
    and(eq(tokens.hash, hash), isNull(tokens.revokedAt), or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now())));
  const noteUse = async ({ id, lastUsedAt }: TokenRow) => {
    const before = new Date(clock.now() - noteUseMs);
    if (lastUsedAt !== null && lastUsedAt >= before) return;
    const unused = or(isNull(tokens.lastUsedAt), lt(tokens.lastUsedAt, before));
    await orm
      .update(tokens)
      .set({ lastUsedAt: now() })
      .where(and(eq(tokens.id, id), unused));
  };
  return {
    async list() {
      const newestFirst = orm.select().from(tokens).where(isNull(tokens.revokedAt)).orderBy(desc(tokens.createdAt));
      return (await newestFirst.limit(mostTokens)).map(view);
    },

    async create({ name, role, expiresAt, createdBy }) {
      const token = makeSecret(random, prefix);
      const row = {
        id: newId(),
        name,
        prefix: token.slice(0, shownLength),
        hash: hashSecret(token),
        role,
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
        .where(valid(hashSecret(token)));
      if (row === undefined) return undefined;
      await noteUse(row);
      return { kind: 'token', id: row.id, label: row.name, role: row.role };
    },
  };
}

function view(row: TokenRow): TokenView {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    role: row.role,
    createdBy: row.createdBy,
    createdAt: row.createdAt.getTime(),
    expiresAt: row.expiresAt?.getTime(),
    lastUsedAt: row.lastUsedAt?.getTime(),
  };
}
