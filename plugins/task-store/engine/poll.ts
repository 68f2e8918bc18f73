/** Polls a vendor's task until it ends, and ends tasks that are lost or expired. */
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { backOff } from '../../common/kit/jobs/leases.ts';
import type { Step } from '../../common/media/adapters.ts';
import { orderFields } from '../../common/wire/trace.ts';
import { targetOf } from '../orders/targets.ts';
import { storeResults } from './copy.ts';
import type { Tools, WorkerContext } from './dependencies.ts';
import { endUncharged, usageAtMost, withLast } from './final-states.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { unknownOutcome } from './verdict.ts';

/** Vendors may return 404 for a new task at first. */
const forgivenMs = 60_000;
const pollTimeoutMs = 60_000;

export const expired: TaskError = { code: 'expired', message: 'The task was not done in time. Nothing is charged.' };

export async function poll(tools: Tools, task: StoredTask, worker: WorkerContext): Promise<void> {
  const { rows, timing, random, catalog, providers, adapters, clock } = tools;
  const from: From = { states: ['running'], by: { lease: worker.lease } };
  const last = task.attempts.at(-1)!;
  const found = targetOf(last, catalog.find(task.model), providers, adapters);
  const taskApi = found?.adapter.tasks;
  let step: Step | undefined;
  try {
    if (found !== undefined && taskApi !== undefined) {
      const answer = await tools.vendors.call(taskApi.poll(task.vendorId!), found.target, pollTimeoutMs, worker.signal);
      step = taskApi.readPolled(answer, task.order, task.vendorId!);
    }
  } catch (error) {
    if (worker.signal.aborted) return;
    tools.log.info({ ...orderFields(task), error, task: task.id }, "a vendor's task could not be read");
    const unknown = error instanceof UpstreamRefusal && error.status === 404;
    // By the database's clock too: a clock that jumped ahead makes no task old.
    const ageMs = Math.min(clock.now() - last.startedAt, timing.deadlineMs[task.order.kind] - task.leftMs);
    if (unknown && ageMs > forgivenMs) return endUnknown(tools, task, from, unknownOutcome);
  }
  if (step?.state === 'done') return storeResults(tools, task, from, step, worker);
  if (step?.state === 'failed') {
    const { code, message } = step;
    const attempts = withLast(task.attempts, { result: 'refused' });
    await endUncharged(tools, task, from, { state: 'failed', error: { code, message }, attempts });
    return;
  }
  if (task.leftMs <= 0) return endUnknown(tools, task, from, expired);
  const dueMs = backOff(task.tries + 1, timing.pollMs, timing.longestPollMs, random);
  const progress = Math.max(task.progress, Math.min(step?.progress ?? 0, 99));
  await rows.move(task.id, from, { state: 'running', dueMs }, { tries: task.tries + 1, progress });
}

/** The vendor may have made it: the client pays nothing, and the upper bound of the cost is written off. */
export async function endUnknown(tools: Tools, task: StoredTask, from: From, error: TaskError): Promise<void> {
  const adapter = tools.adapters.get(task.attempts.at(-1)?.protocol ?? '');
  const usage = adapter === undefined ? {} : usageAtMost(adapter.bounds(task.order));
  const attempts = withLast(task.attempts, { result: 'unknown', consumed: { usage, estimated: true } });
  await endUncharged(tools, task, from, { state: 'failed', error, attempts });
}
