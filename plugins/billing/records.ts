/** The journal's records: what each of them says, and its form as one line with a checksum. Pure. */
import { crc32 } from 'node:zlib';
import type { Ratio } from '../../core/money.ts';
import { type Price, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import type { Attempt } from '../../core/vocabulary.ts';

/** Money was set aside; price and ratio are kept as they were at this moment. `input` and `output` are the tokens it covers. */
export interface HoldRecord {
  readonly kind: 'HOLD';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly amount: string;
  readonly price: string;
  readonly ratio: string;
  readonly version: string;
}

/** The request is about to be handed to an upstream socket: from here on it may cost money. */
export interface SentRecord {
  readonly kind: 'SENT';
  readonly id: string;
  readonly at: number;
  readonly number: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
}

/** More was set aside for a running answer; `part` counts from 1. */
export interface ExtendRecord {
  readonly kind: 'EXTEND';
  readonly id: string;
  readonly at: number;
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

/** The call was charged. */
export interface SettleRecord {
  readonly kind: 'SETTLE';
  readonly id: string;
  readonly at: number;
  readonly cost: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly terminal: boolean;
  readonly reason: string;
  readonly finish?: string;
  readonly upstreamId?: string;
  readonly attempts: readonly AttemptNote[];
}

/** The call costs nothing and all of the hold goes back. */
export interface VoidRecord {
  readonly kind: 'VOID';
  readonly id: string;
  readonly at: number;
  readonly reason: string;
  readonly attempts: readonly AttemptNote[];
}

export type EndRecord = SettleRecord | VoidRecord;
export type JournalRecord = HoldRecord | SentRecord | ExtendRecord | ProgressRecord | EndRecord;

/** An attempt that was sent, as its row will tell it. */
export type AttemptNote = Readonly<Omit<Attempt, 'status' | 'durationMs' | 'error'>> & {
  readonly status?: number;
  readonly durationMs?: number;
  readonly error?: string;
};

/** `CRC SEQUENCE JSON\n`; the checksum (CRC-32, eight hex digits) covers the sequence number too. */
export function encodeLine(sequence: number, record: JournalRecord): string {
  const body = `${sequence} ${JSON.stringify(record)}`;
  return `${crc32(body).toString(16).padStart(8, '0')} ${body}\n`;
}

export interface Numbered {
  readonly sequence: number;
  readonly record: JournalRecord;
}

/** Reads a line without its end; undefined when it is not whole and true. */
export function decodeLine(line: Buffer): Numbered | undefined {
  if (line.length < 12 || line[8] !== 0x20) return undefined;
  const body = line.subarray(9);
  if (crc32(body).toString(16).padStart(8, '0') !== line.toString('latin1', 0, 8)) return undefined;
  const space = body.indexOf(0x20);
  return {
    sequence: Number.parseInt(body.toString('latin1', 0, space), 10),
    record: JSON.parse(body.toString('utf8', space + 1)) as JournalRecord,
  };
}

const priceTexts = new WeakMap<Price, string>();

/** `input=2500000000,output=10000000000`: nano-USD by class. Kept for each price object, since holds share them. */
export function encodePrice(price: Price): string {
  const known = priceTexts.get(price);
  if (known !== undefined) return known;
  const text = usageClasses
    .filter((name) => price[name] !== undefined)
    .map((name) => `${name}=${price[name]}`)
    .join(',');
  priceTexts.set(price, text);
  return text;
}

export function decodePrice(text: string): Price {
  const price: { [K in UsageClass]?: bigint } = {};
  for (const part of text === '' ? [] : text.split(',')) {
    const [name, amount] = part.split('=') as [UsageClass, string];
    price[name] = BigInt(amount);
  }
  return price;
}

/** `8/5`. */
export function encodeRatio(ratio: Ratio): string {
  return `${ratio.numerator}/${ratio.denominator}`;
}

export function decodeRatio(text: string): Ratio {
  const [numerator, denominator] = text.split('/') as [string, string];
  return { numerator: BigInt(numerator), denominator: BigInt(denominator) };
}
