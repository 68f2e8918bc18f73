/** The rows of tasks, whoever keeps them: put in, found, taken, and moved from state to state. */
import type { Attempt, Orm } from '../../core/vocabulary.ts';
import type { Made, MediaKind, Order } from './contract.ts';

/** There is something to do yet. */
export type OpenState = 'queued' | 'creating' | 'reconciling' | 'running' | 'copying';
export type FinalState = 'completed' | 'failed' | 'cancelled';
export type StoredState = OpenState | FinalState;

/** A result that is kept, or one that still lies at its vendor's. */
export type Kept = { readonly id: string; readonly mediaType: string };
export type VendorFile = { readonly kept: Kept } | { readonly url: string; readonly kind: MediaKind };
export interface TaskError {
  readonly code: string;
  readonly message: string;
  /** The request's field at fault, where somebody has named it. */
  readonly field?: string;
  /** How long the vendor wants to be left alone, for who waits: counted from the end. */
  readonly retryAfterMs?: number;
}

export interface StoredTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly kind: MediaKind;
  readonly model: string;
  readonly state: StoredState;
  readonly progress: number;
  readonly order: Order;
  readonly callbackUrl: string | undefined;
  readonly attempts: readonly Attempt[];
  readonly vendorId: string | undefined;
  readonly made: Made | undefined;
  readonly vendorFiles: readonly VendorFile[];
  readonly results: readonly Kept[];
  readonly error: TaskError | undefined;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly completedAtMs: number | undefined;
  /** Milliseconds until it must have ended, by the database's clock, when it was read. */
  readonly leftMs: number;
  readonly tries: number;
}

export interface NewTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly order: Order;
  readonly callbackUrl: string | undefined;
  readonly deadlineMs: number;
  /** Whoever takes the order does its first step too. */
  readonly lease?: { readonly token: string; readonly forMs: number };
}

/** What a transition writes beside the state; absent members stay. */
export interface Changes {
  readonly progress?: number;
  readonly attempts?: readonly Attempt[];
  readonly vendorId?: string;
  readonly made?: Made;
  readonly vendorFiles?: readonly VendorFile[];
  readonly results?: readonly Kept[];
  readonly error?: TaskError;
  readonly tries?: number;
}

/** Who may make a transition, and from where. */
export interface From {
  readonly states: readonly StoredState[];
  /** The lease by which the worker has it; or the departure that only one worker ever made. */
  readonly by: { readonly lease: string } | { readonly departure: number } | 'anybody';
}

/** Where it goes, and when there is something to do again. `keepLease`: the same worker goes on. */
export interface To {
  readonly state: OpenState;
  readonly dueMs: number;
  readonly keepLease?: true;
}

/** Each step is one statement, by the clock of whoever keeps the rows. */
export interface TaskRows {
  /** In the transaction that sets its money aside. */
  insert(transaction: Orm, task: NewTask): Promise<void>;
  /** At most `limit` tasks that are due and that nobody works on, the longest due first; they are this lease's for a while. */
  take(lease: string, limit: number, leaseMs: number): Promise<StoredTask[]>;
  /** false: somebody else has it by now. */
  renew(id: string, lease: string, leaseMs: number): Promise<boolean>;
  /** The account's task; without an account, anybody's. What was shown to the model stays where it is: it may be large. */
  find(id: string, accountId?: string): Promise<StoredTask | undefined>;
  /** Checks the old state and the right to change it. false: it is not there any more, and nothing was written. */
  move(id: string, from: From, to: To, changes?: Changes): Promise<boolean>;
  /** As `move`, for good, and with the word to whoever wants to be told; in the transaction that ends its money. */
  end(transaction: Orm, task: Ending, from: From, state: FinalState, changes: Changes): Promise<boolean>;
  /** Forgets tasks that ended so long ago. */
  deleteOld(olderThanMs: number): Promise<void>;
}

/** Of a task that ends: whom to tell. */
export type Ending = Pick<StoredTask, 'id' | 'callbackUrl'>;
