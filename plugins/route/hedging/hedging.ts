/** The hedge of one request: a second attempt at another target or key when the first is silent, and the outcome of both. */

import type { Exchange } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { type Attempt, attempts } from '../../common/domain/calls.ts';
import { AttemptSlot } from '../attempt-slot.ts';
import type { AcquiredKey, Candidate } from '../candidates.ts';
import type { RouteConfig } from '../config.ts';
import { recordHedge, recordNoHedge } from '../timeline.ts';
import type { Tools } from '../tools.ts';
import type { Failure } from '../verdict.ts';
import type { HedgedAttempt } from './hedged-attempt.ts';
import { chooseAttempt, combineFailures, endLoser, endsWithin, isAnswer } from './race.ts';

export interface HedgingOptions {
  readonly exchange: Exchange;
  readonly tools: Tools;
  readonly config: RouteConfig;
  readonly streamed: boolean;
  readonly afterMs: number;
  /** All attempts of the request; the one that counts is moved to the end. */
  readonly attempts: Attempt[];
  take(candidate: Candidate): AcquiredKey | { readonly retryAfterMs: number };
  start(candidate: Candidate, taken: AcquiredKey, slot: AttemptSlot, hedge: true): HedgedAttempt;
}

export class Hedging {
  readonly #options: HedgingOptions;
  /** A request has at most one hedge. */
  #isUsed = false;
  /** Resolves when the attempt that lost has ended. */
  losing: Promise<void> | undefined;

  constructor(options: HedgingOptions) {
    this.#options = options;
  }

  /** The attempt that the exchange continues with, and its outcome, or the combined failure when both failed. */
  async race(first: HedgedAttempt, queue: Candidate[]): Promise<{ chosen: HedgedAttempt; outcome: Answer | Failure }> {
    const second = (await this.#isSilent(first)) ? this.#startSecond(first, queue) : undefined;
    if (second === undefined) {
      await first.ended;
      this.#choose(first);
      return { chosen: first, outcome: first.outcome! };
    }
    const chosen = await chooseAttempt(first, second);
    this.#choose(chosen);
    const other = chosen === first ? second : first;
    const outcome = chosen.outcome!;
    if (other.state === 'failed')
      return { chosen, outcome: isAnswer(outcome) ? outcome : afterBoth(first, second, queue) };
    const { tools, streamed } = this.#options;
    this.losing = endLoser(other, { clock: tools.host.clock, registry: tools.registry, streamed });
    // The rejection is handled where it is awaited, at the end of the exchange.
    this.losing.catch(() => {});
    return { chosen, outcome };
  }

  async #isSilent({ ended, branch }: HedgedAttempt): Promise<boolean> {
    const { afterMs, streamed } = this.#options;
    if (this.#isUsed || (await endsWithin(ended, afterMs)) || branch.signal.aborted) return false;
    // A non-streamed answer counts as begun with its head; the head of a stream says nothing yet.
    return streamed || branch.headStatus < 200 || branch.headStatus >= 300;
  }

  /** Starts at the first candidate with free capacity and a closed circuit; last comes the same target with another key. */
  #startSecond(first: HedgedAttempt, queue: readonly Candidate[]): HedgedAttempt | undefined {
    this.#isUsed = true;
    const { exchange, tools, config, afterMs } = this.#options;
    const at = tools.host.clock.now();
    const { candidate, attempt } = first;
    markTried(first);
    const slot = new AttemptSlot();
    for (const other of [...queue.filter((each) => each !== candidate), candidate]) {
      const taken = this.#acquire(other, slot);
      if (taken === undefined) continue;
      if (!tools.hedges.take(config.hedge.share)) {
        slot.dropped();
        recordNoHedge(exchange, at, attempt.number, 'share');
        return undefined;
      }
      const second = this.#options.start(other, taken, slot, true);
      second.rival = first;
      first.rival = second;
      recordHedge(exchange, at, second.attempt.number, attempt.number, afterMs);
      return second;
    }
    recordNoHedge(exchange, at, attempt.number, 'capacity');
    return undefined;
  }

  /** Never waits. */
  #acquire(candidate: Candidate, slot: AttemptSlot): AcquiredKey | undefined {
    const { attempts: list, config, tools } = this.#options;
    if (list.length >= config.attempts || !candidate.health.breaker.isClosed) return undefined;
    if (candidate.provider.gate?.tryAcquire() === false) return undefined;
    slot.take(candidate, false, tools.host.clock);
    const taken = this.#options.take(candidate);
    if ('key' in taken) return taken;
    slot.dropped();
    return undefined;
  }

  /** The exchange takes over the context of this attempt. */
  #choose(hedged: HedgedAttempt): void {
    const { exchange, attempts: list } = this.#options;
    list.push(...list.splice(list.indexOf(hedged.attempt), 1));
    hedged.choose();
    exchange.set(attempts, list);
  }
}

function markTried({ candidate, attempt }: HedgedAttempt): void {
  candidate.tried ??= new Set();
  candidate.tried.add(attempt.credential);
}

/** Marks the second attempt as tried and combines both failures; the caller marks the first. */
function afterBoth(first: HedgedAttempt, second: HedgedAttempt, queue: Candidate[]): Failure {
  const [one, other] = [first.outcome as Failure, second.outcome as Failure];
  const { candidate } = second;
  markTried(second);
  if (other.next === 'target' && candidate !== first.candidate)
    queue.push(...queue.splice(queue.indexOf(candidate), 1));
  return combineFailures(one, other);
}
