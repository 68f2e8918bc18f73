/** The journal's records, and the line with a checksum that carries the records of one write. Pure. */
import { crc32 } from 'node:zlib';
import type { CallFacts } from '../../common/domain/call-facts.ts';
import type { Attempt } from '../../common/domain/calls.ts';
import type { Ratio } from '../../common/domain/money.ts';
import { type Price, type Usage, type UsageClass, usageClasses } from '../../common/domain/usage.ts';

/** An attempt sent to an upstream: from here on it may cost money. */
export interface SentAttempt {
  readonly number: number;
  readonly at: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
}

/**
 * A hold, with the price and ratio at this moment. `input` and `output` are the tokens it covers. `sent`: the first
 * attempt, if it was sent in the same turn of the event loop, which is the normal case.
 */
export interface HoldRecord {
  readonly kind: 'HOLD';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  /** The plan's name; absent: none. */
  readonly plan?: string | undefined;
  /** Ids; absent: none. */
  readonly person?: string | undefined;
  readonly project?: string | undefined;
  /** `env=prod,team=search`; absent: none. */
  readonly tags?: string | undefined;
  readonly input: number;
  readonly output: number;
  /** What it covers beside tokens, such as characters; absent: nothing that is known beforehand. */
  readonly counted?: Usage | undefined;
  readonly amount: string;
  readonly price: PriceTexts;
  readonly ratio: string;
  readonly version: string;
  /** The price tier; absent: the list price. */
  readonly tier?: string | undefined;
  sent?: SentAttempt | undefined;
}

/** An attempt sent in a later turn than its hold. */
interface SentRecord extends SentAttempt {
  readonly kind: 'SENT';
  readonly id: string;
  /** Another model than that of the hold serves the call from here on. */
  readonly served?: ServedTerms;
}

export interface ServedTerms {
  readonly model: string;
  readonly price: PriceTexts;
  readonly ratio: string;
  readonly version: string;
  readonly tier?: string | undefined;
}

/** An extension of a running answer's hold; `part` counts from 1. */
interface ExtendRecord {
  readonly kind: 'EXTEND';
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly part: number;
  readonly output: number;
  readonly amount: string;
}

/** The output tokens that a running answer has produced so far. */
interface ProgressRecord {
  readonly kind: 'PROGRESS';
  readonly id: string;
  readonly output: number;
}

interface CallEnd {
  readonly id: string;
  readonly at: number;
  readonly account: string;
  readonly model: string;
  readonly plan?: string | undefined;
  readonly person?: string | undefined;
  readonly project?: string | undefined;
  readonly tags?: string | undefined;
  /** When the money was held, which selects the grants that pay; absent in journals of earlier versions: at its end. */
  readonly heldAt?: number | undefined;
  /** Total held, including extensions. */
  readonly held: string;
  readonly reason: string;
  /** The cost of attempts that the operator bears, if any. */
  readonly absorbed?: string | undefined;
  readonly attempts: readonly StoredAttempt[];
  /** Provider and model of the last attempt; absent where `attempts` has them, or no attempt answered the call. */
  readonly provider?: string | undefined;
  readonly target?: string | undefined;
}

/** The charge of a call. Includes the terms of the hold, so that the call's rows can be made from this record alone. */
export interface SettleRecord extends CallEnd {
  readonly kind: 'SETTLE';
  readonly key: string;
  readonly input: number;
  readonly cost: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly terminal: boolean;
  readonly finish?: string | undefined;
  readonly upstreamId?: string | undefined;
  readonly price: PriceTexts;
  readonly ratio: string;
  readonly version: string;
  readonly tier?: string | undefined;
  /** The call's cost to the operator; absent: unknown. */
  readonly own?: string | undefined;
}

/** The call costs nothing and the whole hold is released. */
export interface VoidRecord extends CallEnd {
  readonly kind: 'VOID';
  /** Absent, as the input, in journals of earlier versions. */
  readonly key?: string | undefined;
  readonly input?: number | undefined;
}

export type EndRecord = SettleRecord | VoidRecord;

/** `CallFacts` are the request log's part of the row of an ended call; written after its end, often as the next line. */
export type JournalRecord = HoldRecord | SentRecord | ExtendRecord | ProgressRecord | EndRecord | CallFacts;

/** A sent attempt, as it is read. */
export type AttemptNote = Readonly<Omit<Attempt, 'status' | 'durationMs' | 'error' | 'consumed'>> & {
  readonly status?: number | undefined;
  /** Whole milliseconds. */
  readonly durationMs?: number | undefined;
  readonly error?: string | undefined;
  /** The party that bears its cost; absent: no cost. For the operator: the amount and the usage; for the client: a reported usage that was not possible. */
  readonly bearer?: 'client' | 'operator';
  readonly absorbed?: string;
  readonly usage?: Usage;
  readonly estimated?: boolean;
};

/** As the journal and the call's row have it: by place (`encodeAttempts`), in earlier versions by name. */
type StoredAttempt = AttemptNote | readonly unknown[];

/** nano-USD as digits by class. */
export type PriceTexts = { readonly [K in UsageClass]?: string };

// ---------------------------------------------------------------------------------------------------------------- lines

const checksumChars = 8;

/** Encodes the records of one write as JSON, without characters that a database text cannot hold. */
export function encodeRecords(records: readonly JournalRecord[]): string {
  const json = JSON.stringify(records);
  return json.includes('\\u') ? JSON.stringify(records, (_name, value) => cleaned(value)) : json;
}

/** Removes NUL and unpaired surrogates. */
export function cleaned(value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value;
}

/** The most bytes that a line of these records takes. */
export function lineBytes(json: string): number {
  return Buffer.byteLength(json) + 48;
}

/**
 * Puts the line `CRC FIRST EPOCH JSON\n` into `target` and returns its end. The checksum (CRC-32, eight hex digits)
 * covers everything after it, including the number of the first record. Without an epoch its number is omitted.
 */
export function putLine(target: Buffer, from: number, first: number, json: string, epoch = 0): number {
  const body = from + checksumChars + 1;
  let end = body + target.write(epoch === 0 ? `${first} ` : `${first} ${epoch} `, body, 'latin1');
  end += target.write(json, end);
  const checksum = crc32(target.subarray(body, end)).toString(16).padStart(checksumChars, '0');
  target.write(`${checksum} `, from, 'latin1');
  target[end] = 0x0a;
  return end + 1;
}

export interface Line {
  /** Sequence number of its first record. */
  readonly first: number;
  /** The run that wrote it; absent in journals written before epochs existed. */
  readonly epoch?: number;
  readonly records: readonly JournalRecord[];
}

/** Decodes a line without its line feed; undefined when it is incomplete or its checksum does not match. */
export function decodeLine(line: Buffer): Line | undefined {
  if (line.length < 12 || line[checksumChars] !== 0x20) return undefined;
  const body = line.subarray(checksumChars + 1);
  const checksum = crc32(body).toString(16).padStart(checksumChars, '0');
  if (checksum !== line.toString('latin1', 0, checksumChars)) return undefined;
  const json = body.indexOf(0x5b);
  const [first, epoch] = body.toString('latin1', 0, json).split(' ', 2) as [string, string];
  return {
    first: Number.parseInt(first, 10),
    ...(epoch === '' ? {} : { epoch: Number.parseInt(epoch, 10) }),
    records: JSON.parse(body.toString('utf8', json)) as JournalRecord[],
  };
}

// -------------------------------------------------------------------------------------------------------------- attempts

/** Stored by their places: they are only added to, as in the SQL function `attempts_of`. */
const results: readonly string[] = ['running', 'not_sent', 'refused', 'unknown', 'answered'];
const bearers: readonly (string | undefined)[] = [undefined, 'client', 'operator'];

/**
 * Attempts in order. Provider and model of the `last` one are stored once for the call; without it, as no attempt answered the
 * call, each attempt has its own.
 */
export function encodeAttempts(notes: readonly AttemptNote[], last: AttemptNote | undefined): StoredAttempt[] {
  const encoded: StoredAttempt[] = [];
  for (const note of notes) encoded.push(encodeAttempt(note, last));
  return encoded;
}

/** `encodeAttempts` as JSON; most calls have one. */
export function attemptsText(notes: readonly AttemptNote[], last: AttemptNote | undefined): string {
  const encoded = notes.length === 1 ? [encodeAttempt(notes[0]!, last)] : encodeAttempts(notes, last);
  const json = JSON.stringify(encoded);
  return json.includes('\\u') ? JSON.stringify(encoded, (_name, value) => cleaned(value)) : json;
}

function encodeAttempt(note: AttemptNote, last: AttemptNote | undefined): unknown[] {
  const { number, provider, model, credential, protocol, startedAt, result, status, durationMs, bearer } = note;
  const places: unknown[] = [
    number,
    provider === last?.provider ? 0 : provider,
    model === last?.model ? 0 : model,
    credential,
    protocol,
    startedAt,
    results.indexOf(result),
    status ?? null,
    durationMs ?? null,
    bearers.indexOf(bearer),
  ];
  const { absorbed, error, usage, estimated } = note;
  if (absorbed !== undefined || error !== undefined || usage !== undefined || estimated !== undefined)
    places.push(absorbed ?? null, error ?? null, usage ?? null, estimated ?? null);
  return places;
}

// ----------------------------------------------------------------------------------------------------- prices and ratios

export function encodePrice(price: Price): PriceTexts {
  const named = usageClasses.filter((name) => price[name] !== undefined);
  return Object.fromEntries(named.map((name) => [name, String(price[name])])) as PriceTexts;
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
