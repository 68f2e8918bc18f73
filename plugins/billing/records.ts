/** The journal's records: what each of them says, and the line with a checksum that carries those of one write. Pure. */
import { crc32 } from 'node:zlib';
import type { Ratio } from '../../core/money.ts';
import { type Price, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import type { Attempt } from '../../core/vocabulary.ts';

/** An attempt on its way to an upstream socket: from here on it may cost money. */
export interface Departure {
  readonly number: number;
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
}

/**
 * Money was set aside; price and ratio are kept as they were at this moment. `input` and `output` are the tokens it covers.
 * `sent`: the first attempt left in the same turn of the event loop, which is the rule.
 */
export interface HoldRecord {
  readonly kind: 'HOLD';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  /** Name of the plan that the call is made on; absent: none. */
  readonly plan?: string | undefined;
  readonly input: number;
  readonly output: number;
  readonly amount: string;
  readonly price: PriceTexts;
  readonly ratio: string;
  readonly version: string;
  /** Tiers of the price; absent: the list price. */
  readonly tier?: string | undefined;
  sent?: Departure | undefined;
}

/** An attempt left in a later turn than the hold was taken. */
export interface SentRecord extends Departure {
  readonly kind: 'SENT';
  readonly id: string;
}

/** More was set aside for a running answer; `part` counts from 1. */
export interface ExtendRecord {
  readonly kind: 'EXTEND';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly part: number;
  readonly output: number;
  readonly amount: string;
}

/** How many output tokens a running answer has shown so far. */
export interface ProgressRecord {
  readonly kind: 'PROGRESS';
  readonly id: string;
  readonly output: number;
}

/** The call was charged. With what the hold said, so that every row it leaves can be made of this record alone. */
export interface SettleRecord {
  readonly kind: 'SETTLE';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly plan?: string | undefined;
  readonly input: number;
  /** Set aside in all, extensions included. */
  readonly held: string;
  readonly cost: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly terminal: boolean;
  readonly reason: string;
  readonly finish?: string | undefined;
  readonly upstreamId?: string | undefined;
  readonly price: PriceTexts;
  readonly ratio: string;
  readonly version: string;
  readonly tier?: string | undefined;
  /** What the call cost the operator; absent: not known. */
  readonly own?: string | undefined;
  /** What the operator bears of the attempts, if anything. */
  readonly absorbed?: string | undefined;
  readonly attempts: readonly AttemptNote[];
}

/** The call costs nothing and all of the hold goes back. */
export interface VoidRecord {
  readonly kind: 'VOID';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly model: string;
  readonly held: string;
  readonly reason: string;
  readonly absorbed?: string | undefined;
  readonly attempts: readonly AttemptNote[];
}

export type EndRecord = SettleRecord | VoidRecord;
export type JournalRecord = HoldRecord | SentRecord | ExtendRecord | ProgressRecord | EndRecord;

/** An attempt that was sent, as its row will tell it. */
export type AttemptNote = Readonly<Omit<Attempt, 'status' | 'durationMs' | 'error' | 'consumed'>> & {
  readonly status?: number | undefined;
  /** Whole milliseconds. */
  readonly durationMs?: number | undefined;
  readonly error?: string | undefined;
  /** Who bears its cost; absent: it cost nothing. For the operator's share: how much, for which usage. */
  readonly bearer?: 'client' | 'operator';
  readonly absorbed?: string;
  readonly usage?: Usage;
  readonly estimated?: boolean;
};

/** nano-USD as digits by class. */
export type PriceTexts = { readonly [K in UsageClass]?: string };

// ---------------------------------------------------------------------------------------------------------------- lines

const checksumChars = 8;

/** The records of one write as JSON; upstreams' texts lose what a database's text cannot hold. */
export function encodeRecords(records: readonly JournalRecord[]): string {
  const json = JSON.stringify(records);
  return json.includes('\\u') ? JSON.stringify(records, (_name, value) => cleaned(value)) : json;
}

/** Without NUL and half surrogate pairs. */
function cleaned(value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value;
}

/** Bytes that a line of these records takes at most. */
export function lineBytes(json: string): number {
  return Buffer.byteLength(json) + 32;
}

/**
 * Puts the line `CRC FIRST JSON\n` into `target` and tells where it ends. The checksum (CRC-32, eight hex digits) covers
 * everything behind it, the number of the first record too.
 */
export function putLine(target: Buffer, from: number, first: number, json: string): number {
  const body = from + checksumChars + 1;
  let end = body + target.write(`${first} `, body, 'latin1');
  end += target.write(json, end);
  const checksum = crc32(target.subarray(body, end)).toString(16).padStart(checksumChars, '0');
  target.write(`${checksum} `, from, 'latin1');
  target[end] = 0x0a;
  return end + 1;
}

export interface Line {
  /** Sequence number of its first record. */
  readonly first: number;
  readonly records: readonly JournalRecord[];
}

/** Reads a line without its end; undefined when it is not whole and true. */
export function decodeLine(line: Buffer): Line | undefined {
  if (line.length < 12 || line[checksumChars] !== 0x20) return undefined;
  const body = line.subarray(checksumChars + 1);
  const checksum = crc32(body).toString(16).padStart(checksumChars, '0');
  if (checksum !== line.toString('latin1', 0, checksumChars)) return undefined;
  const space = body.indexOf(0x20);
  return {
    first: Number.parseInt(body.toString('latin1', 0, space), 10),
    records: JSON.parse(body.toString('utf8', space + 1)) as JournalRecord[],
  };
}

// ----------------------------------------------------------------------------------------------------- prices and ratios

const knownPrices = new WeakMap<Price, PriceTexts>();

/** Kept for each price object, since holds share them. */
export function encodePrice(price: Price): PriceTexts {
  let texts = knownPrices.get(price);
  if (texts === undefined) {
    const named = usageClasses.filter((name) => price[name] !== undefined);
    texts = Object.fromEntries(named.map((name) => [name, String(price[name])])) as PriceTexts;
    knownPrices.set(price, texts);
  }
  return texts;
}

export function decodePrice(texts: PriceTexts): Price {
  return Object.fromEntries(Object.entries(texts).map(([name, digits]) => [name, BigInt(digits)])) as Price;
}

const knownRatios = new WeakMap<Ratio, string>();

/** `8/5`. */
export function encodeRatio(ratio: Ratio): string {
  let text = knownRatios.get(ratio);
  if (text === undefined) {
    text = `${ratio.numerator}/${ratio.denominator}`;
    knownRatios.set(ratio, text);
  }
  return text;
}

export function decodeRatio(text: string): Ratio {
  const [numerator, denominator] = text.split('/') as [string, string];
  return { numerator: BigInt(numerator), denominator: BigInt(denominator) };
}
