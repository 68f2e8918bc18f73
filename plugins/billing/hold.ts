/** A hold: what is set aside for one request, and the ledger entries that its life leaves behind. Pure. */
import { type Money, money, type Ratio } from '../../core/money.ts';
import type { Price } from '../../core/usage.ts';
import type { Purse } from './purses.ts';
import {
  decodePrice,
  decodeRatio,
  type EndRecord,
  type ExtendRecord,
  encodePrice,
  encodeRatio,
  type HoldRecord,
  type SentRecord,
} from './records.ts';

/** Everything that the price of a request depends on, fixed when the hold is taken. */
export interface Terms {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly price: Price;
  readonly priceVersion: string;
  readonly ratio: Ratio;
  /** Estimate of the prompt, in tokens. */
  readonly inputTokens: number;
  /** Output tokens that the first hold covers. */
  readonly outputTokens: number;
}

export interface Hold {
  readonly terms: Terms;
  /** Wall clock of the hold. */
  readonly at: number;
  /** What was set aside first. */
  readonly amount: Money;
  /** Where it is spent from; undefined for a hold that was found in the journal at the start. */
  readonly purse: Purse | undefined;
  /** Place of its HOLD record in the journal. */
  sequence: number;
  /** Set aside in all, extensions included. */
  held: Money;
  extensions: number;
  /** Output tokens that `held` pays for. */
  coveredOutput: number;
  /** Output tokens seen so far, and as of the last PROGRESS record. */
  seenOutput: number;
  notedOutput: number;
  /** Attempts whose SENT record is in the journal. */
  readonly sent: SentRecord[];
  ended: boolean;
  /** Its place among the desk's holds. */
  slot: number;
}

/** One ledger row to come. `revenue` is what the other two sides leave. */
export interface Entry {
  readonly sequence: number;
  readonly hold: Hold;
  readonly kind: 'HOLD' | 'EXTEND' | 'SETTLE' | 'VOID';
  readonly part: number;
  readonly at: number;
  /** Effect on what the account may spend. */
  readonly amount: Money;
  /** Effect on what is set aside. */
  readonly held: Money;
  /** Output tokens that an EXTEND reaches to. */
  readonly output?: number;
  readonly end?: EndRecord;
}

export function newHold(terms: Terms, at: number, amount: Money, purse: Purse | undefined): Hold {
  return {
    terms,
    at,
    amount,
    purse,
    sequence: 0,
    held: amount,
    extensions: 0,
    coveredOutput: terms.outputTokens,
    seenOutput: 0,
    notedOutput: 0,
    sent: [],
    ended: false,
    slot: -1,
  };
}

export function holdRecord(hold: Hold): HoldRecord {
  const { terms } = hold;
  return {
    kind: 'HOLD',
    id: terms.id,
    at: hold.at,
    account: terms.accountId,
    key: terms.keyId,
    model: terms.model,
    input: terms.inputTokens,
    output: terms.outputTokens,
    amount: hold.amount.toString(),
    price: encodePrice(terms.price),
    ratio: encodeRatio(terms.ratio),
    version: terms.priceVersion,
  };
}

/** The hold that a record of an earlier run tells of. */
export function holdOf(record: HoldRecord, sequence: number): Hold {
  const terms: Terms = {
    id: record.id,
    accountId: record.account,
    keyId: record.key,
    model: record.model,
    price: decodePrice(record.price),
    priceVersion: record.version,
    ratio: decodeRatio(record.ratio),
    inputTokens: record.input,
    outputTokens: record.output,
  };
  const hold = newHold(terms, record.at, money(BigInt(record.amount)), undefined);
  hold.sequence = sequence;
  return hold;
}

export function holdEntry(hold: Hold): Entry {
  const { sequence, at, amount } = hold;
  return { sequence, hold, kind: 'HOLD', part: 0, at, amount: money(-amount), held: amount };
}

/** Adds what an EXTEND record says to the hold. */
export function extendEntry(hold: Hold, record: ExtendRecord, sequence: number): Entry {
  const amount = money(BigInt(record.amount));
  hold.held = money(hold.held + amount);
  hold.extensions = record.part;
  hold.coveredOutput = record.output;
  const { at, part, output } = record;
  return { sequence, hold, kind: 'EXTEND', part, at, amount: money(-amount), held: amount, output };
}

/** Ends the hold: all that was set aside leaves it; what the call did not cost goes back, what it cost beyond is taken. */
export function endEntry(hold: Hold, end: EndRecord, sequence: number): Entry {
  const cost = end.kind === 'SETTLE' ? BigInt(end.cost) : 0n;
  if (cost < 0n) throw new Error(`request ${end.id} was to be charged ${cost}, less than nothing`);
  hold.ended = true;
  const amount = money(hold.held - cost);
  return { sequence, hold, kind: end.kind, part: 0, at: end.at, amount, held: money(-hold.held), end };
}
