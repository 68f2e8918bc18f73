/** The console's contract: the service that lists, checks and cancels batches. */
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

/** These addresses name the model, which the bodies of their lines do not. */
export const contentEndpoint = '/v1beta/models/{model}:generateContent';
export const embeddingEndpoint = '/v1beta/models/{model}:embedContent';
/** Addresses that lines of batches may call. */
export const batchEndpoints = [
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/embeddings',
  '/v1/moderations',
  contentEndpoint,
  embeddingEndpoint,
] as const;

/** The words for where a batch stands, and how one ended. */
export const batchStates = [
  'validating',
  'running',
  'finishing',
  'completed',
  'failed',
  'cancelled',
  'expired',
] as const;

/** A vendor's own batch that makes the lines. */
interface VendorBatchView {
  readonly provider: string;
  /** The vendor's name of the model, and the client's. */
  readonly model: string;
  readonly asked: string;
  readonly protocol: string;
  readonly credential: string | undefined;
  readonly state: 'preparing' | 'uploading' | 'ordering' | 'running' | 'reading' | 'ended';
  /** Lines of the order; 0 until it is made. */
  readonly lines: number;
  /** The vendor's id of the batch. */
  readonly vendorId: string | undefined;
  readonly orderedAt: number | undefined;
  /** Whether the vendor was asked to cancel it. */
  readonly cancelSent: boolean;
  /** How the vendor ended it. */
  readonly result: 'completed' | 'cancelled' | 'expired' | undefined;
}

/** A batch in a list of all accounts. */
export interface OwnedBatch
  extends Pick<
    BatchView,
    | 'id'
    | 'keyId'
    | 'endpoint'
    | 'state'
    | 'outcome'
    | 'total'
    | 'cost'
    | 'createdAt'
    | 'endedAt'
    | 'cancelAt'
    | 'expiresAt'
  > {
  readonly accountId: string;
  /** Undefined, as the cost is, until it has ended: lines of many batches are too many to count. */
  readonly counts: BatchView['counts'] | undefined;
  /** Provider that makes the lines by its batch API; undefined: they are made as calls. */
  readonly provider: string | undefined;
}

/** One batch of any account. */
export interface BatchStory {
  readonly accountId: string;
  readonly batch: BatchView;
  readonly vendor: VendorBatchView | undefined;
}

export interface BatchAdmin {
  /** Batches of all accounts, newest first. */
  listAll(
    filter: {
      readonly accountId?: string | undefined;
      readonly state?: (typeof batchStates)[number] | undefined;
      readonly endpoint?: (typeof batchEndpoints)[number] | undefined;
    },
    page: PageRequest,
  ): Promise<Page<OwnedBatch>>;
  findAny(id: string): Promise<BatchStory | undefined>;
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
