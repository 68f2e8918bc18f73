/** The ledger service: an account's money outside of calls. */
import type { Ledger, Pool, Posting } from '../../common/domain/ledger.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { type CreditTerms, creditAndPay } from '../ledger/credit-lines.ts';
import type { Entries } from '../ledger/entries.ts';
import { viewPool } from '../ledger/listing.ts';
import { refundCredit, refundRequest } from '../ledger/refunds.ts';
import { applyDueTerms, beginTerm, type CallPlan, isRunning } from '../ledger/terms.ts';
import { AccountChanges, type AccountTools } from './changes.ts';

export interface LedgerService {
  /** Account changes outside of calls. */
  readonly changes: AccountChanges;
  readonly ledger: Ledger;
  readonly pool: Pool;
  /** Applies due grants and expiries; resolves with the time of the next ones. */
  applyDueTerms(accountId: string, plan: CallPlan | undefined): Promise<number>;
}

const none = money(0n);

export function openLedgerService(tools: AccountTools): LedgerService {
  const { host, store, runtime, watch, credit } = tools;
  const changes = new AccountChanges(tools);
  const admit = async () => watch?.admit();
  const change: Change = (accountId, atMost, work) =>
    changes.change(accountId, atMost, async (entries) => {
      await work(entries);
      return availableOf(entries);
    });
  return {
    changes,
    ledger: {
      credit: async (accountId, amount, options) => {
        await admit();
        return change(accountId, none, (entries) => creditAndPay(entries, amount, options, credit));
      },
      balance: async (accountId) => {
        const running = runtime();
        const balance = running?.balances.find(accountId);
        if (balance?.isLeased === true) await running!.flusher.refresh(accountId);
        else if (balance !== undefined) return balance.available;
        const funds = (await store.funds([accountId], host.clock.now())).get(accountId)!;
        return money(funds.balance - (await store.leases.leasedOf(accountId)).open);
      },
      endOf: (requestId) => store.endOf(requestId),
      safe: async () => runtime()?.journal.secureAll(),
    },
    pool: poolBy(changes, change, admit, credit),
    applyDueTerms: (accountId, plan) => changes.upkeep(accountId, plan),
  };
}

/** Resolves with the balance after the change, without what running calls hold of it. */
type Change = (accountId: string, atMost: Money, work: (entries: Entries) => Promise<unknown>) => Promise<Money>;

const availableOf = ({ balance, open }: Entries): Money => money(balance - open);

function poolBy(
  changes: AccountChanges,
  change: Change,
  admit: () => Promise<void>,
  terms: CreditTerms | undefined,
): Pool {
  return {
    admitMoney: admit,
    view: (accountId) => changes.read(accountId, viewPool),
    applyDue: (accountId) => changes.applyDue(accountId),
    debit: (accountId, amount, entry) => change(accountId, amount, (entries) => entries.debit(amount, entry)),
    refundCredit: async (accountId, creditReference, amount, entry) => {
      // The credit may be one of those that are missing.
      await admit();
      return change(accountId, amount, (entries) => refundCredit(entries, creditReference, amount, entry));
    },
    refundRequest: async (accountId, requestId, amount, entry) => {
      await admit();
      return change(accountId, none, (entries) => refundRequest(entries, requestId, amount, entry));
    },
    transact: (accountId, atMost, work) =>
      changes.change(accountId, atMost, (entries) => work(postingOf(entries, terms))),
    onTermEnded: (work) => {
      changes.onTermEnded = (entries, term) => work(postingOf(entries, terms), term);
    },
  };
}

function postingOf(entries: Entries, terms: CreditTerms | undefined): Posting {
  return {
    orm: entries.runner,
    accountId: entries.accountId,
    at: entries.at,
    get balance() {
      return availableOf(entries);
    },
    credit: (amount, options) => creditAndPay(entries, amount, options, terms),
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
