/** One departure may be several calls, where a vendor makes fewer images with each than were ordered; together they have one outcome. */
import { UpstreamError, UpstreamRefusal } from '../../core/errors.ts';
import type { Usage, UsageClass } from '../../core/usage.ts';
import type { Target } from '../../core/vocabulary.ts';
import type { Adapter, Order, Step, VendorRequest } from './contract.ts';
import type { Hand, Tools } from './tools.ts';

export interface VendorCall {
  readonly order: Order;
  readonly wanted: VendorRequest;
}

/** Throws what the adapter throws for what its vendor cannot do; nothing is sent. */
export function callsFor(adapter: Adapter, order: Order, target: Target): VendorCall[] {
  const calls: VendorCall[] = [];
  for (let left = order.count; left > 0; left -= adapter.mostPerCall) {
    const part = { ...order, count: Math.min(left, adapter.mostPerCall) };
    calls.push({ order: part, wanted: adapter.create(part, target) });
  }
  return calls;
}

/**
 * What became of the calls. Some made and some not: what was made counts, and is what is charged. None made: a failure that
 * says why, and of those first the one by which something may have been begun.
 */
export async function askAll(
  { vendors, log }: Tools,
  adapter: Adapter,
  calls: readonly VendorCall[],
  target: Target,
  timeoutMs: number,
  { signal }: Hand,
): Promise<{ readonly step: Step; readonly status: number }> {
  const outcomes = await Promise.allSettled(
    calls.map(async ({ order, wanted }) => {
      const answer = await vendors.ask(wanted, target, timeoutMs, signal);
      return { step: adapter.readCreated(answer, order), status: answer.status };
    }),
  );
  const answered = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  if (calls.length === 1 && answered[0] !== undefined) return answered[0];
  const made = answered.flatMap(({ step }) => (step.state === 'done' ? [step] : []));
  if (made.length > 0) {
    if (made.length < calls.length)
      log.warn({ errors, calls: calls.length, made: made.length }, 'a vendor made a part of an order');
    return { step: joined(made), status: 200 };
  }
  const begun = errors.find(mayRun);
  if (begun !== undefined) throw begun;
  if (answered[0] !== undefined) return answered[0];
  throw errors[0];
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
    },
  };
}
