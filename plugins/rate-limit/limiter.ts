/** The interface of limiter engines, in memory or shared. */
import type { Limits } from '../common/domain/plans.ts';
import { type Cost, type Gauge, type Receipt, remainingUnits, resetMs } from './decide.ts';

/** The dimensions of a plan's limits; also the `code` of the error. */
export type Dimension = keyof Limits;

/** Units that an operation takes from the bucket of one subject and dimension. */
export interface Demand extends Cost {
  /** Owner of the bucket: an account's id, or a key. */
  readonly subject: string;
  readonly dimension: Dimension;
  /** Buckets of one group are on one server of a cluster, as one operation needs them together. */
  readonly group: string;
  /** A slot that was never released (its node died) is free again after this time. Set for slots only. */
  readonly slotLifetimeMs?: number;
}

/** Usage of one bucket, for the headers. */
export interface LimitStatus {
  readonly dimension: Dimension;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the bucket is empty again. */
  readonly resetMs: number;
}

export interface Verdict {
  /** The limiter that issued the receipts: it takes them back. */
  readonly by: Limiter;
  readonly granted: boolean;
  /** The demand with the longest wait; undefined when granted. */
  readonly refusedBy: Demand | undefined;
  /** Wait after which the same demands are granted, if nothing else is taken meanwhile; 0 when granted. */
  readonly retryAfterMs: number;
  readonly statuses: readonly LimitStatus[];
  /** One per demand, in their order, for `giveBack`; empty when refused. */
  readonly receipts: readonly Receipt[];
}

/** The returned part of a granted demand: a slot, or reserved and unused units. */
export interface Returned {
  readonly demand: Demand;
  readonly receipt: Receipt;
  /** 0 for a slot. */
  readonly usedUnits: number;
}

type MaybePromise<T> = T | Promise<T>;

/** `id` names the operation; it holds the slots, so a second release has no effect. */
export interface Limiter {
  /** Takes from up to eight buckets, all or nothing. A refusal takes nothing. */
  take(id: string, demands: readonly Demand[]): MaybePromise<Verdict>;
  /**
   * Releases the slots that `id` holds, and replaces the reserved units of other demands by the used ones. Once per granted demand. All
   * are of one group.
   */
  giveBack(id: string, returned: readonly Returned[]): MaybePromise<void>;
}

export const maxDemands = 8;

/** The status of a bucket, for the headers. */
export function limitStatus(demand: Demand, gauge: Gauge): LimitStatus {
  const { dimension, limit } = demand;
  return { dimension, limit, remaining: remainingUnits(gauge, demand), resetMs: resetMs(gauge, demand) };
}
