/** Money beside counts: what the requests of a filter cost, altogether and over time. */

import type { RequestFilter } from '../../../core/desk.ts';
import type { ChargeFilter } from '../../../core/desk-money.ts';
import { type Money, money, zero } from '../../../core/money.ts';
import { moneyDesk } from '../desks.ts';
import type { Console } from './router.ts';
import { dayMs, hourMs, usdText } from './words.ts';

const mostGroups = 1_500;

/** What is charged for, of what is asked. A filter by something that charges do not know has no sum. */
function chargeFilter(filter: RequestFilter): ChargeFilter | undefined {
  const { from, until, accountId, keyId, model, provider, operation, result } = filter;
  if (provider !== undefined || operation !== undefined || (result !== undefined && result !== 'ok')) return undefined;
  return { from, until, accountId, keyId, model };
}

export const sumOf = (amounts: readonly Money[]): Money =>
  money(amounts.reduce<bigint>((sum, amount) => sum + amount, zero));

/** undefined: not known. */
export async function spendSum(
  hall: Console,
  filter: RequestFilter,
): Promise<{ readonly cost: Money; readonly ownCost: Money } | undefined> {
  const desk = hall.find(moneyDesk);
  const wanted = chargeFilter(filter);
  if (desk === undefined || wanted === undefined) return undefined;
  const groups = await desk.spend(wanted, 'model', mostGroups);
  return { cost: sumOf(groups.map(({ cost }) => cost)), ownCost: sumOf(groups.map(({ ownCost }) => ownCost)) };
}

export async function costOf(hall: Console, filter: RequestFilter): Promise<string | null> {
  const sum = await spendSum(hall, filter);
  return sum === undefined ? null : usdText(sum.cost);
}

export interface BucketSpend {
  /** Of the bucket that begins then. */
  cost(at: number): string;
  ownCost(at: number): string;
}

/** Spend in the buckets of a series; undefined where buckets are shorter than an hour, or it is not known. */
export async function spendByBucket(
  hall: Console,
  filter: RequestFilter,
  bucketMs: number,
): Promise<BucketSpend | undefined> {
  const desk = hall.find(moneyDesk);
  const wanted = chargeFilter(filter);
  if (desk === undefined || wanted === undefined || bucketMs < hourMs || bucketMs % hourMs !== 0) return undefined;
  const groups = await desk.spend(wanted, bucketMs % dayMs === 0 ? 'day' : 'hour', mostGroups);
  const sums = new Map<number, { cost: Money; ownCost: Money }>();
  for (const { group, cost, ownCost } of groups) {
    const at = Math.floor(Number(group) / bucketMs) * bucketMs;
    const sum = sums.get(at) ?? { cost: zero, ownCost: zero };
    sums.set(at, { cost: sumOf([sum.cost, cost]), ownCost: sumOf([sum.ownCost, ownCost]) });
  }
  const at = (time: number) => sums.get(Math.floor(time / bucketMs) * bucketMs);
  return { cost: (time) => usdText(at(time)?.cost ?? zero), ownCost: (time) => usdText(at(time)?.ownCost ?? zero) };
}
