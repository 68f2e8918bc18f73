/**
 * Sends an order to a vendor: each attempt is recorded before anything is sent, and what may have been sent is never
 * sent again.
 */

import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { BackgroundCall } from '../../common/domain/admin/upstreams.ts';
import type { Attempt } from '../../common/domain/calls.ts';
import type { Model } from '../../common/domain/models.ts';
import { placed } from '../../common/domain/organizations/placement.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { backOff } from '../../common/kit/jobs/leases.ts';
import type { MediaAdapter, Step } from '../../common/media/adapters.ts';
import { orderFields } from '../../common/wire/trace.ts';
import { boundsOf, type Candidate, candidatesFor, type TakenKey, targetAt, weightedOrder } from '../orders/targets.ts';
import { type BrokenCall, type CallOutcome, callAll, callsFor, type VendorCall } from './calls.ts';
import { storeResults } from './copy.ts';
import type { Tools, WorkerContext } from './dependencies.ts';
import { endUncharged, usageAtMost, withBroken, withLast } from './final-states.ts';
import { callLive } from './live-call.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { busy, judge, type Verdict } from './verdict.ts';

/** Attempts of one step; then other tasks get their turn. */
const maxAttempts = 6;
/** Attempts that a task keeps; older refused ones beyond are dropped. */
const maxStoredAttempts = 40;

const gone: TaskError = { code: 'model_not_found', message: 'The model is no longer offered.' };
/** A vendor sends nothing while it generates. */
const generationTimeoutMs = 600_000;

interface Answered {
  readonly step: Step;
  readonly adapter: MediaAdapter;
  readonly broken: readonly BrokenCall[];
}
type Outcome = Answered | { readonly verdict: Verdict } | 'lost';

/** One pass through the targets that can make an order. */
export class Creation {
  readonly #tools: Tools;
  readonly #task: StoredTask;
  readonly #worker: WorkerContext;
  #attempts: Attempt[];
  /** The first target with an open circuit. */
  #passedOver: Candidate | undefined;

  constructor(tools: Tools, task: StoredTask, worker: WorkerContext) {
    this.#tools = tools;
    this.#task = task;
    this.#worker = worker;
    this.#attempts = task.attempts.slice(-maxStoredAttempts);
  }

  async run(): Promise<void> {
    const { catalog, providers, adapters, random } = this.#tools;
    const model = catalog.find(this.#task.model);
    const { regions } = this.#task.order;
    const offered =
      regions === undefined ? providers : placed({ keepsNothing: false, regions: new Set(regions) }, providers);
    const all = model === undefined ? [] : candidatesFor(model, this.#task.kind, offered, adapters);
    const candidates =
      this.#worker.live === undefined ? all : all.filter(({ adapter }) => adapter.streams !== undefined);
    if (model === undefined || candidates.length === 0) return this.#fail(gone, this.#byLease());
    let left = await this.#tryAll(weightedOrder(candidates, random), model, false);
    // A circuit is an estimate: it refuses nothing that no other target can make.
    if (left === undefined && this.#passedOver !== undefined)
      left = await this.#tryAll([this.#passedOver], model, true);
    if (left !== 'ended') await this.#later(left);
  }

  /** `ended`: nothing is left to do. Otherwise the last verdict; undefined if there was no attempt. */
  async #tryAll(queue: Candidate[], model: Model, forced: boolean): Promise<Verdict | 'ended' | undefined> {
    const tried = new Map<Candidate, Set<string>>();
    let verdict: Verdict | undefined;
    for (let attemptCount = 0; queue.length > 0 && attemptCount < maxAttempts; ) {
      const candidate = queue[0]!;
      const keys = tried.get(candidate) ?? new Set();
      tried.set(candidate, keys);
      const outcome = await this.#attempt(candidate, model, keys, forced);
      if (outcome === 'closed') {
        queue.shift();
        continue;
      }
      if (outcome === 'lost') return 'ended';
      attemptCount += 1;
      if ('step' in outcome) {
        await this.#record(outcome);
        return 'ended';
      }
      verdict = outcome.verdict;
      if (verdict.next === 'end') {
        await this.#fail(verdict.error, this.#byAttempt());
        return 'ended';
      }
      if (verdict.next === 'place') queue.push(queue.shift()!);
    }
    return verdict;
  }

  /**
   * One attempt, with a key that is not in `tried` and is added to it. `closed`: the circuit is open, the vendor is at
   * capacity, or no such key is usable.
   */
  async #attempt(candidate: Candidate, model: Model, tried: Set<string>, forced: boolean): Promise<Outcome | 'closed'> {
    const { gate, name } = candidate.provider;
    const { signal } = this.#worker;
    const health = this.#tools.health();
    const backgroundCall = health?.beginBackgroundCall(name, candidate.target.model, forced);
    if (health !== undefined && backgroundCall === undefined) {
      this.#passedOver ??= candidate;
      return 'closed';
    }
    try {
      if (gate !== undefined && !(await gate.acquire(signal))) return signal.aborted ? 'lost' : 'closed';
      try {
        const taken = this.#tools.providers.acquireKey(name, candidate.target.model, tried);
        if (!('key' in taken)) return 'closed';
        tried.add(taken.credential);
        return await this.#try(candidate, model, taken, backgroundCall);
      } finally {
        gate?.release();
      }
    } finally {
      backgroundCall?.dropped();
    }
  }

  async #try(
    candidate: Candidate,
    model: Model,
    taken: TakenKey,
    backgroundCall: BackgroundCall | undefined,
  ): Promise<Outcome> {
    const { withBytes, clock } = this.#tools;
    const { adapter } = candidate;
    const { order } = this.#task;
    const target = targetAt(candidate, model, taken);
    let calls: VendorCall[];
    try {
      const prepared = adapter.needsBytes ? await withBytes(order, this.#worker.signal) : order;
      calls = callsFor(adapter, prepared, target);
    } catch (error) {
      return { verdict: judge(error) };
    }
    if (!(await this.#recordAttempt(candidate, taken.credential))) return 'lost';
    const startedMs = clock.monotonic();
    const timeoutMs = Math.max(target.upstream.firstByteTimeoutMs, generationTimeoutMs);
    try {
      const { step, status, broken = [] } = await this.#call(candidate, calls, target, timeoutMs);
      const durationMs = clock.monotonic() - startedMs;
      this.#note({ result: 'answered', status, durationMs });
      backgroundCall?.answered(durationMs);
      return { step, adapter, broken };
    } catch (error) {
      // The process stops: the outcome of a sent order is unknown here. Another process reconciles the task.
      if (this.#worker.signal.aborted) return 'lost';
      const verdict = judge(error);
      if (verdict.isFault === true) backgroundCall?.failed();
      const message = failureText(error);
      this.#noteFailure(verdict, message, candidate, clock.monotonic() - startedMs);
      this.#logFailure(error, candidate);
      this.#coolDown(verdict, message, candidate, taken.credential);
      return { verdict };
    }
  }

  #noteFailure({ result, status }: Verdict, error: string, candidate: Candidate, durationMs: number): void {
    const usage = result === 'unknown' ? usageAtMost(boundsOf([candidate], this.#task.order)) : undefined;
    const consumed = usage === undefined ? {} : { consumed: { usage, estimated: true } };
    this.#note({ result, status, error, durationMs, ...consumed });
  }

  /** As the line of an attempt that a request makes. */
  #logFailure(error: unknown, { provider, target }: Candidate): void {
    const { number, credential, result, status, error: text } = this.#attempts.at(-1)!;
    const vendor = error instanceof UpstreamRefusal ? error.vendor : undefined;
    const fields = {
      ...{ ...orderFields(this.#task), task: this.#task.id, number, provider: provider.name, credential },
      ...{ model: target.model, result, status, error: text },
      ...{ vendor_message: vendor?.message, vendor_request_id: vendor?.requestId },
    };
    this.#tools.log.info(fields, 'an upstream attempt failed');
  }

  #coolDown({ cooldown }: Verdict, reason: string, candidate: Candidate, credential: string): void {
    if (cooldown === undefined) return;
    const model = cooldown.allModels ? undefined : candidate.target.model;
    this.#tools.providers.coolDown(credential, model, cooldown.forMs, reason, orderFields(this.#task));
  }

  #call(candidate: Candidate, calls: readonly VendorCall[], target: Target, timeoutMs: number): Promise<CallOutcome> {
    const { live, signal } = this.#worker;
    const { adapter, provider } = candidate;
    const { streams } = adapter;
    if (live === undefined || streams === undefined)
      return callAll(
        this.#tools,
        { adapter, calls, target, timeoutMs, gate: provider.gate, task: this.#task },
        this.#worker,
      );
    // A stream that stays silent ends at the task's deadline.
    const within = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(this.#task.leftMs)))]);
    const time = { timeoutMs, signal: within };
    return callLive(this.#tools, { adapter: { ...adapter, streams }, order: calls[0]!.order, target, time }, live);
  }

  /** Recorded before anything is sent. false: another worker has the task now, or it was cancelled. */
  #recordAttempt({ provider, target, adapter }: Candidate, credential: string): Promise<boolean> {
    const { rows, clock } = this.#tools;
    this.#attempts.push({
      number: (this.#attempts.at(-1)?.number ?? 0) + 1,
      provider: provider.name,
      model: target.model,
      credential,
      protocol: adapter.name,
      startedAt: clock.now(),
      result: 'running',
      status: undefined,
      durationMs: undefined,
      error: undefined,
    });
    const to = { state: 'creating', dueMs: 0, keepLease: true } as const;
    return rows.move(this.#task.id, this.#byLease(), to, { attempts: this.#attempts });
  }

  #note(outcome: Partial<Attempt>): void {
    this.#attempts = withLast(this.#attempts, outcome);
  }

  /** An outcome is stored by its attempt's number, even if the lease was lost while the vendor worked. */
  #byAttempt(): From {
    const departure = this.#attempts.at(-1)?.number ?? 0;
    return { states: ['queued', 'creating', 'reconciling'], by: { departure } };
  }

  #byLease(): From {
    return { states: ['queued', 'creating'], by: { lease: this.#worker.lease } };
  }

  async #record({ step, adapter, broken }: Answered): Promise<void> {
    const { rows, timing, random } = this.#tools;
    const from = this.#byAttempt();
    // Broken calls get new numbers, so the attempt's own number is read first.
    this.#attempts = withBroken(this.#attempts, broken, adapter.bounds);
    if (step.state === 'failed') {
      this.#note({ result: 'refused' });
      return this.#fail(step, from);
    }
    if (step.state === 'done') {
      const ready = { ...this.#task, attempts: this.#attempts };
      await storeResults(this.#tools, ready, from, step, this.#worker);
      return;
    }
    if (adapter.tasks === undefined) throw new Error(`${adapter.name} returned a task but supports none`);
    const dueMs = backOff(0, timing.pollMs, timing.longestPollMs, random);
    const changes = { attempts: this.#attempts, vendorId: step.vendorId, progress: step.progress ?? 0 };
    await rows.move(this.#task.id, from, { state: 'running', dueMs }, changes);
  }

  /** Every vendor is busy or unreachable: retry later, until the deadline, unless a client waits. */
  async #later(verdict: Verdict | undefined): Promise<void> {
    const { rows, timing, random } = this.#tools;
    const { leftMs, order } = this.#task;
    if (leftMs <= timing.retryMs || order.waited === true || this.#worker.live !== undefined)
      return this.#fail(verdict?.error ?? busy, this.#byLease());
    const { tries } = this.#task;
    const dueMs = backOff(tries, timing.retryMs, timing.longestRetryMs, random);
    const state = this.#attempts.length === 0 ? 'queued' : 'creating';
    const changes = { attempts: this.#attempts, tries: tries + 1 };
    const moved = await rows.move(this.#task.id, this.#byLease(), { state, dueMs }, changes);
    // The lease was lost and the task is `reconciling`; its outcome is now known: nothing was made.
    if (!moved) await this.#fail(verdict?.error ?? busy, { ...this.#byAttempt(), states: ['reconciling'] });
  }

  async #fail({ code, message, field, retryAfterMs }: TaskError, from: From): Promise<void> {
    await endUncharged(this.#tools, this.#task, from, {
      state: 'failed',
      error: {
        code,
        message,
        ...(field === undefined ? {} : { field }),
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      },
      attempts: this.#attempts,
    });
  }
}

/** The failure for operators, with the vendor's own words, scrubbed. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { message, requestId } = (error instanceof UpstreamRefusal ? error.vendor : undefined) ?? {};
  const words = message === undefined ? '' : `: “${message}”`;
  const id = requestId === undefined ? '' : ` (its request id: ${requestId})`;
  return `${error.message}${words.slice(0, 300)}${id}`;
}
