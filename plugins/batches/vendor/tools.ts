/** What the steps of vendors' batches work with. Types. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Batch } from '../batch.ts';
import type { VendorRows } from './rows.ts';
import type { Settling } from './settle.ts';

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
