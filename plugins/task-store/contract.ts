/** The types that this plugin's folders share: shapes parse orders and show tasks, the engine executes them. */

import type { JsonObject } from '../../core/json/json.ts';
import type { Made, MediaAdapter, MediaKind, Order } from '../common/media/adapters.ts';

/** Clients see `reconciling` and similar states as `running`. The last four are final. */
export type TaskState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired';

/** The client's view of a stored task. Times are wall-clock milliseconds. */
export interface Task {
  readonly id: string;
  readonly kind: MediaKind;
  /** As the client named it. */
  readonly model: string;
  readonly state: TaskState;
  /** 0 to 100. */
  readonly progress: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** When the task reached its final state. */
  readonly completedAtMs: number | undefined;
  /** Set if the task failed, was cancelled or expired. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Set if the task succeeded; at addresses that clients may open. */
  readonly results: readonly TaskResult[];
  readonly order: Order;
  /** Set if the task succeeded. */
  readonly made: Made | undefined;
}

export interface TaskResult {
  /** Signed; expires. */
  readonly url: string;
  readonly mediaType: string;
  /** Only if the client wants the bytes in the answer. */
  readonly base64?: string;
}

/** A parsed request: the order, and how to answer it. */
export interface Submission {
  readonly order: Order;
  /** Whether the answer is the result; otherwise it is the task. undefined: as the key has it. */
  readonly waits: boolean | undefined;
  /** Format of results in the answer to a client that waits. */
  readonly form: 'url' | 'base64';
  /** Address for a callback about the final state. */
  readonly callbackUrl: string | undefined;
}

/** One client protocol: pure. */
export interface Shape {
  /** Throws invalid_request that names the client's field. Header names in lower case. */
  read(body: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission;
  /** The answer to a submission. */
  submitted(task: Task): JsonObject;
  /** The answer to a client that has waited for the result; absent: as to a query. */
  waited?(task: Task): JsonObject;
  /** The answer to a query. */
  render(task: Task): JsonObject;
  /** The answer to the deletion of a final task. */
  deleted(task: Pick<Task, 'id'>): JsonObject;
  /** A deletion of an open task cancels and deletes it; absent: it stays as cancelled. */
  readonly deletesCancelled?: true;
}

/** By name. */
export type Adapters = ReadonlyMap<string, MediaAdapter>;
