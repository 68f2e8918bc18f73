/** Has an order made: departures are written down before anything is sent, and what may have been sent is never sent again. */
import type { UpstreamVisit } from '../../core/desk.ts';
import type { Attempt, Model, Secret, Target } from '../../core/vocabulary.ts';
import { askLive } from './ask-live.ts';
import { askAll, type BrokenCall, callsFor, type Told, type VendorCall } from './calls.ts';
import type { Adapter, Step } from './contract.ts';
import { makeFilesKept } from './copy.ts';
import { giveUp, usageAtMost, withBroken, withLast } from './ends.ts';
import type { From, StoredTask, TaskError } from './rows.ts';
import { boundsOf, inTurn, type Place, placesFor, targetAt } from './targets.ts';
import { backOff, type Hand, type Tools } from './tools.ts';
import { busy, judge, type Verdict } from './verdict.ts';

/** Departures of one step; then others have their turn. */
const mostDepartures = 6;
/** Attempts that a task remembers; refused ones beyond are forgotten, the oldest first. */
const mostRemembered = 40;

const gone: TaskError = { code: 'model_not_found', message: 'The model is no longer offered.' };
/** A vendor is silent for as long as it paints. */
const paintingMs = 600_000;

interface Answered {
  readonly step: Step;
  readonly adapter: Adapter;
  readonly broken: readonly BrokenCall[];
}
type Outcome = Answered | { readonly verdict: Verdict } | 'lost';

/** One run through the places that an order can be made at. */
export class Creation {
  readonly #tools: Tools;
  readonly #task: StoredTask;
  readonly #hand: Hand;
  #attempts: Attempt[];
  /** The first place whose circuit was open. */
  #passedOver: Place | undefined;

  constructor(tools: Tools, task: StoredTask, hand: Hand) {
    this.#tools = tools;
    this.#task = task;
    this.#hand = hand;
    this.#attempts = task.attempts.slice(-mostRemembered);
  }

  async run(): Promise<void> {
    const { catalog, providers, adapters, random } = this.#tools;
    const model = catalog.find(this.#task.model);
    const all = model === undefined ? [] : placesFor(model, this.#task.kind, providers, adapters);
    const places = this.#hand.live === undefined ? all : all.filter(({ adapter }) => adapter.streams !== undefined);
    if (model === undefined || places.length === 0) return this.#fail(gone, this.#byLease());
    const queue = inTurn(places, random);
    const tried = new Map<Place, Set<string>>();
    let verdict: Verdict | undefined;
    let forced = false;
    for (let departures = 0; queue.length > 0 && departures < mostDepartures; ) {
      const place = queue[0]!;
      const keys = tried.get(place) ?? new Set();
      tried.set(place, keys);
      const outcome = await this.#visit(place, model, keys, forced);
      if (outcome === 'lost') return;
      if (outcome === 'closed') {
        queue.shift();
        // A circuit is a guess: it refuses nothing that nobody else can make.
        const isLastResort: boolean =
          queue.length === 0 && departures === 0 && !forced && this.#passedOver !== undefined;
        if (isLastResort) queue.push(this.#passedOver!);
        forced ||= isLastResort;
        continue;
      }
      departures += 1;
      if ('step' in outcome) return this.#record(outcome);
      verdict = outcome.verdict;
      if (verdict.next === 'end') return this.#fail(verdict.error, this.#byDeparture());
      if (verdict.next === 'place') queue.push(queue.shift()!);
    }
    return this.#later(verdict);
  }

  /**
   * One attempt, by a key that is not among `tried` and is then. `closed`: its circuit is open, the vendor has no room for it,
   * or no such key is well.
   */
  async #visit(place: Place, model: Model, tried: Set<string>, forced: boolean): Promise<Outcome | 'closed'> {
    const { gate, name } = place.provider;
    const { signal } = this.#hand;
    const health = this.#tools.health();
    const visit = health?.visit(name, place.target.model, forced);
    if (health !== undefined && visit === undefined) {
      this.#passedOver ??= place;
      return 'closed';
    }
    try {
      if (gate !== undefined && !(await gate.enter(signal))) return signal.aborted ? 'lost' : 'closed';
      try {
        const taken = this.#tools.providers.takeKey(name, place.target.model, tried);
        if (!('key' in taken)) return 'closed';
        tried.add(taken.credential);
        return await this.#try(place, model, taken, visit);
      } finally {
        gate?.leave();
      }
    } finally {
      visit?.dropped();
    }
  }

  async #try(
    place: Place,
    model: Model,
    taken: { key: Secret; credential: string },
    visit: UpstreamVisit | undefined,
  ): Promise<Outcome> {
    const { withBytes, clock, providers } = this.#tools;
    const { adapter } = place;
    const { order } = this.#task;
    const target = targetAt(place, model, taken.key, taken.credential);
    let calls: VendorCall[];
    try {
      const shown = adapter.needsBytes ? await withBytes(order, this.#hand.signal) : order;
      calls = callsFor(adapter, shown, target);
    } catch (error) {
      return { verdict: judge(error) };
    }
    if (!(await this.#depart(place, taken.credential))) return 'lost';
    const startedMs = clock.monotonic();
    const timeoutMs = Math.max(target.upstream.firstByteTimeoutMs, paintingMs);
    try {
      const { step, status, broken = [] } = await this.#ask(place, calls, target, timeoutMs);
      const durationMs = clock.monotonic() - startedMs;
      this.#note({ result: 'answered', status, durationMs });
      visit?.answered(durationMs);
      return { step, adapter, broken };
    } catch (error) {
      // The process stops: what was sent may come to something, but nobody will know. Its successor sees to that.
      if (this.#hand.signal.aborted) return 'lost';
      const verdict = judge(error);
      if (verdict.isFault === true) visit?.failed();
      const consumed =
        verdict.result === 'unknown' ? { usage: usageAtMost(boundsOf([place], order)), estimated: true } : undefined;
      const message = error instanceof Error ? error.message.slice(0, 300) : 'unknown';
      this.#note({
        result: verdict.result,
        status: verdict.status,
        error: message,
        durationMs: clock.monotonic() - startedMs,
        ...(consumed === undefined ? {} : { consumed }),
      });
      const { rest } = verdict;
      if (rest !== undefined)
        providers.rest(taken.credential, rest.allModels ? undefined : place.target.model, rest.forMs, message);
      return { verdict };
    }
  }

  #ask(place: Place, calls: readonly VendorCall[], target: Target, timeoutMs: number): Promise<Told> {
    const { live, signal } = this.#hand;
    const { adapter, provider } = place;
    const { streams } = adapter;
    if (live === undefined || streams === undefined)
      return askAll(this.#tools, { adapter, calls, target, timeoutMs, gate: provider.gate }, this.#hand);
    // A stream that goes on saying nothing ends with its task's time.
    const within = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(this.#task.leftMs)))]);
    const time = { timeoutMs, signal: within };
    return askLive(this.#tools, { adapter: { ...adapter, streams }, order: calls[0]!.order, target, time }, live);
  }

  /** Written before anything is sent. false: the task is somebody else's by now, or was cancelled. */
  #depart({ provider, target, adapter }: Place, credential: string): Promise<boolean> {
    const { rows, clock } = this.#tools;
    this.#attempts.push({
      number: (this.#attempts.at(-1)?.number ?? 0) + 1,
      provider: provider.name,
      model: target.model,
      credential,
      protocol: adapter.protocol,
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

  /** An outcome belongs to its departure, also when the lease was lost while the vendor worked. */
  #byDeparture(): From {
    const departure = this.#attempts.at(-1)?.number ?? 0;
    return { states: ['queued', 'creating', 'reconciling'], by: { departure } };
  }

  #byLease(): From {
    return { states: ['queued', 'creating'], by: { lease: this.#hand.lease } };
  }

  async #record({ step, adapter, broken }: Answered): Promise<void> {
    const { rows, timing, random } = this.#tools;
    const from = this.#byDeparture();
    // Their numbers are new ones: whose departure it was is read first.
    this.#attempts = withBroken(this.#attempts, broken, adapter.bounds);
    if (step.state === 'failed') {
      this.#note({ result: 'refused' });
      return this.#fail(step, from);
    }
    if (step.state === 'done') {
      const ready = { ...this.#task, attempts: this.#attempts };
      await makeFilesKept(this.#tools, ready, from, step, this.#hand);
      return;
    }
    if (adapter.tasks === undefined) throw new Error(`${adapter.protocol} tells of a task but has none`);
    const dueMs = backOff(0, timing.pollMs, timing.longestPollMs, random);
    const changes = { attempts: this.#attempts, vendorId: step.vendorId, progress: step.progress ?? 0 };
    await rows.move(this.#task.id, from, { state: 'running', dueMs }, changes);
  }

  /** Everybody is busy, or nobody can be reached: later, until the deadline, unless somebody waits for it. */
  async #later(verdict: Verdict | undefined): Promise<void> {
    const { rows, timing, random } = this.#tools;
    const { leftMs, order } = this.#task;
    if (leftMs <= timing.retryMs || order.waited === true || this.#hand.live !== undefined)
      return this.#fail(verdict?.error ?? busy, this.#byLease());
    const { tries } = this.#task;
    const dueMs = backOff(tries, timing.retryMs, timing.longestRetryMs, random);
    const state = this.#attempts.length === 0 ? 'queued' : 'creating';
    const changes = { attempts: this.#attempts, tries: tries + 1 };
    const moved = await rows.move(this.#task.id, this.#byLease(), { state, dueMs }, changes);
    // Its lease was lost meanwhile, and it stands as `reconciling`; now its outcome is known: nothing was made.
    if (!moved) await this.#fail(verdict?.error ?? busy, { ...this.#byDeparture(), states: ['reconciling'] });
  }

  async #fail({ code, message, field, retryAfterMs }: TaskError, from: From): Promise<void> {
    await giveUp(this.#tools, this.#task, from, {
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
