/** SQL of projects. */
import { and, asc, eq, gt, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Database, isUuid, type Orm } from '../../common/domain/database.ts';
import { type AuthTables, authTables } from '../tables.ts';

export interface ProjectRow {
  id: string;
  accountId: string;
  name: string;
  owner: string | null;
  models: string[] | null;
  regions: string[] | null;
  createdAt: Date;
  archivedAt: Date | null;
}

export type ProjectTermsRow = Pick<ProjectRow, 'name' | 'owner' | 'models' | 'regions'>;

/** Archived ones too: calls keep the ids of all. */
const mostProjects = 1_000;

export type ProjectStore = ReturnType<typeof openProjectStore>;

export function openProjectStore(database: Database) {
  const { orm, schema } = database;
  const tables = authTables(schema);
  return { ...projectReads(orm, tables), ...projectChanges(database, tables) };
}

function projectReads(orm: Orm, { projects, keys }: AuthTables) {
  return {
    /** By name, those after `after`. */
    async list(accountId: string, archived: boolean | undefined, after: string | undefined, rows: number) {
      if (!isUuid(accountId) || after?.includes('\0')) return [];
      const state = archived === undefined ? undefined : (archived ? isNotNull : isNull)(projects.archivedAt);
      const later = after === undefined ? undefined : gt(projects.name, after);
      const found: ProjectRow[] = await orm
        .select()
        .from(projects)
        .where(and(eq(projects.accountId, accountId), state, later))
        .orderBy(asc(projects.name))
        .limit(rows);
      return found;
    },

    async find(accountId: string, by: { readonly id: string } | { readonly name: string }) {
      if (!isUuid(accountId) || ('id' in by && !isUuid(by.id)) || ('name' in by && by.name.includes('\0')))
        return undefined;
      const which = 'id' in by ? eq(projects.id, by.id) : eq(projects.name, by.name);
      const [found] = await orm
        .select()
        .from(projects)
        .where(and(eq(projects.accountId, accountId), which));
      return found satisfies ProjectRow | undefined;
    },

    /** Keys that are not revoked, by the name of their project. */
    async keysOf(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
      if (names.length === 0) return new Map();
      const found = await orm
        .select({ project: keys.project, keys: sql<number>`count(*)::int` })
        .from(keys)
        .where(and(eq(keys.accountId, accountId), inArray(keys.project, [...names]), isNull(keys.revokedAt)))
        .groupBy(keys.project);
      return new Map(found.map((row) => [row.project!, row.keys]));
    },

    async namesOf(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const known = ids.filter(isUuid);
      if (known.length === 0 || !isUuid(accountId)) return new Map();
      const found = await orm
        .select({ id: projects.id, name: projects.name })
        .from(projects)
        .where(and(eq(projects.accountId, accountId), inArray(projects.id, known)));
      return new Map(found.map(({ id, name }) => [id, name]));
    },
  };
}

function projectChanges(database: Database, { projects, keys }: AuthTables) {
  const { orm } = database;
  const one = (accountId: string, id: string) => and(eq(projects.accountId, accountId), eq(projects.id, id));
  return {
    /** undefined: the name is taken. */
    async insert(accountId: string, terms: ProjectTermsRow): Promise<ProjectRow | undefined> {
      await checkRoom(orm, projects, accountId);
      const [made] = await orm
        .insert(projects)
        .values({ accountId, ...terms })
        .onConflictDoNothing()
        .returning();
      return made;
    },

    /** Its keys go with its name. Announced by the account. */
    change: (accountId: string, id: string, terms: ProjectTermsRow): Promise<ProjectRow | undefined> =>
      database.change('account', accountId, async (transaction) => {
        const [before] = await transaction
          .select({ name: projects.name })
          .from(projects)
          .where(one(accountId, id))
          .for('update');
        const [changed] = await transaction.update(projects).set(terms).where(one(accountId, id)).returning();
        if (before !== undefined && before.name !== terms.name)
          await transaction
            .update(keys)
            .set({ project: terms.name })
            .where(and(eq(keys.accountId, accountId), eq(keys.project, before.name)));
        return changed;
      }),

    /** A second time keeps the first one. Announced by the account. */
    setArchived: (accountId: string, id: string, at: Date | null): Promise<ProjectRow | undefined> =>
      database.change('account', accountId, async (transaction) => {
        const archivedAt = at === null ? null : sql`coalesce(${projects.archivedAt}, ${at.toISOString()}::timestamptz)`;
        const [changed] = await transaction.update(projects).set({ archivedAt }).where(one(accountId, id)).returning();
        return changed;
      }),
  };
}

async function checkRoom(orm: Orm, projects: AuthTables['projects'], accountId: string): Promise<void> {
  if ((await orm.$count(projects, eq(projects.accountId, accountId))) < mostProjects) return;
  throw new GatewayError('conflict', `An account has at most ${mostProjects} projects.`, { field: 'project' });
}

/**
 * Before a key gets into a project, in the transaction that puts it there: it begins here if there is none of the name.
 * Throws `conflict` where it is archived.
 */
export async function enterProject(
  transaction: Orm,
  projects: AuthTables['projects'],
  { accountId, project: name }: { readonly accountId: string; readonly project: string | null },
): Promise<void> {
  if (name === null) return;
  const [found] = await transaction
    .select({ archivedAt: projects.archivedAt })
    .from(projects)
    .where(and(eq(projects.accountId, accountId), eq(projects.name, name)))
    // So that it is not archived or called another name before the key is in it.
    .for('share');
  if (found === undefined) {
    await checkRoom(transaction, projects, accountId);
    await transaction.insert(projects).values({ accountId, name }).onConflictDoNothing();
  } else if (found.archivedAt !== null)
    throw new GatewayError('conflict', `The project "${name}" is archived; restore it first, or choose another.`, {
      field: 'project',
      code: 'project_archived',
    });
}
