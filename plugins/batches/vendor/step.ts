/** What the steps of a vendor's batch share. Types. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Batch } from '../batch.ts';
import type { Renewed } from '../rows.ts';
import type { BatchApi } from './api.ts';
import type { VendorBatch, VendorRows } from './rows.ts';
import type { Settling } from './settle.ts';
import type { Wire } from './wire.ts';

interface VendorOptions {
  readonly pollMs: number;
  /** How long after it was sent an order that got no answer may still appear at the vendor. */
  readonly settleMs: number;
  readonly answerBytes: number;
  /** Results that are delivered at once. */
  readonly lines: number;
}

export interface VendorTools {
  readonly host: Host;
  readonly rows: VendorRows;
  readonly settling: Settling;
  readonly options: VendorOptions;
  readonly textOf: (batch: Batch, line: { firstByte: number; bytes: number }) => Promise<string | undefined>;
}

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
