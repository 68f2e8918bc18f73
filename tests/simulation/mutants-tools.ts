/** What faults are made of that are put in at the seams. */

import type { Entries } from '../../plugins/billing/ledger/entries.ts';
import { encodeRecords, type JournalRecord } from '../../plugins/billing/model/records.ts';
import type { Store } from '../../plugins/billing/store.ts';

/** The store's functions as an object that can be spread. */
export function opened(store: Store): Store {
  return {
    cursorOf: (journal) => store.cursorOf(journal),
    claim: (journal, owner, epoch) => store.claim(journal, owner, epoch),
    apply: (text, accounts, cursor) => store.apply(text, accounts, cursor),
    funds: (accountIds, at) => store.funds(accountIds, at),
    expired: (before, after, limit) => store.expired(before, after, limit),
    endOf: (requestId) => store.endOf(requestId),
    budgets: store.budgets,
    ownBudgets: store.ownBudgets,
    transact: (accountId, at, work) => store.transact(accountId, at, work),
    leases: store.leases,
  };
}

/** Changes what runs inside each transaction of an account. */
export function inside(change: (entries: Entries) => void): (store: Store) => Store {
  return (store) => ({
    ...opened(store),
    transact: (accountId, at, work) =>
      store.transact(accountId, at, (entries) => {
        change(entries);
        return work(entries);
      }),
  });
}

/** Journal text with other records in it. */
export function rewritten(text: string, edit: (record: JournalRecord) => JournalRecord): string {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines
    .map((line) => {
      const start = line.indexOf('[');
      const records = JSON.parse(line.slice(start)) as JournalRecord[];
      return `${line.slice(0, start)}${encodeRecords(records.map(edit))}\n`;
    })
    .join('');
}

/** Changes the records of each batch. */
export function editing(edit: (record: JournalRecord) => JournalRecord): (store: Store) => Store {
  return (store) => ({
    ...opened(store),
    apply: (text, accounts, cursor) => store.apply(rewritten(text, edit), accounts, cursor),
  });
}

/** Puts another property in the place of one that is read-only; its name is checked. */
export function redefine<Target extends object>(
  target: Target,
  name: keyof Target,
  property: PropertyDescriptor,
): Target {
  return Object.defineProperty(target, name, property);
}
