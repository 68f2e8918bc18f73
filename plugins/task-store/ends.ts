/** The final states: each is reached in one transaction with its money and with the word to whoever wants to be told. */
import type { Usage } from '../../core/usage.ts';
import type { Attempt, Deposits } from '../../core/vocabulary.ts';
import type { Adapter, Bounds, Order } from './contract.ts';
import type { From, Kept, StoredTask, TaskError, TaskRows } from './rows.ts';
import { judge } from './verdict.ts';

const longestError = 300;

export interface EndTools {
  readonly rows: TaskRows;
  readonly deposits: Deposits;
}

/** How a task came to nothing. */
export interface BadEnd {
  readonly state: 'failed' | 'cancelled';
  readonly error: TaskError;
  readonly attempts: readonly Attempt[];
}

/** false: it is not this worker's to end any more, and nothing was done. */
export function complete(tools: EndTools, task: StoredTask, from: From, results: readonly Kept[]): Promise<boolean> {
  const { made, attempts, vendorId } = task;
  const { usage, estimated, media } = made!;
  return tools.deposits.end(task.accountId, task.requestId, async (orm) => {
    if (!(await tools.rows.end(orm, task, from, 'completed', { results, progress: 100 }))) return undefined;
    const shown = media.length === 0 ? {} : { media };
    const report = { usage, estimated, terminal: true, upstreamId: vendorId, finish: 'completed', ...shown };
    return { report, reason: 'answered', attempts };
  });
}

/** Nothing is charged. What an attempt may have cost all the same is the operator's. */
export function giveUp(
  tools: EndTools,
  task: StoredTask,
  from: From,
  { state, error, attempts }: BadEnd,
): Promise<boolean> {
  return tools.deposits.end(task.accountId, task.requestId, async (orm) => {
    const ended = await tools.rows.end(orm, task, from, state, { error, attempts });
    return ended ? { report: undefined, reason: reasonOf(state, attempts), attempts } : undefined;
  });
}

/** As of any call that is not charged. */
function reasonOf(state: BadEnd['state'], attempts: readonly Attempt[]): string {
  if (state === 'cancelled') return state;
  const result = attempts.at(-1)?.result ?? 'not_sent';
  // What was made but could not be kept is lost to its client, whatever the vendor says.
  return result === 'answered' ? 'unknown' : result;
}

/** What an order may have consumed where nobody tells: its bounds. */
export function usageAtMost({ inputTokens, outputTokens, images, seconds }: Omit<Bounds, 'media'>): Usage {
  return {
    ...(inputTokens === 0 ? {} : { input: inputTokens }),
    ...(outputTokens === 0 ? {} : { output_image: outputTokens }),
    ...(images === 0 ? {} : { image: images }),
    ...(seconds === 0 ? {} : { second: seconds }),
  };
}

/** The last attempt's outcome, in a list of its own. */
export function withLast(attempts: readonly Attempt[], outcome: Partial<Attempt>): Attempt[] {
  const last = attempts.at(-1);
  return last === undefined ? [] : [...attempts.slice(0, -1), { ...last, ...outcome }];
}

/**
 * The last attempt was several calls of which these broke off: each is an attempt of its own, borne by whoever bears what is
 * not charged, with the most that it can have consumed. The one that is charged stays the last.
 */
export function withBroken(
  attempts: readonly Attempt[],
  broken: readonly { readonly order: Order; readonly error: unknown }[],
  bounds: Adapter['bounds'],
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
