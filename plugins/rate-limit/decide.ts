/**
 * The limiter's decision: numbers in, numbers out. Pure, so that every engine can decide alike.
 *
 * A rate is a bucket that holds `limit` units and drains evenly in `periodMs` (GCRA: a burst of `limit`, then
 * `limit` in each period). Its state is a debt in ticks, where one unit is `periodMs` ticks and `limit` ticks drain in a
 * millisecond: whole numbers throughout, so nothing is lost to rounding, and a changed limit keeps the units in use.
 * The largest debt stays below 2^53 for limits up to 10^9 a minute and 10^8 a day.
 */

/** State of one bucket. Of slots, `debt` is how many are taken. */
export interface Gauge {
  readonly debt: number;
  /**
   * How much smaller the debt would be, at least, had the calls that still run cost nothing. It drains as the debt does.
   * Reserved units that have drained already were lent to nobody: to refund them would admit them a second time.
   */
  readonly refundable: number;
  /** Whole milliseconds at which debt and refundable were true. */
  readonly atMs: number;
}

/** What one operation asks of one bucket. */
export interface Cost {
  readonly limit: number;
  /** 0: the units are slots, which do not drain but are given back. */
  readonly periodMs: number;
  readonly units: number;
}

export interface Decision {
  /** Index of the cost that must be waited for longest; -1: all are granted. */
  readonly refusedBy: number;
  /** Wait after which the same costs are granted, if nobody else takes anything. 0 when granted. */
  readonly retryAfterMs: number;
  /** Every bucket at `nowMs`: charged when granted; only drained when refused. */
  readonly gauges: Gauge[];
}

export const emptyGauge: Gauge = { debt: 0, refundable: 0, atMs: 0 };

/** Nobody knows when a slot comes free, so this is advice. */
const slotRetryMs = 1_000;

/** More than any call uses; keeps the debt exact whatever a report claims. */
const maxUsedUnits = 1_000_000_000;

/** The units that are charged: a cost above the whole bucket takes the whole bucket, otherwise it could never be granted. */
export function chargedUnits(cost: Cost): number {
  return Math.min(cost.units, cost.limit);
}

/** Grants all costs or none. `gauges[i]` is the bucket of `costs[i]`. */
export function decide(gauges: readonly Gauge[], nowMs: number, costs: readonly Cost[]): Decision {
  const drained: Gauge[] = [];
  let refusedBy = -1;
  let retryAfterMs = 0;
  for (let index = 0; index < costs.length; index++) {
    const cost = costs[index]!;
    const gauge = drain(gauges[index]!, cost, nowMs);
    drained.push(gauge);
    const waitMs = waitFor(gauge, cost);
    if (waitMs <= retryAfterMs) continue;
    refusedBy = index;
    retryAfterMs = waitMs;
  }
  if (refusedBy !== -1) return { refusedBy, retryAfterMs, gauges: drained };
  for (let index = 0; index < costs.length; index++) drained[index] = charge(drained[index]!, costs[index]!);
  return { refusedBy, retryAfterMs, gauges: drained };
}

/**
 * The bucket after an operation that reserved `cost` has used `usedUnits`. What was reserved and not used goes back, as
 * far as it has not drained meanwhile; what was used beyond the reservation is taken, below empty if need be.
 */
export function settle(gauge: Gauge, nowMs: number, cost: Cost, usedUnits: number): Gauge {
  const { debt, refundable } = drain(gauge, cost, nowMs);
  const reserved = chargedUnits(cost) * cost.periodMs;
  const used = Math.min(usedUnits, maxUsedUnits) * cost.periodMs;
  const left = Math.max(0, refundable - Math.min(used, reserved));
  if (used >= reserved) return { debt: debt + used - reserved, refundable: left, atMs: nowMs };
  const refund = Math.min(reserved - used, left);
  return { debt: debt - refund, refundable: left - refund, atMs: nowMs };
}

/** Units that could be taken now. */
export function remainingUnits(gauge: Gauge, cost: Cost): number {
  const used = cost.periodMs === 0 ? gauge.debt : Math.ceil(gauge.debt / cost.periodMs);
  return Math.max(0, cost.limit - used);
}

/** Milliseconds until the bucket is whole again if nothing more is taken; 0 for slots. */
export function resetMs(gauge: Gauge, cost: Cost): number {
  return cost.periodMs === 0 || cost.limit <= 0 ? 0 : Math.ceil(gauge.debt / cost.limit);
}

function drain(gauge: Gauge, cost: Cost, nowMs: number): Gauge {
  if (cost.periodMs === 0 || nowMs <= gauge.atMs) return gauge;
  const ticks = (nowMs - gauge.atMs) * cost.limit;
  return {
    debt: Math.max(0, gauge.debt - ticks),
    refundable: Math.max(0, gauge.refundable - ticks),
    atMs: nowMs,
  };
}

/** 0 when the cost can be paid now. */
function waitFor(gauge: Gauge, cost: Cost): number {
  if (cost.periodMs === 0) return gauge.debt + cost.units <= cost.limit ? 0 : slotRetryMs;
  if (cost.limit <= 0) return cost.periodMs;
  const excess = gauge.debt + (chargedUnits(cost) - cost.limit) * cost.periodMs;
  return excess <= 0 ? 0 : Math.ceil(excess / cost.limit);
}

function charge(gauge: Gauge, cost: Cost): Gauge {
  if (cost.periodMs === 0) return { debt: gauge.debt + cost.units, refundable: 0, atMs: gauge.atMs };
  const ticks = chargedUnits(cost) * cost.periodMs;
  return { debt: gauge.debt + ticks, refundable: gauge.refundable + ticks, atMs: gauge.atMs };
}
