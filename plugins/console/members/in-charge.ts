/** The people in charge of accounts: whom notices go to, and who owns them. */
import { and, eq, inArray, or } from 'drizzle-orm';
import type { Host } from '../../../core/contract/contract.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { MemberAdmin } from '../../common/domain/organizations/members.ts';
import { accountRights } from '../../common/domain/organizations/rights.ts';
import type { PeopleStore } from '../people/store.ts';
import type { PeopleTables } from '../people/tables.ts';
import type { Owner } from '../people.ts';
import { memberAdmin } from '../services.ts';

/** Confirmed addresses of people who may sign in, by account: of members with the right, or of the one whom it was made for. */
export function mailsOf(orm: Orm, { user }: Pick<PeopleTables, 'user'>, members: () => MemberAdmin | undefined) {
  return async (accountIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> => {
    const inCharge = await members()?.peopleOf(accountIds, accountRights.notices.roles);
    const named = [...(inCharge?.values() ?? [])].flat();
    const { id, email, gatewayAccountId: home, blocked, emailVerified } = user;
    const rows = await orm
      .select({ id, email, home })
      .from(user)
      .where(and(or(inArray(home, [...accountIds]), inArray(id, named)), eq(blocked, false), eq(emailVerified, true)))
      .orderBy(email);
    const mails = accountIds.map((accountId): [string, string[]] => {
      const people = inCharge?.get(accountId);
      const found = rows.filter((row) => (people === undefined ? row.home === accountId : people.includes(row.id)));
      return [accountId, found.map((row) => row.email)];
    });
    return new Map(mails.filter(([, found]) => found.length > 0));
  };
}

/** Where there are several owners, the longest is named. */
export async function ownersOf(
  { host, store }: { readonly host: Pick<Host, 'find'>; readonly store: PeopleStore },
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, Owner>> {
  const [homes, owners] = await Promise.all([
    store.ownersOf(accountIds),
    host.find(memberAdmin)?.peopleOf(accountIds, ['owner']),
  ]);
  const people = await store.named([...(owners?.values() ?? [])].flatMap(([first]) => first ?? []));
  const named = [...(owners ?? [])].flatMap(([accountId, [first = '']]): [string, Owner][] => {
    const owner = people.get(first);
    return owner === undefined ? [] : [[accountId, owner]];
  });
  return new Map([...homes, ...named]);
}

/** The person whom an account was made for is its owner from the first question on, and not only once they use it. */
export async function settleOwner(
  members: Pick<MemberAdmin, 'roleAtHome'>,
  owners: ReadonlyMap<string, Owner>,
  accountId: string,
): Promise<void> {
  const first = owners.get(accountId);
  if (first !== undefined) await members.roleAtHome(accountId, first.id);
}
