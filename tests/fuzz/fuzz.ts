/** Runs one fuzz target over seeded inputs until a case fails, the runs are done or the time is up, and shortens what failed. */
import { Chance } from '../simulation/chance.ts';
import { drawInput } from './mutate.ts';
import type { Target } from './target.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** Number of the first case. */
  readonly first?: number;
  readonly runs: number;
  /** Stops here, even if not all runs were made. */
  readonly seconds?: number | undefined;
}

export interface Failure {
  readonly index: number;
  readonly error: Error;
  /** The shortest input found that fails in the same way. */
  readonly input: Buffer;
}

export interface FuzzResult {
  readonly runs: number;
  readonly seconds: number;
  readonly slowestMs: number;
  readonly failure: Failure | undefined;
}

/** A case of at most 32 KB that takes the processor for longer than this is a fault. */
const maxCaseMs = 500;
const shorteningTries = 3_000;
const shorteningMs = 20_000;

export async function fuzz(target: Target, options: FuzzOptions): Promise<FuzzResult> {
  // Most cases end in an error of the reader's, whose stack nothing reads; it would be a fifth of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const result = await search(target, options);
    if (result.failure === undefined) return result;
    Error.stackTraceLimit = Math.max(10, stackTraceLimit);
    return { ...result, failure: await withStack(target, result.failure, options.seed) };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** With the error's stack, and shortened. */
async function withStack(target: Target, { index, error, input }: Failure, seed: number): Promise<Failure> {
  const reported = await failureOf(target, input, seed, index);
  // A slow case gives no error.
  if (reported === undefined) return { index, error, input };
  return { index, error: reported, input: await shortened(target, input, reported, seed, index) };
}

async function search(target: Target, { seed, first = 0, runs, seconds }: FuzzOptions): Promise<FuzzResult> {
  const startedAt = performance.now();
  const secondsOf = () => (performance.now() - startedAt) / 1_000;
  let slowestMs = 0;
  let done = 0;
  for (let index = first; done < runs; index++) {
    if (seconds !== undefined && done % 64 === 0 && secondsOf() > seconds) break;
    const caseStartedAt = performance.now();
    const input = drawInput(new Chance(seed, index), target);
    const error = await failureOf(target, input, seed, index);
    const tookMs = performance.now() - caseStartedAt;
    slowestMs = Math.max(slowestMs, tookMs);
    done++;
    const fault = error ?? (tookMs > maxCaseMs ? await slowness(target, input, seed, index) : undefined);
    if (fault === undefined) continue;
    return { runs: done, seconds: secondsOf(), slowestMs, failure: { index, error: fault, input } };
  }
  return { runs: done, seconds: secondsOf(), slowestMs, failure: undefined };
}

/** The choices of a check come from the case's number alone, so that a shorter input meets the same ones. */
async function failureOf(target: Target, input: Buffer, seed: number, index: number): Promise<Error | undefined> {
  try {
    // Only promises are awaited: a turn for each case would cost more than most checks.
    const pending = target.check(input, new Chance(seed ^ 0x5bd1e995, index));
    if (pending !== undefined) await pending;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Whether a slow case is slow by itself: the least processor time of three runs. */
async function slowness(target: Target, input: Buffer, seed: number, index: number): Promise<Error | undefined> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 3; tries++) {
    const before = process.cpuUsage();
    await failureOf(target, input, seed, index);
    const used = process.cpuUsage(before);
    leastMs = Math.min(leastMs, (used.user + used.system) / 1_000);
  }
  return leastMs > maxCaseMs ? new Error(`${input.length} bytes took ${Math.round(leastMs)} ms`) : undefined;
}

/** Leaves out halves, quarters, … single bytes, as long as the same kind of error remains. */
async function shortened(target: Target, input: Buffer, error: Error, seed: number, index: number): Promise<Buffer> {
  const kind = kindOf(error);
  let best = input;
  let tries = 0;
  const startedAt = performance.now();
  const isOver = () => tries >= shorteningTries || performance.now() - startedAt > shorteningMs;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length && !isOver(); tries++) {
      const candidate = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      const found = await failureOf(target, candidate, seed, index);
      if (found !== undefined && kindOf(found) === kind) best = candidate;
      else at += size;
    }
  }
  return best;
}

/** The error's name and the place in the code that threw it. */
function kindOf(error: Error): string {
  const place = error.stack?.split('\n').find((line) => line.trimStart().startsWith('at ') && line.includes('file:'));
  return `${error.name} ${place ?? error.message}`;
}
