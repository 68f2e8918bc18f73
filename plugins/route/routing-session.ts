/** The routing of one request: tries its targets in order, records each outcome, and returns an answer or the final error. */
import type { Exchange, Next, Outcome } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
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
import { model } from '../common/domain/models.ts';
import { type Providers, target, type UpstreamGate } from '../common/domain/upstreams.ts';
import type { Session, SessionTarget } from './affinity.ts';
import { Repeats } from './ambiguity.ts';
import { AttemptSlot, unjudged, waitForCapacity } from './attempt-slot.ts';
import { type AcquiredKey, type Candidate, canServe, takePinned, targetOf } from './candidates.ts';
import { orderOf } from './choice.ts';
import type { RouteConfig } from './config.ts';
import type { Tools } from './dependencies.ts';
import { hasSeveralKeys, newAttempt, recordConsumed, recordDuration, recordFailure } from './health-feedback.ts';
import { hedgeAfter } from './hedge.ts';
import { HedgedAttempt } from './hedged-attempt.ts';
import { Hedging } from './hedging.ts';
import { isAnswer } from './race.ts';
import { closedForMs, shortestWaitMs, withRetryAdvice, withWait } from './retry-advice.ts';
import { recordAttempt, recordCircuitOpen, recordCooldown, recordOrder } from './timeline.ts';
import { type Failure, Failures, isBreak, isDeadline, judge, type Verdict } from './verdict.ts';

type RunningAttempt = Pick<HedgedAttempt, 'candidate' | 'attempt' | 'startedMs'>;

export class RoutingSession {
  readonly #exchange: Exchange;
  readonly #tools: Tools;
  readonly #config: RouteConfig;
  readonly #streamed: boolean;
  readonly #pin: Pinned | undefined;
  readonly #attempts: Attempt[] = [];
  #session: Session | undefined;
  /** The target that served the session last. */
  #sessionTarget: SessionTarget | undefined;
  /** The request of the running attempt was handed to a socket. */
  #sent = false;
  /** What is left to try, in order. */
  #queue: Candidate[] = [];
  #next!: Next;
  /** Open circuits are tried too. */
  #isForced: boolean;
  readonly #failures = new Failures();
  /** All targets that could serve the request. */
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
    const isHeld = pin?.isPreferred !== true || canServe(pin, exchange.get(model), tools.providers);
    this.#pin = isHeld ? pin : undefined;
    this.#isForced = this.#pin !== undefined;
    this.#streamed = exchange.get(call).stream;
  }

  /** May throw in place of rejecting. */
  run(next: Next): Promise<Answer> {
    const exchange = this.#exchange;
    const { queue, reason, session, sessionTarget } = orderOf(exchange, this.#tools, this.#config, this.#pin);
    this.#session = session;
    this.#sessionTarget = sessionTarget;
    this.#queue = queue;
    this.#next = next;
    this.#candidates = [...queue];
    exchange.set(attempts, this.#attempts);
    recordOrder(exchange, this.#tools.host.clock.now(), queue, reason);
    exchange.beforeFirstByte(() => {
      this.#sent = true;
    });
    exchange.defer((outcome) => this.#end(outcome));
    const afterMs = hedgeAfter(exchange, exchange.get(model), this.#config);
    const hasChoice = afterMs !== undefined && (queue.length > 1 || hasSeveralKeys(queue[0]!.provider));
    if (hasChoice) this.#hedging = this.#openHedging(afterMs);
    return this.#tryNext();
  }

  /** Tries the candidates in order. A call that is answered at the first attempt costs one promise. */
  #tryNext(): Promise<Answer> {
    const queue = this.#queue;
    while (queue.length > 0 && this.#attempts.length < this.#config.attempts) {
      const candidate = queue[0]!;
      const { gate } = candidate.provider;
      if (this.#isForced || !this.#isCircuitOpen(candidate)) {
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
    if (this.#hedging !== undefined && !this.#isForced)
      return this.#race(this.#hedging, this.#startHedged(candidate, taken, this.#slot)).then((outcome) =>
        isAnswer(outcome) ? outcome : this.#goOn(outcome, candidate, taken),
      );
    this.#exchange.set(target, targetOf(candidate, taken));
    const attempt = this.#newAttempt(candidate, taken.credential, this.#exchange);
    this.#sent = false;
    const running = { candidate, attempt, startedMs: this.#tools.host.clock.monotonic() };
    return this.#next().then(
      (answer) => this.#answered(running, answer),
      (error: unknown) => this.#goOn(this.#failed(running, error), candidate, taken),
    );
  }

  /** After an attempt that failed. */
  #goOn(outcome: Failure, candidate: Candidate, taken: AcquiredKey): Promise<Answer> {
    this.#repeats ??= new Repeats(this.#exchange, this.#tools.host.clock, this.#config);
    const mayGoOn = outcome.next !== 'nowhere' && (!outcome.isAmbiguous || this.#repeats.mayFollow(this.#attempts));
    if (!mayGoOn) throw this.#reportedError(outcome.error);
    candidate.tried ??= new Set();
    candidate.tried.add(taken.credential);
    this.#repeats.failed(candidate, outcome.isAmbiguous);
    if (this.#repeats.isRepeat) this.#queue = [];
    else if (outcome.isAmbiguous) this.#queue = this.#queue.filter((other) => other !== candidate);
    // A target that is out of reach with one key is so with all, so its other keys come last.
    else if (outcome.next === 'target') this.#queue.push(this.#queue.shift()!);
    return this.#tryNext();
  }

  /** Throws the final error when nothing is left to try. */
  #tryLastResort(): Promise<Answer> {
    const again = this.#repeats?.take();
    if (again !== undefined) {
      this.#queue = again;
      return this.#tryNext();
    }
    const last = this.#isForced ? undefined : this.#lastResort();
    if (last === undefined) throw this.#reportedError(this.#failures.finalError());
    this.#isForced = true;
    this.#queue = [last];
    return this.#tryNext();
  }

  /** An open circuit is the gateway's own guess, so the last target is tried anyway unless `all_open: refuse` is set. */
  #lastResort(): Candidate | undefined {
    if (this.#skipped === undefined || this.#attempts.length > 0 || this.#config.breaker.all_open === 'refuse')
      return undefined;
    const now = this.#tools.host.clock.monotonic();
    const waitOf = ({ health }: Candidate) => health.breaker.opensForMs(now);
    return this.#skipped.reduce((best, other) => (waitOf(other) < waitOf(best) ? other : best));
  }

  #isCircuitOpen(candidate: Candidate): boolean {
    const { breaker } = candidate.health;
    if (breaker.isClosed) return false;
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
    const taken = this.#acquireKey(candidate);
    if ('key' in taken) return taken;
    this.#slot.dropped();
    this.#failures.noteWait(taken.retryAfterMs);
    recordCooldown(this.#exchange, clock.now(), candidate, taken.retryAfterMs);
    return undefined;
  }

  #acquireKey({ provider, model: name, tried }: Candidate): ReturnType<Providers['acquireKey']> {
    const { providers } = this.#tools;
    if (this.#pin !== undefined) return takePinned(this.#pin, name, providers, tried);
    if (this.#session === undefined) return providers.acquireKey(provider.name, name, tried);
    const credential = this.#sessionTarget?.provider === provider.name ? this.#sessionTarget.credential : undefined;
    return providers.acquireKey(provider.name, name, tried, { credential, session: this.#session.hash });
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
      take: (candidate) => this.#acquireKey(candidate),
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
    else if (hedged?.claim() !== false) this.#noteAnswer(candidate, attempt, slot);
    return answer;
  }

  /** The verdict on an attempt that failed. */
  #failed({ candidate, attempt, startedMs }: RunningAttempt, error: unknown, hedged?: HedgedAttempt): Failure {
    attempt.durationMs = this.#tools.host.clock.monotonic() - startedMs;
    const verdict = judge(error, hedged?.branch.hasSent ?? this.#sent, this.#config);
    attempt.result = verdict.result;
    attempt.status = verdict.status;
    recordConsumed(hedged?.branch ?? this.#exchange, attempt);
    attempt.error = (error instanceof Error ? error.message : String(error)).slice(0, 300);
    return hedged?.fail() === false
      ? verdict
      : this.#handleFailure(verdict, candidate, attempt, hedged?.slot ?? this.#slot);
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

  /** The slot is held until the answer is sent. */
  #noteAnswer(candidate: Candidate, attempt: Attempt, slot: AttemptSlot): void {
    const { registry, host, sessions } = this.#tools;
    const { provider, model: name } = attempt;
    recordDuration(registry, candidate, attempt, this.#streamed);
    if (slot.answered(host.clock)) host.log.info({ provider, model: name }, 'a target answers again');
    if (this.#session !== undefined)
      sessions.noteAnswer(this.#session, this.#sessionTarget, attempt, this.#config.affinity.keep);
  }

  /** Applies a verdict: cools the key down, counts the failure, and stops if the client has disconnected. */
  #handleFailure(verdict: Verdict, candidate: Candidate, attempt: Attempt, slot: AttemptSlot): Failure {
    const { host } = this.#tools;
    if (this.#exchange.find(vendorBatch) !== undefined) return unjudged(slot, verdict);
    const { result, status, error, number, credential } = attempt;
    const fields = { exchange: this.#exchange.id, number, credential, model: candidate.model, result, status, error };
    host.log.info(fields, 'an upstream attempt failed');
    this.#coolDown(verdict, candidate, attempt);
    const { signal } = this.#exchange;
    const isClientGone = signal.aborted && !isDeadline(signal.reason);
    const { figures } = candidate.health;
    if (isClientGone) figures.noteWait(attempt.durationMs!, this.#streamed);
    else if (hasSeveralKeys(candidate.provider)) this.#tools.registry.ofKey(candidate.health, credential).noteFailure();
    if (verdict.isFault && !isClientGone) {
      figures.noteFailure();
      recordFailure(host, this.#config.breaker, slot, candidate.health);
    } else slot.dropped();
    if (signal.aborted) {
      const reported = signal.reason instanceof GatewayError ? signal.reason : verdict.error;
      return { next: 'nowhere', error: reported, isFault: false, isAmbiguous: false };
    }
    this.#failures.note(verdict);
    return verdict;
  }

  #coolDown({ cooldown, errorPrecedence }: Verdict, { model: name }: Candidate, { credential, error }: Attempt): void {
    if (cooldown === undefined) return;
    const { forMs, allModels } = cooldown;
    this.#tools.providers.coolDown(credential, allModels ? undefined : name, forMs, error ?? 'refused');
    if (errorPrecedence > 0) this.#failures.noteWait(forMs);
  }

  /** Releases the slot when the exchange ends, and waits for the usage of an attempt that lost. */
  #end({ kind, error }: Outcome): Promise<void> | undefined {
    const health = this.#slot.serving;
    if (health !== undefined && kind === 'failed' && isBreak(error))
      recordFailure(this.#tools.host, this.#config.breaker, this.#slot, health);
    else this.#slot.ended();
    return this.#hedging?.losing;
  }

  #reportedError(error: unknown): unknown {
    const mayHaveRun = this.#attempts.some(({ result }) => result === 'unknown');
    // A failed attempt is charged if it is the last one and its vendor has counted.
    const isCharged = this.#attempts.at(-1)?.consumed?.estimated === false;
    const reported = mayHaveRun ? withRetryAdvice(error, isCharged) : error;
    return withWait(reported, closedForMs(this.#candidates, this.#tools.host.clock.monotonic()));
  }
}
