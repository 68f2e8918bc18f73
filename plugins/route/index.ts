/** Chooses where a request goes, and tries the next place while nothing can have been executed or sent to the client. */
import { type Answer, definePlugin, type Exchange, type Host, type Next } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { reloadable } from '../../core/reloadable.ts';
import {
  type Attempt,
  attempts,
  call,
  model,
  type Pinned,
  type Providers,
  pinned,
  providers,
  type Secret,
  type Target,
  target,
  translations,
  type UsageReport,
  usageReport,
} from '../../core/vocabulary.ts';
import { type Candidate, candidatesFor } from './candidates.ts';
import { type RouteConfig, routeSchema } from './config.ts';
import { checkPinned, takePinned } from './pinned.ts';
import { tellAttempt, tellTargets } from './story.ts';
import { busy, finalError, judge, type Verdict, withoutRetry } from './verdict.ts';

export default definePlugin<RouteConfig>({
  name: 'route',
  config: routeSchema,
  needs: [providers],
  uses: [translations],
  reads: [call, model],
  finds: [pinned],
  writes: [target, attempts],
  repeats: true,
  setup(host, config) {
    const known = host.need(providers);
    return reloadable({}, config, (settings) => ({
      applies: (endpoint) => endpoint.later !== true && (endpoint.states?.includes(call) ?? false),
      handle: (exchange, next) => new Journey(exchange, host, known, settings).go(next),
    }));
  },
});

/** One request's way through its targets. */
class Journey {
  readonly #exchange: Exchange;
  readonly #host: Host;
  readonly #providers: Providers;
  readonly #config: RouteConfig;
  readonly #protocol: string;
  readonly #pin: Pinned | undefined;
  readonly #attempts: Attempt[] = [];
  /** The running attempt's request was handed to a socket. */
  #sent = false;
  /** Of the failures so far, the one that the client is told. */
  #verdict: Verdict | undefined;
  /** Shortest time after which some key is usable again. */
  #soonestMs = Number.POSITIVE_INFINITY;

  constructor(exchange: Exchange, host: Host, known: Providers, config: RouteConfig) {
    this.#exchange = exchange;
    this.#host = host;
    this.#providers = known;
    this.#config = config;
    this.#pin = exchange.find(pinned);
    this.#protocol = this.#pin?.protocol ?? exchange.get(call).protocol;
  }

  async go(next: Next): Promise<Answer> {
    const { random } = this.#host;
    const wanted = this.#exchange.get(model);
    if (this.#pin !== undefined) checkPinned(this.#pin, wanted, this.#providers);
    const able = this.#host.find(translations);
    const queue = this.#reachable(candidatesFor(wanted, this.#protocol, this.#providers, random, able));
    this.#exchange.set(attempts, this.#attempts);
    tellTargets(this.#exchange, this.#host.clock.now(), queue);
    this.#exchange.beforeSend(() => {
      this.#sent = true;
    });
    while (queue.length > 0 && this.#attempts.length < this.#config.attempts) {
      const candidate = queue[0]!;
      const taken = this.#take(candidate);
      if (!('key' in taken)) {
        this.#noteWait(taken.retryAfterMs);
        queue.shift();
        continue;
      }
      const outcome = await this.#try(candidate, taken, next);
      if (!('next' in outcome)) return outcome;
      if (outcome.next === 'nowhere') throw this.#told(outcome.error);
      candidate.tried ??= new Set();
      candidate.tried.add(taken.credential);
      // Another key of this target comes last: what is out of reach by one key is so by all.
      if (outcome.next === 'target') queue.push(queue.shift()!);
    }
    throw this.#told(this.#lastWord());
  }

  /** Those that a pinned request may go to: one. */
  #reachable(candidates: Candidate[]): Candidate[] {
    const pin = this.#pin;
    return pin === undefined
      ? candidates
      : candidates.filter(({ provider }) => provider.name === pin.provider).slice(0, 1);
  }

  #take({ provider, model: name, tried }: Candidate): ReturnType<Providers['takeKey']> {
    return this.#pin === undefined
      ? this.#providers.takeKey(provider.name, name, tried)
      : takePinned(this.#pin, name, this.#providers, tried);
  }

  /** One attempt: its answer, or what its failure means. */
  async #try(candidate: Candidate, taken: { key: Secret; credential: string }, next: Next): Promise<Answer | Failure> {
    const { clock } = this.#host;
    this.#exchange.set(target, this.#target(candidate, taken));
    const attempt = this.#begin(candidate, taken.credential);
    const startedMs = clock.monotonic();
    this.#sent = false;
    try {
      const answer = await next();
      attempt.result = 'answered';
      attempt.status = answer.status;
      return answer;
    } catch (error) {
      const verdict = judge(error, this.#sent, this.#config);
      attempt.result = verdict.result;
      attempt.status = verdict.status;
      this.#noteConsumed(attempt);
      attempt.error = (error instanceof Error ? error.message : String(error)).slice(0, 300);
      return this.#learn(verdict, candidate, attempt);
    } finally {
      attempt.durationMs = clock.monotonic() - startedMs;
    }
  }

  #target(candidate: Candidate, taken: { key: Secret; credential: string }): Target {
    const { provider, protocol, traits } = candidate;
    return {
      provider: provider.name,
      model: candidate.model,
      protocol,
      baseUrl: provider.speaks[protocol]!,
      key: taken.key,
      credential: taken.credential,
      upstream: provider.protocolTraits?.[protocol] ?? provider.traits,
      traits,
    };
  }

  #begin(candidate: Candidate, credential: string): Attempt {
    const attempt: Attempt = {
      number: this.#attempts.length + 1,
      provider: candidate.provider.name,
      model: candidate.model,
      credential,
      protocol: candidate.protocol,
      startedAt: this.#host.clock.now(),
      result: 'running',
      status: undefined,
      durationMs: undefined,
      error: undefined,
    };
    // What an earlier attempt consumed stands in its row; it is not this one's.
    if (this.#attempts.length > 0) this.#exchange.set<UsageReport | undefined>(usageReport, undefined);
    this.#attempts.push(attempt);
    tellAttempt(this.#exchange, attempt);
    return attempt;
  }

  /** Draws the consequences: the key rests, the log is told, and nobody is tried for a client that has left. */
  #learn(verdict: Verdict, candidate: Candidate, attempt: Attempt): Failure {
    const { rest } = verdict;
    const { result, status, error, number, credential } = attempt;
    const fields = { exchange: this.#exchange.id, number, credential, model: candidate.model, result, status, error };
    this.#host.log.info(fields, 'an upstream attempt failed');
    if (rest !== undefined) {
      this.#providers.rest(credential, rest.allModels ? undefined : candidate.model, rest.forMs, error ?? 'refused');
      if (verdict.hope > 0) this.#noteWait(rest.forMs);
    }
    const { signal } = this.#exchange;
    if (signal.aborted) {
      return { next: 'nowhere', error: signal.reason instanceof GatewayError ? signal.reason : verdict.error };
    }
    if (this.#verdict === undefined || verdict.hope >= this.#verdict.hope) this.#verdict = verdict;
    return verdict;
  }

  /** A failed attempt may have been metered: what it cost is told apart from what the next one will. */
  #noteConsumed(attempt: Attempt): void {
    const report = this.#exchange.find(usageReport);
    const usage = report?.usage;
    if (report !== undefined && usage !== undefined && Object.keys(usage).length > 0)
      attempt.consumed = { usage, estimated: report.estimated };
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

type Failure = Pick<Verdict, 'next' | 'error'>;
