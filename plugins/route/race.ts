/** Two attempts side by side: which of them the request goes on with, and what becomes of the other. */
import type { Answer, Clock, DrainBounds } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { target } from '../../core/vocabulary.ts';
import type { HealthBook } from './health.ts';
import { noteConsumed, noteTime } from './lessons.ts';
import type { Racer } from './racer.ts';
import type { Failure } from './verdict.ts';

/** How long an upstream that was told to stop is waited for. */
const stopsWithinMs = 1_000;

/** Whether `work` ends within this time, well or not; resolves as soon as that is known. */
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
 * Waits for the one to go on with, which has ended: the first to answer. One that fails leaves the request to the other,
 * unless it is the first and its failure would end the request anywhere: the client's own fault, or its leaving. When both
 * fail it is the later one.
 */
export async function decide(first: Racer, second: Racer): Promise<Racer> {
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

/** What the request is told when both have failed: where one must not be followed by another attempt, neither is. */
export function together(first: Failure, second: Failure): Failure {
  return first.next !== 'nowhere' && second.next === 'nowhere' ? second : first;
}

export interface Retirement {
  readonly clock: Clock;
  readonly book: HealthBook;
  readonly streamed: boolean;
}

/**
 * Ends an attempt that has lost: its upstream is told to stop or, where its provider's answers are read on without a client,
 * it is read to its end within those bounds. Resolves when that is done and all is known of it that can be.
 */
export async function retire(loser: Racer, tools: Retirement): Promise<void> {
  const { attempt, branch, candidate, berth } = loser;
  loser.state = 'lost';
  attempt.lost = true;
  const waitedMs = tools.clock.monotonic() - loser.startedMs;
  if (attempt.result === 'running') {
    attempt.result = branch.hasSent ? 'unknown' : 'not_sent';
    attempt.durationMs = waitedMs;
  }
  const drain = branch.hasSent ? branch.find(target)?.upstream.drain : undefined;
  await finish(loser, drain);
  noteConsumed(branch, attempt);
  if (attempt.result === 'answered') {
    berth.answered(tools.clock);
    noteTime(tools.book, candidate, attempt, tools.streamed);
  } else candidate.health.figures.noteWait(waitedMs, tools.streamed);
  berth.ended();
}

async function finish(loser: Racer, drain: DrainBounds | undefined): Promise<void> {
  const stop = () => loser.branch.stop(outrun());
  if (drain === undefined) stop();
  const timer = drain === undefined ? undefined : setTimeout(stop, drain.longestMs);
  await endsWithin(readOut(loser, drain?.maxBytes ?? 0), (drain?.longestMs ?? 0) + stopsWithinMs);
  clearTimeout(timer);
}

/** Reads what it answers, if it does. How that ends is told by its usage. */
async function readOut(loser: Racer, maxBytes: number): Promise<void> {
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
    // It broke off; nobody waits for it.
  }
}

/** As if its client had left, which is what its upstream sees. */
const outrun = () => new GatewayError('client_left', 'Another attempt of this request answered first.');
