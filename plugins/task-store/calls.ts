/** One departure may be several calls, where a vendor makes fewer images with each than were ordered; together they have one outcome. */
import { UpstreamError, UpstreamRefusal } from '../../core/errors.ts';
import type { Usage, UsageClass } from '../../core/usage.ts';
import type { Target, UpstreamGate } from '../../core/vocabulary.ts';
import type { Adapter, Order, Step, VendorRequest } from './contract.ts';
import type { Hand, Tools } from './tools.ts';

export interface VendorCall {
  readonly order: Order;
  readonly wanted: VendorRequest;
}

/** Calls that go to one vendor together; they have one of its places already, where those are counted. */
export interface Departure {
  readonly adapter: Adapter;
  readonly calls: readonly VendorCall[];
  readonly target: Target;
  readonly timeoutMs: number;
  readonly gate: UpstreamGate | undefined;
}

/** A call of an order that was made in part: it may have been begun, and nobody knows what became of it. */
export interface BrokenCall {
  readonly order: Order;
  readonly error: unknown;
}

export interface Told {
  readonly step: Step;
  readonly status: number;
  /** Beside what was made. */
  readonly broken?: readonly BrokenCall[];
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
 * What became of the calls. Some made and some not: what was made counts, and is what is charged; those that broke off are
 * told beside it. None made: a failure that says why, and of those first the one by which something may have been begun.
 */
export async function askAll(
  { vendors, log }: Tools,
  { adapter, calls, target, timeoutMs, gate }: Departure,
  { signal }: Hand,
): Promise<Told> {
  const outcomes = await inLanes(calls, gate, async ({ order, wanted }): Promise<Told> => {
    if (signal.aborted) throw new UpstreamError('connect', 'the gateway stops');
    const answer = await vendors.ask(wanted, target, timeoutMs, signal);
    return { step: adapter.readCreated(answer, order), status: answer.status };
  });
  const answered = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  if (calls.length === 1 && answered[0] !== undefined) return answered[0];
  const made = answered.flatMap(({ step }) => (step.state === 'done' ? [step] : []));
  if (made.length > 0) {
    if (made.length < calls.length)
      log.warn({ errors, calls: calls.length, made: made.length }, 'a vendor made a part of an order');
    return { step: joined(made), status: 200, broken: brokenOf(calls, outcomes) };
  }
  const begun = errors.find(mayRun);
  if (begun !== undefined) throw begun;
  if (answered[0] !== undefined) return answered[0];
  // The vendor has those that it refused, and says why.
  throw errors.find((error) => error instanceof UpstreamRefusal) ?? errors[0];
}

function brokenOf(calls: readonly VendorCall[], outcomes: readonly PromiseSettledResult<Told>[]): BrokenCall[] {
  return outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' && mayRun(outcome.reason)
      ? [{ order: calls[index]!.order, error: outcome.reason as unknown }]
      : [],
  );
}

/** As many at once as find a place free, one after another in the place that there is: nobody holds some and waits for more. */
async function inLanes(
  calls: readonly VendorCall[],
  gate: UpstreamGate | undefined,
  ask: (call: VendorCall) => Promise<Told>,
): Promise<PromiseSettledResult<Told>[]> {
  const outcomes: PromiseSettledResult<Told>[] = [];
  const left = calls.entries();
  const lane = async () => {
    for (const [index, call] of left)
      [outcomes[index]] = (await Promise.allSettled([ask(call)])) as [PromiseSettledResult<Told>];
  };
  let lanes = 1;
  while (lanes < calls.length && (gate?.tryEnter() ?? true)) lanes += 1;
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
  } finally {
    for (let extra = 1; extra < lanes; extra++) gate?.leave();
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
    },
  };
}
