/** Sends one attempt as several calls, if a vendor makes fewer images per call than ordered; they share one outcome. */
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { Target, UpstreamGate } from '../../common/domain/upstreams.ts';
import type { Usage, UsageClass } from '../../common/domain/usage.ts';
import type { MediaAdapter, Order, Step, VendorRequest } from '../../common/media/adapters.ts';
import { type OrderedBy, orderFields } from '../../common/wire/trace.ts';
import type { Tools, WorkerContext } from './dependencies.ts';

export interface VendorCall {
  readonly order: Order;
  readonly wanted: VendorRequest;
}

/** Calls that go to one vendor together; they hold one slot of its concurrency limit already, if there is one. */
export interface AttemptPlan {
  readonly adapter: MediaAdapter;
  readonly calls: readonly VendorCall[];
  readonly target: Target;
  readonly timeoutMs: number;
  readonly gate: UpstreamGate | undefined;
  /** Their purpose. */
  readonly task: OrderedBy;
}

/** A failed call of an order that was partly made: its outcome is unknown, as it may have started. */
export interface BrokenCall {
  readonly order: Order;
  readonly error: unknown;
}

export interface CallOutcome {
  readonly step: Step;
  readonly status: number;
  /** Calls with an unknown outcome, beside those that were made. */
  readonly broken?: readonly BrokenCall[];
}

/** Throws the adapter's error for what its vendor does not support; nothing is sent. */
export function callsFor(adapter: MediaAdapter, order: Order, target: Target): VendorCall[] {
  const calls: VendorCall[] = [];
  for (let left = order.count; left > 0; left -= adapter.mostPerCall) {
    const part = { ...order, count: Math.min(left, adapter.mostPerCall) };
    calls.push({ order: part, wanted: adapter.create(part, target) });
  }
  return calls;
}

/**
 * The outcome of all calls. If some succeeded, their results count and are charged; broken calls are reported beside
 * them. If none did, throws the first error by which work may have started, else another error that says why.
 */
export async function callAll(
  { vendors, log }: Tools,
  { adapter, calls, target, timeoutMs, gate, task }: AttemptPlan,
  { signal }: WorkerContext,
): Promise<CallOutcome> {
  const outcomes = await runConcurrently(calls, gate, async ({ order, wanted }): Promise<CallOutcome> => {
    if (signal.aborted) throw new UpstreamError('connect', 'the gateway stops');
    const answer = await vendors.call(wanted, target, timeoutMs, signal);
    return { step: adapter.readCreated(answer, order), status: answer.status };
  });
  const answered = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  if (calls.length === 1 && answered[0] !== undefined) return answered[0];
  const made = answered.flatMap(({ step }) => (step.state === 'done' ? [step] : []));
  if (made.length > 0) {
    if (made.length < calls.length)
      log.warn(
        { ...orderFields(task), errors, calls: calls.length, made: made.length },
        'a vendor made only part of an order',
      );
    return { step: joined(made), status: 200, broken: brokenOf(calls, outcomes) };
  }
  const begun = errors.find(mayRun);
  if (begun !== undefined) throw begun;
  if (answered[0] !== undefined) return answered[0];
  // Prefer a refusal: it has the vendor's reason.
  throw errors.find((error) => error instanceof UpstreamRefusal) ?? errors[0];
}

function brokenOf(calls: readonly VendorCall[], outcomes: readonly PromiseSettledResult<CallOutcome>[]): BrokenCall[] {
  return outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' && mayRun(outcome.reason)
      ? [{ order: calls[index]!.order, error: outcome.reason as unknown }]
      : [],
  );
}

/**
 * Runs as many calls at once as there are free slots, the others one after another: no call holds slots while it waits
 * for more.
 */
async function runConcurrently(
  calls: readonly VendorCall[],
  gate: UpstreamGate | undefined,
  send: (call: VendorCall) => Promise<CallOutcome>,
): Promise<PromiseSettledResult<CallOutcome>[]> {
  const outcomes: PromiseSettledResult<CallOutcome>[] = [];
  const left = calls.entries();
  const runNext = async () => {
    for (const [index, call] of left)
      [outcomes[index]] = (await Promise.allSettled([send(call)])) as [PromiseSettledResult<CallOutcome>];
  };
  let concurrency = 1;
  while (concurrency < calls.length && (gate?.tryAcquire() ?? true)) concurrency += 1;
  try {
    await Promise.all(Array.from({ length: concurrency }, runNext));
  } finally {
    for (let extra = 1; extra < concurrency; extra++) gate?.release();
  }
  return outcomes;
}

function mayRun(error: unknown): boolean {
  if (error instanceof UpstreamRefusal) return error.mayRun || error.hasUsage;
  return !(error instanceof UpstreamError) || error.phase !== 'connect';
}

type Done = Extract<Step, { state: 'done' }>;

function joined(steps: readonly Done[]): Done {
  const usage: { [K in UsageClass]?: number } = {};
  for (const { made } of steps) {
    for (const name in made.usage) {
      const counted = name as UsageClass;
      usage[counted] = (usage[counted] ?? 0) + (made.usage[counted] ?? 0);
    }
  }
  return {
    state: 'done',
    files: steps.flatMap(({ files }) => files),
    made: {
      usage: usage satisfies Usage,
      estimated: steps.some(({ made }) => made.estimated),
      media: steps[0]!.made.media,
      ...(steps[0]!.made.background === undefined ? {} : { background: steps[0]!.made.background }),
    },
  };
}
