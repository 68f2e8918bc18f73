/** SQL of invitations: single use, for one address, for a week. */
import { and, desc, eq, gt, isNull, lt, or } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type Database, isUuid, type Orm } from '../../common/domain/database.ts';
import type {
  InvitationAdmin,
  InvitationView,
  MemberAdmin,
  MembersChanger,
} from '../../common/domain/organizations/members.ts';
import { type MemberRole, mayManage } from '../../common/domain/organizations/rights.ts';
import { type AuthTables, authTables } from '../tables.ts';
import { mostMembers, notIncluded, roleIn } from './store.ts';

const dayMs = 86_400_000;
const lastsMs = 7 * dayMs;
const keptMs = 30 * dayMs;
const mostWaiting = 100;

type Row = AuthTables['invitations']['$inferSelect'];

export function openInvitations(database: Database, clock: { now(): number }): InvitationAdmin {
  const { orm } = database;
  const tables = authTables(database.schema);
  const parts = { orm, tables, clock };
  return { ...reads(parts), ...changes(parts), accept: accepting(database, parts) };
}

interface Parts {
  readonly orm: Orm;
  readonly tables: AuthTables;
  readonly clock: { now(): number };
}

const waiting = ({ invitations }: AuthTables, at: Date) =>
  and(isNull(invitations.acceptedAt), gt(invitations.expiresAt, at));

function reads({ orm, tables, clock }: Parts): Pick<InvitationAdmin, 'list' | 'find' | 'byHash'> {
  const { invitations, accounts } = tables;
  const waits = () => waiting(tables, new Date(clock.now()));
  return {
    async list(accountId) {
      if (!isUuid(accountId)) return [];
      const since = new Date(clock.now() - keptMs);
      const rows = await orm
        .select()
        .from(invitations)
        .where(and(eq(invitations.accountId, accountId), or(waits(), gt(invitations.createdAt, since))))
        .orderBy(desc(invitations.createdAt), desc(invitations.id))
        .limit(500);
      return rows.map(viewOf);
    },
    async find(accountId, id) {
      if (!isUuid(accountId) || !isUuid(id)) return undefined;
      const which = and(eq(invitations.accountId, accountId), eq(invitations.id, id), waits());
      const [row] = await orm.select().from(invitations).where(which);
      return row && viewOf(row);
    },
    async byHash(hash) {
      const [row] = await orm
        .select({ invitation: invitations, account: accounts.name })
        .from(invitations)
        .innerJoin(accounts, eq(accounts.id, invitations.accountId))
        .where(and(eq(invitations.hash, hash), waits()));
      return row && { ...viewOf(row.invitation), account: row.account };
    },
  };
}

/** The changer's role, with the member's row locked. */
async function changersRole(orm: Orm, { members }: AuthTables, accountId: string, by: MembersChanger) {
  if ('role' in by) return by.role;
  const [row] = await orm
    .select({ role: members.role })
    .from(members)
    .where(and(eq(members.accountId, accountId), eq(members.person, by.person), isNull(members.leftAt)))
    .for('share');
  return roleIn(new Map(row === undefined ? [] : [[by.person, row.role]]), by);
}

function changes({ orm, tables, clock }: Parts): Pick<InvitationAdmin, 'create' | 'renew' | 'revoke'> {
  const { invitations } = tables;
  const now = () => new Date(clock.now());
  const owned = async (transaction: Orm, accountId: string, id: string, by: MembersChanger): Promise<Row> => {
    const role = isUuid(accountId) && isUuid(id) ? await changersRole(transaction, tables, accountId, by) : undefined;
    const which = and(eq(invitations.accountId, accountId), eq(invitations.id, id), waiting(tables, now()));
    const [row] = role === undefined ? [] : await transaction.select().from(invitations).where(which).for('update');
    if (row === undefined) throw new GatewayError('not_found', 'There is no such invitation.', { field: 'id' });
    if (!mayManage(role!, row.role)) throw notIncluded();
    return row;
  };
  return {
    create: (accountId, { email, role, hash }, by) =>
      inTransaction(orm, async (transaction) => {
        if (!mayManage(await changersRole(transaction, tables, accountId, by), role)) throw notIncluded();
        await makeRoom(transaction, tables, accountId, now());
        const which = and(eq(invitations.accountId, accountId), waiting(tables, now()), eq(invitations.email, email));
        if ((await transaction.$count(invitations, which)) > 0) throw full('This address has an invitation already.');
        const expiresAt = new Date(clock.now() + lastsMs);
        const invitedBy = 'person' in by ? by.person : null;
        const row = { accountId, email, role, hash, invitedBy, createdAt: now(), expiresAt };
        const [made] = await transaction.insert(invitations).values(row).returning();
        return viewOf(made!);
      }),

    renew: (accountId, id, hash, by) =>
      inTransaction(orm, async (transaction) => {
        const before = await owned(transaction, accountId, id, by);
        const expiresAt = new Date(clock.now() + lastsMs);
        await transaction.update(invitations).set({ hash, expiresAt }).where(eq(invitations.id, id));
        return { ...viewOf({ ...before, expiresAt }), before: before.hash };
      }),

    revoke: (accountId, id, by) =>
      inTransaction(orm, async (transaction) => {
        const { hash } = await owned(transaction, accountId, id, by);
        await transaction.delete(invitations).where(eq(invitations.id, id));
        return { hash };
      }),
  };
}

const inTransaction = <T>(orm: Orm, work: (transaction: Orm) => Promise<T>): Promise<T> =>
  orm.transaction((transaction) => work(transaction as unknown as Orm));

const full = (message: string) => new GatewayError('conflict', message, { field: 'email' });

/** Under the account's lock, so that invitations at once are counted one after the other. Forgets those that are long over. */
async function makeRoom(transaction: Orm, tables: AuthTables, accountId: string, at: Date): Promise<void> {
  const { accounts, invitations, members } = tables;
  await transaction.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).for('update');
  const old = and(lt(invitations.createdAt, new Date(at.getTime() - keptMs)), lt(invitations.expiresAt, at));
  await transaction.delete(invitations).where(and(eq(invitations.accountId, accountId), old));
  const waits = and(eq(invitations.accountId, accountId), waiting(tables, at));
  if ((await transaction.$count(invitations, waits)) >= mostWaiting)
    throw full(`At most ${mostWaiting} invitations wait; revoke one first.`);
  await refuseFull(transaction, members, accountId);
}

async function refuseFull(transaction: Orm, members: AuthTables['members'], accountId: string): Promise<void> {
  const present = and(eq(members.accountId, accountId), isNull(members.leftAt));
  if ((await transaction.$count(members, present)) < mostMembers) return;
  throw new GatewayError('conflict', `An account has at most ${mostMembers} members.`, { field: 'email' });
}

function accepting(database: Database, { tables, clock }: Parts): InvitationAdmin['accept'] {
  const { accounts, invitations, members } = tables;
  return async (hash, { person, email }) => {
    const at = new Date(clock.now());
    const [found] = await database.orm
      .select({ accountId: invitations.accountId })
      .from(invitations)
      .where(eq(invitations.hash, hash));
    if (found === undefined) return undefined;
    const { accountId } = found;
    return database.change('member', accountId, async (transaction) => {
      await transaction.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).for('update');
      // One statement: of two who come at once, the second finds it used.
      const [used] = await transaction
        .update(invitations)
        .set({ acceptedAt: at, acceptedBy: person })
        .where(and(eq(invitations.hash, hash), eq(invitations.email, email.toLowerCase()), waiting(tables, at)))
        .returning();
      if (used === undefined) return undefined;
      await refuseFull(transaction, members, accountId);
      const role = await rolesThen(transaction, tables, { ...used, person, at });
      const [account] = await transaction
        .select({ name: accounts.name })
        .from(accounts)
        .where(eq(accounts.id, accountId));
      return { accountId, name: account!.name, role };
    });
  };
}

/** A member stays what they are, unless they become an owner. */
async function rolesThen(
  transaction: Orm,
  { members }: AuthTables,
  { accountId, role, person, at }: Pick<Row, 'accountId' | 'role'> & { readonly person: string; readonly at: Date },
): Promise<MemberRole> {
  const which = and(eq(members.accountId, accountId), eq(members.person, person));
  const [row] = await transaction.select().from(members).where(which).for('update');
  const isMember = row !== undefined && row.leftAt === null;
  if (isMember && role !== 'owner') return row.role;
  if (row === undefined) await transaction.insert(members).values({ accountId, person, role, createdAt: at });
  else await transaction.update(members).set({ role, leftAt: null }).where(which);
  return role;
}

/** Becoming a member without an invitation: for those whom the account itself has named. */
export function openJoining(database: Database, now: () => Date): Pick<MemberAdmin, 'join'> {
  const tables = authTables(database.schema);
  const { accounts, members } = tables;
  return {
    async join(accountId, person, role) {
      if (!isUuid(accountId)) throw noAccount();
      await database.change('member', accountId, async (transaction) => {
        const which = eq(accounts.id, accountId);
        const [account] = await transaction.select({ id: accounts.id }).from(accounts).where(which).for('update');
        if (account === undefined) throw noAccount();
        await refuseFull(transaction, members, accountId);
        await rolesThen(transaction, tables, { accountId, role, person, at: now() });
      });
    },
  };
}

const noAccount = () => new GatewayError('not_found', 'There is no such account.', { field: 'account' });

function viewOf({ id, accountId, email, role, invitedBy, createdAt, expiresAt, acceptedAt }: Row): InvitationView {
  return {
    ...{ id, accountId, email, role },
    invitedBy: invitedBy ?? undefined,
    createdAt: createdAt.getTime(),
    expiresAt: expiresAt.getTime(),
    acceptedAt: acceptedAt?.getTime(),
  };
}
