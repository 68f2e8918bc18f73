/** The console's contract: the services that query the ledger, charges and sums, and that take payments. Types alone. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Attempt } from '../calls.ts';
import type { Money } from '../money.ts';
import type { KeySet } from './accounts.ts';
import type { Page, PageRequest, Span } from './pages.ts';

// ---------------------------------------------------------------------------------------------------------------- money

/** A movement of an account's money. Money held for running calls has not moved, so a hold is no row. */
export interface LedgerRow {
  readonly seq: string;
  readonly accountId: string;
  /** CHARGE, CREDIT, DEBIT, PURCHASE, REFUND, PAYOUT, EXPIRE. */
  readonly kind: string;
  readonly requestId: string | undefined;
  readonly reference: string | undefined;
  readonly reason: string | undefined;
  /** Change of the balance: for a CHARGE, minus the cost of the call. */
  readonly change: Money;
  /** The balance before plus the change. Holds of running calls are part of it. */
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
  /** The gateway's own cost, where it is known. */
  readonly ownCost: Money | undefined;
  readonly refunded: Money;
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated: boolean;
  readonly ratio: string;
  readonly priceVersion: string;
  readonly tier: string | undefined;
  /** `(1,200 input × 3 + 300 output × 15) per million × 1.5`: a sum that a person can check. */
  readonly formula: string;
  /** The source of an answer without an attempt; undefined: a vendor. */
  readonly servedBy: string | undefined;
  readonly held: Money;
  /** As `env=prod,team=search`. */
  readonly tags?: string | undefined;
  /** Ids of whom and what the call was for; undefined: for none. */
  readonly person?: string | undefined;
  readonly project?: string | undefined;
}
export interface ChargeFilter extends Span {
  readonly accountId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly keys?: KeySet | undefined;
  readonly personId?: string | undefined;
  /** Only calls for these projects; an empty text stands for none. */
  readonly projectIds?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
}
export interface SpendSums {
  readonly requests: number;
  readonly cost: Money;
  /** Own cost of the requests of which it is known. */
  readonly ownCost: Money;
  /** Requests of which the own cost is not known. */
  readonly ownCostUnknown?: number;
  /** Charges of those, less what was refunded of such. */
  readonly uncosted?: Money;
  /** Estimated cost of attempts that no client pays. */
  readonly writtenOff?: Money;
  /** Given back of charges at this time, whenever these were made. */
  readonly refunded?: Money;
  /** Tokens and pieces by class. */
  readonly usage: Readonly<Record<string, number>>;
}
export interface SpendGroup extends SpendSums {
  /** A day or an hour as milliseconds in decimal, a model, an id. */
  readonly group: string;
}
export interface SpendTableQuery {
  readonly accountId: string;
  /** Only calls of these keys, of these models; absent: of all. */
  readonly keyIds?: readonly string[] | undefined;
  readonly models?: readonly string[] | undefined;
  /** Only calls that were attributed to these, by their ids; not together with a tag. */
  readonly personIds?: readonly string[] | undefined;
  readonly projectIds?: readonly string[] | undefined;
  /**
   * Only calls with all of these tags: `NAME=VALUE`, or one `NAME` for all of its values, which `by: 'tag'` lists one by one. Then slots begin
   * on quarters of an hour. Calls with several tags are counted one by one, for as long as their tags are kept.
   */
  readonly tags?: readonly string[] | undefined;
  /** In order: each begins a slot that the next one ends; at most 1,500 slots. */
  readonly bounds: readonly number[];
  readonly by: readonly ('model' | 'key' | 'tag' | 'person' | 'project')[];
}
export interface SpendCell extends SpendSums {
  /** Index of the bound that begins the slot. */
  readonly slot: number;
  /** The values of `by`, in its order. */
  readonly group: readonly string[];
}
export interface MoneyTotals {
  /** What calls came to; refunds of them are all refunds. */
  readonly calls: SpendSums;
  readonly credited: Money;
  /** Prices of plans. */
  readonly sold: Money;
  readonly lapsed: Money;
  /** Credits that were paid back outside. */
  readonly paidOut?: Money;
  readonly debited?: Money;
}
/** Money of all accounts by where it came from. */
export interface MoneyFlows {
  /** Paid in by card, and credited by operators as paid. */
  readonly card: Money;
  readonly byHand: Money;
  /** Paid back outside, of both. */
  readonly paidBack: Money;
  readonly givenByPlans: Money;
  readonly givenByCodes: Money;
  readonly givenByPromotions: Money;
  /** What calls, plans that were bought and debits took of paid and of given money. Beyond all money counts as paid. */
  readonly usedPaid: Money;
  readonly usedGiven: Money;
  /** Paid money that clients have at the end of the span. */
  readonly owed: Money;
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
  /** Version of the gateway that the process runs; undefined: it has not reported yet. */
  readonly version: string | undefined;
  /** When its present run began. */
  readonly startedAt?: number | undefined;
  /** Its last heartbeat. */
  readonly seenAt: number;
  /** Journal records that the ledger does not have yet; undefined: another process knows. */
  readonly journalPending: number | undefined;
  readonly leases: number;
  readonly leased: Money;
}
export interface LedgerQueries {
  /** The same for pages and exports, which may lack what happened in the last seconds; absent: there is no replica to read. */
  readonly pages?: LedgerQueries;
  /** Newest first. */
  ledger(
    accountId: string | undefined,
    filter: { readonly kinds?: readonly string[] } & Partial<Span>,
    page: PageRequest,
  ): Promise<Page<LedgerRow>>;
  /** Charges of these requests, newest first; with an account only those to it. */
  chargesOf(requestIds: readonly string[], accountId: string | undefined): Promise<readonly ChargeView[]>;
  charge(
    requestId: string,
    accountId: string | undefined,
  ): Promise<(ChargeView & { readonly attempts: readonly AttemptView[] }) | undefined>;
  /** Days and hours (UTC): the last ones, oldest first, without empty ones. Else what cost most first. At most 1,500. */
  spend(
    filter: ChargeFilter,
    by: 'day' | 'hour' | 'model' | 'key' | 'account' | 'provider' | 'person' | 'project',
    limit: number,
  ): Promise<readonly SpendGroup[]>;
  /** From each of the instants to the next, such as the days of a time zone, empty ones too; at most 1,500. */
  spendBetween(
    filter: Omit<ChargeFilter, keyof Span>,
    bounds: readonly number[],
  ): Promise<readonly (SpendSums & { readonly at: number })[]>;
  /** `spendBetween` for each of these groups, without empty buckets. */
  spendOfGroups(
    filter: Omit<ChargeFilter, keyof Span>,
    bounds: readonly number[],
    by: 'model' | 'key' | 'account' | 'provider' | 'person' | 'project',
    groups: readonly string[],
  ): Promise<readonly (SpendSums & { readonly at: number; readonly group: string })[]>;
  /** Sums by slots of time and groups, without empty ones; more than 20,000 are refused. */
  spendTable(query: SpendTableQuery): Promise<readonly SpendCell[]>;
  /** The names of the tags of an account's calls. */
  tagNames(accountId: string): Promise<readonly string[]>;
  totals(span: Span): Promise<MoneyTotals>;
  flows(span: Span): Promise<MoneyFlows>;
  /** Balances of many accounts at once, with the holds of running calls. */
  balances(accountIds: readonly string[]): Promise<ReadonlyMap<string, Money>>;
  reconcile(): Promise<Reconciliation>;
  nodes(): Promise<readonly NodeView[]>;
  /** The backlog of this process, without the database; undefined: it does not serve. */
  journal(): JournalBacklog | undefined;
}
export interface JournalBacklog {
  readonly name: string;
  /** Rows that the ledger does not have. */
  readonly rows: number;
  /** Part of the bound at which calls are refused; 1: they are. */
  readonly share: number;
}
export type AttemptView = Omit<Attempt, 'consumed'> & {
  readonly absorbed: Money;
  readonly borneBy: 'client' | 'operator' | undefined;
};
/** Charges and other rows of the ledger. Provided by `billing`. */
export const ledgerQueries = defineService<LedgerQueries>('ledger queries');

// ------------------------------------------------------------------------------------------------------------- payments

export interface PaymentView {
  readonly id: string;
  readonly accountId: string;
  readonly amount: Money;
  readonly state: 'open' | 'paid' | 'refunded' | 'expired';
  readonly createdAt: number;
  readonly paidAt: number | undefined;
  /** The refunded or disputed part. */
  readonly refunded?: Money;
}
/** A payment that the payment service has and the database does not, or not as paid. */
export interface MissingPayment {
  /** By which `gateway payments look` finds it. */
  readonly session: string;
  /** Undefined: neither the database nor the payment service knows it. */
  readonly accountId: string | undefined;
  readonly amount: Money;
  /** When its page was made. */
  readonly begunAt: number;
}
/** Payments. Provided only where a payment service is configured. */
export interface Payments {
  /** The bounds of one payment. */
  readonly least: Money;
  readonly most: Money;
  /** Sums to choose from; others between the bounds can be paid too. */
  readonly amounts?: readonly Money[];
  list(accountId: string | undefined, page: PageRequest): Promise<Page<PaymentView>>;
  /** Reads from the payment service which checkout pages made since then were paid. */
  missing(since: number): Promise<readonly MissingPayment[]>;
  /** The address of the payment page; once per `reference`. It redirects to `paidUrl` or `leftUrl`. */
  checkout(
    accountId: string,
    amount: Money,
    options: { readonly reference: string; readonly paidUrl: string; readonly leftUrl: string },
  ): Promise<{ readonly url: string }>;
}
export const payments = defineService<Payments>('payments');
