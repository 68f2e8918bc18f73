/** The routing of one request: tries its targets in order, records each outcome, and returns an answer or the final error. */
import type { Exchange, Next, Outcome } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import {
  type Attempt,
  attempts,
  call,
  type Pinned,
  pinned,
  type UsageReport,
  usageReport,
  vendorBatch,
} from '../common/domain/calls.ts';
import { type Model, model } from '../common/domain/models.ts';
import { placedIn } from '../common/domain/organizations/placement.ts';
import { target, type UpstreamGate } from '../common/domain/upstreams.ts';
import type { Session, SessionTarget } from './affinity.ts';
import { Repeats } from './ambiguity.ts';
import { AttemptSlot, waitForCapacity } from './attempt-slot.ts';
import { type AcquiredKey, type Candidate, canServe, hasSeveralKeys, takeKey, targetOf } from './candidates.ts';
import { orderOf, type RequestOrder } from './choice.ts';
import type { RouteConfig } from './config.ts';
import {
  applyVerdict,
  type Judging,
  newAttempt,
  recordConsumed,
  recordDuration,
  recordFailure,
} from './health-feedback.ts';
import { hedgeAfter } from './hedging/hedge.ts';
import { HedgedAttempt } from './hedging/hedged-attempt.ts';
import { Hedging } from './hedging/hedging.ts';
import { isAnswer } from './hedging/race.ts';
import { finalAdvice, shortestWaitMs, soonestOpen } from './retry-advice.ts';
import { Substitutes } from './substitutes.ts';
import { recordAttempt, recordCircuitOpen, recordCooldown, recordOrder } from './timeline.ts';
import type { Tools } from './tools.ts';
import { type Failure, Failures, isBreak, judge } from './verdict.ts';

/** With all models: above ten listeners of attempts Node warns of a leak. */
const mostAttempts = 10;
type RunningAttempt = Pick<HedgedAttempt, 'candidate' | 'attempt' | 'startedMs'>;

export class RoutingSession {
  readonly #exchange: Exchange;
  readonly #tools: Tools;
  readonly #config: RouteConfig;
  readonly #streamed: boolean;
  readonly #pin: Pinned | undefined;
  readonly #attempts: Attempt[] = [];
  #session: Session | undefined;
  #sessionTarget: SessionTarget | undefined;
  /** The request of the running attempt was handed to a socket. */
  #sent = false;
  /** Targets that are left to try, in order. */
  #queue: Candidate[] = [];
  #next!: Next;
  /** Open circuits are tried too. */
  #isForced: boolean;
  #noted: Failures | undefined;
  #others: Substitutes | undefined;
  /** The model that serves the request instead of the one that was asked for. */
  #served: string | undefined;
  /** Attempts before that. */
  #before = 0;
  #candidates: readonly Candidate[] = [];
  /** Targets skipped because their circuits are open; created at the first. */
  #skipped: Candidate[] | undefined;
  /** Set at the first failure. */
  #repeats: Repeats | undefined;
  #slot = new AttemptSlot();
  /** Set if a second attempt may run beside one that is silent. */
  #hedging: Hedging | undefined;

  constructor(exchange: Exchange, tools: Tools, config: RouteConfig) {
    this.#exchange = exchange;
    this.#tools = tools;
    this.#config = config;
    const pin = exchange.find(pinned);
    const isHeld = pin?.isPreferred !== true || canServe(pin, exchange.get(model), placedIn(exchange, tools.providers));
    this.#pin = isHeld ? pin : undefined;
    this.#isForced = isHeld && pin !== undefined;
    this.#streamed = exchange.get(call).stream;
  }

  /** May throw instead of rejecting. */
  run(next: Next): Promise<Answer> {
    const exchange = this.#exchange;
    const entry = exchange.get(model);
    this.#next = next;
    exchange.set(attempts, this.#attempts);
    exchange.beforeFirstByte(() => {
      this.#sent = true;
    });
    exchange.defer((outcome) => this.#end(outcome));
    try {
      this.#follow(orderOf(exchange, entry, this.#tools, this.#config, this.#pin));
    } catch (error) {
      if (entry.instead === undefined) throw error;
      return this.#tryOther({ error }) ?? Promise.reject(error);
    }
    const queue = this.#queue;
    const mayHedge = (entry.hedgeAfterMs ?? this.#config.hedge.after) !== 0;
    const afterMs = mayHedge ? hedgeAfter(exchange, entry, this.#config) : undefined;
    const hasChoice = afterMs !== undefined && (queue.length > 1 || hasSeveralKeys(queue[0]!.provider));
    if (hasChoice) this.#hedging = this.#openHedging(afterMs);
    return this.#tryNext();
  }

  #follow({ queue, reason, session, sessionTarget }: RequestOrder): void {
    this.#session = session;
    this.#sessionTarget = sessionTarget;
    this.#queue = queue;
    this.#candidates = [...queue];
    recordOrder(this.#exchange, this.#tools.host.clock.now(), queue, reason);
  }

  /** With another model, if the settings of the one that was asked for name one for this failure. */
  #tryOther(failure: Pick<Failure, 'about' | 'error'>): Promise<Answer> | undefined {
    const order = (entry: Model) => orderOf(this.#exchange, entry, this.#tools, this.#config);
    const before = this.#attempts.length;
    const found = this.#substitutes.next(failure, before, order);
    if (found === undefined) return undefined;
    [this.#served, this.#before] = [found.entry.id, before];
    [this.#repeats, this.#skipped, this.#isForced] = [undefined, undefined, false];
    this.#follow(found.order);
    return this.#tryNext();
  }

  get #substitutes(): Substitutes {
    this.#others ??= new Substitutes(this.#exchange, this.#tools.host.clock);
    return this.#others;
  }

  get #failures(): Failures {
    this.#noted ??= new Failures();
    return this.#noted;
  }

  get #isFull(): boolean {
    const { length } = this.#attempts;
    return length - this.#before >= this.#config.attempts || length >= mostAttempts;
  }

  /** Tries the candidates in order. A call that is answered at the first attempt costs one promise. */
  #tryNext(): Promise<Answer> {
    const queue = this.#queue;
    while (queue.length > 0 && !this.#isFull) {
      const candidate = queue[0]!;
      const { gate } = candidate.provider;
      if (this.#isForced || candidate.health.breaker.isClosed || !this.#isCircuitOpen(candidate)) {
        if (gate !== undefined && !gate.tryAcquire()) return this.#tryLater(gate, candidate);
        const taken = this.#acquire(candidate, this.#isForced);
        if (taken !== undefined) return this.#try(candidate, taken);
      }
      queue.shift();
    }
    return this.#tryLastResort();
  }

  async #tryLater(gate: UpstreamGate, candidate: Candidate): Promise<Answer> {
    const isAcquired = await waitForCapacity(gate, candidate, this.#exchange, this.#tools.host.clock);
    if (!isAcquired) this.#failures.noteWait(gate.retryAfterMs);
    const taken = isAcquired ? this.#acquire(candidate, this.#isForced) : undefined;
    if (taken !== undefined) return this.#try(candidate, taken);
    this.#queue.shift();
    return this.#tryNext();
  }

  #try(candidate: Candidate, taken: AcquiredKey): Promise<Answer> {
    if (this.#hedging !== undefined && !this.#isForced && this.#served === undefined)
      return this.#race(this.#hedging, this.#startHedged(candidate, taken, this.#slot)).then((outcome) =>
        isAnswer(outcome) ? outcome : this.#afterFailure(outcome, candidate, taken),
      );
    this.#exchange.set(target, targetOf(candidate, taken));
    const attempt = this.#newAttempt(candidate, taken.credential, this.#exchange);
    this.#sent = false;
    const running = { candidate, attempt, startedMs: this.#tools.host.clock.monotonic() };
    return this.#next().then(
      (answer) => this.#answered(running, answer),
      (error: unknown) => this.#afterFailure(this.#failed(running, error), candidate, taken),
    );
  }

  /** After an attempt that failed. */
  #afterFailure(outcome: Failure, candidate: Candidate, taken: AcquiredKey): Promise<Answer> {
    this.#repeats ??= new Repeats(this.#exchange, this.#tools.host.clock, this.#config);
    const isLast = !this.#substitutes.has('unavailable') && (this.#repeats.isRepeat || this.#isFull);
    const isContent = outcome.about === 'content_filter' && this.#substitutes.has(outcome.about);
    const mayFollow = () => !outcome.isAmbiguous || this.#repeats!.mayFollow(this.#attempts, isLast && !isContent);
    if ((outcome.next === 'nowhere' && !isContent) || !mayFollow()) throw this.#reportedError(outcome.error);
    if (isContent) return this.#tryOther(outcome) ?? Promise.reject(this.#reportedError(outcome.error));
    this.#queue = this.#substitutes.largeEnough(this.#queue, candidate, outcome);
    candidate.tried ??= new Set();
    candidate.tried.add(taken.credential);
    this.#repeats.failed(candidate, outcome.isAmbiguous);
    if (this.#repeats.isRepeat) this.#queue = [];
    else if (outcome.isAmbiguous) this.#queue = this.#queue.filter((other) => other !== candidate);
    // A target that is out of reach with one key is so with all, so its other keys come last.
    else if (outcome.next === 'target') this.#queue.push(this.#queue.shift()!);
    return this.#tryNext();
  }

  /** Throws the final error if nothing is left. */
  #tryLastResort(): Promise<Answer> {
    const again = this.#repeats?.take();
    if (again !== undefined) {
      this.#queue = again;
      return this.#tryNext();
    }
    const error = this.#failures.finalError();
    const other = this.#tryOther({ error });
    if (other !== undefined) return other;
    const isTried = this.#isForced || this.#attempts.length > this.#before;
    // An open circuit is the gateway's own guess, so the last target is tried anyway unless `all_open: refuse` is set.
    if (this.#skipped === undefined || isTried || this.#config.breaker.all_open === 'refuse')
      throw this.#reportedError(error);
    this.#isForced = true;
    this.#queue = [soonestOpen(this.#skipped, this.#tools.host.clock.monotonic())];
    return this.#tryNext();
  }

  #isCircuitOpen(candidate: Candidate): boolean {
    const { breaker } = candidate.health;
    const { clock } = this.#tools.host;
    const now = clock.monotonic();
    if (breaker.allows(now)) return false;
    this.#skipped ??= [];
    this.#skipped.push(candidate);
    const opensForMs = breaker.opensForMs(now);
    this.#failures.noteWait(Math.max(opensForMs, shortestWaitMs));
    recordCircuitOpen(this.#exchange, clock.now(), candidate, opensForMs);
    return true;
  }

  /** Acquires everything that an attempt needs, or nothing; the caller has acquired the gate. */
  #acquire(candidate: Candidate, forced: boolean): AcquiredKey | undefined {
    const { clock } = this.#tools.host;
    if (!this.#slot.take(candidate, forced, clock)) {
      // The circuit opened, or another test began, while this request waited.
      this.#isCircuitOpen(candidate);
      return undefined;
    }
    const { providers } = this.#tools;
    const taken = takeKey(candidate, providers, this.#pin, this.#session, this.#sessionTarget);
    if ('key' in taken) return taken;
    this.#slot.dropped();
    this.#failures.noteWait(taken.retryAfterMs);
    recordCooldown(this.#exchange, clock.now(), candidate, taken.retryAfterMs);
    return undefined;
  }

  #openHedging(afterMs: number): Hedging {
    this.#tools.hedges.note();
    return new Hedging({
      exchange: this.#exchange,
      tools: this.#tools,
      config: this.#config,
      streamed: this.#streamed,
      afterMs,
      attempts: this.#attempts,
      take: (candidate) => takeKey(candidate, this.#tools.providers, this.#pin, this.#session, this.#sessionTarget),
      start: (candidate, taken, slot) => this.#startHedged(candidate, taken, slot, true),
    });
  }

  async #race(hedging: Hedging, first: HedgedAttempt): Promise<Answer | Failure> {
    const { chosen, outcome } = await hedging.race(first, this.#queue);
    this.#slot = chosen.slot;
    return outcome;
  }

  #answered({ candidate, attempt, startedMs }: RunningAttempt, answer: Answer, hedged?: HedgedAttempt): Answer {
    attempt.result = 'answered';
    attempt.status = answer.status;
    attempt.durationMs = this.#tools.host.clock.monotonic() - startedMs;
    const slot = hedged?.slot ?? this.#slot;
    if (this.#exchange.find(vendorBatch) !== undefined) slot.dropped();
    else if (hedged?.claim() !== false) {
      recordDuration(this.#tools.registry, candidate, attempt, this.#streamed);
      if (slot.answered(this.#tools.host.clock))
        this.#exchange.log.info({ provider: attempt.provider, model: attempt.model }, 'a target answers again');
      if (this.#session !== undefined)
        this.#tools.sessions.noteAnswer(this.#session, this.#sessionTarget, attempt, this.#config.affinity.keep);
    }
    if (this.#served !== undefined) answer.headers['x-gateway-model'] = this.#served;
    // No other attempt follows, and the answer may take long.
    if (hedged === undefined) this.#queue = [];
    return answer;
  }

  /** The verdict on an attempt that failed. */
  #failed({ candidate, attempt, startedMs }: RunningAttempt, error: unknown, hedged?: HedgedAttempt): Failure {
    attempt.durationMs = this.#tools.host.clock.monotonic() - startedMs;
    const verdict = judge(error, hedged?.branch.hasSent ?? this.#sent, this.#config);
    attempt.result = verdict.result;
    attempt.status = verdict.status;
    if (!(hedged?.branch ?? this.#exchange).signal.aborted) attempt.failedFirst = true;
    recordConsumed(hedged?.branch ?? this.#exchange, attempt);
    attempt.error = (error instanceof Error ? error.message : String(error)).slice(0, 300);
    return hedged?.fail() === false
      ? verdict
      : applyVerdict(this.#judging, verdict, candidate, attempt, hedged?.slot ?? this.#slot);
  }

  #newAttempt(candidate: Candidate, credential: string, exchange: Exchange, hedge = false): Attempt {
    const plain = newAttempt(candidate, credential, this.#attempts.length + 1, this.#tools.host.clock.now());
    const attempt: Attempt = hedge ? { ...plain, hedge } : plain;
    // The usage of an earlier attempt is stored with that attempt.
    if (this.#attempts.length > 0) exchange.set<UsageReport | undefined>(usageReport, undefined);
    this.#attempts.push(attempt);
    recordAttempt(this.#exchange, attempt);
    return attempt;
  }

  /** Starts an attempt on its own branch of the exchange. */
  #startHedged(candidate: Candidate, taken: AcquiredKey, slot: AttemptSlot, hedge = false): HedgedAttempt {
    const branch = this.#exchange.fork();
    branch.set(target, targetOf(candidate, taken));
    const attempt = this.#newAttempt(candidate, taken.credential, branch, hedge);
    branch.set(attempts, [...this.#attempts]);
    const hedged = new HedgedAttempt(candidate, attempt, branch, slot, this.#tools.host.clock.monotonic());
    this.#sent = false;
    hedged.run(
      this.#next(branch).then(
        (answer) => this.#answered(hedged, answer, hedged),
        (error: unknown) => this.#failed(hedged, error, hedged),
      ),
    );
    return hedged;
  }

  /** Releases the slot when the exchange ends, and waits for the usage of an attempt that lost. */
  #end({ kind, error }: Outcome): Promise<void> | undefined {
    const health = kind === 'failed' && isBreak(error) ? this.#slot.serving : undefined;
    if (health === undefined) this.#slot.ended();
    else recordFailure(this.#tools.host, this.#exchange.log, this.#config.breaker, this.#slot, health);
    return this.#hedging?.losing;
  }

  get #judging(): Judging {
    const failures = this.#failures;
    return { exchange: this.#exchange, tools: this.#tools, config: this.#config, failures, streamed: this.#streamed };
  }

  #reportedError(error: unknown): unknown {
    return finalAdvice(error, this.#attempts, this.#candidates, this.#tools.host.clock.monotonic());
  }
}
