/** SQL of account administration: accounts and keys page by page, and changes of one of them. */
import { and, asc, desc, eq, gt, inArray, isNotNull, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import type { KeyNames } from '../common/domain/admin/accounts.ts';
import { type Database, isUuid, type Orm } from '../common/domain/database.ts';
import type { TermsRow } from './key-terms.ts';
import { enterProject } from './projects/store.ts';
import { rotationStatements } from './rotation/store.ts';
import type { AccountRow } from './store.ts';
import { type AuthTables, authTables } from './tables.ts';

interface AccountFilter {
  readonly text?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly plan?: string | undefined;
  readonly disabled?: boolean | undefined;
}

/** A key as its account sees it. */
export interface KeyDetails extends TermsRow {
  id: string;
  accountId: string;
  prefix: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
  rotatedAt: Date | null;
  /** null: it is a service's. */
  person: string | null;
  access: string | null;
}

/** No row is newer; the database does not parse years of five digits. */
const lastMs = Date.UTC(9999, 11, 31);

export type AccountAdminStore = ReturnType<typeof openAccountAdminStore>;

export function openAccountAdminStore(database: Database) {
  const tables = authTables(database.schema);
  return {
    ...accountStatements(database.orm, tables),
    ...keyStatements(database, tables),
    ...keyReads(database.orm, tables),
    ...projectStatements(database, tables),
    replacedSecrets: rotationStatements(database, tables).replacedSecrets,
  };
}

function accountStatements(orm: Orm, { accounts }: AuthTables) {
  return {
    /** By name, those after `after`. */
    async accountsAfter({ text, ids = [], plan, disabled }: AccountFilter, after: string | undefined, rows: number) {
      // PostgreSQL text cannot hold NUL, and a query with it is an error.
      if ([text, plan, after].some((part) => part?.includes('\0'))) return [];
      const wanted: (SQL | undefined)[] = [
        text === undefined ? undefined : named(text),
        plan === undefined ? undefined : eq(accounts.plan, plan),
        disabled === undefined ? undefined : eq(accounts.disabled, disabled),
        after === undefined ? undefined : gt(accounts.name, after),
      ];
      const found: AccountRow[] = await orm
        .select()
        .from(accounts)
        .where(and(...wanted))
        .orderBy(asc(accounts.name))
        .limit(rows);
      return found;

      function named(part: string): SQL | undefined {
        const inName = sql`position(lower(${part}::text) in lower(${accounts.name})) > 0`;
        const wanted = isUuid(part) ? [...ids, part] : ids;
        return or(inName, wanted.length === 0 ? undefined : inArray(accounts.id, wanted));
      }
    },

    async account(id: string): Promise<AccountRow | undefined> {
      if (!isUuid(id)) return undefined;
      const [found] = await orm.select().from(accounts).where(eq(accounts.id, id));
      return found;
    },

    /** false: another account has the name. */
    async rename(accountId: string, name: string): Promise<boolean> {
      const taken = sql`exists (select 1 from ${accounts} as other where other.name = ${name} and other.id <> ${accountId}::uuid)`;
      try {
        const changed = await orm
          .update(accounts)
          .set({ name })
          .where(and(eq(accounts.id, accountId), sql`not ${taken}`))
          .returning({ id: accounts.id });
        return changed.length > 0;
      } catch (error) {
        // A concurrent statement took the name.
        if (isDuplicateName(error)) return false;
        throw error;
      }
    },
  };
}

/**
 * https://www.postgresql.org/docs/current/errcodes-appendix.html: unique_violation. The driver's error is the cause of
 * drizzle's.
 */
export function isDuplicateName(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as { code?: unknown }).code === '23505' || isDuplicateName(error.cause);
}

function keyStatements(database: Database, { keys, projects }: AuthTables) {
  const { orm } = database;
  const { hash: _hash, ...shown } = columnsOf(keys);
  const behind = (id: string, at: Date) => or(lt(keys.createdAt, at), and(eq(keys.createdAt, at), lt(keys.id, id)));
  const ofAccount = (accountId: string, id: string) =>
    isUuid(id) && isUuid(accountId) ? and(eq(keys.id, id), eq(keys.accountId, accountId)) : undefined;

  return {
    /** Newest first, those after the key that was created at `after.at`. */
    keysAfter(
      { accountId, person }: { readonly accountId: string | undefined; readonly person: string | undefined },
      after: { readonly at: Date; readonly id: string } | undefined,
      rows: number,
    ): Promise<KeyDetails[]> {
      const older = after === undefined ? undefined : behind(after.id, new Date(Math.min(+after.at, lastMs)));
      return orm
        .select(shown)
        .from(keys)
        .where(
          and(
            accountId === undefined ? undefined : eq(keys.accountId, accountId),
            person === undefined ? undefined : eq(keys.person, person),
            older,
          ),
        )
        .orderBy(desc(keys.createdAt), desc(keys.id))
        .limit(rows);
    },

    async key(accountId: string, id: string): Promise<(KeyDetails & { hash: string }) | undefined> {
      const which = ofAccount(accountId, id);
      if (which === undefined) return undefined;
      const [found] = await orm
        .select({ ...shown, hash: keys.hash })
        .from(keys)
        .where(which);
      return found;
    },

    /** Announces the change with its `hash`. */
    changeKey: (id: string, hash: string, terms: TermsRow): Promise<void> =>
      database.change('key', hash, async (transaction) => {
        const [key] = await transaction.select(shown).from(keys).where(eq(keys.id, id));
        if (key !== undefined && terms.project !== key.project)
          await enterProject(transaction, projects, { accountId: key.accountId, project: terms.project });
        await transaction.update(keys).set(terms).where(eq(keys.id, id));
      }),
  };
}

function keyReads(orm: Orm, { keys }: AuthTables) {
  return {
    /** Keys that expire between the two times and are not revoked, soonest first. */
    keysExpiring(from: Date, until: Date, rows: number): Promise<{ prefix: string; expiresAt: Date | null }[]> {
      return orm
        .select({ prefix: keys.prefix, expiresAt: keys.expiresAt })
        .from(keys)
        .where(and(isNull(keys.revokedAt), gt(keys.expiresAt, from), lt(keys.expiresAt, until)))
        .orderBy(asc(keys.expiresAt), asc(keys.id))
        .limit(rows);
    },

    /** The newest, revoked ones too. */
    async keyIdsOf(accountId: string, person: string, rows: number): Promise<string[]> {
      if (!isUuid(accountId)) return [];
      const found = await orm
        .select({ id: keys.id })
        .from(keys)
        .where(and(eq(keys.accountId, accountId), eq(keys.person, person)))
        .orderBy(desc(keys.createdAt), desc(keys.id))
        .limit(rows);
      return found.map(({ id }) => id);
    },

    /** Number of an account's keys that are not revoked. */
    countActiveKeys: (accountId: string): Promise<number> =>
      orm.$count(keys, and(eq(keys.accountId, accountId), isNull(keys.revokedAt))),
  };
}

function projectStatements({ orm }: Database, { keys, projects }: AuthTables) {
  return {
    /** Keys in projects, by project. */
    async keysInProjects(accountId: string | undefined, rows: number): Promise<{ id: string; project: string }[]> {
      if (accountId !== undefined && !isUuid(accountId)) return [];
      const owned = accountId === undefined ? undefined : eq(keys.accountId, accountId);
      const found = await orm
        .select({ id: keys.id, project: keys.project })
        .from(keys)
        .where(and(isNotNull(keys.project), owned))
        .orderBy(asc(keys.project), asc(keys.id))
        .limit(rows);
      return found.map(({ id, project }) => ({ id, project: project! }));
    },

    /** Projects by name, those without a key too. */
    async projectsNamed(accountId: string | undefined, rows: number): Promise<{ id: string; name: string }[]> {
      if (accountId !== undefined && !isUuid(accountId)) return [];
      const owned = accountId === undefined ? undefined : eq(projects.accountId, accountId);
      const named = orm.select({ id: projects.id, name: projects.name }).from(projects);
      return await named.where(owned).orderBy(asc(projects.name), asc(projects.id)).limit(rows);
    },

    async projectNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const known = ids.filter(isUuid);
      if (known.length === 0) return new Map();
      const named = orm.select({ id: projects.id, name: projects.name }).from(projects);
      return new Map((await named.where(inArray(projects.id, known))).map(({ id, name }) => [id, name]));
    },

    async namesOf(ids: readonly string[]): Promise<ReadonlyMap<string, KeyNames>> {
      const known = ids.filter(isUuid);
      if (known.length === 0) return new Map();
      const found = await orm
        .select({ id: keys.id, name: keys.name, project: keys.project })
        .from(keys)
        .where(inArray(keys.id, known));
      return new Map(found.map(({ id, name, project }) => [id, { name, project: project ?? undefined }]));
    },
  };
}

function columnsOf(keys: AuthTables['keys']) {
  const { id, accountId, name, prefix, hash, models, expiresAt, revokedAt, createdAt, lastUsedAt } = keys;
  const { addresses, limits, capAmount, capEvery, project, images, tags, regions, person, access, rotatedAt } = keys;
  const who = { id, accountId, name, prefix, hash, createdAt, lastUsedAt, revokedAt, rotatedAt, person, access };
  return { ...who, models, expiresAt, addresses, limits, capAmount, capEvery, project, images, tags, regions };
}
