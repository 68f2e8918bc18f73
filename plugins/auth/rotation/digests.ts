/** SQL of what keys are found by beside their hash while `auth.secret` changes. */
import { and, eq, sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { type Digest, noSecretMark } from '../key.ts';
import type { AuthTables } from '../tables.ts';

/** Keys per insert statement. */
const atOnce = 1_000;

/** A digest of the secret that had this hash when it was seen. */
export interface NotedDigest extends Digest {
  readonly of: string;
}

/** Keys by the secrets that find them. */
export function digestStatements(database: Database, { keys, digests }: AuthTables) {
  const { orm } = database;
  /** `isOriginal`: keys without digests are found too. */
  const needsAnother = (marks: readonly string[], isOriginal: boolean) => {
    const list = sql.join(
      marks.map((mark) => sql`${mark}`),
      sql`, `,
    );
    const unfound = sql`not exists (select from ${digests} where key_id = ${keys.id} and secret in (${list}))`;
    return isOriginal ? sql`${unfound} and exists (select from ${digests} where key_id = ${keys.id})` : unfound;
  };
  const isValid = sql`${keys.revokedAt} is null and ${keys.hash} not like ${`${noSecretMark}%`} and (${keys.expiresAt} is null or ${keys.expiresAt} > now())`;
  return {
    /** Counts the valid keys, and those among them that need another secret than these. */
    async countKeys(marks: readonly string[], isOriginal: boolean): Promise<{ all: number; left: number }> {
      const left = sql<number>`count(*) filter (where ${needsAnother(marks, isOriginal)})::int`;
      const [row] = await orm.select({ all: sql<number>`count(*)::int`, left }).from(keys).where(isValid);
      return row!;
    },

    async revokeLeft(marks: readonly string[], isOriginal: boolean): Promise<void> {
      const left = await orm
        .select({ id: keys.id, hash: keys.hash })
        .from(keys)
        .where(and(isValid, needsAnother(marks, isOriginal)));
      for (const { id, hash } of left)
        await database.change('key', hash, (transaction) =>
          transaction.update(keys).set({ revokedAt: sql`now()` }).where(eq(keys.id, id)),
        );
    },

    /** Leaves out what was noted of a secret that has been replaced since: it would find its key beyond its end. */
    async addDigests(added: readonly (readonly [keyId: string, digest: NotedDigest])[]): Promise<void> {
      for (let start = 0; start < added.length; start += atOnce) {
        const rows = added
          .slice(start, start + atOnce)
          .map(([id, { digest, secret, of }]) => sql`(${id}::uuid, ${of}::text, ${digest}::text, ${secret}::text)`);
        await orm.execute(sql`
          insert into ${digests} (digest, key_id, secret)
          select noted.digest, ${keys}.id, noted.secret
          from ${keys} join (values ${sql.join(rows, sql`, `)}) as noted (id, of, digest, secret)
            on ${keys}.id = noted.id and ${keys}.hash = noted.of
          for share of ${sql.identifier('keys')}
          on conflict do nothing`);
      }
    },
  };
}
