/** Services by which people look at money: ledger, charges, sums. Types alone. */
import { defineService } from './contract.ts';
import type { Page, PageAsk, Span } from './desk.ts';
import type { Money } from './money.ts';
import type { Attempt } from './vocabulary.ts';

// ---------------------------------------------------------------------------------------------------------------- money

export interface LedgerRow {
  readonly seq: string;
  readonly accountId: string;
  /** CREDIT, DEBIT, PURCHASE, REFUND, PAYOUT, LAPSE, HOLD, EXTEND, SETTLE, VOID, EXPIRE. */
  readonly kind: string;
  readonly requestId: string | undefined;
  readonly reference: string | undefined;
  readonly reason: string | undefined;
  /** The account's side. With `held` it is what the row brought or took: of a SETTLE, minus its cost. */
  readonly amount: Money;
  /** What was set aside; below zero: what was and is so no longer. */
  readonly held: Money;
  readonly balanceAfter: Money;
  readonly at: number;
}
/** One charged request. */
export interface ChargeView {
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly provider: string | undefined;
  readonly at: number;
  readonly cost: Money;
  /** What the gateway paid, where it is known. */
  readonly ownCost: Money | undefined;
  readonly refunded: Money;
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated: boolean;
  readonly ratio: string;
  readonly priceVersion: string;
  readonly tier: string | undefined;
  /** `(1,200 input × 3 + 300 output × 15) per million × 1.5`: a sum that a person can check. */
  readonly formula: string;
  readonly held: Money;
}
export interface ChargeFilter extends Span {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
}
export interface SpendGroup {
  /** A day or an hour as milliseconds in decimal, a model, an id. */
  readonly group: string;
  readonly requests: number;
  readonly cost: Money;
  readonly ownCost: Money;
  /** Tokens and pieces by class. */
  readonly usage: Readonly<Record<string, number>>;
}
export interface MoneyTotals {
  /** Charges of requests. */
  readonly revenue: Money;
  /** What attempts may have cost that no client pays. */
  readonly absorbed: Money;
  /** What the charged requests have cost the gateway, as far as it is known. */
  readonly ownCost: Money;
  readonly credited: Money;
  /** Prices of plans. */
  readonly sold: Money;
  readonly refunded: Money;
  readonly lapsed: Money;
  /** Credits that were paid back outside. */
  readonly paidOut?: Money;
  readonly debited?: Money;
}
export interface Reconciliation {
  readonly checkedAt: number;
  readonly ok: boolean;
  /** One sentence for each thing that is not as it should be. */
  readonly findings: readonly string[];
  readonly rows: number;
}
export interface NodeView {
  readonly name: string;
  readonly self: boolean;
  /** Of the gateway that it runs; undefined: one that did not tell yet. */
  readonly version: string | undefined;
  /** When its present run began. */
  readonly startedAt?: number | undefined;
  /** Its last sign of life. */
  readonly seenAt: number;
  /** Journal records that the ledger does not have yet; undefined: another process knows. */
  readonly journalPending: number | undefined;
  readonly leases: number;
  readonly leased: Money;
}
export interface MoneyDesk {
  /** Newest first. Without `kinds`: what moved money, so neither HOLD nor EXTEND nor VOID. */
  ledger(
    accountId: string | undefined,
    filter: { readonly kinds?: readonly string[] } & Partial<Span>,
    page: PageAsk,
  ): Promise<Page<LedgerRow>>;
  charges(filter: ChargeFilter, page: PageAsk): Promise<Page<ChargeView>>;
  charge(
    requestId: string,
    accountId: string | undefined,
  ): Promise<(ChargeView & { readonly attempts: readonly AttemptView[] }) | undefined>;
  /** Days and hours (UTC): the last ones, oldest first, without empty ones. Else what cost most first. At most 1,500. */
  spend(
    filter: ChargeFilter,
    by: 'day' | 'hour' | 'model' | 'key' | 'account' | 'provider',
    limit: number,
  ): Promise<readonly SpendGroup[]>;
  totals(span: Span): Promise<MoneyTotals>;
  /** Balances of many accounts at once. */
  balances(accountIds: readonly string[]): Promise<ReadonlyMap<string, Money>>;
  reconcile(): Promise<Reconciliation>;
  nodes(): Promise<readonly NodeView[]>;
}
export type AttemptView = Omit<Attempt, 'consumed'> & {
  readonly absorbed: Money;
  readonly borneBy: 'client' | 'operator' | undefined;
};
export const moneyDesk = defineService<MoneyDesk>('money desk');

// ------------------------------------------------------------------------------------------------------------- payments

export interface PaymentView {
  readonly id: string;
  readonly accountId: string;
  readonly amount: Money;
  readonly state: 'open' | 'paid' | 'refunded' | 'expired';
  readonly createdAt: number;
  readonly paidAt: number | undefined;
  /** What of it was paid back, or is disputed. */
  readonly refunded?: Money;
}
/** Money from outside. Only there where a payment service is set up. */
export interface Payments {
  /** What can be paid in at once. */
  readonly least: Money;
  readonly most: Money;
  /** Sums to choose from; others between the bounds can be paid too. */
  readonly amounts?: readonly Money[];
  list(accountId: string | undefined, page: PageAsk): Promise<Page<PaymentView>>;
  /** Where the payer goes; once per `reference`. They come back to `paidUrl` or `leftUrl`. */
  checkout(
    accountId: string,
    amount: Money,
    options: { readonly reference: string; readonly paidUrl: string; readonly leftUrl: string },
  ): Promise<{ readonly url: string }>;
}
export const payments = defineService<Payments>('payments');
