/** The statements of the account desk: accounts and keys page by page, and changes of one of them. */
import { and, asc, desc, eq, gt, lt, or, type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../core/vocabulary.ts';
import type { TermsRow } from './key-terms.ts';
import { type AccountRow, isUuid } from './store.ts';
import { authTables } from './tables.ts';

export interface AccountFilter {
  readonly text?: string | undefined;
  readonly plan?: string | undefined;
  readonly disabled?: boolean | undefined;
}

/** A key as its account is shown it. */
export interface ShownKey extends TermsRow {
  id: string;
  accountId: string;
  prefix: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
}

export type DeskStore = ReturnType<typeof openDeskStore>;

export function openDeskStore({ orm, schema }: Database) {
  const { accounts, keys } = authTables(schema);
  const { hash: _hash, ...shown } = columnsOf(keys);
  const ofAccount = (accountId: string, id: string) =>
    isUuid(id) && isUuid(accountId) ? and(eq(keys.id, id), eq(keys.accountId, accountId)) : undefined;

  return {
    /** By name, those behind `after`. */
    accountsBehind({ text, plan, disabled }: AccountFilter, after: string | undefined, rows: number) {
      const wanted: (SQL | undefined)[] = [
        text === undefined ? undefined : named(text),
        plan === undefined ? undefined : eq(accounts.plan, plan),
        disabled === undefined ? undefined : eq(accounts.disabled, disabled),
        after === undefined ? undefined : gt(accounts.name, after),
      ];
      const found: Promise<AccountRow[]> = orm
        .select()
        .from(accounts)
        .where(and(...wanted))
        .orderBy(asc(accounts.name))
        .limit(rows);
      return found;

      function named(part: string): SQL | undefined {
        const inName = sql`position(lower(${part}::text) in lower(${accounts.name})) > 0`;
        return isUuid(part) ? or(eq(accounts.id, part), inName) : inName;
      }
    },

    async account(id: string): Promise<AccountRow | undefined> {
      if (!isUuid(id)) return undefined;
      const [found] = await orm.select().from(accounts).where(eq(accounts.id, id));
      return found;
    },

    /** false: the name is another account's. */
    async rename(accountId: string, name: string): Promise<boolean> {
      const taken = sql`exists (select 1 from ${accounts} as other where other.name = ${name} and other.id <> ${accountId}::uuid)`;
      const changed = await orm
        .update(accounts)
        .set({ name })
        .where(and(eq(accounts.id, accountId), sql`not ${taken}`))
        .returning({ id: accounts.id });
      return changed.length > 0;
    },

    /** Newest first, those behind the key that was made at `after.at`. */
    keysBehind(
      accountId: string | undefined,
      after: { readonly at: Date; readonly id: string } | undefined,
      rows: number,
    ): Promise<ShownKey[]> {
      const older =
        after === undefined
          ? undefined
          : or(lt(keys.createdAt, after.at), and(eq(keys.createdAt, after.at), lt(keys.id, after.id)));
      return orm
        .select(shown)
        .from(keys)
        .where(and(accountId === undefined ? undefined : eq(keys.accountId, accountId), older))
        .orderBy(desc(keys.createdAt), desc(keys.id))
        .limit(rows);
    },

    async key(accountId: string, id: string): Promise<(ShownKey & { hash: string }) | undefined> {
      const which = ofAccount(accountId, id);
      if (which === undefined) return undefined;
      const [found] = await orm
        .select({ ...shown, hash: keys.hash })
        .from(keys)
        .where(which);
      return found;
    },

    async changeKey(id: string, terms: TermsRow): Promise<void> {
      await orm.update(keys).set(terms).where(eq(keys.id, id));
    },
  };
}

function columnsOf(keys: ReturnType<typeof authTables>['keys']) {
  const { id, accountId, name, prefix, hash, models, expiresAt, revokedAt, createdAt, lastUsedAt } = keys;
  const { addresses, limits, capAmount, capEvery } = keys;
  const who = { id, accountId, name, prefix, hash, createdAt, lastUsedAt, revokedAt };
  return { ...who, models, expiresAt, addresses, limits, capAmount, capEvery };
}
