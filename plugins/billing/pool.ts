/** The services about an account's money beside its calls. */
import type { Host } from '../../core/contract.ts';
import { money } from '../../core/money.ts';
import type { Database, Ledger, Pool, Posting } from '../../core/vocabulary.ts';
import type { Books } from './books.ts';
import { Changes } from './changes.ts';
import type { Entries } from './entries.ts';
import { viewPool } from './listing.ts';
import { availableIn } from './purses.ts';
import { refundCredit, refundRequest } from './refunds.ts';
import type { Store } from './store.ts';
import { beginTerm, isRunning, keepUp, type StatedPlan } from './terms.ts';

export interface Till {
  /** Changes of one account beside its calls. */
  readonly changes: Changes;
  readonly ledger: Ledger;
  readonly pool: Pool;
  /** Gives and takes what is due; resolves with when there is something to do again. */
  upkeep(accountId: string, plan: StatedPlan | undefined): Promise<number>;
}

const none = money(0n);

/** `books` tells what this process spends from memory, while it serves. */
export function openTill(host: Host, database: Database, store: Store, books: () => Books | undefined): Till {
  const changes = new Changes(host, database, store, books);
  return {
    changes,
    ledger: {
      credit: (accountId, amount, options) =>
        changes.change(accountId, none, async (entries) => {
          await entries.credit(amount, options);
          return entries.balance;
        }),
      balance: async (accountId) => {
        const running = books();
        const purse = running?.purses.find(accountId);
        if (purse?.slice !== undefined) await running!.flusher.drain();
        else if (purse !== undefined) return availableIn(purse);
        return (await store.funds([accountId], host.clock.now())).get(accountId)!.balance;
      },
      endOf: (requestId) => store.endOf(requestId),
      safe: async () => books()?.journal.secureAll(),
    },
    pool: poolBy(changes),
    upkeep: (accountId, plan) => changes.upkeep(accountId, plan),
  };
}

function poolBy(changes: Changes): Pool {
  return {
    view: (accountId) => changes.read(accountId, viewPool),
    debit: (accountId, amount, entry) =>
      changes.change(accountId, amount, async (entries) => {
        await entries.debit(amount, entry);
        return entries.balance;
      }),
    refundCredit: (accountId, creditReference, amount, entry) =>
      changes.change(accountId, amount, async (entries) => {
        await refundCredit(entries, creditReference, amount, entry);
        return entries.balance;
      }),
    refundRequest: (accountId, requestId, amount, entry) =>
      changes.change(accountId, none, async (entries) => {
        await refundRequest(entries, requestId, amount, entry);
        return entries.balance;
      }),
    transact: (accountId, atMost, work) => changes.change(accountId, atMost, (entries) => work(postingOf(entries))),
    onTermEnded: (work) => {
      changes.onTermEnded = (entries, term) => work(postingOf(entries), term);
    },
  };
}

function postingOf(entries: Entries): Posting {
  return {
    orm: entries.runner,
    accountId: entries.accountId,
    at: entries.at,
    get balance() {
      return entries.balance;
    },
    credit: (amount, options) => entries.credit(amount, options),
    purchase: (price, entry) => entries.purchase(price, entry),
    term: async () => {
      const term = await entries.tables.terms.last(entries.at);
      return isRunning(term, entries.at) ? term : undefined;
    },
    beginTerm: async (plan, endsAt) => {
      await beginTerm(entries, plan, endsAt);
      await keepUp(entries, undefined);
    },
    extendTerm: (term, endsAt) => entries.tables.terms.setEnd(term.id, endsAt),
  };
}
