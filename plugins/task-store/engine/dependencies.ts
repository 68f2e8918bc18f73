/** Dependencies and timing of the engine. */
import type { Clock, Log, Random } from '../../../core/contract/host-tools.ts';
import type { UpstreamHealth } from '../../common/domain/admin/upstreams.ts';
import type { Database } from '../../common/domain/database.ts';
import type { Catalog } from '../../common/domain/models.ts';
import type { Files } from '../../common/domain/stored-files.ts';
import type { Providers } from '../../common/domain/upstreams.ts';
import type { Order } from '../../common/media/adapters.ts';
import type { Adapters } from '../contract.ts';
import type { EndTools } from './final-states.ts';
import type { Live } from './live.ts';
import type { Vendors } from './vendor.ts';

export interface Timing {
  /** How long a silent worker keeps its tasks. */
  readonly leaseMs: number;
  /** Time from the order to the end, by kind. */
  readonly deadlineMs: { readonly image: number; readonly video: number };
  /** How long to wait for the outcome of a lost worker before the task fails. */
  readonly reconcileMs: number;
  /** Time between two polls of a vendor's task: the first pause, and the longest. */
  readonly pollMs: number;
  readonly longestPollMs: number;
  /** Before a retry when all vendors were busy: the first pause, and the longest. */
  readonly retryMs: number;
  readonly longestRetryMs: number;
}

export interface Tools extends EndTools {
  readonly store: Database;
  readonly files: Files;
  readonly catalog: Catalog;
  readonly providers: Providers;
  /** Health of all targets, by all traffic; undefined: not tracked. */
  readonly health: () => UpstreamHealth | undefined;
  readonly adapters: Adapters;
  readonly vendors: Vendors;
  /** The order with its references as bytes, for vendors that accept nothing else. Throws invalid_request. */
  readonly withBytes: (order: Order, signal: AbortSignal) => Promise<Order>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly timing: Timing;
}

/** A worker's right to a task: its lease, and the signal that the process stops. */
export interface WorkerContext {
  readonly lease: string;
  readonly signal: AbortSignal;
  /** Set if a client streams the task. */
  readonly live?: Live;
}
