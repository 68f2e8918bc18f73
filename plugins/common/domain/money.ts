/** Money, prices and ratios: whole nano-dollars and exact fractions. The only file that divides. Pure. */
import {
  type Price,
  pictureTokens,
  pieceClasses,
  priceStandIn,
  tokenClasses,
  toolClasses,
  type Usage,
  type UsageClass,
  uncachedClass,
} from './usage.ts';

declare const brand: unique symbol;
/** nano-USD: 1 USD is 1,000,000,000. */
export type Money = bigint & { readonly [brand]: 'money' };

/** An exact positive fraction. */
export interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const nanoPerUsd = 1_000_000_000n;
/**
 * Sums are kept in these parts of a nano-USD: the least number of which a token (a millionth of its price) and a second
 * (a 3600th of its hour's price) both are whole numbers.
 */
const parts = 9_000_000n;
const tokenParts = parts / 1_000_000n;
const secondParts = parts / 3_600n;

export const zero = 0n as Money;
export const one: Ratio = { numerator: 1n, denominator: 1n };

/** Marks whole nano-USD as money. */
export function money(nano: bigint): Money {
  return nano as Money;
}

/** `"12.5"` → 12,500,000,000 nano-USD. Decimal text only, at most nine decimals; anything else throws a RangeError. */
export function parseUsd(text: string): Money {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text.trim());
  if (match === null) throw new RangeError(`"${text}" is not an amount of USD with at most nine decimals`);
  const nano = BigInt(match[2]!) * nanoPerUsd + BigInt((match[3] ?? '').padEnd(9, '0'));
  return (match[1] === '-' ? -nano : nano) as Money;
}

/** Shortest exact decimal text, at least two decimals: 12,500,000,000 → `"12.50"`. */
export function formatUsd(amount: bigint): string {
  const sign = amount < 0n ? '-' : '';
  const digits = (amount < 0n ? -amount : amount).toString().padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0+$/, '').padEnd(2, '0');
  return `${sign}${digits.slice(0, -9)}.${fraction}`;
}

/** `"1.6"`, `"1.60"` → 16/10. Positive decimal text with at most six decimals; anything else throws a RangeError. */
export function parseRatio(text: string): Ratio {
  const match = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text.trim());
  const decimals = (match?.[2] ?? '').replace(/0+$/, '');
  const numerator = match === null ? 0n : BigInt(match[1]! + decimals);
  if (numerator === 0n) throw new RangeError(`"${text}" is not a positive ratio with at most six decimals`);
  return { numerator, denominator: 10n ** BigInt(decimals.length) };
}

/** `8/5` → `"1.6"`; with up to twelve decimals, otherwise as a fraction. */
export function formatRatio(ratio: Ratio): string {
  const scaled = timesExactly(10n ** 12n, ratio);
  if (scaled === undefined) return `${ratio.numerator}/${ratio.denominator}`;
  const digits = scaled.toString().padStart(13, '0');
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, '');
}

/** `"1.5e-07"` → 1.5 × 10⁻⁷ as an exact fraction: decimal text as JSON writes numbers, not below zero. Throws a RangeError. */
export function parseDecimal(text: string): Ratio {
  const match = /^(\d{1,18})(?:\.(\d{1,18}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text);
  if (match === null) throw new RangeError(`"${text}" is not a decimal number of at least 0`);
  const decimals = match[2] ?? '';
  const exponent = BigInt(match[3] ?? '0') - BigInt(decimals.length);
  const digits = BigInt(match[1]! + decimals);
  return exponent >= 0n
    ? { numerator: digits * 10n ** exponent, denominator: 1n }
    : { numerator: digits, denominator: 10n ** -exponent };
}

/** `amount × ratio` where that is a whole number, else undefined: nothing is rounded. */
export function timesExactly(amount: bigint, { numerator, denominator }: Ratio): bigint | undefined {
  const product = amount * numerator;
  return product % denominator === 0n ? product / denominator : undefined;
}

/** The mean of `count` amounts ≥ 0 with this sum, half up. */
export function mean(sum: Money, count: number): Money {
  return halfUp(sum, wholeCount(count)) as Money;
}

/** `whole` ≥ 0 in billionths of `part` > 0, half up. */
export function billionthsOf(part: Money, whole: Money): bigint {
  return halfUp(whole * 1_000_000_000n, part);
}

const nanoPerCent = 10_000_000n;

/** The amounts in whole cents, which add up to their sum, half up: the cents that rounding down leaves go to the largest remainders. */
export function centsTogether(amounts: readonly bigint[]): bigint[] {
  const cents = amounts.map((amount) => floor(amount, nanoPerCent));
  const rest = (index: number) => amounts[index]! - cents[index]! * nanoPerCent;
  const sum = amounts.reduce((total, amount) => total + amount, 0n);
  let left = floor(2n * sum + nanoPerCent, 2n * nanoPerCent) - cents.reduce((total, each) => total + each, 0n);
  const order = [...amounts.keys()].sort((one, other) =>
    rest(other) > rest(one) ? 1 : rest(other) < rest(one) ? -1 : one - other,
  );
  for (const index of order) {
    if (left <= 0n) break;
    cents[index]! += 1n;
    left -= 1n;
  }
  return cents;
}

/** For a divisor above zero; below zero away from it. */
function floor(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor;
  return amount % divisor < 0n ? quotient - 1n : quotient;
}

function halfUp(numerator: bigint, denominator: bigint): bigint {
  return (2n * numerator + denominator) / (2n * denominator);
}

/** The product of two ratios, in lowest terms; the other one itself where one is 1, so that what is kept for it is found. */
export function timesRatio(left: Ratio, right: Ratio): Ratio {
  if (left === one) return right;
  if (right === one) return left;
  const numerator = left.numerator * right.numerator;
  const denominator = left.denominator * right.denominator;
  let [divisor, rest] = [numerator, denominator];
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest];
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

/** Whether `left < right`, exactly. */
export function isLess(left: Ratio, right: Ratio): boolean {
  return left.numerator * right.denominator < right.numerator * left.denominator;
}

/** The price of a class, or of the class that stands in for it; 0 when neither is named. */
export function unitPrice(price: Price, name: UsageClass): bigint {
  for (let at: UsageClass | undefined = name; at !== undefined; at = priceStandIn[at]) {
    const named = price[at];
    if (named !== undefined) return named;
  }
  return 0n;
}

/** A price as it is multiplied: parts of a nano-USD for one unit of each class. */
interface Tariff {
  readonly units: { readonly [K in UsageClass]: bigint };
  /** The dearest class that a token of the prompt, and of the answer, can be counted in. */
  readonly input: bigint;
  readonly output: bigint;
  /** The same where the answer is text alone. */
  readonly text: bigint;
  /** A picture that the vendor's own tool draws: by the piece, or by its tokens. */
  readonly picture: bigint;
  /** The dearest of the vendor's own tools. */
  readonly tool: bigint;
}

const tariffs = new WeakMap<Price, Tariff>();

/** Kept for each price object: prices are replaced, never changed. */
function tariffOf(price: Price): Tariff {
  let tariff = tariffs.get(price);
  if (tariff === undefined) {
    const perToken = [...tokenClasses, 'character' as const].map((name) => [name, unitPrice(price, name) * tokenParts]);
    const pieces = pieceClasses.map((name) => [name, unitPrice(price, name) * parts]);
    const perSecond = ['audio', unitPrice(price, 'audio') * secondParts];
    const units = Object.fromEntries([...perToken, ...pieces, perSecond]) as Tariff['units'];
    tariff = {
      units,
      input: dearest(price, 'input'),
      output: dearest(price, 'output'),
      text: larger(units.output, units.reasoning),
      picture: price.image === undefined ? units.output_image * BigInt(pictureTokens) : units.image,
      tool: toolClasses.map((name) => unitPrice(price, name) * parts).reduce(larger),
    };
    tariffs.set(price, tariff);
  }
  return tariff;
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

/** The dearest token class on one side, with the classes that have their last stand-in there. */
function dearest(price: Price, side: 'input' | 'output'): bigint {
  let highest = 0n;
  for (const name of tokenClasses) {
    const unit = unitPrice(price, name);
    if (sideOf(name) === side && unit > highest) highest = unit;
  }
  return highest * tokenParts;
}

function sideOf(name: UsageClass): UsageClass {
  const standIn = priceStandIn[name];
  return standIn === undefined ? name : sideOf(standIn);
}

/**
 * Σ(units × price) × ratio in nano-USD, with one division and one rounding, half up.
 * Throws a RangeError on a count that is not a whole number ≥ 0: such counts never reach arithmetic.
 */
export function cost(usage: Usage, price: Price, ratio: Ratio = one): Money {
  const { units } = tariffOf(price);
  return rounded(sumOf(usage, units), ratio);
}

/**
 * What the tokens that were read from and written to prompt caches would have cost without a cache, less what they cost with it:
 * below zero where writing cost more than reading saved.
 */
export function cacheSavings(usage: Usage, price: Price, ratio: Ratio = one): Money {
  const cached: Record<string, number> = {};
  const uncached: Record<string, number> = {};
  for (const name of Object.keys(uncachedClass) as (keyof typeof uncachedClass)[]) {
    const { [name]: count = 0 } = usage;
    const without = uncachedClass[name];
    cached[name] = count;
    uncached[without] = (uncached[without] ?? 0) + count;
  }
  return (cost(uncached, price, ratio) - cost(cached, price, ratio)) as Money;
}

function sumOf(usage: Usage, units: Tariff['units']): bigint {
  let sum = 0n;
  for (const name in usage) {
    const count = usage[name as UsageClass];
    if (count !== undefined && count !== 0) sum += wholeCount(count) * (units[name as UsageClass] ?? 0n);
  }
  return sum;
}

/** Pieces that a call may use at most. */
export interface PieceBounds {
  /** Calls of the vendor's own tools. */
  readonly tools: number;
  readonly images: number;
  readonly seconds: number;
  /** The answer itself is text alone: `images` are those of the vendor's own tool, in a price by the piece or by their tokens. */
  readonly textOnly?: boolean;
  /** Counts of other classes, as far as they are known beforehand: characters, seconds of audio, searches. */
  readonly others?: Usage;
}

export const oneTool: PieceBounds = { tools: 1, images: 0, seconds: 0 };

/**
 * An upper bound of what a call can cost: every input token at the dearest input class, every output token at the dearest
 * output class that the answer may hold, every tool call as the dearest tool, and every piece.
 */
export function costBound(
  inputTokens: number,
  outputTokens: number,
  price: Price,
  ratio: Ratio = one,
  pieces: PieceBounds = oneTool,
): Money {
  const { units, input, output, text, picture, tool } = tariffOf(price);
  const isText = pieces.textOnly === true;
  let sum = wholeCount(inputTokens) * input + wholeCount(outputTokens) * (isText ? text : output) + units.request;
  if (tool !== 0n) sum += wholeCount(pieces.tools) * tool;
  if (pieces.images !== 0) sum += wholeCount(pieces.images) * (isText ? picture : units.image);
  if (pieces.seconds !== 0) sum += wholeCount(pieces.seconds) * units.second;
  if (pieces.others !== undefined) sum += sumOf(pieces.others, units);
  return rounded(sum, ratio);
}

function wholeCount(count: number): bigint {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`${count} is not a count`);
  return BigInt(count);
}

/** Parts ≥ 0 times the ratio, half up. The divisor is even, so that half of it is exact. */
function rounded(sum: bigint, ratio: Ratio): Money {
  if (ratio === one) return ((sum + parts / 2n) / parts) as Money;
  const divisor = parts * ratio.denominator;
  return ((sum * ratio.numerator + divisor / 2n) / divisor) as Money;
}
