/** The services that the shop needs of others: accounts that are put on plans, and the plans that there are. */
import type { Accounts } from '../../plugins/common/domain/accounts.ts';
import type { Plans } from '../../plugins/common/domain/plans.ts';
import type { ShopTables } from './memory-shop.ts';
import type { AccountProfile } from './profile.ts';

export function accountsIn(tables: ShopTables): Accounts {
  const setPlan: Accounts['setPlan'] = async (orm, accountId, plan, endsAt) =>
    tables.setPlan(orm, accountId, plan, endsAt);
  // Nothing else is asked of accounts here: the one that does finds nothing to call.
  return { setPlan } as Accounts;
}

export function plansOf(accounts: readonly AccountProfile[]): Plans {
  const offers = new Map(accounts.flatMap((account) => account.offers.map(({ terms }) => [terms.name, terms])));
  const base = new Map(accounts.map(({ plan }) => [plan.name, plan]));
  const fallback = accounts[0]!.plan;
  return {
    default: fallback.name,
    terms: (name) => offers.get(name) ?? base.get(name) ?? fallback,
    has: (name) => offers.has(name) || base.has(name),
    list: () => [...base.values(), ...offers.values()],
    offer: (name) => offers.get(name),
  };
}
