/**
 * The limiter's decision as arithmetic; pure, so that all engines decide alike. A rate is a bucket that holds `limit`
 * units and drains evenly in `periodMs` (GCRA: a burst of `limit`, then `limit` in each period). Its state is a debt in
 * ticks: one unit is `periodMs` ticks, and `limit` ticks drain per millisecond. All values are whole numbers, so
 * rounding loses nothing, and a changed limit keeps the units in use. The largest debt stays below 2^53 for limits up
 * to 10^9 a minute and 10^8 a day.
 */

/** State of one bucket: four numbers, however many calls run. For slots, `debt` is the number of slots taken. */
export interface Gauge {
  readonly debt: number;
  /** Units charged since `sinceMs`. A refund subtracts its units only if nothing was charged after them. */
  readonly charged: number;
  /** When the bucket was last charged while empty. All earlier charges have drained. */
  readonly sinceMs: number;
  /** Time of `debt`, in whole milliseconds. */
  readonly atMs: number;
}

/** The gauge right after a charge: later charges are younger. */
export type Receipt = Pick<Gauge, 'charged' | 'sinceMs'>;

/** Units that an operation takes from one bucket. */
export interface Cost {
  readonly limit: number;
  /** 0: the units are slots, which are released instead of drained. */
  readonly periodMs: number;
  readonly units: number;
}

export interface Decision {
  /** Index of the cost with the longest wait; -1: all are granted. */
  readonly refusedBy: number;
  /** Wait after which the same costs are granted, if nothing else is taken meanwhile. 0 when granted. */
  readonly retryAfterMs: number;
  /** Every bucket at `nowMs`: charged if granted, which makes them the receipts; only drained if refused. */
  readonly gauges: Gauge[];
}

export const emptyGauge: Gauge = { debt: 0, charged: 0, sinceMs: 0, atMs: 0 };

/** An estimate: it is unknown when a slot is released. */
const slotRetryMs = 1_000;

/** More than any call uses; keeps the debt exact for any reported usage. */
const maxUsedUnits = 1_000_000_000;

/** The charged units: a cost above the whole bucket takes the whole bucket, otherwise it could never be granted. */
function chargedUnits(cost: Cost): number {
  return Math.min(cost.units, cost.limit);
}

/** Grants all costs or none. `gauges[i]` is the bucket of `costs[i]`. */
export function decide(gauges: readonly Gauge[], nowMs: number, costs: readonly Cost[]): Decision {
  const drained = new Array<ChangingGauge>(costs.length);
  let refusedBy = -1;
  let retryAfterMs = 0;
  for (let index = 0; index < costs.length; index++) {
    const cost = costs[index]!;
    const gauge = drain(gauges[index]!, cost, nowMs);
    drained[index] = gauge;
    const waitMs = waitFor(gauge, cost);
    if (waitMs <= retryAfterMs) continue;
    refusedBy = index;
    retryAfterMs = waitMs;
  }
  if (refusedBy !== -1) return { refusedBy, retryAfterMs, gauges: drained };
  for (let index = 0; index < costs.length; index++) {
    const cost = costs[index]!;
    charge(drained[index]!, cost, chargedUnits(cost));
  }
  return { refusedBy, retryAfterMs, gauges: drained };
}

/**
 * The bucket after an operation that reserved `cost`, with its `receipt`, has used `usedUnits`. Usage beyond the
 * reservation is charged, below empty if needed. Unused units are refunded as far as they have not drained: older
 * charges drain first, and drained units are free already, so refunding them would admit them twice. Therefore a refund
 * never lowers the debt below the charges after the receipt. This is safe: without this call the debt could not be
 * higher, and refunds to older calls have lowered it already. Units that a younger call refunded from the middle still
 * count as charged, since an exact count would need a number per running call.
 */
export function settle(gauge: Gauge, receipt: Receipt, nowMs: number, cost: Cost, usedUnits: number): Gauge {
  const drained = drain(gauge, cost, nowMs);
  const unused = chargedUnits(cost) - Math.min(usedUnits, maxUsedUnits);
  // Subtracted from 0, as negating zero gives negative zero.
  if (unused <= 0) {
    charge(drained, cost, 0 - unused);
    return drained;
  }
  const younger = drained.charged - receipt.charged;
  // Negative: the bucket was dropped meanwhile, and this is a new one.
  if (receipt.sinceMs !== drained.sinceMs || younger < 0) return drained;
  drained.debt -= Math.min(unused * cost.periodMs, Math.max(0, drained.debt - younger * cost.periodMs));
  if (younger === 0) drained.charged -= unused;
  return drained;
}

/** Units that are available now. */
export function remainingUnits(gauge: Gauge, cost: Cost): number {
  const used = cost.periodMs === 0 ? gauge.debt : Math.ceil(gauge.debt / cost.periodMs);
  return Math.max(0, cost.limit - used);
}

/** Milliseconds until the bucket is empty again if nothing more is taken; 0 for slots. */
export function resetMs(gauge: Gauge, cost: Cost): number {
  return cost.periodMs === 0 || cost.limit <= 0 ? 0 : Math.ceil(gauge.debt / cost.limit);
}

/** A gauge that is not yet known to others. */
type ChangingGauge = { -readonly [Name in keyof Gauge]: Gauge[Name] };

/** A copy, for the caller to change. */
function drain({ debt, charged, sinceMs, atMs }: Gauge, { periodMs, limit }: Cost, nowMs: number): ChangingGauge {
  if (periodMs === 0 || nowMs <= atMs) return { debt, charged, sinceMs, atMs };
  return { debt: Math.max(0, debt - (nowMs - atMs) * limit), charged, sinceMs, atMs: nowMs };
}

/** 0 if the cost can be granted now. */
function waitFor(gauge: Gauge, cost: Cost): number {
  if (cost.periodMs === 0) return gauge.debt + cost.units <= cost.limit ? 0 : slotRetryMs;
  if (cost.limit <= 0) return cost.periodMs;
  const excess = gauge.debt + (chargedUnits(cost) - cost.limit) * cost.periodMs;
  return excess <= 0 ? 0 : Math.ceil(excess / cost.limit);
}

/** An empty bucket restarts its count, which keeps `charged` small; earlier receipts have nothing left to refund. */
function charge(gauge: ChangingGauge, { periodMs }: Cost, units: number): void {
  const isEmpty = gauge.debt === 0;
  gauge.debt += periodMs === 0 ? units : units * periodMs;
  gauge.charged = isEmpty ? units : gauge.charged + units;
  if (isEmpty) gauge.sinceMs = gauge.atMs;
}
