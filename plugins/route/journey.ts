/** One request's way through its targets: who may take it, what each attempt taught, and what the client is told in the end. */
import type { Answer, Exchange, Host, Next, Outcome } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import {
  type Attempt,
  attempts,
  call,
  model,
  type Pinned,
  type Providers,
  pinned,
  target,
  translations,
  type UpstreamGate,
  type UsageReport,
  usageReport,
} from '../../core/vocabulary.ts';
import { type Place, type Session, type Sessions, sessionOf } from './affinity.ts';
import { Berth } from './berth.ts';
import { type Candidate, candidatesFor, type Taken, targetOf } from './candidates.ts';
import { inOrder, type Order } from './choice.ts';
import type { RouteConfig } from './config.ts';
import type { HealthBook } from './health.ts';
import { type HedgeBudget, hedgeAfter } from './hedge.ts';
import { Hedging } from './hedging.ts';
import { countFailure, hasSeveralKeys, newAttempt, noteConsumed, noteTime } from './lessons.ts';
import { checkPinned, takePinned } from './pinned.ts';
import { isAnswer } from './race.ts';
import { Racer } from './racer.ts';
import { tellAttempt, tellOpen, tellOrder, tellResting, tellWait } from './story.ts';
import { busy, type Failure, finalError, isBreak, isDeadline, judge, type Verdict, withoutRetry } from './verdict.ts';

/** What lives longer than a request. */
export interface Tools {
  readonly host: Host;
  readonly providers: Providers;
  readonly book: HealthBook;
  readonly sessions: Sessions;
  readonly hedges: HedgeBudget;
}

export class Journey {
  readonly #exchange: Exchange;
  readonly #tools: Tools;
  readonly #config: RouteConfig;
  readonly #protocol: string;
  readonly #streamed: boolean;
  readonly #pin: Pinned | undefined;
  readonly #attempts: Attempt[] = [];
  #session: Session | undefined;
  /** Where the session was served before. */
  #place: Place | undefined;
  /** The running attempt's request was handed to a socket. */
  #sent = false;
  /** Of the failures so far, the one that the client is told. */
  #verdict: Verdict | undefined;
  /** Shortest time after which somebody could take the request. */
  #soonestMs = Number.POSITIVE_INFINITY;
  /** Passed over because their circuits are open; made at the first. */
  #open: Candidate[] | undefined;
  #berth = new Berth();
  /** Where another attempt may run beside one that is silent. */
  #hedging: Hedging | undefined;

  constructor(exchange: Exchange, tools: Tools, config: RouteConfig) {
    this.#exchange = exchange;
    this.#tools = tools;
    this.#config = config;
    this.#pin = exchange.find(pinned);
    const { protocol, stream } = exchange.get(call);
    this.#protocol = this.#pin?.protocol ?? protocol;
    this.#streamed = stream;
  }

  async go(next: Next): Promise<Answer> {
    const exchange = this.#exchange;
    const { queue, reason } = this.#order();
    exchange.set(attempts, this.#attempts);
    tellOrder(exchange, this.#tools.host.clock.now(), queue, reason);
    exchange.beforeSend(() => {
      this.#sent = true;
    });
    exchange.defer((outcome) => this.#end(outcome));
    const afterMs = hedgeAfter(exchange, exchange.get(model), this.#config);
    const hasChoice = afterMs !== undefined && (queue.length > 1 || hasSeveralKeys(queue[0]!.provider));
    if (hasChoice) this.#hedging = this.#openHedging(afterMs, next);
    const answer = (await this.#walk(queue, next)) ?? (await this.#walk(this.#lastResort(), next, true));
    if (answer !== undefined) return answer;
    throw this.#told(this.#lastWord());
  }

  #order(): Order {
    const { host, providers, book, sessions } = this.#tools;
    const wanted = this.#exchange.get(model);
    const pin = this.#pin;
    if (pin !== undefined) checkPinned(pin, wanted, providers);
    const found = candidatesFor(wanted, this.#protocol, providers, host.find(translations), book);
    if (pin !== undefined) {
      const own = found.native.concat(found.foreign).filter(({ provider }) => provider.name === pin.provider);
      return { queue: own.slice(0, 1), reason: 'pinned' };
    }
    const { native, foreign } = found;
    const only = native.length + foreign.length === 1 ? (native[0] ?? foreign[0]) : undefined;
    // Where there is nothing to choose, nothing is looked up.
    if (only !== undefined && !hasSeveralKeys(only.provider)) return { queue: [only], reason: 'listed' };
    this.#session = sessionOf(this.#exchange, this.#config.affinity);
    this.#place = this.#session === undefined ? undefined : sessions.placeOf(this.#session);
    return inOrder(found, {
      choosing: wanted.choose ?? this.#config.choose,
      streamed: this.#streamed,
      session: this.#session,
      place: this.#place,
      random: host.random,
    });
  }

  /** Tries one after the other. undefined: nobody could take it, or all who could failed. */
  async #walk(queue: Candidate[], next: Next, forced = this.#pin !== undefined): Promise<Answer | undefined> {
    while (queue.length > 0 && this.#attempts.length < this.#config.attempts) {
      const candidate = queue[0]!;
      const { gate } = candidate.provider;
      const isRefused = !forced && this.#isOpen(candidate);
      if (isRefused || (gate !== undefined && !gate.tryEnter() && !(await this.#wait(gate, candidate)))) {
        queue.shift();
        continue;
      }
      const taken = this.#board(candidate, forced);
      if (taken === undefined) {
        queue.shift();
        continue;
      }
      const outcome =
        this.#hedging === undefined || forced
          ? await this.#alone(candidate, taken, next)
          : await this.#race(this.#hedging, this.#start(candidate, taken, this.#berth, next), queue);
      if (isAnswer(outcome)) return outcome;
      if (outcome.next === 'nowhere') throw this.#told(outcome.error);
      candidate.tried ??= new Set();
      candidate.tried.add(taken.credential);
      // Another key of this target comes last: what is out of reach by one key is so by all.
      if (outcome.next === 'target') queue.push(queue.shift()!);
    }
    return undefined;
  }

  /** A circuit is the gateway's own guess: it turns nobody away whom no other target can serve, unless told so. */
  #lastResort(): Candidate[] {
    if (this.#open === undefined || this.#attempts.length > 0 || this.#config.breaker.all_open === 'refuse') return [];
    const now = this.#tools.host.clock.monotonic();
    const waitOf = ({ health }: Candidate) => health.breaker.opensForMs(now);
    return [this.#open.reduce((best, other) => (waitOf(other) < waitOf(best) ? other : best))];
  }

  #isOpen(candidate: Candidate): boolean {
    const { breaker } = candidate.health;
    if (breaker.isClosed) return false;
    const { clock } = this.#tools.host;
    const now = clock.monotonic();
    if (breaker.lets(now)) return false;
    this.#open ??= [];
    this.#open.push(candidate);
    const opensForMs = breaker.opensForMs(now);
    this.#noteWait(Math.max(opensForMs, shortestWaitMs));
    tellOpen(this.#exchange, clock.now(), candidate, opensForMs);
    return true;
  }

  /** Waits for a place. Nobody waits for a client that has left: throws why. */
  async #wait(gate: UpstreamGate, candidate: Candidate): Promise<boolean> {
    const { clock } = this.#tools.host;
    const { signal } = this.#exchange;
    const startedMs = clock.monotonic();
    const hasEntered = await gate.enter(signal);
    if (signal.aborted) {
      if (hasEntered) gate.leave();
      throw signal.reason instanceof GatewayError ? signal.reason : clientLeft();
    }
    tellWait(this.#exchange, clock.now(), candidate, clock.monotonic() - startedMs, hasEntered);
    if (!hasEntered) this.#noteWait(gate.retryAfterMs);
    return hasEntered;
  }

  /** Takes all that an attempt needs, or nothing; a place at the gate is taken already. */
  #board(candidate: Candidate, forced: boolean): Taken | undefined {
    const { clock } = this.#tools.host;
    if (!this.#berth.take(candidate, forced, clock)) {
      // Others came first while this one waited for its place.
      this.#isOpen(candidate);
      return undefined;
    }
    const taken = this.#take(candidate);
    if ('key' in taken) return taken;
    this.#berth.dropped();
    this.#noteWait(taken.retryAfterMs);
    tellResting(this.#exchange, clock.now(), candidate, taken.retryAfterMs);
    return undefined;
  }

  #take({ provider, model: name, tried }: Candidate): ReturnType<Providers['takeKey']> {
    const { providers } = this.#tools;
    if (this.#pin !== undefined) return takePinned(this.#pin, name, providers, tried);
    if (this.#session === undefined) return providers.takeKey(provider.name, name, tried);
    const credential = this.#place?.provider === provider.name ? this.#place.credential : undefined;
    return providers.takeKey(provider.name, name, tried, { credential, session: this.#session.hash });
  }

  #openHedging(afterMs: number, next: Next): Hedging {
    this.#tools.hedges.note();
    return new Hedging({
      exchange: this.#exchange,
      tools: this.#tools,
      config: this.#config,
      streamed: this.#streamed,
      afterMs,
      attempts: this.#attempts,
      take: (candidate) => this.#take(candidate),
      start: (candidate, taken, berth) => this.#start(candidate, taken, berth, next, true),
    });
  }

  async #race(hedging: Hedging, first: Racer, queue: Candidate[]): Promise<Answer | Failure> {
    const { chosen, outcome } = await hedging.race(first, queue);
    this.#berth = chosen.berth;
    return outcome;
  }

  #alone(candidate: Candidate, taken: Taken, next: Next): Promise<Answer | Failure> {
    this.#exchange.set(target, targetOf(candidate, taken));
    return this.#try(candidate, this.#begin(candidate, taken.credential, this.#exchange), next);
  }

  /** One attempt: its answer, or what its failure means. */
  async #try(candidate: Candidate, attempt: Attempt, next: Next, racer?: Racer): Promise<Answer | Failure> {
    const { clock } = this.#tools.host;
    const startedMs = clock.monotonic();
    this.#sent = false;
    try {
      const answer = await next(racer?.branch);
      attempt.result = 'answered';
      attempt.status = answer.status;
      attempt.durationMs = clock.monotonic() - startedMs;
      if (racer?.claims() !== false) this.#noteAnswer(candidate, attempt, racer?.berth ?? this.#berth);
      return answer;
    } catch (error) {
      attempt.durationMs = clock.monotonic() - startedMs;
      const verdict = judge(error, racer?.branch.hasSent ?? this.#sent, this.#config);
      attempt.result = verdict.result;
      attempt.status = verdict.status;
      noteConsumed(racer?.branch ?? this.#exchange, attempt);
      attempt.error = (error instanceof Error ? error.message : String(error)).slice(0, 300);
      return racer?.fails() === false ? verdict : this.#learn(verdict, candidate, attempt, racer?.berth ?? this.#berth);
    }
  }

  #begin(candidate: Candidate, credential: string, exchange: Exchange, hedge = false): Attempt {
    const plain = newAttempt(candidate, credential, this.#attempts.length + 1, this.#tools.host.clock.now());
    const attempt: Attempt = hedge ? { ...plain, hedge } : plain;
    // What an earlier attempt consumed stands in its row; it is not this one's.
    if (this.#attempts.length > 0) exchange.set<UsageReport | undefined>(usageReport, undefined);
    this.#attempts.push(attempt);
    tellAttempt(this.#exchange, attempt);
    return attempt;
  }

  /** An attempt on a branch of its own. */
  #start(candidate: Candidate, taken: Taken, berth: Berth, next: Next, hedge = false): Racer {
    const branch = this.#exchange.fork();
    branch.set(target, targetOf(candidate, taken));
    const attempt = this.#begin(candidate, taken.credential, branch, hedge);
    branch.set(attempts, [...this.#attempts]);
    const racer = new Racer(candidate, attempt, branch, berth, this.#tools.host.clock.monotonic());
    racer.run(this.#try(candidate, attempt, next, racer));
    return racer;
  }

  /** The place is kept until the answer has gone out. */
  #noteAnswer(candidate: Candidate, attempt: Attempt, berth: Berth): void {
    const { book, host, sessions } = this.#tools;
    const { provider, model: name, credential } = attempt;
    noteTime(book, candidate, attempt, this.#streamed);
    if (berth.answered(host.clock)) host.log.info({ provider, model: name }, 'a target answers again');
    const last = this.#place;
    // One slow answer moves no session: its prompt is in the cache where it was.
    if (this.#session === undefined || (last !== undefined && attempt.hedge === true)) return;
    const isThere = last?.credential === credential && last.model === name;
    const place = isThere ? last : { provider, model: name, credential };
    sessions.remember(this.#session, place, this.#config.affinity.keep);
  }

  /** Draws the consequences: the key rests, the target counts it, and nobody is tried for a client that has left. */
  #learn(verdict: Verdict, candidate: Candidate, attempt: Attempt, berth: Berth): Failure {
    const { host, providers } = this.#tools;
    const { rest } = verdict;
    const { result, status, error, number, credential } = attempt;
    const fields = { exchange: this.#exchange.id, number, credential, model: candidate.model, result, status, error };
    host.log.info(fields, 'an upstream attempt failed');
    if (rest !== undefined) {
      providers.rest(credential, rest.allModels ? undefined : candidate.model, rest.forMs, error ?? 'refused');
      if (verdict.hope > 0) this.#noteWait(rest.forMs);
    }
    const { signal } = this.#exchange;
    const hasLeft = signal.aborted && !isDeadline(signal.reason);
    const { figures } = candidate.health;
    if (hasLeft) figures.noteWait(attempt.durationMs!, this.#streamed);
    else if (hasSeveralKeys(candidate.provider)) this.#tools.book.ofKey(candidate.health, credential).noteFailure();
    if (verdict.isFault && !hasLeft) {
      figures.noteFailure();
      countFailure(host, this.#config.breaker, berth, candidate.health);
    } else berth.dropped();
    if (signal.aborted) {
      const told = signal.reason instanceof GatewayError ? signal.reason : verdict.error;
      return { next: 'nowhere', error: told, isFault: false };
    }
    if (this.#verdict === undefined || verdict.hope >= this.#verdict.hope) this.#verdict = verdict;
    return verdict;
  }

  /** The exchange has ended: its answer has gone out, or nothing more will. What an attempt that lost has cost is waited for. */
  #end({ kind, error }: Outcome): Promise<void> | undefined {
    const health = this.#berth.serving;
    if (health !== undefined && kind === 'failed' && isBreak(error))
      countFailure(this.#tools.host, this.#config.breaker, this.#berth, health);
    else this.#berth.ended();
    return this.#hedging?.losing;
  }

  #told(error: unknown): unknown {
    return this.#attempts.some(({ result }) => result === 'unknown') ? withoutRetry(error) : error;
  }

  #noteWait(milliseconds: number): void {
    if (milliseconds > 0 && milliseconds < this.#soonestMs) this.#soonestMs = milliseconds;
  }

  /** Nothing is left to try. */
  #lastWord(): unknown {
    const soonestMs = this.#soonestMs === Number.POSITIVE_INFINITY ? undefined : this.#soonestMs;
    return this.#verdict === undefined ? busy(soonestMs) : finalError(this.#verdict, soonestMs);
  }
}

/** Of a target that is being tested nobody knows how long it takes. */
const shortestWaitMs = 1_000;

const clientLeft = () => new GatewayError('client_left', 'The client closed the connection.');
