/** The margin of calls: the one definition for pages, alerts and commands. Pure. */
import { type Money, money } from '../money.ts';

export interface MarginOf {
  /** Charged calls. */
  readonly requests: number;
  /** Calls without a known own cost. */
  readonly ownCostUnknown?: number | undefined;
  readonly cost: Money;
  /** Given back of charges. */
  readonly refunded?: Money | undefined;
  /** Charges without a known own cost, less what was given back of such. */
  readonly uncosted?: Money | undefined;
  readonly ownCost: Money;
  /** Estimated cost of attempts that no client pays. */
  readonly writtenOff?: Money | undefined;
}

/**
 * Charges less refunds, own cost and what was written off, of the calls with a known own cost. Undefined where it is
 * known of none.
 */
export function marginOf(sums: MarginOf): Money | undefined {
  const { requests, ownCostUnknown = 0, ownCost, writtenOff = 0n } = sums;
  if (ownCostUnknown > 0 && ownCostUnknown === requests) return undefined;
  return money(costedRevenueOf(sums) - ownCost - writtenOff);
}

/** Charges less refunds. */
export function revenueOf({ cost, refunded = money(0n) }: Pick<MarginOf, 'cost' | 'refunded'>): Money {
  return money(cost - refunded);
}

/** The part of the revenue that a margin is of. */
export function costedRevenueOf(sums: Pick<MarginOf, 'cost' | 'refunded' | 'uncosted'>): Money {
  return money(revenueOf(sums) - (sums.uncosted ?? 0n));
}
