/** Calls that a cache below billing answers without a vendor: what they cost, and how their answers reach the client. */
import type { Chance } from './chance.ts';
import { type Counts, costOf, type Fraction } from './tariff.ts';
import type { Trace } from './trace.ts';
import { drawUsage } from './vendors.ts';

/** An answer that is kept for a call. */
export interface Cached {
  readonly usage: Counts;
  /** What it costs, as a share of what the call would. */
  readonly share: Fraction;
  /** It breaks off before its head, before its body, or behind that; undefined: it comes to its end. */
  readonly breaksAt: 'head' | 'body' | 'end' | undefined;
}

const shares: readonly Fraction[] = [
  { numerator: 0n, denominator: 1n },
  { numerator: 1n, denominator: 10n },
  { numerator: 33_333n, denominator: 100_000n },
  { numerator: 2n, denominator: 3n },
  { numerator: 1n, denominator: 1n },
];

/** Nothing is kept for most calls. */
export function drawCached(chance: Chance, inputTokens: number, longestOutput: number): Cached | undefined {
  if (!chance.oneIn(4)) return undefined;
  return {
    usage: drawUsage(chance, inputTokens, chance.below(longestOutput + 1)),
    share: chance.pick(shares),
    breaksAt: chance.oneIn(4) ? chance.pick(['head', 'body', 'end'] as const) : undefined,
  };
}

/** What a whole answer from the cache costs: its share of the exact price, rounded once. */
export function costOfCached({ usage, share }: Cached, { list, ratio }: Pick<Trace, 'list' | 'ratio'>): bigint {
  const { numerator, denominator } = ratio;
  return costOf(usage, list, {
    numerator: numerator * share.numerator,
    denominator: denominator * share.denominator,
  });
}

/** What it must cost as it ended. An answer that broke off, or that checks have refused, costs nothing; one whose client has left, if anything of it was sent. */
export function dueForCached(trace: Trace, outcome: 'complete' | 'client_left' | 'failed'): bigint {
  const { served, firstByte, status } = trace;
  const isDelivered = status < 400 && (outcome === 'complete' || (outcome === 'client_left' && firstByte));
  return served === undefined || !isDelivered ? 0n : costOfCached(served, trace);
}
