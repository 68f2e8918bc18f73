/** SQL of keys that get another secret: the one before finds its key until its end. */
import { and, asc, eq, gt, inArray, lte, type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ReplacedSecret } from '../../common/domain/admin/accounts.ts';
import type { Database, Orm } from '../../common/domain/database.ts';
import type { Digest } from '../key.ts';
import type { AuthTables } from '../tables.ts';

/** So many replaced secrets of a key may work beside its own. */
const mostReplaced = 4;

export interface Rotation {
  readonly id: string;
  /** That of the secret before. */
  readonly hash: string;
  readonly made: { readonly hash: string; readonly prefix: string; readonly digests: readonly Digest[] };
  readonly at: Date;
  /** Not after `at`: the secrets before end at once. */
  readonly endsAt: Date;
}

export function rotationStatements(database: Database, tables: AuthTables) {
  const { replaced } = tables;
  return {
    /** Announced by the earlier hash. Throws `conflict` where it is not the key's any more. */
    rotateKey: (rotation: Rotation): Promise<void> =>
      database.change('key', rotation.hash, (orm) => replaceSecret(orm, tables, rotation)),

    /** Secrets of these keys that work beside their own, by key, those that end first before the others. */
    async replacedSecrets(keyIds: readonly string[], at: Date): Promise<ReadonlyMap<string, ReplacedSecret[]>> {
      if (keyIds.length === 0) return new Map();
      const { keyId, prefix, endsAt } = replaced;
      const rows = await database.orm
        .selectDistinct({ keyId, prefix, endsAt })
        .from(replaced)
        .where(and(inArray(keyId, [...keyIds]), gt(endsAt, at)))
        .orderBy(asc(endsAt), asc(prefix));
      const byKey = Map.groupBy(rows, (row) => row.keyId);
      return new Map(
        [...byKey].map(([id, found]) => [
          id,
          found.map((one) => ({ prefix: one.prefix, endsAt: one.endsAt.getTime() })),
        ]),
      );
    },
  };
}

async function replaceSecret(orm: Orm, { keys, digests, replaced }: AuthTables, rotation: Rotation): Promise<void> {
  const { id, hash, made, at, endsAt } = rotation;
  const [key] = await orm.select().from(keys).where(eq(keys.id, id)).for('update');
  if (key?.hash !== hash || key.revokedAt !== null) throw changedMeanwhile();
  const before = await orm.delete(digests).where(eq(digests.keyId, id)).returning({ digest: digests.digest });
  const ofKey = eq(replaced.keyId, id);
  if (endsAt > at) {
    await orm.delete(replaced).where(and(ofKey, lte(replaced.endsAt, at)));
    const working = await orm.selectDistinct({ prefix: replaced.prefix }).from(replaced).where(ofKey);
    if (working.length >= mostReplaced) throw tooManyReplaced();
    const found = [...new Set([hash, ...before.map(({ digest }) => digest)])];
    const row = { keyId: id, prefix: key.prefix, endsAt };
    await orm.insert(replaced).values(found.map((digest) => ({ ...row, digest })));
  } else await orm.delete(replaced).where(ofKey);
  if (made.digests.length > 0)
    await orm.insert(digests).values(made.digests.map((digest) => ({ ...digest, keyId: id })));
  await orm.update(keys).set({ hash: made.hash, prefix: made.prefix, rotatedAt: at }).where(eq(keys.id, id));
}

/** Where a replaced secret has one of these digests. */
export const replacedBy = (
  { keys, replaced }: Pick<AuthTables, 'keys' | 'replaced'>,
  hashes: readonly string[],
): SQL => (hashes.length === 0 ? sql`false` : and(eq(replaced.keyId, keys.id), inArray(replaced.digest, [...hashes]))!);

const changedMeanwhile = () =>
  new GatewayError('conflict', 'This key is revoked, or got another secret at the same time.', { field: 'key' });

const tooManyReplaced = () =>
  new GatewayError(
    'conflict',
    `${mostReplaced} earlier secrets of this key still work. Wait for the end of one, or rotate without an overlap.`,
    { field: 'key' },
  );
