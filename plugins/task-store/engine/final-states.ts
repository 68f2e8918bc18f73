/** The final states: each is reached in one transaction with its money and its callback. */

import type { Attempt } from '../../common/domain/calls.ts';
import type { Authorizations } from '../../common/domain/ledger.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { Bounds, MediaAdapter, Order } from '../../common/media/adapters.ts';
import type { From, StoredResult, StoredTask, TaskError, TaskRows } from './rows.ts';
import { judge } from './verdict.ts';

const longestError = 300;

export interface EndTools {
  readonly rows: TaskRows;
  readonly authorizations: Authorizations;
  /** Called when a task has ended, with its attempts: its callback is due. */
  readonly onEnd?: (task: StoredTask, attempts: readonly Attempt[]) => void;
}

/** How a task failed. */
export interface UnchargedEnd {
  readonly state: 'failed' | 'cancelled';
  readonly error: TaskError;
  readonly attempts: readonly Attempt[];
}

/** false: this worker no longer has the right to end it, and nothing was written. */
export function complete(
  tools: EndTools,
  task: StoredTask,
  from: From,
  results: readonly StoredResult[],
): Promise<boolean> {
  const { made, attempts, vendorId } = task;
  const { usage, estimated, media } = made!;
  return end(tools, task, attempts, async (orm) => {
    if (!(await tools.rows.end(orm, task, from, 'completed', { results, progress: 100 }))) return undefined;
    const shown = media.length === 0 ? {} : { media };
    const report = { usage, estimated, terminal: true, upstreamId: vendorId, finish: 'completed', ...shown };
    return { report, reason: 'answered', attempts };
  });
}

/** Charges nothing. What an attempt may have cost is written off. */
export function endUncharged(
  tools: EndTools,
  task: StoredTask,
  from: From,
  { state, error, attempts }: UnchargedEnd,
): Promise<boolean> {
  return end(tools, task, attempts, async (orm) => {
    const ended = await tools.rows.end(orm, task, from, state, { error, attempts });
    return ended ? { report: undefined, reason: reasonOf(state, attempts), attempts } : undefined;
  });
}

async function end(
  { authorizations, onEnd }: EndTools,
  task: StoredTask,
  attempts: readonly Attempt[],
  work: Parameters<Authorizations['end']>[2],
): Promise<boolean> {
  const ended = await authorizations.end(task.accountId, task.requestId, work);
  if (ended) onEnd?.(task, attempts);
  return ended;
}

/** The reason, as for any call that is not charged. */
function reasonOf(state: UnchargedEnd['state'], attempts: readonly Attempt[]): string {
  if (state === 'cancelled') return state;
  const result = attempts.at(-1)?.result ?? 'not_sent';
  // The result could not be stored, so the client has none, whatever the vendor reports.
  return result === 'answered' ? 'unknown' : result;
}

/** What an order may have consumed if the vendor does not report it: its bounds. */
export function usageAtMost({ inputTokens, outputTokens, images, seconds }: Omit<Bounds, 'media'>): Usage {
  return {
    ...(inputTokens === 0 ? {} : { input: inputTokens }),
    ...(outputTokens === 0 ? {} : { output_image: outputTokens }),
    ...(images === 0 ? {} : { image: images }),
    ...(seconds === 0 ? {} : { second: seconds }),
  };
}

/** A copy of the list with the last attempt's outcome. */
export function withLast(attempts: readonly Attempt[], outcome: Partial<Attempt>): Attempt[] {
  const last = attempts.at(-1);
  return last === undefined ? [] : [...attempts.slice(0, -1), { ...last, ...outcome }];
}

/**
 * Adds an attempt for each broken call of the last attempt; its cost is unknown, so its upper bound is written off. The
 * charged attempt stays the last.
 */
export function withBroken(
  attempts: readonly Attempt[],
  broken: readonly { readonly order: Order; readonly error: unknown }[],
  bounds: MediaAdapter['bounds'],
): Attempt[] {
  const last = attempts.at(-1);
  if (last === undefined) return [];
  const others = broken.map(({ order, error }, index): Attempt => {
    const { status } = judge(error);
    const message = error instanceof Error ? error.message.slice(0, longestError) : 'unknown';
    const consumed = { usage: usageAtMost(bounds(order)), estimated: true };
    return { ...last, number: last.number + index, result: 'unknown', status, error: message, consumed };
  });
  return [...attempts.slice(0, -1), ...others, { ...last, number: last.number + others.length }];
}
