/** An account's money: balance, grants, entries beside calls, money set aside for tasks, and prices of answers without an attempt. */

import { defineContextKey, defineService, type Exchange, type Outcome } from '../../../core/contract/contract.ts';
import type { Attempt, UsageReport } from './calls.ts';
import type { Orm } from './database.ts';
import type { Money, Ratio } from './money.ts';
import type { PlanTerms, WindowName } from './plans.ts';
import type { Usage } from './usage.ts';

export interface Ledger {
  /** Adds money to an account, once per `reference`. Resolves with the balance after it. */
  credit(accountId: string, amount: Money, options: CreditOptions): Promise<Money>;
  balance(accountId: string): Promise<Money>;
  /**
   * How a call ended, as far as the database knows. `free`: it cost nothing. `in_vain`: neither, but a vendor may have worked
   * for it. `open`: money is set aside for it. Undefined: the database knows of no such call, or not yet.
   */
  endOf(requestId: string): Promise<'charged' | 'free' | 'in_vain' | 'open' | undefined>;
  /** Resolves when no crash can take the outcome of the calls that have ended in this process by now; rejects while that cannot be recorded. */
  safe(): Promise<void>;
  /** Processes that are to serve from one database at once, where the operator says so. */
  readonly processes?: number | undefined;
}

interface CreditOptions {
  readonly kind: string;
  readonly reason: string;
  /** Names the event that the money came by. */
  readonly reference: string;
  /** Wall-clock milliseconds after which the rest of it expires; absent: it does not expire. */
  readonly expiresAt?: number | undefined;
}

/** Balances of accounts. Provided by `billing`. */
export const ledger = defineService<Ledger>('ledger');

/** Money of ordered work that is held and charged later, part by part. */
export interface Funds {
  /** Rejects with 402 where the caller cannot spend this much; without an amount, where it has nothing to spend, unless some model costs nothing. */
  require(exchange: Exchange, amount?: Money): Promise<void>;
  /** Rejects with 402 where what calls of an order would hold together (`heldEstimate`) is more than a budget that they lie in has left. */
  fits(calls: readonly Exchange[]): Promise<void>;
  /** The accounts among these that have paid in money which was not paid back. `orm`: of a transaction, or not. */
  paying(accountIds: readonly string[], orm: Pick<Orm, 'execute'>): Promise<ReadonlySet<string>>;
  /** The hold of a call at its beginning, or the authorization of an order. Throws for a model without a price. */
  amountOf(exchange: Exchange): Money;
}

export const funds = defineService<Funds>('funds');

/** The amount that a call would hold; set instead of a hold where `vendorBatch` is `estimate`. */
export const heldEstimate = defineContextKey<Money>('held estimate');

/** An account's money beside its calls: its grants, withdrawals and refunds. */
export interface Pool {
  /** Rejects with 503 while no money may come in: the database was put back, and no operator has accepted that yet. */
  admitMoney(): Promise<void>;
  /** Gives what the account's plan brings now, and takes what has expired. */
  view(accountId: string): Promise<PoolView>;
  /** The same without the view: before other figures of the account are read. */
  applyDue(accountId: string): Promise<void>;
  /** Takes money from an account, once per `reference`; 402 when it is not there. Resolves with the balance after it. */
  debit(accountId: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /** Debits a top-up that was paid back outside, up to its rest; once per `reference`. */
  refundCredit(accountId: string, creditReference: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /** Gives back what a settled request has cost, or a part of it; once per `reference`, never more than was paid. */
  refundRequest(accountId: string, requestId: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /**
   * Runs `work` in one transaction under the account's lock, then announces the account. `atMost`: the most that it may
   * take; calls cannot spend that meanwhile.
   */
  transact<T>(accountId: string, atMost: Money, work: (posting: Posting) => Promise<T>): Promise<T>;
  /** Run when an account's term has ended and its next grant would be due; may begin a new one. One listener. */
  onTermEnded(work: (posting: Posting, term: PlanTerm) => Promise<void>): void;
}

interface EntryOptions {
  readonly reason: string;
  readonly reference: string;
}

/** Entries of one account in one transaction. */
export interface Posting {
  /** Statements inside the transaction. */
  readonly orm: Orm;
  readonly accountId: string;
  /** Wall-clock milliseconds of every entry. */
  readonly at: number;
  readonly balance: Money;
  /** false: the reference was credited before. */
  credit(amount: Money, options: CreditOptions): Promise<boolean>;
  /** Takes a price out of the money that does not expire; 402 when it is not there. false: the reference is known. */
  purchase(price: Money, entry: EntryOptions & { readonly detail?: object }): Promise<boolean>;
  /** The plan that was bought and has not ended. */
  term(): Promise<PlanTerm | undefined>;
  /** Ends the running term, begins another one, and gives its first grant. */
  beginTerm(terms: PlanTerms, endsAt: number | undefined): Promise<void>;
  extendTerm(term: PlanTerm, endsAt: number | undefined): Promise<void>;
}

export interface PlanTerm {
  readonly id: string;
  readonly plan: string;
  readonly startsAt: number;
  readonly endsAt: number | undefined;
}

export interface PoolView {
  readonly balance: Money;
  /** The amount that a call may spend now. */
  readonly spendable: Money;
  /** Set aside for running calls, and for images and videos that are being made. */
  readonly held: Money;
  /** Leased by processes that no longer answer: it cannot be spent before they are back, or an operator has released it. */
  readonly blocked: Money;
  /** Grants in the order of spending, without used-up ones. */
  readonly grants: readonly GrantView[];
  readonly windows: readonly WindowView[];
  readonly term: PlanTerm | undefined;
}

export interface GrantView {
  readonly id: string;
  readonly kind: string;
  readonly reason: string;
  readonly reference: string;
  readonly amount: Money;
  readonly remaining: Money;
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
}

export interface WindowView {
  readonly name: WindowName;
  readonly limit: Money;
  readonly spent: Money;
  readonly startsAt: number;
  readonly endsAt: number;
}

export const pool = defineService<Pool>('pool');

/** Money for work that outlives its exchange, its process and its node: it lives in the database alone. */
export interface Authorization {
  /** Names it for good: the exchange's id. */
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** The authorized amount. */
  readonly amount: Money;
  /** Sets the money aside in one transaction with what `work` writes; 402 where it is not there, and then neither is done. */
  place(work: (orm: Orm) => Promise<void>): Promise<void>;
}

/** Set by the plugin that keeps the money, for endpoints with `deferred`. */
export const authorization = defineContextKey<Authorization>('deposit');

/** How an authorization ends. */
export interface AuthorizationEnd {
  /** The charge; undefined: none, and all of it is released. */
  readonly report: UsageReport | undefined;
  /** Why nothing is charged: `refused`, `cancelled`, … */
  readonly reason: string;
  /** The attempts that were sent; the last one is its client's where something is charged. */
  readonly attempts: readonly Attempt[];
  /** Called in the same transaction with the charge and its usage; undefined: nothing is charged. */
  readonly charged?: (orm: Orm, cost: Money, usage: Usage | undefined) => Promise<void>;
}

/** The charge of an authorization; `own`: the operator's cost, if it is known. */
export interface AuthorizationCharge {
  readonly model: string;
  readonly provider: string | undefined;
  readonly cost: Money;
  readonly own: Money | undefined;
}

export interface Authorizations {
  /**
   * Ends an authorization in one transaction with what `work` writes. `work` returns how, or undefined to keep it open, and
   * what it wrote stays. false: it did not end, or had ended before; then `work` is not run.
   */
  end(accountId: string, id: string, work: (orm: Orm) => Promise<AuthorizationEnd | undefined>): Promise<boolean>;
  /** Calls `listener` for each committed charge of this process. */
  onCharge(listener: (charge: AuthorizationCharge) => void): void;
}

export const authorizations = defineService<Authorizations>('deposits');

/**
 * The price of an answer without an attempt: free; its usage at the price of the model and the account, times a ratio; or a
 * fixed amount.
 */
export type ServedPrice = 'free' | { readonly ratio: Ratio } | { readonly fixed: Money };

export interface ServedBy {
  /** The answer's source as the ledger and the client's list of requests name it: `cache`. */
  readonly name: string;
  /** The usage that the answer would have consumed; recorded as the call's usage, and charged by a ratio. */
  readonly usage: Usage;
  readonly price: ServedPrice;
}

/** An answer without an attempt, and how much of it the client received. */
export interface ServedAnswer extends ServedBy {
  /** 0: no head was sent. */
  readonly status: number;
  readonly hasBody: boolean;
}

/** What answered instead of an attempt. Set by `serveWithoutAttempt` alone. */
export const servedBy = defineContextKey<ServedAnswer>('served by');

/** Whether the client received the whole answer, not an error, and so pays for it. */
export function isDelivered({ status, hasBody }: ServedAnswer, outcome: Outcome['kind']): boolean {
  if (status === 0 || status >= 400 || outcome === 'failed') return false;
  return outcome === 'complete' || hasBody;
}

const nameForm = /^[a-z0-9][a-z0-9-]{0,39}$/;

/**
 * Call it right before the answer is returned. The plugin names `servedBy` in `sets` and `spendGuard` in `optional`: it must come
 * after billing in the list, which holds money first and charges this price instead of attempts. An answer that breaks off or
 * never begins, and an error, are not charged. What may cost more than the hold is covered first, by `SpendGuard.cover`.
 */
export function serveWithoutAttempt(exchange: Exchange, served: ServedBy): void {
  const { name, price } = served;
  if (!nameForm.test(name)) throw new RangeError(`"${name}" is no name of lower-case letters, digits and hyphens`);
  if (price !== 'free') {
    const isRight = 'fixed' in price ? price.fixed >= 0n : price.ratio.numerator >= 0n && price.ratio.denominator > 0n;
    if (!isRight) throw new RangeError('the price of an answer is below zero');
  }
  const progress = { status: 0, hasBody: false };
  exchange.watch({
    head(status) {
      progress.status = status;
    },
    chunk() {
      progress.hasBody = true;
    },
  });
  exchange.set(servedBy, Object.assign(progress, served));
}
