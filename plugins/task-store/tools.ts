/** What the rooms of the queue work with, and how long they wait. */
import type { Clock, Log, Random } from '../../core/contract.ts';
import type { UpstreamHealth } from '../../core/desk.ts';
import type { Catalog, Database, Deposits, Files, Providers } from '../../core/vocabulary.ts';
import type { Order } from './contract.ts';
import type { Live } from './live.ts';
import type { TaskRows } from './rows.ts';
import type { Adapters } from './targets.ts';
import type { Vendors } from './vendor.ts';

export interface Timing {
  /** For so long a worker that says nothing is believed to be at work. */
  readonly leaseMs: number;
  /** From the order to the end, by kind. */
  readonly deadlineMs: { readonly image: number; readonly video: number };
  /** For an answer whose worker was lost, before its task is given up. */
  readonly reconcileMs: number;
  /** Between two looks at a vendor's task: the first, and the longest. */
  readonly pollMs: number;
  readonly longestPollMs: number;
  /** Before vendors that were all busy are asked again: the first time, and at most. */
  readonly retryMs: number;
  readonly longestRetryMs: number;
}

export interface Tools {
  readonly store: Database;
  readonly rows: TaskRows;
  readonly deposits: Deposits;
  readonly files: Files;
  readonly catalog: Catalog;
  readonly providers: Providers;
  /** Which targets fail, by all traffic; undefined: nobody watches. */
  readonly health: () => UpstreamHealth | undefined;
  readonly adapters: Adapters;
  readonly vendors: Vendors;
  /** The order with its references as bytes, for vendors that take nothing else. Throws invalid_request. */
  readonly withBytes: (order: Order, signal: AbortSignal) => Promise<Order>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly timing: Timing;
}

/** A worker's right to a task: its lease, and the signal that says that the process stops. */
export interface Hand {
  readonly lease: string;
  readonly signal: AbortSignal;
  /** Somebody looks on. */
  readonly live?: Live;
}

/** Doubles from `firstMs` up to `longestMs`, less up to a quarter, so that many do not come at once. */
export function backOff(tries: number, firstMs: number, longestMs: number, random: Random): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(tries, 20));
  return full * (1 - random.fraction() / 4);
}
