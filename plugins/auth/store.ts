/** SQL of accounts, keys and settings. */
import { and, asc, eq, isNull, or, type SQL, sql } from 'drizzle-orm';
import { type Database, isUuid, type Orm } from '../common/domain/database.ts';
import type { Limits } from '../common/domain/plans.ts';
import type { Digest } from './key.ts';
import type { TermsRow } from './key-terms.ts';
import { enterProject } from './projects/store.ts';
import { digestStatements } from './rotation/digests.ts';
import { replacedBy, rotationStatements } from './rotation/store.ts';
import { type AuthTables, authTables } from './tables.ts';

export interface AccountRow {
  id: string;
  name: string;
  plan: string;
  disabled: boolean;
  /** The account's own price ratio; null: 1. */
  multiplier: string | null;
  createdAt: Date;
  /** null: the plan does not end. */
  planEndsAt: Date | null;
  /** null: what the operator's settings say. */
  retention: 'none' | null;
}

/** A key for lists, without the key and its hash. */
export interface KeyRow extends TermsRow {
  id: string;
  account: string;
  prefix: string;
  revokedAt: Date | null;
  createdAt: Date;
  lastUsedAt: Date | null;
  rotatedAt: Date | null;
}

/** The columns of a key and its account that authentication reads. */
export interface ValidKey {
  hash: string;
  keyId: string;
  accountId: string;
  plan: string;
  planEndsAt: Date | null;
  disabled: boolean;
  multiplier: string | null;
  retention: 'none' | null;
  models: string[] | null;
  expiresAt: Date | null;
  addresses: string[] | null;
  limits: Limits | null;
  capAmount: bigint | null;
  capEvery: string | null;
  images: string | null;
  project: string | null;
  projectId: string | null;
  projectModels: string[] | null;
  projectRegions: string[] | null;
  projectArchivedAt: Date | null;
  person: string | null;
  access: string | null;
  tags: string[] | null;
  regions: string[] | null;
  /** By which a replaced secret was found, and until when it works; null: the key's own was. */
  replacedDigest: string | null;
  replacedEndsAt: Date | null;
}

/** What finds a key again, with its project. */
export interface FoundKey {
  id: string;
  hash: string;
  accountId: string;
  project: string | null;
}

export interface NewKey extends TermsRow {
  accountId: string;
  prefix: string;
  hash: string;
  createdAt: Date;
  /** null: it is a service's. */
  person: string | null;
  /** null: it is for calls. */
  access: string | null;
}

/** Keys per update statement of last uses. */
const touchBatch = 1_000;

export type Store = ReturnType<typeof openStore>;

/** Opens the statements on one gateway's tables. Database errors are thrown unchanged. */
export function openStore(database: Database) {
  const { orm, schema } = database;
  const tables = authTables(schema);
  return {
    ...accountStatements(database, tables),
    ...keyReads(database, tables),
    ...keyLists(database, tables),
    ...keyStatements(database, tables),
    ...keyUses(orm, tables),
    ...digestStatements(database, tables),
    ...rotationStatements(database, tables),
    ...settingStatements(orm, tables),
  };
}

function accountStatements(database: Database, { accounts }: AuthTables) {
  const { orm } = database;
  const byIdOrName = (text: string): SQL | undefined =>
    isUuid(text) ? or(eq(accounts.id, text), eq(accounts.name, text)) : eq(accounts.name, text);

  /** Announced, so that no process relies on its cache. */
  const change = (
    accountId: string,
    values: Partial<Pick<AccountRow, 'disabled' | 'multiplier' | 'retention'>>,
  ): Promise<void> =>
    database.change('account', accountId, async (transaction) => {
      await transaction.update(accounts).set(values).where(eq(accounts.id, accountId));
    });

  return {
    /** undefined when the name is taken. */
    async insertAccount(row: { name: string; plan: string; createdAt: Date }): Promise<AccountRow | undefined> {
      const [inserted] = await orm.insert(accounts).values(row).onConflictDoNothing().returning();
      return inserted;
    },

    async findAccount(idOrName: string): Promise<AccountRow | undefined> {
      const [found] = await orm.select().from(accounts).where(byIdOrName(idOrName)).limit(1);
      return found;
    },

    listAccounts: (): Promise<AccountRow[]> => orm.select().from(accounts).orderBy(asc(accounts.name)),

    setDisabled: (accountId: string, disabled: boolean) => change(accountId, { disabled }),

    setMultiplier: (accountId: string, multiplier: string | null) => change(accountId, { multiplier }),

    setRetention: (accountId: string, retention: 'none' | null) => change(accountId, { retention }),

    /** In the caller's transaction. */
    async setPlan(transaction: Orm, accountId: string, plan: string, planEndsAt: Date | null): Promise<void> {
      await transaction.update(accounts).set({ plan, planEndsAt }).where(eq(accounts.id, accountId));
    },
  };
}

function restrictionsOf(keys: AuthTables['keys']) {
  const { models, expiresAt, addresses, limits, capAmount, capEvery, images, project, tags, regions } = keys;
  return { models, expiresAt, addresses, limits, capAmount, capEvery, images, project, tags, regions };
}

/** The project's id. It begins here if there is none. */
async function projectNamed(
  orm: Orm,
  projects: AuthTables['projects'],
  { accountId, project: name }: { readonly accountId: string; readonly project: string },
): Promise<string> {
  const [row] = await orm
    .insert(projects)
    .values({ accountId, name })
    .onConflictDoUpdate({ target: [projects.accountId, projects.name], set: { name } })
    .returning({ id: projects.id });
  return row!.id;
}

/** Keys with what restricts them, and their accounts. */
function keyReads({ orm }: Database, { accounts, keys, projects, digests, replaced }: AuthTables) {
  const findValid = async (which: SQL, hashes: readonly string[]): Promise<ValidKey | undefined> => {
    const [found] = await orm
      .select({
        hash: keys.hash,
        keyId: keys.id,
        accountId: accounts.id,
        plan: accounts.plan,
        planEndsAt: accounts.planEndsAt,
        disabled: accounts.disabled,
        multiplier: accounts.multiplier,
        retention: accounts.retention,
        person: keys.person,
        access: keys.access,
        projectId: projects.id,
        projectModels: projects.models,
        projectRegions: projects.regions,
        projectArchivedAt: projects.archivedAt,
        replacedDigest: replaced.digest,
        replacedEndsAt: replaced.endsAt,
        ...restrictionsOf(keys),
      })
      .from(keys)
      .innerJoin(accounts, eq(accounts.id, keys.accountId))
      .leftJoin(projects, and(eq(projects.accountId, keys.accountId), eq(projects.name, keys.project)))
      .leftJoin(replaced, replacedBy({ keys, replaced }, hashes))
      .where(and(which, isNull(keys.revokedAt)));
    const { accountId, project = null, projectId } = found ?? {};
    if (found === undefined || project === null || projectId !== null) return found;
    return { ...found, projectId: await projectNamed(orm, projects, { accountId: accountId!, project }) };
  };
  return {
    /** The key with one of these hashes or digests, unless it is revoked. The caller checks when it and its secret end. */
    findValidKey(...hashes: [string, ...string[]]) {
      const list = sql`(${sql.join(
        hashes.map((hash) => sql`${hash}`),
        sql`, `,
      )})`;
      return findValid(
        sql`${keys.id} in (select id from ${keys} where hash in ${list}
          union all select key_id from ${digests} where digest in ${list}
          union all select key_id from ${replaced} where digest in ${list})`,
        hashes,
      );
    },

    findValidKeyById: async (id: string) => (isUuid(id) ? findValid(eq(keys.id, id), []) : undefined),
  };
}

function keyLists({ orm }: Database, { accounts, keys }: AuthTables) {
  return {
    /** All keys, or those of one account, oldest first. */
    listKeys: (accountId: string | undefined): Promise<KeyRow[]> =>
      orm
        .select({
          id: keys.id,
          account: accounts.name,
          name: keys.name,
          prefix: keys.prefix,
          revokedAt: keys.revokedAt,
          createdAt: keys.createdAt,
          lastUsedAt: keys.lastUsedAt,
          rotatedAt: keys.rotatedAt,
          ...restrictionsOf(keys),
        })
        .from(keys)
        .innerJoin(accounts, eq(accounts.id, keys.accountId))
        .where(accountId === undefined ? undefined : eq(keys.accountId, accountId))
        .orderBy(asc(keys.createdAt), asc(keys.id)),
  };
}

function keyStatements(database: Database, { keys, digests, projects }: AuthTables) {
  const { orm } = database;
  const named = (text: string) =>
    isUuid(text) ? eq(keys.id, text) : or(eq(keys.prefix, text), and(eq(keys.name, text), isNull(keys.revokedAt)));

  return {
    async insertKey(row: NewKey, own: readonly Digest[]): Promise<string> {
      const insert = async (runner: Orm) => {
        await enterProject(runner, projects, row);
        const [inserted] = await runner.insert(keys).values(row).returning({ id: keys.id });
        return inserted!.id;
      };
      if (own.length === 0 && row.project === null) return insert(orm);
      return orm.transaction(async (transaction) => {
        const keyId = await insert(transaction);
        if (own.length > 0) await transaction.insert(digests).values(own.map((digest) => ({ ...digest, keyId })));
        return keyId;
      });
    },

    /** By id, by prefix, or by name those that are not revoked. */
    findKeys: (text: string): Promise<FoundKey[]> =>
      orm
        .select({ id: keys.id, hash: keys.hash, accountId: keys.accountId, project: keys.project })
        .from(keys)
        .where(named(text)),

    /** Announced by `hash`: calls are attributed to the project from then on. */
    setProject: (
      { id, hash, accountId, project: before }: FoundKey,
      project: string | null,
    ): Promise<{ id: string; prefix: string; project: string | null }> =>
      database.change('key', hash, async (transaction) => {
        if (project !== before) await enterProject(transaction, projects, { accountId, project });
        const [row] = await transaction
          .update(keys)
          .set({ project })
          .where(eq(keys.id, id))
          .returning({ id: keys.id, prefix: keys.prefix, project: keys.project });
        return row!;
      }),

    /** Revokes once, and announces it by `hash`; a second revocation keeps the first time. */
    async revokeKey(id: string, hash: string, at: Date): Promise<{ prefix: string; revokedAt: Date }> {
      const row = await database.change('key', hash, async (transaction) => {
        const [revoked] = await transaction
          .update(keys)
          .set({ revokedAt: sql`coalesce(${keys.revokedAt}, ${at.toISOString()}::timestamptz)` })
          .where(eq(keys.id, id))
          .returning({ prefix: keys.prefix, revokedAt: keys.revokedAt, hash: keys.hash });
        return revoked!;
      });
      // It got another secret since its hash was read.
      if (row.hash !== hash) await database.announce('key', row.hash);
      return { prefix: row.prefix, revokedAt: row.revokedAt! };
    },
  };
}

function keyUses(orm: Database['orm'], { keys }: AuthTables) {
  return {
    /** Writes when keys were last used. An older time never overwrites a newer one. */
    async touchKeys(uses: readonly (readonly [keyId: string, atMs: number])[]): Promise<void> {
      for (let start = 0; start < uses.length; start += touchBatch) {
        const rows = uses
          .slice(start, start + touchBatch)
          .map(([id, atMs]) => sql`(${id}::uuid, ${new Date(atMs).toISOString()}::timestamptz)`);
        await orm.execute(sql`
          update ${keys} set last_used_at = greatest(${keys.lastUsedAt}, used.at)
          from (values ${sql.join(rows, sql`, `)}) as used (id, at)
          where ${keys.id} = used.id`);
      }
    },
  };
}

function settingStatements(orm: Database['orm'], { settings }: AuthTables) {
  return {
    /** The setting's value; sets it to `value` if there is none. The first writer wins. */
    async getOrSetSetting(name: string, value: string): Promise<string> {
      await orm.insert(settings).values({ name, value }).onConflictDoNothing();
      const [row] = await orm.select({ value: settings.value }).from(settings).where(eq(settings.name, name));
      return row!.value;
    },

    async findSetting(name: string): Promise<string | undefined> {
      const [row] = await orm.select({ value: settings.value }).from(settings).where(eq(settings.name, name));
      return row?.value;
    },

    async setSetting(name: string, value: string): Promise<void> {
      await orm.insert(settings).values({ name, value }).onConflictDoUpdate({ target: settings.name, set: { value } });
    },

    async removeSetting(name: string): Promise<void> {
      await orm.delete(settings).where(eq(settings.name, name));
    },
  };
}
