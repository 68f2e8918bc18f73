/** The race of two attempts: chooses the one that the request continues with and ends the other. */

import type { DrainBounds } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { target } from '../../common/domain/upstreams.ts';
import type { HealthRegistry } from '../health.ts';
import { recordConsumed, recordDuration } from '../health-feedback.ts';
import type { Failure } from '../verdict.ts';
import type { HedgedAttempt } from './hedged-attempt.ts';

/** How long to wait for an aborted upstream request to end. */
const stopsWithinMs = 1_000;

/** Whether `work` settles within this time; resolves as soon as that is known. */
export function endsWithin(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds);
    const done = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(done, done);
  });
}

export const isAnswer = (outcome: Answer | Failure): outcome is Answer => !('next' in outcome);

/**
 * Resolves with the attempt to continue with, which has ended: the first to answer. If one fails, the other continues, unless
 * the first one's failure would end the request at any target: the client's own fault, or its disconnect. If both fail, it is
 * the later one.
 */
export async function chooseAttempt(first: HedgedAttempt, second: HedgedAttempt): Promise<HedgedAttempt> {
  await Promise.race([first.ended, second.ended]);
  const answered = [first, second].find(({ state }) => state === 'answered');
  const sooner = answered ?? (first.state === 'running' ? second : first);
  await sooner.ended;
  if (sooner === answered || (sooner === first && isFinal(first.outcome!))) return sooner;
  const later = sooner === first ? second : first;
  await later.ended;
  return later;
}

function isFinal(outcome: Answer | Failure): boolean {
  return !isAnswer(outcome) && outcome.next === 'nowhere' && !outcome.isFault;
}

/** The failure of both attempts: if one must not be followed by another attempt, neither is, nor if one may only be so as allowed. */
export function combineFailures(first: Failure, second: Failure): Failure {
  if (first.next === 'nowhere') return first;
  return second.next === 'nowhere' || (second.isAmbiguous && !first.isAmbiguous) ? second : first;
}

export interface LoserTools {
  readonly clock: Clock;
  readonly registry: HealthRegistry;
  readonly streamed: boolean;
}

/**
 * Ends the attempt that lost: aborts it or, where the provider's answers are drained after a disconnect, reads it to its end
 * within those bounds. Resolves when its final usage is known.
 */
export async function endLoser(loser: HedgedAttempt, tools: LoserTools): Promise<void> {
  const { attempt, branch, candidate, slot } = loser;
  loser.state = 'lost';
  attempt.lost = true;
  const waitedMs = tools.clock.monotonic() - loser.startedMs;
  if (attempt.result === 'running') {
    attempt.result = branch.hasSent ? 'unknown' : 'not_sent';
    attempt.durationMs = waitedMs;
  }
  const drain = branch.hasSent ? branch.find(target)?.upstream.drain : undefined;
  await finish(loser, drain);
  recordConsumed(branch, attempt);
  if (attempt.result === 'answered') {
    slot.answered(tools.clock);
    recordDuration(tools.registry, candidate, attempt, tools.streamed);
  } else candidate.health.figures.noteWait(waitedMs, tools.streamed);
  slot.ended();
}

async function finish(loser: HedgedAttempt, drain: DrainBounds | undefined): Promise<void> {
  const stop = () => loser.branch.stop(lostRace());
  if (drain === undefined) stop();
  const timer = drain === undefined ? undefined : setTimeout(stop, drain.longestMs);
  await endsWithin(readOut(loser, drain?.maxBytes ?? 0), (drain?.longestMs ?? 0) + stopsWithinMs);
  clearTimeout(timer);
}

/** Reads its answer, if there is one. Its usage report says how it ended. */
async function readOut(loser: HedgedAttempt, maxBytes: number): Promise<void> {
  await loser.ended;
  const { outcome } = loser;
  if (outcome === undefined || !isAnswer(outcome)) return;
  const { body } = outcome;
  if (typeof body === 'string' || body instanceof Uint8Array) return;
  const iterator = body[Symbol.asyncIterator]();
  try {
    for (let bytes = 0; bytes < maxBytes; ) {
      const step = await iterator.next();
      if (step.done === true) return;
      bytes += step.value.length;
    }
    await iterator.return?.();
  } catch {
    // It was cut off; its result is not used.
  }
}

/** The same reason as a client's disconnect, which is what the upstream sees. */
const lostRace = () => new GatewayError('client_left', 'Another attempt of this request answered first.');
