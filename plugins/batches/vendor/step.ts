/** What the steps of a vendor's batch share. Types. */
import type { Batch } from '../batch.ts';
import type { Renewed } from '../rows.ts';
import type { BatchApi } from './api.ts';
import type { VendorBatch } from './rows.ts';
import type { Wire } from './wire.ts';

/** The worker's hold on a batch. */
export interface Lease {
  readonly token: string;
  /** Throws when another worker has it. */
  renew(): Promise<Renewed>;
  /** The same where it is time to. */
  keep(): Promise<Renewed>;
  /** How often it is to be renewed. */
  readonly everyMs: number;
  readonly isStopping: () => boolean;
}

/** One batch in the hands of this worker. */
export interface Held extends Renewed {
  readonly batch: Batch;
  readonly vendor: VendorBatch;
  readonly lease: Lease;
}

export interface Step extends Held {
  readonly api: BatchApi;
  readonly wire: Wire;
  /** The same, for calls that this signal ends. */
  readonly wireUntil: (signal: AbortSignal) => Wire;
}

/** `again`: the next state is due at once; a number: milliseconds until this one is. */
export type Next = 'again' | number;
