/** Facts and services about accounts' money: plans and what they bring, the ledger, entries beside the calls. Types alone. */
import { defineFact, defineService } from './contract.ts';
import type { Money, Ratio } from './money.ts';
import type { Attempt, Orm, UsageReport } from './vocabulary.ts';

// ---------------------------------------------------------------------------------------------------------------- plans

/** What the caller's plan allows. Absent member: no such limit. */
export interface PlanTerms {
  readonly name: string;
  readonly limits: Limits;
  /** Models the plan allows; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  /** Price ratio of the plan; undefined: 1. */
  readonly multiplier: Ratio | undefined;
  /** Money that the plan brings for each period; it expires with the period. */
  readonly grant?: PlanGrant | undefined;
  /** How much of that money may be spent within each window. */
  readonly windows?: { readonly [K in WindowName]?: Money | undefined } | undefined;
}
export interface PlanGrant {
  readonly amount: Money;
  readonly every: 'day' | 'week' | 'month';
}
export type WindowName = '5h' | 'day' | 'week' | 'month';
export interface Limits {
  readonly rpm?: number;
  readonly rpd?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
}
export const plan = defineFact<PlanTerms>('plan');

/** A plan as it is sold. */
export interface PlanOffer extends PlanTerms {
  readonly price: Money;
  /** Milliseconds; undefined: for one period of its grant, or without end. */
  readonly lastsMs: number | undefined;
  /** Bought again at its end, if the balance covers it. */
  readonly renew: boolean;
}

export interface Plans {
  /** Name of the plan of accounts that chose none. */
  readonly default: string;
  /** Terms by name; the default plan's when the name is unknown. */
  terms(name: string): PlanTerms;
  has(name: string): boolean;
  /** Every plan on offer. */
  list(): readonly PlanTerms[];
  /** What the plan of this name is sold for; undefined when there is none. */
  offer(name: string): PlanOffer | undefined;
}
export const plans = defineService<Plans>('plans');

// --------------------------------------------------------------------------------------------------------------- ledger

export interface Ledger {
  /** Adds money to an account, once per `reference`. Resolves with the balance after it. */
  credit(accountId: string, amount: Money, options: CreditOptions): Promise<Money>;
  balance(accountId: string): Promise<Money>;
  /**
   * How a request ended, as far as the database knows: by which row, not yet (`open`), or undefined: it knows of none.
   * `in_vain`: it cost nothing, as a VOID does, but a vendor may have worked for it.
   */
  endOf(requestId: string): Promise<'SETTLE' | 'VOID' | 'in_vain' | 'EXPIRE' | 'open' | undefined>;
  /** Resolves when no crash can take how the calls ended that have ended here by now; rejects while that cannot be recorded. */
  safe(): Promise<void>;
}
export interface CreditOptions {
  readonly kind: string;
  readonly reason: string;
  /** Names the event that the money came by. */
  readonly reference: string;
  /** Wall-clock milliseconds after which what is left of it lapses; absent: it does not expire. */
  readonly expiresAt?: number | undefined;
}
export const ledger = defineService<Ledger>('ledger');

/** An account's money beside its calls: what it is made of, and how it is taken and given back. */
export interface Pool {
  view(accountId: string): Promise<PoolView>;
  /** Takes money from an account, once per `reference`; 402 when it is not there. Resolves with the balance after it. */
  debit(accountId: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /** Takes back what is left of a top-up that was paid back outside, at most; once per `reference`. */
  refundCredit(accountId: string, creditReference: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /** Gives back what a settled request has cost, or a part of it; once per `reference`, never more than was paid. */
  refundRequest(accountId: string, requestId: string, amount: Money, entry: EntryOptions): Promise<Money>;
  /**
   * Runs `work` in one transaction under the account's lock, and tells everybody of the account afterwards. `atMost`: what
   * it may take; calls cannot spend that meanwhile.
   */
  transact<T>(accountId: string, atMost: Money, work: (posting: Posting) => Promise<T>): Promise<T>;
  /** Run when an account's term has ended and its next grant would be due; may begin a new one. One listener. */
  onTermEnded(work: (posting: Posting, term: PlanTerm) => Promise<void>): void;
}
export interface EntryOptions {
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
  /** What a call may spend now. */
  readonly spendable: Money;
  /** Set aside for running calls. */
  readonly held: Money;
  /** In the order of spending; those of which nothing is left are not among them. */
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

/** What accounts buy and redeem. */
export interface Shop {
  /** Buys a plan from the balance, once per `reference`; 402 when the money that does not expire does not cover it. */
  buy(accountId: string, plan: string, reference: string): Promise<Purchase>;
  /** Redeems a code: money, a plan, or days of a plan. `not_found` for an unknown one, `conflict` for one that is used up. */
  redeem(accountId: string, code: string): Promise<Redemption>;
}
export interface Purchase {
  readonly plan: string;
  readonly price: Money;
  readonly endsAt: number | undefined;
  readonly balance: Money;
}
export interface Redemption {
  readonly amount: Money | undefined;
  readonly plan: string | undefined;
  readonly endsAt: number | undefined;
  readonly balance: Money;
}
export const shop = defineService<Shop>('shop');

// -------------------------------------------------------------------------------------------------------------- deposits

/** Money for work that outlives its exchange, its process and its node: it lives in the database alone. */
export interface Deposit {
  /** Names it for good: the exchange's id. */
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Sets the money aside in one transaction with what `work` writes; 402 where it is not there, and then neither is done. */
  place(work: (orm: Orm) => Promise<void>): Promise<void>;
}
/** Stated by whoever keeps the money, for endpoints with `later`. */
export const deposit = defineFact<Deposit>('deposit');

/** How a deposit ends. */
export interface DepositEnd {
  /** What is charged; undefined: nothing, and all of it goes back. */
  readonly report: UsageReport | undefined;
  /** In the ledger row of what is not charged: `refused`, `cancelled`, … */
  readonly reason: string;
  /** Those that were sent; the last one is its client's where something is charged. */
  readonly attempts: readonly Attempt[];
}

/** What was charged for a deposit; `own`: what it cost the operator, as far as that is known. */
export interface DepositCharge {
  readonly model: string;
  readonly provider: string | undefined;
  readonly cost: Money;
  readonly own: Money | undefined;
}

export interface Deposits {
  /**
   * Ends a deposit in one transaction with what `work` writes. `work` tells how, or undefined: it is not to end (now, or by
   * this caller), and what it wrote stays. false: it did not end, or had ended before; then `work` is not run.
   */
  end(accountId: string, id: string, work: (orm: Orm) => Promise<DepositEnd | undefined>): Promise<boolean>;
  /** Calls `told` for each charge that this process has made and that is known to be committed. */
  onCharge(told: (charge: DepositCharge) => void): void;
}
export const deposits = defineService<Deposits>('deposits');
