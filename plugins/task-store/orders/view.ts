/** A stored task as its client may see it. */

import { GatewayError } from '../../../core/contract/errors.ts';
import { table } from '../../../core/contract/table.ts';
import type { Files } from '../../common/domain/stored-files.ts';
import type { Task, TaskResult, TaskState } from '../contract.ts';
import type { StoredState, StoredTask } from '../engine/rows.ts';

const states: Readonly<Record<StoredState, TaskState>> = {
  queued: 'queued',
  creating: 'running',
  reconciling: 'running',
  running: 'running',
  copying: 'running',
  completed: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** State filters, in the terms of every shape. */
const filters: Readonly<Record<string, readonly StoredState[]>> = table({
  queued: ['queued'],
  submitted: ['queued'],
  running: ['creating', 'reconciling', 'running', 'copying'],
  processing: ['creating', 'reconciling', 'running', 'copying'],
  in_progress: ['creating', 'reconciling', 'running', 'copying'],
  succeeded: ['completed'],
  completed: ['completed'],
  failed: ['failed'],
  cancelled: ['cancelled'],
});

/** undefined: no such state. */
export function statesNamed(name: string): readonly StoredState[] | undefined {
  return Object.hasOwn(filters, name) ? filters[name] : undefined;
}

/** `code`: that of its error. */
export const shownState = (state: StoredState, code: string | undefined) =>
  code === 'expired' ? 'expired' : states[state];

export function isFinal(state: StoredState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled';
}

/** `host`: the Host header of the request; `base64`: the bytes of results, by their ids. */
export function viewOf(
  task: StoredTask,
  files: Pick<Files, 'address'>,
  host: string | undefined,
  base64?: ReadonlyMap<string, string>,
): Task {
  const results = task.results.map(({ id, mediaType }): TaskResult => {
    const bytes = base64?.get(id);
    return { url: files.address(id, host), mediaType, ...(bytes === undefined ? {} : { base64: bytes }) };
  });
  return {
    id: task.id,
    kind: task.kind,
    model: task.model,
    state: shownState(task.state, task.error?.code),
    progress: task.progress,
    createdAtMs: task.createdAtMs,
    updatedAtMs: task.updatedAtMs,
    completedAtMs: task.completedAtMs,
    error: task.error,
    results,
    order: task.order,
    made: task.made,
  };
}

/** The error for a client that waited for a task which failed. */
export function endAsError({ state, error }: StoredTask): GatewayError {
  const code = error?.code ?? 'generation_failed';
  const message = error?.message ?? 'The task failed.';
  if (state === 'cancelled') return new GatewayError('conflict', message, { code, shouldRetry: false });
  const wait = error?.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
  if (code === 'upstream_busy') return new GatewayError('overloaded', message, { code, ...wait });
  // Not the client's own limit, which has its own headers.
  if (code === 'upstream_rate_limited') return new GatewayError('rate_limited', message, { code: 'upstream', ...wait });
  if (code === 'expired') return new GatewayError('upstream_timeout', message, { code, shouldRetry: false });
  if (operatorCodes.has(code)) return new GatewayError('upstream_failed', message, { code, shouldRetry: false });
  const named = error?.field === undefined ? {} : { field: error.field };
  return new GatewayError('invalid_request', message, { code, shouldRetry: false, ...named });
}

/** Error codes that are not about the client's input. */
const operatorCodes = new Set(['outcome_unknown', 'generation_failed', 'result_lost', 'model_not_found']);
