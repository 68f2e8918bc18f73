/** SQL of members: who is in which account, with which role. */
import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Database, isUuid, type Orm } from '../../common/domain/database.ts';
import type { LeftKeys, MembersChanger, MemberView } from '../../common/domain/organizations/members.ts';
import { includes, type MemberRole, mayManage } from '../../common/domain/organizations/rights.ts';
import { type AuthTables, authTables } from '../tables.ts';

export const mostMembers = 500;
const mostAccounts = 100;

type Members = AuthTables['members'];

export function openMemberStore(database: Database, now: () => Date) {
  const tables = authTables(database.schema);
  const { orm } = database;
  return { ...memberReads(orm, tables, now), ...memberLists(orm, tables), ...memberChanges(database, tables, now) };
}

const isIn = ({ accountId, leftAt }: Members, account: string) => and(eq(accountId, account), isNull(leftAt));

function memberReads(orm: Orm, { accounts, members }: AuthTables, now: () => Date) {
  const rowOf = async (accountId: string, person: string) => {
    if (!isUuid(accountId)) return undefined;
    const [row] = await orm
      .select({ role: members.role, leftAt: members.leftAt })
      .from(members)
      .where(and(eq(members.accountId, accountId), eq(members.person, person)));
    return row;
  };
  return {
    async roleOf(accountId: string, person: string): Promise<MemberRole | undefined> {
      const row = await rowOf(accountId, person);
      return row?.leftAt === null ? row.role : undefined;
    },

    async roleAtHome(accountId: string, person: string): Promise<MemberRole | undefined> {
      const row = await rowOf(accountId, person);
      if (row !== undefined) return row.leftAt === null ? row.role : undefined;
      if (!isUuid(accountId)) return undefined;
      const owner = { accountId, person, role: 'owner', home: true, createdAt: now() } as const;
      await orm.insert(members).values(owner).onConflictDoNothing();
      const settled = await rowOf(accountId, person);
      return settled?.leftAt === null ? settled.role : undefined;
    },

    accountsOf: (person: string) =>
      orm
        .select({ accountId: accounts.id, name: accounts.name, role: members.role })
        .from(members)
        .innerJoin(accounts, eq(accounts.id, members.accountId))
        .where(and(eq(members.person, person), isNull(members.leftAt)))
        .orderBy(asc(accounts.name))
        .limit(mostAccounts),
  };
}

function memberLists(orm: Orm, { members, keys }: AuthTables) {
  return {
    async list(accountId: string): Promise<readonly MemberView[]> {
      if (!isUuid(accountId)) return [];
      const rows = await orm
        .select({
          ...{ person: members.person, role: members.role, createdAt: members.createdAt },
          keys: sql<number>`count(*) filter (where ${keys.id} is not null and ${keys.revokedAt} is null)::int`,
          usedAt: sql<Date | null>`max(${keys.lastUsedAt})`.mapWith(keys.lastUsedAt),
        })
        .from(members)
        .leftJoin(keys, and(eq(keys.accountId, members.accountId), eq(keys.person, members.person)))
        .where(isIn(members, accountId))
        .groupBy(members.id)
        .orderBy(asc(members.createdAt), asc(members.person))
        .limit(mostMembers);
      return rows.map(({ createdAt, usedAt, ...row }) => ({
        ...row,
        since: createdAt.getTime(),
        keysUsedAt: usedAt?.getTime(),
      }));
    },

    async peopleOf(accountIds: readonly string[], roles: readonly MemberRole[]) {
      const known = accountIds.filter(isUuid);
      if (known.length === 0) return new Map<string, string[]>();
      const rows = await orm
        .select({ accountId: members.accountId, person: members.person })
        .from(members)
        .where(and(inArray(members.accountId, known), inArray(members.role, [...roles]), isNull(members.leftAt)))
        .orderBy(asc(members.createdAt), asc(members.person));
      const byAccount = Map.groupBy(rows, (row) => row.accountId);
      return new Map([...byAccount].map(([id, found]) => [id, found.map(({ person }) => person)]));
    },
  };
}

/** Locks the owners' rows too, so that of two owners who go at once one stays. */
async function lockedRoles(orm: Orm, members: Members, accountId: string): Promise<ReadonlyMap<string, MemberRole>> {
  if (!isUuid(accountId)) return new Map();
  const rows = await orm
    .select({ person: members.person, role: members.role })
    .from(members)
    .where(isIn(members, accountId))
    .orderBy(asc(members.person))
    .for('update');
  return new Map(rows.map(({ person, role }) => [person, role]));
}

export function roleIn(roles: ReadonlyMap<string, MemberRole>, by: MembersChanger): MemberRole {
  const role = 'role' in by ? by.role : roles.get(by.person);
  if (role === undefined) throw notIncluded();
  return role;
}

export const notIncluded = () =>
  new GatewayError('forbidden', 'Your role in this account does not include this.', { code: 'role_not_included' });
const noMemberThere = () => new GatewayError('not_found', 'There is no such member.', { field: 'id' });

function keepAnOwner(roles: ReadonlyMap<string, MemberRole>, person: string): void {
  if (roles.get(person) !== 'owner') return;
  if ([...roles].some(([other, role]) => role === 'owner' && other !== person)) return;
  throw new GatewayError('conflict', 'An account has an owner: make somebody else one first.', {
    field: 'id',
    code: 'last_owner',
  });
}

function memberChanges(database: Database, tables: AuthTables, now: () => Date) {
  const { members, keys } = tables;
  const one = (accountId: string, person: string) =>
    and(eq(members.accountId, accountId), eq(members.person, person), isNull(members.leftAt));
  return {
    async setRole(accountId: string, person: string, role: MemberRole, by: MembersChanger): Promise<void> {
      const hashes = await database.change('member', accountId, async (transaction) => {
        const roles = await lockedRoles(transaction, members, accountId);
        const own = roleIn(roles, by);
        const before = roles.get(person);
        if (before === undefined) throw noMemberThere();
        if (!mayManage(own, before) || !mayManage(own, role)) throw notIncluded();
        if (role !== 'owner') keepAnOwner(roles, person);
        await withdraw(transaction, tables, accountId, person);
        await transaction.update(members).set({ role }).where(one(accountId, person));
        return includes(role, 'allKeys') ? [] : endAdministration(transaction, keys, { accountId, person, at: now() });
      });
      for (const { hash } of hashes) await database.announce('key', hash);
    },

    async remove(accountId: string, person: string, left: LeftKeys, by: MembersChanger): Promise<void> {
      const hashes = await database.change('account', accountId, async (transaction) => {
        const roles = await lockedRoles(transaction, members, accountId);
        const own = roleIn(roles, by);
        const before = roles.get(person);
        if (before === undefined) throw noMemberThere();
        const isOwn = 'person' in by && by.person === person;
        if (!isOwn && !mayManage(own, before)) throw notIncluded();
        const receiver = receiverOf(roles, person, left);
        keepAnOwner(roles, person);
        const gone = { accountId, person, at: now() };
        await end(transaction, tables, gone);
        return passKeys(transaction, keys, gone, receiver);
      });
      await database.announce('member', accountId);
      // The account's change lets them be read again before their next use; this one forgets them where the database is away.
      for (const { hash } of hashes) await database.announce('key', hash);
    },
  };
}

interface Receiver {
  readonly person: string;
  readonly role: MemberRole;
}

/** Who gets the keys of somebody who goes; undefined: they are revoked. */
function receiverOf(roles: ReadonlyMap<string, MemberRole>, person: string, left: LeftKeys): Receiver | undefined {
  if (left === 'revoke') return undefined;
  const role = left.handTo === person ? undefined : roles.get(left.handTo);
  if (role === undefined) throw new GatewayError('not_found', 'Keys go to a member who stays.', { field: 'keys' });
  if (includes(role, 'keys')) return { person: left.handTo, role };
  throw new GatewayError('conflict', 'Keys go to somebody who may have keys of their own.', { field: 'keys' });
}

/** Resolves with the hashes of the keys that have changed. */
async function passKeys(transaction: Orm, keys: AuthTables['keys'], gone: Leaving, receiver: Receiver | undefined) {
  const isAdministrator = receiver !== undefined && includes(receiver.role, 'allKeys');
  const ended = isAdministrator ? [] : await endAdministration(transaction, keys, gone);
  const theirs = and(eq(keys.accountId, gone.accountId), eq(keys.person, gone.person), isNull(keys.revokedAt));
  const change = receiver === undefined ? { revokedAt: gone.at } : { person: receiver.person };
  return [...ended, ...(await transaction.update(keys).set(change).where(theirs).returning({ hash: keys.hash }))];
}

/** Keys of the organization administer it, so they go with the role that may. */
const endAdministration = (transaction: Orm, keys: AuthTables['keys'], { accountId, person, at }: Leaving) =>
  transaction
    .update(keys)
    .set({ revokedAt: at })
    .where(
      and(
        ...[eq(keys.accountId, accountId), eq(keys.person, person)],
        ...[eq(keys.access, 'organization'), isNull(keys.revokedAt)],
      ),
    )
    .returning({ hash: keys.hash });

interface Leaving {
  readonly accountId: string;
  readonly person: string;
  readonly at: Date;
}

/** Whom they have invited does not join any more by what they may no longer do. */
async function withdraw(transaction: Orm, { invitations }: AuthTables, accountId: string, person: string) {
  const theirs = and(eq(invitations.accountId, accountId), eq(invitations.invitedBy, person));
  await transaction.delete(invitations).where(and(theirs, isNull(invitations.acceptedAt)));
}

async function end(transaction: Orm, tables: AuthTables, { accountId, person, at }: Leaving) {
  const { members, projects } = tables;
  await withdraw(transaction, tables, accountId, person);
  const row = and(eq(members.accountId, accountId), eq(members.person, person));
  await transaction.delete(members).where(and(row, eq(members.home, false)));
  await transaction.update(members).set({ leftAt: at }).where(row);
  await transaction
    .update(projects)
    .set({ owner: null })
    .where(and(eq(projects.accountId, accountId), eq(projects.owner, person)));
}
