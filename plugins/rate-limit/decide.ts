/**
 * The limiter's decision: numbers in, numbers out. Pure, so that every engine can decide alike.
 *
 * A rate is a bucket that holds `limit` units and drains evenly in `periodMs` (GCRA: a burst of `limit`, then
 * `limit` in each period). Its state is a debt in ticks, where one unit is `periodMs` ticks and `limit` ticks drain in a
 * millisecond: whole numbers throughout, so nothing is lost to rounding, and a changed limit keeps the units in use.
 * The largest debt stays below 2^53 for limits up to 10^9 a minute and 10^8 a day.
 */

/** State of one bucket: four numbers, however many calls run. Of slots, `debt` is how many are taken. */
export interface Gauge {
  readonly debt: number;
  /** Units charged since `sinceMs`. A refund takes its units off again only if nothing was charged after them. */
  readonly charged: number;
  /** When the bucket was last charged while it was empty. All that was charged before has drained. */
  readonly sinceMs: number;
  /** Whole milliseconds at which the debt was true. */
  readonly atMs: number;
}

/** Where a charge stands in its bucket, which is the gauge right after it: what `charged` gains later is younger. */
export type Receipt = Pick<Gauge, 'charged' | 'sinceMs'>;

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
  /** Every bucket at `nowMs`: charged when granted, and then the receipts too; only drained when refused. */
  readonly gauges: Gauge[];
}

export const emptyGauge: Gauge = { debt: 0, charged: 0, sinceMs: 0, atMs: 0 };

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
  for (let index = 0; index < costs.length; index++) {
    const cost = costs[index]!;
    drained[index] = charge(drained[index]!, cost, chargedUnits(cost));
  }
  return { refusedBy, retryAfterMs, gauges: drained };
}

/**
 * The bucket after an operation that reserved `cost`, and got `receipt` for it, has used `usedUnits`. What was used
 * beyond the reservation is taken, below empty if need be. What was reserved and not used goes back as far as it has not
 * drained: what stood below it drains first, and drained units were lent to nobody, so to refund them would admit them a
 * second time. Therefore a refund never takes the debt below what was charged after the receipt. That is safe, as without
 * this call the debt could not be more; refunds to older calls have lowered the debt already. Units that a younger call
 * gave back from the middle still count as charged: to know better takes a number for each running call.
 */
export function settle(gauge: Gauge, receipt: Receipt, nowMs: number, cost: Cost, usedUnits: number): Gauge {
  const drained = drain(gauge, cost, nowMs);
  const unused = chargedUnits(cost) - Math.min(usedUnits, maxUsedUnits);
  // Subtracted, as the negative of none would be a negative zero.
  if (unused <= 0) return charge(drained, cost, 0 - unused);
  const younger = drained.charged - receipt.charged;
  // Less than nothing: the bucket was forgotten meanwhile, and this is another.
  if (receipt.sinceMs !== drained.sinceMs || younger < 0) return drained;
  const refund = Math.min(unused * cost.periodMs, Math.max(0, drained.debt - younger * cost.periodMs));
  return {
    debt: drained.debt - refund,
    charged: younger === 0 ? drained.charged - unused : drained.charged,
    sinceMs: drained.sinceMs,
    atMs: drained.atMs,
  };
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
  const debt = Math.max(0, gauge.debt - (nowMs - gauge.atMs) * cost.limit);
  return { debt, charged: gauge.charged, sinceMs: gauge.sinceMs, atMs: nowMs };
}

/** 0 when the cost can be paid now. */
function waitFor(gauge: Gauge, cost: Cost): number {
  if (cost.periodMs === 0) return gauge.debt + cost.units <= cost.limit ? 0 : slotRetryMs;
  if (cost.limit <= 0) return cost.periodMs;
  const excess = gauge.debt + (chargedUnits(cost) - cost.limit) * cost.periodMs;
  return excess <= 0 ? 0 : Math.ceil(excess / cost.limit);
}

/** An empty bucket counts anew, which keeps `charged` small; receipts from before have nothing left to give back. */
function charge(gauge: Gauge, { periodMs }: Cost, units: number): Gauge {
  const { debt, atMs } = gauge;
  const ticks = periodMs === 0 ? units : units * periodMs;
  if (debt === 0) return { debt: ticks, charged: units, sinceMs: atMs, atMs };
  return { debt: debt + ticks, charged: gauge.charged + units, sinceMs: gauge.sinceMs, atMs };
}
