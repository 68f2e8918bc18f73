/** Credit that accounts have each month, and what of it is to be paid. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Money } from '../money.ts';

export type CreditState = 'running' | 'due' | 'overdue' | 'paid';

/** What an account's line has brought for one month. Instants in wall-clock milliseconds. */
export interface CreditMonth {
  /** `2026-10`, of the account's time zone, else of that of statements. */
  readonly month: string;
  /** The end of the month, and until when what was used is to be paid. */
  readonly until: number;
  readonly dueAt: number;
  readonly used: Money;
  /** What of that was paid, or given back with a refund. */
  readonly paid: Money;
  /** `running`: the month has not ended. */
  readonly state: CreditState;
}

export interface CreditLineView {
  /** For each month; 0: no more, as an operator has decided. */
  readonly amount: Money;
  /** What of it can be spent now. */
  readonly left: Money;
  /** It brings nothing because of a month that is overdue. */
  readonly isStopped: boolean;
  /** When it stops because of what is not paid now; undefined: it does not. */
  readonly stopsAt: number | undefined;
  /** Newest first: those that are not paid, and the last twelve. */
  readonly months: readonly CreditMonth[];
}

/** Months of an account that have ended and are not paid. */
interface CreditDue {
  readonly accountId: string;
  readonly months: readonly CreditMonth[];
}

export interface CreditLineAdmin {
  /** Undefined: the account never had one. */
  find(accountId: string): Promise<CreditLineView | undefined>;
  /** Counts at once: more is given, and where it is less what is left of the month's grant ends. 0 stops it. */
  set(accountId: string, amount: Money, reason: string): Promise<CreditLineView>;
  /** So many accounts behind `after` that may have something to pay, in their order. */
  unpaid(after: string, most: number): Promise<readonly CreditDue[]>;
}

/** Provided by `billing`. */
export const creditLineAdmin = defineService<CreditLineAdmin>('credit lines');
