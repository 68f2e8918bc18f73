/** Looks at a vendor's task until it has an end, and ends what was lost or took too long. */
import { UpstreamRefusal } from '../../core/errors.ts';
import type { Step } from './contract.ts';
import { makeFilesKept } from './copy.ts';
import { giveUp, usageAtMost, withLast } from './ends.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { targetOf } from './targets.ts';
import { backOff, type Hand, type Tools } from './tools.ts';
import { unknownOutcome } from './verdict.ts';

/** A vendor may not know of its own task yet. */
const forgivenMs = 60_000;
const pollTimeoutMs = 60_000;

export const expired: TaskError = { code: 'expired', message: 'The task was not done in time. Nothing is charged.' };

export async function poll(tools: Tools, task: StoredTask, hand: Hand): Promise<void> {
  const { rows, timing, random, catalog, providers, adapters, clock } = tools;
  const from: From = { states: ['running'], by: { lease: hand.lease } };
  const last = task.attempts.at(-1)!;
  const found = targetOf(last, catalog.find(task.model), providers, adapters);
  const asks = found?.adapter.tasks;
  let step: Step | undefined;
  if (found !== undefined && asks !== undefined) {
    try {
      const answer = await tools.vendors.ask(asks.poll(task.vendorId!), found.target, pollTimeoutMs, hand.signal);
      step = asks.readPolled(answer, task.order, task.vendorId!);
    } catch (error) {
      if (hand.signal.aborted) return;
      tools.log.info({ error, task: task.id }, "a vendor's task could not be read");
      const unknown = error instanceof UpstreamRefusal && error.status === 404;
      if (unknown && clock.now() - last.startedAt > forgivenMs) return giveUpUnknown(tools, task, from, unknownOutcome);
    }
  }
  if (step?.state === 'done') return makeFilesKept(tools, task, from, step, hand);
  if (step?.state === 'failed') {
    const { code, message } = step;
    const attempts = withLast(task.attempts, { result: 'refused' });
    await giveUp(tools, task, from, { state: 'failed', error: { code, message }, attempts });
    return;
  }
  if (task.leftMs <= 0) return giveUpUnknown(tools, task, from, expired);
  const dueMs = backOff(task.tries + 1, timing.pollMs, timing.longestPollMs, random);
  const progress = Math.max(task.progress, Math.min(step?.progress ?? 0, 99));
  await rows.move(task.id, from, { state: 'running', dueMs }, { tries: task.tries + 1, progress });
}

/** The vendor may have made it: its client pays nothing, and the operator what it cost at most. */
export async function giveUpUnknown(tools: Tools, task: StoredTask, from: From, error: TaskError): Promise<void> {
  const adapter = tools.adapters.get(task.attempts.at(-1)?.protocol ?? '');
  const usage = adapter === undefined ? {} : usageAtMost(adapter.bounds(task.order));
  const attempts = withLast(task.attempts, { result: 'unknown', consumed: { usage, estimated: true } });
  await giveUp(tools, task, from, { state: 'failed', error, attempts });
}
