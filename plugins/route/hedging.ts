/** One request's hedge: a second attempt by another target or key when the first is silent, and the outcome of both. */
import type { Answer, Exchange } from '../../core/contract.ts';
import { type Attempt, attempts } from '../../core/vocabulary.ts';
import { Berth } from './berth.ts';
import type { Candidate, Taken } from './candidates.ts';
import type { RouteConfig } from './config.ts';
import type { Tools } from './journey.ts';
import { decide, endsWithin, isAnswer, retire, together } from './race.ts';
import type { Racer } from './racer.ts';
import { tellHedge, tellNoHedge } from './story.ts';
import type { Failure } from './verdict.ts';

export interface HedgingOptions {
  readonly exchange: Exchange;
  readonly tools: Tools;
  readonly config: RouteConfig;
  readonly streamed: boolean;
  readonly afterMs: number;
  /** All of the request; the one that counts is put last. */
  readonly attempts: Attempt[];
  take(candidate: Candidate): Taken | { readonly retryAfterMs: number };
  start(candidate: Candidate, taken: Taken, berth: Berth, hedge: true): Racer;
}

export class Hedging {
  readonly #options: HedgingOptions;
  /** There is one for a request at most. */
  #isOver = false;
  /** The attempt that has lost comes to its end. */
  losing: Promise<void> | undefined;

  constructor(options: HedgingOptions) {
    this.#options = options;
  }

  /** The racer as which the exchange has gone on, and what follows: its outcome, or where both have failed that of both. */
  async race(first: Racer, queue: Candidate[]): Promise<{ chosen: Racer; outcome: Answer | Failure }> {
    const second = (await this.#isSilent(first)) ? this.#beside(first, queue) : undefined;
    if (second === undefined) {
      await first.ended;
      this.#choose(first);
      return { chosen: first, outcome: first.outcome! };
    }
    const chosen = await decide(first, second);
    this.#choose(chosen);
    const other = chosen === first ? second : first;
    const outcome = chosen.outcome!;
    if (other.state === 'failed')
      return { chosen, outcome: isAnswer(outcome) ? outcome : afterBoth(first, second, queue) };
    const { tools, streamed } = this.#options;
    this.losing = retire(other, { clock: tools.host.clock, book: tools.book, streamed });
    // Whoever waits for it at the end is told what went wrong; until then nobody is there.
    this.losing.catch(() => {});
    return { chosen, outcome };
  }

  async #isSilent({ ended, branch }: Racer): Promise<boolean> {
    const { afterMs, streamed } = this.#options;
    if (this.#isOver || (await endsWithin(ended, afterMs)) || branch.signal.aborted) return false;
    // A whole answer is on its way as soon as there is its head; of a stream the head says nothing.
    return streamed || branch.headStatus < 200 || branch.headStatus >= 300;
  }

  /** Whoever has a place at once and a closed circuit, in the order that was chosen; last the same target by another key. */
  #beside(first: Racer, queue: readonly Candidate[]): Racer | undefined {
    this.#isOver = true;
    const { exchange, tools, config, afterMs } = this.#options;
    const at = tools.host.clock.now();
    const { candidate, attempt } = first;
    markTried(first);
    const berth = new Berth();
    for (const other of [...queue.filter((each) => each !== candidate), candidate]) {
      const taken = this.#board(other, berth);
      if (taken === undefined) continue;
      if (!tools.hedges.take(config.hedge.share)) {
        berth.dropped();
        tellNoHedge(exchange, at, attempt.number, 'share');
        return undefined;
      }
      const second = this.#options.start(other, taken, berth, true);
      second.rival = first;
      first.rival = second;
      tellHedge(exchange, at, second.attempt.number, attempt.number, afterMs);
      return second;
    }
    tellNoHedge(exchange, at, attempt.number, 'nobody');
    return undefined;
  }

  /** Waits for nothing. */
  #board(candidate: Candidate, berth: Berth): Taken | undefined {
    const { attempts: list, config, tools } = this.#options;
    if (list.length >= config.attempts || !candidate.health.breaker.isClosed) return undefined;
    if (candidate.provider.gate?.tryEnter() === false) return undefined;
    berth.take(candidate, false, tools.host.clock);
    const taken = this.#options.take(candidate);
    if ('key' in taken) return taken;
    berth.dropped();
    return undefined;
  }

  /** What is true of it is true of the exchange from here on. */
  #choose(racer: Racer): void {
    const { exchange, attempts: list } = this.#options;
    list.push(...list.splice(list.indexOf(racer.attempt), 1));
    racer.choose();
    exchange.set(attempts, list);
  }
}

function markTried({ candidate, attempt }: Racer): void {
  candidate.tried ??= new Set();
  candidate.tried.add(attempt.credential);
}

/** The second one's part of what is drawn from failures; the first one's is its caller's. */
function afterBoth(first: Racer, second: Racer, queue: Candidate[]): Failure {
  const [one, other] = [first.outcome as Failure, second.outcome as Failure];
  const { candidate } = second;
  markTried(second);
  if (other.next === 'target' && candidate !== first.candidate)
    queue.push(...queue.splice(queue.indexOf(candidate), 1));
  return together(one, other);
}
