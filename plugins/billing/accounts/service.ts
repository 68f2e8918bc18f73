/** The ledger service: an account's money outside of calls. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Database } from '../../common/domain/database.ts';
import type { Ledger, Pool, Posting } from '../../common/domain/ledger.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { availableIn } from '../ledger/balance-cache.ts';
import type { Entries } from '../ledger/entries.ts';
import { viewPool } from '../ledger/listing.ts';
import { refundCredit, refundRequest } from '../ledger/refunds.ts';
import { applyDueTerms, beginTerm, type CallPlan, isRunning } from '../ledger/terms.ts';
import type { RestoreWatch } from '../restores/watch.ts';
import type { BillingRuntime } from '../runtime.ts';
import type { Store } from '../store.ts';
import { AccountChanges } from './changes.ts';

export interface LedgerService {
  /** Account changes outside of calls. */
  readonly changes: AccountChanges;
  readonly ledger: Ledger;
  readonly pool: Pool;
  /** Applies due grants and expiries; resolves with the time of the next ones. */
  applyDueTerms(accountId: string, plan: CallPlan | undefined): Promise<number>;
}

const none = money(0n);

/** `runtime` returns the running runtime, which spends from memory, or undefined while the process does not serve. */
export function openLedgerService(
  host: Host,
  database: Database,
  store: Store,
  runtime: () => BillingRuntime | undefined,
  watch?: RestoreWatch,
): LedgerService {
  const changes = new AccountChanges(host, database, store, runtime, watch);
  const admit = async () => watch?.admit();
  return {
    changes,
    ledger: {
      credit: async (accountId, amount, options) => {
        await admit();
        return changes.change(accountId, none, async (entries) => {
          await entries.credit(amount, options);
          return availableOf(entries);
        });
      },
      balance: async (accountId) => {
        const running = runtime();
        const cached = running?.balances.find(accountId);
        if (cached?.lease !== undefined) await running!.flusher.refresh(accountId);
        else if (cached !== undefined) return availableIn(cached);
        const { balance } = (await store.funds([accountId], host.clock.now())).get(accountId)!;
        return money(balance - (await store.leases.leasedOf(accountId)).open);
      },
      endOf: (requestId) => store.endOf(requestId),
      safe: async () => runtime()?.journal.secureAll(),
    },
    pool: poolBy(changes, admit),
    applyDueTerms: (accountId, plan) => changes.upkeep(accountId, plan),
  };
}

/** The balance without what running calls hold of it. */
function availableOf({ balance, open }: Entries): Money {
  return money(balance - open);
}

function poolBy(changes: AccountChanges, admit: () => Promise<void>): Pool {
  return {
    admitMoney: admit,
    view: (accountId) => changes.read(accountId, viewPool),
    debit: (accountId, amount, entry) =>
      changes.change(accountId, amount, async (entries) => {
        await entries.debit(amount, entry);
        return availableOf(entries);
      }),
    refundCredit: async (accountId, creditReference, amount, entry) => {
      // The credit may be one of those that are missing.
      await admit();
      return changes.change(accountId, amount, async (entries) => {
        await refundCredit(entries, creditReference, amount, entry);
        return availableOf(entries);
      });
    },
    refundRequest: async (accountId, requestId, amount, entry) => {
      await admit();
      return changes.change(accountId, none, async (entries) => {
        await refundRequest(entries, requestId, amount, entry);
        return availableOf(entries);
      });
    },
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
      return availableOf(entries);
    },
    credit: (amount, options) => entries.credit(amount, options),
    purchase: (price, entry) => entries.purchase(price, entry),
    term: async () => {
      const term = await entries.tables.terms.last(entries.at);
      return isRunning(term, entries.at) ? term : undefined;
    },
    beginTerm: async (plan, endsAt) => {
      await beginTerm(entries, plan, endsAt);
      await applyDueTerms(entries, undefined);
    },
    extendTerm: (term, endsAt) => entries.tables.terms.setEnd(term.id, endsAt),
  };
}
