/** The oracle's own arithmetic: what a call must cost. Written from the price list's meaning, and shares nothing with the gateway's. */

/** Prices in nano-USD, per million tokens; a call's own per piece. What is absent costs as its stand-in. */
export interface PriceList {
  readonly input: bigint;
  readonly output: bigint;
  readonly cache_read?: bigint;
  readonly reasoning?: bigint;
  readonly call?: bigint;
  readonly web_search?: bigint;
}

/** What a vendor counted. */
export interface Counts {
  readonly input?: number;
  readonly output?: number;
  readonly cache_read?: number;
  readonly reasoning?: number;
  readonly call?: number;
  readonly web_search?: number;
}

export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** The exact value as numerator over 10^6 × denominator, to the nearest whole; a half goes up. */
function nearest(millionths: bigint, { numerator, denominator }: Fraction): bigint {
  const above = millionths * numerator;
  const below = 1_000_000n * denominator;
  const whole = above / below;
  const rest = above % below;
  return rest + rest >= below ? whole + 1n : whole;
}

export function costOf(counts: Counts, list: PriceList, ratio: Fraction): bigint {
  const millionths =
    BigInt(counts.input ?? 0) * list.input +
    BigInt(counts.cache_read ?? 0) * (list.cache_read ?? list.input) +
    BigInt(counts.output ?? 0) * list.output +
    BigInt(counts.reasoning ?? 0) * (list.reasoning ?? list.output) +
    BigInt(counts.call ?? 0) * (list.call ?? 0n) * 1_000_000n +
    BigInt(counts.web_search ?? 0) * (list.web_search ?? 0n) * 1_000_000n;
  return nearest(millionths, ratio);
}

/** The dearest way in which so many tokens of prompt and answer can be counted. */
export function coverOf(inputTokens: number, outputTokens: number, list: PriceList, ratio: Fraction): bigint {
  const dearest = (left: bigint, right: bigint | undefined) => (right !== undefined && right > left ? right : left);
  const millionths =
    BigInt(inputTokens) * dearest(list.input, list.cache_read) +
    BigInt(outputTokens) * dearest(list.output, list.reasoning) +
    ((list.call ?? 0n) + (list.web_search ?? 0n)) * 1_000_000n;
  return nearest(millionths, ratio);
}

/** Whether all output of an answer costs so little beside its prompt that it is read on without its client. */
export function isCheapToRead(
  { inputTokens, maxOutputTokens }: { readonly inputTokens: number; readonly maxOutputTokens: number | undefined },
  list: PriceList,
  ratio: Fraction,
): boolean {
  if (maxOutputTokens === undefined || 30 * maxOutputTokens > inputTokens) return false;
  const prompt = coverOf(inputTokens, 0, list, ratio);
  return 30n * (coverOf(inputTokens, maxOutputTokens, list, ratio) - prompt) <= prompt;
}
