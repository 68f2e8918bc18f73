/** Money, prices and ratios: whole nano-dollars and exact fractions. The only file that divides. Pure. */
import { type Price, pieceClasses, priceStandIn, tokenClasses, type Usage, type UsageClass } from './usage.ts';

declare const brand: unique symbol;
/** nano-USD: 1 USD is 1,000,000,000. */
export type Money = bigint & { readonly [brand]: 'money' };

/** An exact positive fraction. */
export interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const nanoPerUsd = 1_000_000_000n;
const perMillion = 1_000_000n;

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

/** `"1.6"` → 16/10. Positive decimal text with at most six decimals; anything else throws a RangeError. */
export function parseRatio(text: string): Ratio {
  const match = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text.trim());
  const decimals = match?.[2] ?? '';
  const numerator = match === null ? 0n : BigInt(match[1]! + decimals);
  if (numerator === 0n) throw new RangeError(`"${text}" is not a positive ratio with at most six decimals`);
  return { numerator, denominator: 10n ** BigInt(decimals.length) };
}

/** The price of a class, or of the class that stands in for it; 0 when neither is named. */
export function unitPrice(price: Price, name: UsageClass): bigint {
  for (let at: UsageClass | undefined = name; at !== undefined; at = priceStandIn[at]) {
    const named = price[at];
    if (named !== undefined) return named;
  }
  return 0n;
}

/**
 * Σ(units × price) × ratio in nano-USD, with one division and one rounding, half up.
 * Throws a RangeError on a count that is not a whole number ≥ 0: such counts never reach arithmetic.
 */
export function cost(usage: Usage, price: Price, ratio: Ratio = one): Money {
  const { units } = tariffOf(price);
  let millionths = 0;
  for (const name in usage) {
    const count = usage[name as UsageClass];
    if (count !== undefined && count !== 0) millionths += wholeCount(count) * (units[name as UsageClass] ?? 0);
  }
  return rounded(millionths, ratio) ?? exactCost(usage, price, ratio);
}

function exactCost(usage: Usage, price: Price, ratio: Ratio): Money {
  let millionths = 0n;
  for (const name of tokenClasses) millionths += BigInt(wholeCount(usage[name] ?? 0)) * unitPrice(price, name);
  for (const name of pieceClasses) {
    millionths += BigInt(wholeCount(usage[name] ?? 0)) * unitPrice(price, name) * perMillion;
  }
  return divideHalfUp(millionths * ratio.numerator, perMillion * ratio.denominator) as Money;
}

function wholeCount(count: number): number {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`${count} is not a count`);
  return count;
}

/** Both ≥ 0, divisor > 0. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}

/** An upper bound of what a call can cost: every input token at the dearest input class, every output token at the dearest output class. */
export function costBound(inputTokens: number, outputTokens: number, price: Price, ratio: Ratio = one): Money {
  const { dearestInput, dearestOutput, units } = tariffOf(price);
  const tokens = wholeCount(inputTokens) * dearestInput + wholeCount(outputTokens) * dearestOutput;
  return rounded(tokens + units.call, ratio) ?? exactBound(inputTokens, outputTokens, price, ratio);
}

function exactBound(inputTokens: number, outputTokens: number, price: Price, ratio: Ratio): Money {
  const input = dearest(price, inputClasses);
  const output = dearest(price, outputClasses);
  const usage = { input: inputTokens, output: outputTokens, call: 1 };
  return exactCost(usage, { input, output, call: unitPrice(price, 'call') }, ratio);
}

const inputClasses = tokenClasses.filter((name) => standsFor(name) === 'input');
const outputClasses = tokenClasses.filter((name) => standsFor(name) === 'output');

/** `input` or `output`: where the stand-ins of a token class end. */
function standsFor(name: UsageClass): UsageClass {
  const standIn = priceStandIn[name];
  return standIn === undefined ? name : standsFor(standIn);
}

function dearest(price: Price, names: readonly UsageClass[]): bigint {
  let highest = 0n;
  for (const name of names) {
    const named = unitPrice(price, name);
    if (named > highest) highest = named;
  }
  return highest;
}

// ------------------------------------------------------------------------------------------------- without big integers

/**
 * A price in JS numbers: millionths of a nano-USD per unit. Sums and products of whole numbers are exact as long as they
 * stay below 2^53, which all but absurd calls do; what does not is done again with big integers.
 */
interface Tariff {
  readonly units: { readonly [K in UsageClass]: number };
  readonly dearestInput: number;
  readonly dearestOutput: number;
}

const tariffs = new WeakMap<Price, Tariff>();

/** Kept for each price object: prices are never changed, they are replaced. */
function tariffOf(price: Price): Tariff {
  let tariff = tariffs.get(price);
  if (tariff === undefined) {
    const tokens = tokenClasses.map((name) => [name, Number(unitPrice(price, name))]);
    const pieces = pieceClasses.map((name) => [name, Number(unitPrice(price, name) * perMillion)]);
    tariff = {
      units: Object.fromEntries([...tokens, ...pieces]) as Tariff['units'],
      dearestInput: Number(dearest(price, inputClasses)),
      dearestOutput: Number(dearest(price, outputClasses)),
    };
    tariffs.set(price, tariff);
  }
  return tariff;
}

/** `millionths` × ratio, rounded half up; undefined when that is not exact in JS numbers. The remainder makes the division exact. */
function rounded(millionths: number, ratio: Ratio): Money | undefined {
  const dividend = millionths * Number(ratio.numerator);
  const divisor = 1_000_000 * Number(ratio.denominator);
  const exact = dividend >= 0 && dividend <= Number.MAX_SAFE_INTEGER && divisor <= Number.MAX_SAFE_INTEGER / 2;
  if (!exact) return undefined;
  const rest = dividend % divisor;
  return BigInt((dividend - rest) / divisor + (2 * rest >= divisor ? 1 : 0)) as Money;
}

export function multiplyRatios(left: Ratio, right: Ratio): Ratio {
  return { numerator: left.numerator * right.numerator, denominator: left.denominator * right.denominator };
}
