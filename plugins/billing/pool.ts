/** The services about an account's money beside its calls: each change is one transaction, of which everybody then hears. */
import type { Host } from '../../core/contract.ts';
import { type Money, money } from '../../core/money.ts';
import type { Database, Ledger, PlanTerm, PlanTerms, Pool, Posting } from '../../core/vocabulary.ts';
import type { Books } from './books.ts';
import { Entries } from './entries.ts';
import { readFunds } from './funds.ts';
import { viewPool } from './listing.ts';
import { availableIn } from './purses.ts';
import { refundCredit, refundRequest } from './refunds.ts';
import { beginTerm, extendTerm, isRunning, keepUp, lastTerm } from './terms.ts';

type TermEnded = Parameters<Pool['onTermEnded']>[0];

export interface Till {
  readonly ledger: Ledger;
  readonly pool: Pool;
  /** Gives and takes what is due; resolves with when there is something to do again. */
  upkeep(accountId: string, plan: PlanTerms | undefined): Promise<number>;
}

/** `books` tells what this process spends from memory, while it serves. */
export function openTill(host: Host, store: Database, books: () => Books | undefined): Till {
  let termEnded: TermEnded | undefined;

  /** What is due comes first, so that nothing is bought with money that has expired; it stays if the rest is refused. */
  const post = async <T>(accountId: string, work: (entries: Entries) => Promise<T>): Promise<T> => {
    await upkeep(accountId, undefined);
    return transact(accountId, work);
  };

  const transact = <T>(accountId: string, work: (entries: Entries) => Promise<T>): Promise<T> =>
    Entries.transact(store.orm, store.schema, accountId, host.clock.now(), work);

  const upkeep = async (accountId: string, plan: PlanTerms | undefined): Promise<number> => {
    const { next, rows } = await transact(accountId, async (entries) => {
      const due = await keepUp(entries, plan, endedIn(entries));
      return { next: due, rows: entries.rows };
    });
    if (rows > 0) await tell(accountId);
    return next;
  };

  const endedIn = (entries: Entries) => termEnded && ((term: PlanTerm) => termEnded!(postingOf(entries), term));

  const change: Change = async (accountId, atMost, work) => {
    const running = books();
    const release = running?.purses.reserve(accountId, atMost);
    // What memory cannot spare the database does not have either, once it knows of the calls.
    if (running !== undefined && release === undefined) await running.flusher.drain();
    try {
      return await post(accountId, work);
    } finally {
      const known = await tell(accountId);
      release?.(known);
    }
  };

  /** Resolves with whether this process knows. The money has moved: that others hear of it later is no failure of that. */
  const tell = async (accountId: string): Promise<boolean> => {
    const running = books();
    const known = running?.purses.knows(accountId) ? await running.flusher.refresh(accountId) : true;
    await store.announce('account', accountId).catch((error: unknown) => {
      host.log.warn({ error, accountId }, 'a change of an account could not be announced');
    });
    return known;
  };

  return {
    ledger: {
      credit: (accountId, amount, options) =>
        change(accountId, none, async (entries) => {
          await entries.credit(amount, options);
          return entries.balance;
        }),
      balance: async (accountId) => {
        const purse = books()?.purses.find(accountId);
        if (purse !== undefined) return availableIn(purse);
        return (await readFunds(store.orm, store.schema, [accountId], host.clock.now())).get(accountId)!.balance;
      },
    },
    pool: {
      ...changesBy(change),
      view: (accountId) => post(accountId, viewPool),
      onTermEnded: (work) => {
        termEnded = work;
      },
    },
    upkeep,
  };
}

const none = money(0n);
type Change = <T>(accountId: string, atMost: Money, work: (entries: Entries) => Promise<T>) => Promise<T>;

function changesBy(change: Change): Omit<Pool, 'view' | 'onTermEnded'> {
  return {
    debit: (accountId, amount, entry) =>
      change(accountId, amount, async (entries) => {
        await entries.debit(amount, entry);
        return entries.balance;
      }),
    refundCredit: (accountId, creditReference, amount, entry) =>
      change(accountId, amount, async (entries) => {
        await refundCredit(entries, creditReference, amount, entry);
        return entries.balance;
      }),
    refundRequest: (accountId, requestId, amount, entry) =>
      change(accountId, none, async (entries) => {
        await refundRequest(entries, requestId, amount, entry);
        return entries.balance;
      }),
    transact: (accountId, atMost, work) => change(accountId, atMost, (entries) => work(postingOf(entries))),
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
      const term = await lastTerm(entries);
      return isRunning(term, entries.at) ? term : undefined;
    },
    beginTerm: async (plan, endsAt) => {
      await beginTerm(entries, plan, endsAt);
      await keepUp(entries, undefined);
    },
    extendTerm: (term, endsAt) => extendTerm(entries, term.id, endsAt),
  };
}
