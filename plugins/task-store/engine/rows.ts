/** The port to the rows of tasks: insert, find, take, and move from state to state. */
import type { Attempt } from '../../common/domain/calls.ts';
import type { Orm } from '../../common/domain/database.ts';
import type { Made, MediaKind, Order } from '../../common/media/adapters.ts';

/** States with work left. */
export type OpenState = 'queued' | 'creating' | 'reconciling' | 'running' | 'copying';
export type FinalState = 'completed' | 'failed' | 'cancelled';
export type StoredState = OpenState | FinalState;

/** A stored result, or one that is still at its vendor. */
export type StoredResult = { readonly id: string; readonly mediaType: string };
export type VendorFile = { readonly kept: StoredResult } | { readonly url: string; readonly kind: MediaKind };
export interface TaskError {
  readonly code: string;
  readonly message: string;
  /** The field of the request at fault, if known. */
  readonly field?: string;
  /** How long the vendor asks to wait, from the end of the task; for clients that wait. */
  readonly retryAfterMs?: number;
}

export interface StoredTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Span of the request that ordered it, as W3C trace context; null: none. */
  readonly trace?: string | null;
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
  readonly results: readonly StoredResult[];
  readonly error: TaskError | undefined;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly completedAtMs: number | undefined;
  /** Milliseconds until the deadline when the row was read, by the database's clock. */
  readonly leftMs: number;
  readonly tries: number;
}

export interface NewTask {
  readonly id: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly trace?: string | null;
  readonly order: Order;
  readonly callbackUrl: string | undefined;
  readonly deadlineMs: number;
  /** Set if the process that places the order also runs its first step. */
  readonly lease?: { readonly token: string; readonly forMs: number };
}

/** Columns that a transition writes beside the state; absent members stay unchanged. */
export interface Changes {
  readonly progress?: number;
  readonly attempts?: readonly Attempt[];
  readonly vendorId?: string;
  readonly made?: Made;
  readonly vendorFiles?: readonly VendorFile[];
  readonly results?: readonly StoredResult[];
  readonly error?: TaskError;
  readonly tries?: number;
}

/** The states that a transition may start from, and the right to make it. */
export interface From {
  readonly states: readonly StoredState[];
  /** The lease that the worker holds, or the number of an attempt, which only one worker made. */
  readonly by: { readonly lease: string } | { readonly departure: number } | 'any';
}

/** The new state and when work is due again. `keepLease`: the same worker continues. */
export interface To {
  readonly state: OpenState;
  readonly dueMs: number;
  readonly keepLease?: true;
}

/** Each operation is one statement, by the database's clock. */
export interface TaskRows {
  /** In the transaction that authorizes its money. */
  insert(transaction: Orm, task: NewTask): Promise<void>;
  /** Takes at most `limit` due tasks that no worker holds, the longest due first; this lease holds them for a while. */
  take(lease: string, limit: number, leaseMs: number): Promise<StoredTask[]>;
  /** false: another worker holds the task now. */
  renew(id: string, lease: string, leaseMs: number): Promise<boolean>;
  /**
   * The account's task; without an account, the task of any account. References and vendor files are not read, as they
   * may be large.
   */
  find(id: string, accountId?: string): Promise<StoredTask | undefined>;
  /** Checks the old state and the right to change it. false: the check failed and nothing was written. */
  move(id: string, from: From, to: To, changes?: Changes): Promise<boolean>;
  /** Like `move`, to a final state: adds the callback, in the transaction that settles the money. */
  end(transaction: Orm, task: Ending, from: From, state: FinalState, changes: Changes): Promise<boolean>;
  /** Deletes a final task of the account, with its pending callbacks. false: there is none, or it is not final. */
  remove(id: string, accountId: string): Promise<boolean>;
  /** Deletes tasks that ended longer ago than this. */
  deleteOld(olderThanMs: number): Promise<void>;
}

/** A task that ends, and its callback. */
export type Ending = Pick<StoredTask, 'id' | 'callbackUrl'>;
