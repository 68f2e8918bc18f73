/** What faults are made of that are put in at the seams. */
import type { Store } from '../../plugins/billing/store.ts';

/** The store's functions as an object that can be spread. */
export function opened(store: Store): Store {
  return {
    cursorOf: (journal) => store.cursorOf(journal),
    claim: (journal, owner, epoch) => store.claim(journal, owner, epoch),
    apply: (text, accountIds, cursor) => store.apply(text, accountIds, cursor),
    funds: (accountIds, at) => store.funds(accountIds, at),
    endOf: (requestId) => store.endOf(requestId),
    transact: (accountId, at, work) => store.transact(accountId, at, work),
    leases: store.leases,
  };
}
