/** Every statement on people and their sessions that better-auth does not make. */
import { and, count, desc, eq, gt, ilike, inArray, isNull, lt, max, ne, or, sql } from 'drizzle-orm';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Role } from '../actor.ts';
import type { Owner, PersonView } from '../people.ts';
import { cursorOf, readCursor } from './cursor.ts';
import type { PeopleTables } from './tables.ts';

export interface SessionPerson {
  readonly id: string;
  readonly email: string;
  readonly role: Role;
  readonly chosen: string | null;
  /** The account that the session is for alone. */
  readonly company: string | null;
}

export type PeopleStore = ReturnType<typeof openPeopleStore>;

export function openPeopleStore(orm: Orm, tables: PeopleTables) {
  return {
    ...listStatements(orm, tables),
    ...changeStatements(orm, tables),
    ...accountStatements(orm, tables),
    ...sessionStatements(orm, tables),
    seenOf: seenOf(orm, tables),
  };
}

function listStatements(orm: Orm, { user, session }: PeopleTables) {
  const seenAt = orm
    .select({ at: sql<Date | null>`max(${session.updatedAt})`.mapWith(session.updatedAt).as('seen_at') })
    .from(session)
    .where(eq(session.userId, user.id));
  const columns = {
    id: user.id,
    email: user.email,
    name: user.name,
    role: user.role,
    blocked: user.blocked,
    emailVerified: user.emailVerified,
    twoFactor: user.twoFactorEnabled,
    accountId: user.gatewayAccountId,
    createdAt: user.createdAt,
    seenAt: sql<Date | null>`(${seenAt})`.mapWith(session.updatedAt),
  };
  return {
    async find(personId: string): Promise<PersonView | undefined> {
      const [row] = await orm.select(columns).from(user).where(eq(user.id, personId));
      return row === undefined ? undefined : view(row);
    },

    async search(
      { text, role }: { readonly text?: string | undefined; readonly role?: Role | undefined },
      { limit, after }: PageRequest,
    ): Promise<Page<PersonView>> {
      const part = text === undefined ? undefined : `%${text.replace(/[\\%_]/g, '\\$&')}%`;
      const cursor = readCursor(after);
      const rows = await orm
        .select(columns)
        .from(user)
        .where(
          and(
            part === undefined ? undefined : or(ilike(user.name, part), ilike(user.email, part), eq(user.id, text!)),
            role === undefined ? undefined : eq(user.role, role),
            cursor === undefined
              ? undefined
              : sql`(${user.createdAt}, ${user.id}) < (${cursor.at.toISOString()}::timestamptz, ${cursor.id})`,
          ),
        )
        .orderBy(desc(user.createdAt), desc(user.id))
        .limit(limit + 1);
      const shown = rows.slice(0, limit).map(view);
      const last = shown.at(-1);
      return { rows: shown, next: rows.length > limit ? cursorOf(last!.createdAt, last!.id) : undefined };
    },

    async operators(): Promise<number> {
      const [row] = await orm
        .select({ operators: count() })
        .from(user)
        .where(and(eq(user.role, 'operator'), eq(user.blocked, false)));
      return row!.operators;
    },
  };
}

function changeStatements(orm: Orm, { user, account }: PeopleTables) {
  return {
    /** undefined: the address is taken. */
    async insert(
      transaction: Orm,
      row: { id: string; email: string; name: string; role: Role; at: Date; password?: string },
    ): Promise<string | undefined> {
      const { id, email, name, role, at, password } = row;
      const person = { id, email, name, role, emailVerified: true, createdAt: at, updatedAt: at };
      const [made] = await transaction.insert(user).values(person).onConflictDoNothing().returning({ id: user.id });
      if (made === undefined) return undefined;
      if (password !== undefined) {
        const identity = { id, accountId: id, providerId: 'credential', userId: id, password };
        await transaction.insert(account).values({ ...identity, createdAt: at, updatedAt: at });
      }
      return made.id;
    },

    async hasPassword(personId: string): Promise<boolean> {
      const [own] = await orm
        .select({ id: account.id })
        .from(account)
        .where(and(eq(account.userId, personId), eq(account.providerId, 'credential')));
      return own !== undefined;
    },

    /** Identities at providers; a password stays. */
    async forgetProviders(personId: string): Promise<void> {
      await orm.delete(account).where(and(eq(account.userId, personId), ne(account.providerId, 'credential')));
    },

    async change(
      personId: string,
      changed: { name?: string; role?: Role; blocked?: boolean; emailVerified?: boolean },
      at: Date,
    ): Promise<void> {
      await orm
        .update(user)
        .set({ ...changed, updatedAt: at })
        .where(eq(user.id, personId));
    },
  };
}

function accountStatements(orm: Orm, { user }: PeopleTables) {
  return {
    async accountOf(personId: string): Promise<{ accountId: string | null; email: string } | undefined> {
      const [row] = await orm
        .select({ accountId: user.gatewayAccountId, email: user.email })
        .from(user)
        .where(eq(user.id, personId));
      return row;
    },

    /** Whom these accounts belong to, by account. */
    async ownersOf(accountIds: readonly string[]): Promise<ReadonlyMap<string, Owner>> {
      if (accountIds.length === 0) return new Map();
      const { id, name, email, gatewayAccountId } = user;
      const rows = await orm
        .select({ id, name, email, accountId: gatewayAccountId })
        .from(user)
        .where(inArray(gatewayAccountId, [...accountIds]));
      return new Map(rows.map(({ accountId, ...owner }) => [accountId!, owner]));
    },

    /** Who these people are, by their ids. */
    async named(ids: readonly string[]): Promise<ReadonlyMap<string, Owner>> {
      if (ids.length === 0) return new Map();
      const { id, name, email } = user;
      const rows = await orm
        .select({ id, name, email })
        .from(user)
        .where(inArray(id, [...ids]));
      return new Map(rows.map((row) => [row.id, row]));
    },

    async byEmail(email: string): Promise<Owner | undefined> {
      const { id, name } = user;
      const [row] = await orm.select({ id, name, email: user.email }).from(user).where(eq(user.email, email));
      return row;
    },

    /** The first one stays. Resolves with it. */
    async settleAccount(personId: string, accountId: string): Promise<string | undefined> {
      await orm
        .update(user)
        .set({ gatewayAccountId: accountId })
        .where(and(eq(user.id, personId), isNull(user.gatewayAccountId)));
      const [row] = await orm.select({ accountId: user.gatewayAccountId }).from(user).where(eq(user.id, personId));
      return row?.accountId ?? undefined;
    },
  };
}

function sessionStatements(orm: Orm, { user, session, account, verification }: PeopleTables) {
  return {
    /** The person of a session; undefined if it has ended or the person is blocked. */
    async bySession(tokenHash: string, at: number): Promise<SessionPerson | undefined> {
      const { chosenAccountId: chosen, companyAccountId: company } = session;
      const [found] = await orm
        .select({ id: user.id, email: user.email, role: user.role, chosen, company })
        .from(session)
        .innerJoin(user, eq(user.id, session.userId))
        .where(and(eq(session.token, tokenHash), gt(session.expiresAt, new Date(at)), eq(user.blocked, false)));
      return found;
    },

    async choose(tokenHash: string, accountId: string): Promise<void> {
      await orm.update(session).set({ chosenAccountId: accountId }).where(eq(session.token, tokenHash));
    },

    /** The identity at a provider that a session began by. */
    async identityOf(tokenHash: string): Promise<{ providerId: string; idToken: string | null } | undefined> {
      const [found] = await orm
        .select({ providerId: account.providerId, idToken: account.idToken })
        .from(session)
        .innerJoin(account, and(eq(account.userId, session.userId), eq(account.providerId, session.providerId)))
        .where(eq(session.token, tokenHash));
      return found;
    },

    async endSessions(personId: string): Promise<void> {
      await orm.delete(session).where(eq(session.userId, personId));
    },

    async endSession(personId: string, tokenHash: string): Promise<void> {
      await orm.delete(session).where(and(eq(session.userId, personId), eq(session.token, tokenHash)));
    },

    /** Forgets sessions and secrets that are over. */
    async prune(before: Date): Promise<void> {
      await orm.delete(session).where(lt(session.expiresAt, before));
      await orm.delete(verification).where(lt(verification.expiresAt, before));
    },
  };
}

/** When these people signed in last, as far as a session of theirs is kept. */
const seenOf =
  (orm: Orm, { session }: PeopleTables) =>
  async (people: readonly string[]): Promise<ReadonlyMap<string, number>> => {
    if (people.length === 0) return new Map();
    const rows = await orm
      .select({ id: session.userId, at: max(session.updatedAt) })
      .from(session)
      .where(inArray(session.userId, [...people]))
      .groupBy(session.userId);
    return new Map(rows.flatMap(({ id, at }): [string, number][] => (at === null ? [] : [[id, at.getTime()]])));
  };

interface Row extends Omit<PersonView, 'accountId' | 'createdAt' | 'seenAt'> {
  readonly accountId: string | null;
  readonly createdAt: Date;
  readonly seenAt: Date | null;
}

function view(row: Row): PersonView {
  return {
    ...row,
    accountId: row.accountId ?? undefined,
    createdAt: row.createdAt.getTime(),
    seenAt: row.seenAt?.getTime(),
  };
}
