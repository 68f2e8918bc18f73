/** The service that lists, checks and cancels batches. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Money } from '../money.ts';
import type { Page, PageRequest } from './pages.ts';

/** A fault of an input; `line`: null for the file as a whole. */
interface BatchFault {
  readonly line: number | null;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** Times are wall-clock milliseconds. */
export interface BatchView {
  readonly id: string;
  readonly keyId: string;
  readonly endpoint: string;
  readonly state: 'validating' | 'running' | 'finishing' | 'ended';
  readonly outcome: 'completed' | 'failed' | 'cancelled' | 'expired' | undefined;
  /** Lines of the input; 0 until it was read. */
  readonly total: number;
  readonly counts: {
    readonly succeeded: number;
    readonly errored: number;
    readonly cancelled: number;
    readonly expired: number;
  };
  /** Charges of the finished lines, in nano-USD; undefined: one of them is unknown. */
  readonly cost: Money | undefined;
  /** Set aside for lines that are at a vendor, in nano-USD. */
  readonly held: Money;
  readonly errors: readonly BatchFault[];
  readonly inputFile: string;
  /** Undefined: there is none, or not yet. */
  readonly outputFile: string | undefined;
  readonly errorFile: string | undefined;
  readonly createdAt: number;
  readonly endedAt: number | undefined;
  readonly cancelAt: number | undefined;
  /** When lines that have not begun expire. */
  readonly expiresAt: number;
}

export interface BatchAdmin {
  /** Newest first. */
  list(accountId: string, page: PageRequest): Promise<Page<BatchView>>;
  find(accountId: string, id: string): Promise<BatchView | undefined>;
  /** Running lines are finished, others are not begun. Does nothing for an ended batch. */
  cancel(accountId: string, id: string): Promise<void>;
  /** Reads an uploaded file as a batch would, and starts nothing. Throws not_found for a file that the account does not have. */
  check(
    accountId: string,
    fileId: string,
    endpoint: string,
  ): Promise<{ readonly lines: number; readonly errors: readonly BatchFault[] }>;
}

export const batchAdmin = defineService<BatchAdmin>('batch admin');
