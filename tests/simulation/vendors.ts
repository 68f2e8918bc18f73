/** The vendors: what they do with a request is drawn when it reaches them, and stands on a bill of their own. */
import type { Chance } from './chance.ts';
import type { Counts } from './tariff.ts';

/** How a try goes once it has been handed to a socket. */
export type Fate =
  | { readonly kind: 'unreachable'; readonly afterMs: number }
  | {
      readonly kind: 'refusal';
      readonly afterMs: number;
      readonly status: number;
      readonly retryAfterMs: number | undefined;
    }
  /** `status` undefined: the connection broke before a head. */
  | { readonly kind: 'broken'; readonly afterMs: number; readonly status: number | undefined; readonly billed: boolean }
  | { readonly kind: 'answer'; readonly afterMs: number; readonly answer: VendorAnswer };

export interface VendorAnswer {
  /** Output tokens of each chunk. */
  readonly chunks: readonly number[];
  readonly chunkMeanMs: number;
  /** The connection breaks after so many chunks; undefined: it comes to its end. */
  readonly cutAfter: number | undefined;
  /** What the vendor counts for a whole answer; undefined: it does not say. */
  readonly usage: Counts | undefined;
}

export interface VendorProfile {
  /** Percentage of tries that go wrong in one way or another. */
  readonly troublePercent: number;
  readonly longestOutput: number;
}

const refusals = [429, 429, 429, 503, 529, 400, 404, 401, 403] as const;
const breaks = [500, 502, 504, undefined, undefined] as const;

/** `inputTokens` is an upper estimate of the prompt; the vendor counts at most that. */
export function drawFate(chance: Chance, profile: VendorProfile, inputTokens: number, maxOutput: number): Fate {
  const roll = chance.below(100);
  const { troublePercent } = profile;
  if (roll >= troublePercent) {
    return { kind: 'answer', afterMs: chance.delay(80), answer: drawAnswer(chance, profile, inputTokens, maxOutput) };
  }
  const afterMs = chance.delay(30);
  if (roll * 4 < troublePercent) return { kind: 'unreachable', afterMs };
  if (roll * 4 < troublePercent * 3) {
    const status = chance.pick(refusals);
    const waits = status === 429 || status === 503 || status === 529;
    const retryAfterMs = waits && chance.oneIn(2) ? chance.between(0, 3_000) : undefined;
    return { kind: 'refusal', afterMs, status, retryAfterMs };
  }
  return { kind: 'broken', afterMs, status: chance.pick(breaks), billed: chance.oneIn(2) };
}

function drawAnswer(chance: Chance, profile: VendorProfile, inputTokens: number, maxOutput: number): VendorAnswer {
  const longest = Math.min(maxOutput, profile.longestOutput);
  const output = chance.oneIn(4) ? longest : chance.below(longest + 1);
  const count = chance.between(1, 4);
  const chunks: number[] = [];
  for (let index = 0, left = output; index < count; index += 1) {
    const tokens = index === count - 1 ? left : chance.below(left + 1);
    chunks.push(tokens);
    left -= tokens;
  }
  const cutAfter = chance.oneIn(20) ? chance.below(count) : undefined;
  const usage = chance.oneIn(12) ? undefined : drawUsage(chance, inputTokens, output);
  return { chunks, chunkMeanMs: chance.oneIn(30) ? 3_000 : 40, cutAfter, usage };
}

export function drawUsage(chance: Chance, inputTokens: number, output: number): Counts {
  const prompt = chance.between(Math.floor(inputTokens / 2), inputTokens);
  const cached = chance.oneIn(3) ? chance.below(prompt + 1) : 0;
  const reasoning = chance.oneIn(3) ? chance.below(output + 1) : 0;
  return {
    input: prompt - cached,
    output: output - reasoning,
    ...(cached > 0 ? { cache_read: cached } : {}),
    ...(reasoning > 0 ? { reasoning } : {}),
    ...(chance.oneIn(5) ? { call: chance.below(2) } : {}),
  };
}
