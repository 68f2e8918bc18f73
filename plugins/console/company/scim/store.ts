/** SQL of what a company's directory says. Every statement names the account. */
import { and, asc, count, eq, inArray, isNotNull, isNull } from 'drizzle-orm';
import type { Orm } from '../../../common/domain/database.ts';
import type { PeopleTables } from '../../people/tables.ts';
import type { Filter, Paging } from './shapes.ts';
import type { GroupRow, ScimTables, UserRow } from './tables.ts';

export type ScimStore = ReturnType<typeof openScimStore>;

export function openScimStore(orm: Orm, tables: ScimTables, people: PeopleTables) {
  return {
    ...tokenStatements(orm, tables),
    ...userStatements(orm, tables),
    ...groupStatements(orm, tables),
    ...memberStatements(orm, tables, people),
  };
}

function tokenStatements(orm: Orm, { tokens }: ScimTables) {
  return {
    async setToken(accountId: string, hash: string, at: Date): Promise<void> {
      const set = { hash, createdAt: at, lastUsedAt: null };
      await orm
        .insert(tokens)
        .values({ accountId, ...set })
        .onConflictDoUpdate({ target: tokens.accountId, set });
    },
    async removeToken(accountId: string): Promise<void> {
      await orm.delete(tokens).where(eq(tokens.accountId, accountId));
    },
    async tokenOf(accountId: string) {
      const [row] = await orm.select().from(tokens).where(eq(tokens.accountId, accountId));
      return row;
    },
    /** The account of a token. */
    async used(hash: string, at: Date): Promise<string | undefined> {
      const [row] = await orm
        .update(tokens)
        .set({ lastUsedAt: at })
        .where(eq(tokens.hash, hash))
        .returning({ accountId: tokens.accountId });
      return row?.accountId;
    },
  };
}

function userStatements(orm: Orm, { users }: ScimTables) {
  const present = (accountId: string) => and(eq(users.accountId, accountId), isNull(users.deletedAt));
  return {
    async user(accountId: string, id: string): Promise<UserRow | undefined> {
      const [row] = await orm
        .select()
        .from(users)
        .where(and(present(accountId), eq(users.id, id)));
      return row;
    },
    /** Deleted ones too. */
    async userNamed(accountId: string, userName: string): Promise<UserRow | undefined> {
      const [row] = await orm
        .select()
        .from(users)
        .where(and(eq(users.accountId, accountId), eq(users.userName, userName)));
      return row;
    },
    /** Deleted ones too. */
    async userOf(accountId: string, personId: string): Promise<UserRow | undefined> {
      const [row] = await orm
        .select()
        .from(users)
        .where(and(eq(users.accountId, accountId), eq(users.personId, personId)));
      return row;
    },
    async users(accountId: string, filter: Filter | undefined, { startIndex, count: limit }: Paging) {
      const where = and(present(accountId), filter && isUser(users, filter));
      const [total] = await orm.select({ rows: count() }).from(users).where(where);
      const rows = await orm
        .select()
        .from(users)
        .where(where)
        .orderBy(asc(users.createdAt), asc(users.id))
        .limit(limit)
        .offset(startIndex - 1);
      return { rows, total: total!.rows };
    },
    async countUsers(accountId: string): Promise<number> {
      return orm.$count(users, eq(users.accountId, accountId));
    },
    async saveUser(row: UserRow): Promise<void> {
      await orm.insert(users).values(row).onConflictDoUpdate({ target: users.id, set: row });
    },
    /** The longest deleted, where the account has as many as there may be. */
    async forgetDeleted(accountId: string, most: number): Promise<void> {
      const oldest = orm
        .select({ id: users.id })
        .from(users)
        .where(and(eq(users.accountId, accountId), isNotNull(users.deletedAt)))
        .orderBy(asc(users.deletedAt))
        .limit(most);
      await orm.delete(users).where(inArray(users.id, oldest));
    },
  };
}

function isUser(users: ScimTables['users'], { attribute, value }: Filter) {
  if (attribute === 'externalId') return eq(users.externalId, value);
  return attribute === 'id' ? eq(users.id, value) : eq(users.userName, value.toLowerCase());
}

function groupStatements(orm: Orm, { groups, groupMembers }: ScimTables) {
  const one = (accountId: string, id: string) => and(eq(groups.accountId, accountId), eq(groups.id, id));
  return {
    async group(accountId: string, id: string): Promise<GroupRow | undefined> {
      const [row] = await orm.select().from(groups).where(one(accountId, id));
      return row;
    },
    async groupNamed(accountId: string, name: string): Promise<GroupRow | undefined> {
      const [row] = await orm
        .select()
        .from(groups)
        .where(and(eq(groups.accountId, accountId), eq(groups.displayName, name)));
      return row;
    },
    async groups(accountId: string, filter: Filter | undefined, { startIndex, count: limit }: Paging) {
      const columns = { displayName: groups.displayName, externalId: groups.externalId, id: groups.id };
      const column = columns[(filter?.attribute ?? 'id') as keyof typeof columns];
      const where = and(eq(groups.accountId, accountId), filter && eq(column, filter.value));
      const [total] = await orm.select({ rows: count() }).from(groups).where(where);
      const rows = await orm
        .select()
        .from(groups)
        .where(where)
        .orderBy(asc(groups.createdAt), asc(groups.id))
        .limit(limit)
        .offset(startIndex - 1);
      return { rows, total: total!.rows };
    },
    countGroups: (accountId: string): Promise<number> => orm.$count(groups, eq(groups.accountId, accountId)),
    async saveGroup(row: GroupRow): Promise<void> {
      await orm.insert(groups).values(row).onConflictDoUpdate({ target: groups.id, set: row });
    },
    async removeGroup(accountId: string, id: string): Promise<void> {
      await orm.delete(groups).where(one(accountId, id));
    },
    /** By group. */
    async membersIn(groupIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
      if (groupIds.length === 0) return new Map();
      const rows = await orm
        .select()
        .from(groupMembers)
        .where(inArray(groupMembers.groupId, [...groupIds]))
        .orderBy(asc(groupMembers.userId));
      return new Map([...Map.groupBy(rows, (row) => row.groupId)].map(([id, of]) => [id, of.map((row) => row.userId)]));
    },
    async setMembers(groupId: string, userIds: readonly string[]): Promise<void> {
      await orm.transaction(async (inner) => {
        await inner.delete(groupMembers).where(eq(groupMembers.groupId, groupId));
        if (userIds.length > 0) await inner.insert(groupMembers).values(userIds.map((userId) => ({ groupId, userId })));
      });
    },
  };
}

function memberStatements(orm: Orm, { users, groups, groupMembers }: ScimTables, { session, user }: PeopleTables) {
  return {
    async usersAmong(accountId: string, ids: readonly string[]): Promise<readonly UserRow[]> {
      if (ids.length === 0) return [];
      return orm
        .select()
        .from(users)
        .where(and(eq(users.accountId, accountId), isNull(users.deletedAt), inArray(users.id, [...ids])));
    },
    /** Groups of the account by name and by the directory's own id; `any`: whether it has one. */
    async groupsOf(accountId: string, userId: string): Promise<{ readonly any: boolean; readonly names: string[] }> {
      const rows = await orm
        .select({ name: groups.displayName, externalId: groups.externalId })
        .from(groupMembers)
        .innerJoin(groups, eq(groups.id, groupMembers.groupId))
        .where(and(eq(groups.accountId, accountId), eq(groupMembers.userId, userId)));
      const names = rows.flatMap(({ name, externalId }) => (externalId === null ? [name] : [name, externalId]));
      return { any: rows.length > 0 || (await orm.$count(groups, eq(groups.accountId, accountId))) > 0, names };
    },
    async personAt(email: string) {
      const [row] = await orm
        .select({ id: user.id, role: user.role, verified: user.emailVerified })
        .from(user)
        .where(eq(user.email, email));
      return row;
    },
    /** Sessions that began at the provider of the account. */
    async endSessions(accountId: string, personId: string): Promise<void> {
      await orm.delete(session).where(and(eq(session.userId, personId), eq(session.companyAccountId, accountId)));
    },
  };
}
