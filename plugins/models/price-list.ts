/**
 * Parses the widely used public price list (`model_prices_and_context_window.json`: one object by model, USD per token
 * as floating-point literals) and converts an entry to a price of this configuration. Exact: numbers are parsed from
 * their text, never from a float. Format: https://docs.litellm.ai/docs/provider_registration/add_model_pricing. Pure.
 */

import { table } from '../../core/contract/table.ts';
import { formatUsd, parseDecimal, type Ratio, timesExactly } from '../common/domain/money.ts';
import type { UsageClass } from '../common/domain/usage.ts';

/** Numbers as their text: `1.5e-07`. */
type ListValue = null | boolean | string | { readonly digits: string } | ListValue[] | ListEntry;
export type ListEntry = { readonly [name: string]: ListValue | undefined };

/** A price as in YAML; amounts are decimal text. */
export interface WrittenPrice {
  [name: string]: string | { [name: string]: string | WrittenPrice };
}

export interface ReadPrice {
  readonly price: WrittenPrice;
  /** Priced members that this configuration cannot express. */
  readonly leftOut: string[];
}

/** The list's entries by name. Throws a SyntaxError for text that is no JSON, a RangeError for JSON that is no list. */
export function parsePriceList(text: string): ReadonlyMap<string, ListEntry> {
  const keepDigits = (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? { digits: context?.source ?? String(value) } : value;
  const list: unknown = JSON.parse(text, keepDigits as (name: string, value: unknown) => unknown);
  if (!isEntry(list)) throw new RangeError('the price list must be an object with one member for each model');
  const entries = new Map<string, ListEntry>();
  for (const [name, entry] of Object.entries(list))
    if (name !== 'sample_spec' && isEntry(entry)) entries.set(name, entry);
  return entries;
}

const tokenMembers: Readonly<Record<string, UsageClass>> = table({
  input_cost_per_token: 'input',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost: 'cache_write_5m',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'input_audio',
  input_cost_per_image_token: 'input_image',
  cache_read_input_audio_token_cost: 'cache_read_audio',
  cache_read_input_image_token_cost: 'cache_read_image',
  output_cost_per_token: 'output',
  output_cost_per_reasoning_token: 'reasoning',
  output_cost_per_audio_token: 'output_audio',
  output_cost_per_image_token: 'output_image',
});
const pieceMembers: Readonly<Record<string, readonly [UsageClass, bigint]>> = table({
  output_cost_per_image: ['image', 1n],
  output_cost_per_second: ['second', 1n],
  output_cost_per_video_per_second: ['second', 1n],
  input_cost_per_request: ['request', 1n],
  code_interpreter_cost_per_session: ['code_execution', 1n],
  file_search_cost_per_1k_calls: ['file_search', 1_000n],
});
const costName = /(^|_)cost(_|$)/;
const tokenPattern = /^(.+?)(?:_above_(\d+)k_tokens)?(?:_(priority|flex))?$/;
const nanoPerUsd = 1_000_000_000n;
const perMillion = 1_000_000n;

/** Converts one entry. `variants` are entries of the same model with a quality and a size before the name. */
export function readEntry(entry: ListEntry, variants: ReadonlyMap<string, ListEntry> = new Map()): ReadPrice {
  const price: WrittenPrice = {};
  const leftOut: string[] = [];
  for (const [name, value] of Object.entries(entry)) {
    if (typeof value === 'string' && costName.test(name)) leftOut.push(`${name} (a text, not a number)`);
    if (!isNumber(value) || !costName.test(name)) continue;
    const amount = amountIn(value, name);
    if (!addNumber(price, name, amount) && isPriced(name, amount)) leftOut.push(name);
  }
  addRanges(price, entry['tiered_pricing']);
  addSearch(price, entry['search_context_cost_per_query']);
  addFactors(price, entry['provider_specific_entry']);
  addVariants(price, variants);
  leftOut.push(...dropShortServices(price));
  return { price, leftOut };
}

/** false: the member has no equivalent here. */
function addNumber(price: WrittenPrice, name: string, value: Ratio): boolean {
  const piece = pieceMembers[name];
  if (piece !== undefined) {
    price[piece[0]] = usdText({ ...value, denominator: value.denominator * piece[1] }, name);
    return true;
  }
  const bySize = /^output_cost_per_second_(\d+p|\d+k)$/i.exec(name);
  if (bySize !== null) {
    below(price, 'second')[bySize[1]!.toLowerCase()] = usdText(value, name);
    return true;
  }
  const [, member = '', thousands, service] = tokenPattern.exec(name) ?? [];
  const tokenClass = Object.hasOwn(tokenMembers, member) ? tokenMembers[member]! : undefined;
  if (tokenClass === undefined) return false;
  const side = service === undefined ? price : (below(below(price, 'service'), service) as WrittenPrice);
  const level = thousands === undefined ? side : (below(below(side, 'above'), `${thousands}k`) as WrittenPrice);
  level[tokenClass] = perMillionText(value, name);
  return true;
}

/** Drops services without prices for long prompts, as those could not be sold. */
function dropShortServices(price: WrittenPrice): string[] {
  const [services, levels] = [price['service'], Object.keys(price['above'] ?? {})];
  if (typeof services !== 'object') return [];
  const short = Object.entries(services).filter(([, written]) => {
    if (typeof written !== 'object') return false;
    const own = Object.keys(written['above'] ?? {});
    return levels.some((level) => !own.includes(level));
  });
  for (const [name] of short) delete services[name];
  if (Object.keys(services).length === 0) delete price['service'];
  return short.map(([name]) => `service ${name} (no prices for long prompts)`);
}

/**
 * `tiered_pricing: [{ range: [0, 32000], … }, …]`: the first range is the base price, the others begin above their
 * start.
 */
function addRanges(price: WrittenPrice, ranges: ListValue | undefined): void {
  if (!Array.isArray(ranges)) return;
  for (const entry of ranges.filter(isEntry)) {
    const from = startOf(entry);
    if (from === undefined) continue;
    const level = from === 0n ? price : (below(below(price, 'above'), String(from)) as WrittenPrice);
    for (const [name, value] of Object.entries(entry)) {
      const tokenClass = Object.hasOwn(tokenMembers, name) ? tokenMembers[name]! : undefined;
      if (tokenClass !== undefined && isNumber(value)) level[tokenClass] = perMillionText(amountIn(value, name), name);
    }
  }
}

/** Tokens at which a range of prices begins. */
function startOf({ range }: ListEntry): bigint | undefined {
  const start = Array.isArray(range) ? range[0] : undefined;
  return isNumber(start) ? timesExactly(1n, parseDecimal(start.digits)) : undefined;
}

/** Prices per context size: takes the dearest, as the size is not reported. */
function addSearch(price: WrittenPrice, sizes: ListValue | undefined): void {
  if (!isEntry(sizes)) return;
  const amounts = Object.values(sizes).flatMap((value) =>
    isNumber(value) ? [amountIn(value, 'search_context_cost_per_query')] : [],
  );
  const dearest = amounts.reduce<Ratio | undefined>(
    (highest, one) =>
      highest === undefined || one.numerator * highest.denominator > highest.numerator * one.denominator
        ? one
        : highest,
    undefined,
  );
  if (dearest !== undefined && dearest.numerator > 0n)
    price['web_search'] = usdText(dearest, 'search_context_cost_per_query');
}

/** `{ fast: 6, us: 1.1 }`: ratios by service name. */
function addFactors(price: WrittenPrice, factors: ListValue | undefined): void {
  if (!isEntry(factors)) return;
  for (const [name, value] of Object.entries(factors)) {
    if (isNumber(value) && /^(fast|us|eu)$/.test(name)) below(price, 'service')[name] = value.digits;
  }
}

/** `high/1024-x-1536/MODEL` prices an image of that quality and size. */
function addVariants(price: WrittenPrice, variants: ReadonlyMap<string, ListEntry>): void {
  for (const [words, entry] of variants) {
    const value = entry['output_cost_per_image'] ?? entry['input_cost_per_image'];
    if (isNumber(value)) below(price, 'image')[words] = usdText(amountIn(value, words), words);
  }
}

/**
 * The part of a variant's name before the model's: `high/1024-x-1536/gpt` is `high 1024x1536`; undefined for other
 * names.
 */
export function variantWords(name: string, model: string): string | undefined {
  if (!name.endsWith(`/${model}`)) return undefined;
  const words = name
    .slice(0, -model.length - 1)
    .replaceAll('-x-', 'x')
    .split('/');
  return words.every((word) => /^(\d+x\d+|low|medium|high|standard|hd|auto)$/.test(word)) ? words.join(' ') : undefined;
}

function below(price: WrittenPrice, name: string): { [name: string]: string | WrittenPrice } {
  const there = price[name];
  if (typeof there === 'object') return there;
  const made: { [name: string]: string | WrittenPrice } = there === undefined ? {} : { default: there };
  price[name] = made;
  return made;
}

function perMillionText(value: Ratio, name: string): string {
  return usdText({ ...value, numerator: value.numerator * perMillion }, name);
}

/** Throws a RangeError for an amount that is finer than a nano-dollar. */
function usdText(value: Ratio, name: string): string {
  const nano = timesExactly(nanoPerUsd, value);
  if (nano === undefined) throw new RangeError(`${name} is finer than a nano-dollar`);
  return formatUsd(nano);
}

/** Batch prices are not used here, and zeros carry no information. */
function isPriced(name: string, amount: Ratio): boolean {
  return !name.endsWith('_batches') && amount.numerator > 0n;
}

/** Throws a RangeError that names the member. */
function amountIn({ digits }: { readonly digits: string }, name: string): Ratio {
  try {
    return parseDecimal(digits);
  } catch (error) {
    throw new RangeError(`${name}: ${(error as Error).message}`);
  }
}

function isNumber(value: ListValue | undefined): value is { readonly digits: string } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && typeof value['digits'] === 'string';
}

function isEntry(value: unknown): value is ListEntry {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('digits' in value);
}
