/** What a limiter engine does, whether it keeps its buckets in memory or elsewhere. */
import type { Limits } from '../../core/vocabulary.ts';
import { type Cost, type Gauge, type Receipt, remainingUnits, resetMs } from './decide.ts';

/** The dimensions of a plan's limits; also the `code` of the error. */
export type Dimension = keyof Limits;

/** What an operation asks of the bucket of one subject and dimension. */
export interface Demand extends Cost {
  /** Whose bucket: an account's id. */
  readonly subject: string;
  readonly dimension: Dimension;
  /** Buckets of one operation stand together on one server of a cluster: those of one group do. */
  readonly group: string;
  /** A slot that nobody gave back (a node that died) is free again after this long. Only slots have it. */
  readonly slotLifetimeMs?: number;
}

/** How full one bucket is, for the headers. */
export interface Standing {
  readonly dimension: Dimension;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until it is whole again. */
  readonly resetMs: number;
}

export interface Verdict {
  /** Whose buckets the receipts are of: that limiter adjusts and releases. */
  readonly by: Limiter;
  readonly granted: boolean;
  /** The demand that has to be waited for longest; undefined when granted. */
  readonly refusedBy: Demand | undefined;
  /** Wait after which the same demands are granted if nobody else takes anything; 0 when granted. */
  readonly retryAfterMs: number;
  readonly standings: readonly Standing[];
  /** One for each demand, in their order, for `adjust`; none when refused. */
  readonly receipts: readonly Receipt[];
}

export type MaybePromise<T> = T | Promise<T>;

/** `id` names the operation; a slot is held in its name, so giving it back twice gives it back once. */
export interface Limiter {
  /** Takes from up to eight buckets, all or nothing. A refusal takes nothing. */
  take(id: string, demands: readonly Demand[]): MaybePromise<Verdict>;
  /** Replaces what `demand` reserved by what was used. Once per granted demand, with the receipt that `take` gave for it. */
  adjust(demand: Demand, receipt: Receipt, usedUnits: number): MaybePromise<void>;
  /** Gives back the slot that `id` holds. */
  release(id: string, demand: Demand): MaybePromise<void>;
}

export const maxDemands = 8;

/** Where a bucket stands, for the headers. */
export function standing(demand: Demand, gauge: Gauge): Standing {
  const { dimension, limit } = demand;
  return { dimension, limit, remaining: remainingUnits(gauge, demand), resetMs: resetMs(gauge, demand) };
}
