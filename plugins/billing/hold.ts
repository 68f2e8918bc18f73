/** A hold: what is set aside for one request, and the records that its life leaves in the journal. Pure. */
import { type Money, money, type Ratio } from '../../core/money.ts';
import { type PriceContext, PriceVersion } from '../../core/prices.ts';
import type { Model } from '../../core/vocabulary.ts';
import type { Shares } from './absorbed.ts';
import type { CapShare } from './caps.ts';
import { type Allowance, type Charge, priceAtHold } from './charge.ts';
import type { Turn } from './journal.ts';
import type { Settlement } from './outcome.ts';
import type { Purse } from './purses.ts';
import {
  type Departure,
  decodePrice,
  decodeRatio,
  encodePrice,
  encodeRatio,
  type HoldRecord,
  type SettleRecord,
  type VoidRecord,
} from './records.ts';
import type { StatedPlan } from './terms.ts';

/** Everything that the price of a request depends on, fixed when the hold is taken. */
export interface Terms {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly prices: PriceVersion;
  /** The time, and the call's side, that price tiers go by. */
  readonly at: number;
  readonly context: PriceContext;
  readonly ratio: Ratio;
  /** Estimate of the prompt, in tokens. */
  readonly inputTokens: number;
  /** Output tokens that the first hold covers. */
  readonly outputTokens: number;
  /** Pieces that it covers. */
  readonly allowance: Allowance;
  /** The catalogue's entry, for the own cost; undefined where the catalogue no longer has it. */
  readonly entry: Model | undefined;
  /** The plan that the call is made on; it may bring money. */
  readonly plan?: StatedPlan | undefined;
  /** Its part of the key's spend cap, where there is one. */
  readonly cap?: CapShare;
}

export interface Hold {
  readonly terms: Terms;
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
  /** What was covered when money for an extension was last asked for. */
  preparedOutput: number;
  /** The answer was stopped: what it showed is more than could be paid for. */
  unpaid: boolean;
  /** Attempts whose departure is in the journal or on its way there. */
  readonly sent: Departure[];
  /** The write that the last of them waited for. */
  turn: Turn | undefined;
  /** Its own record, until its first attempt leaves. */
  record: HoldRecord | undefined;
  ended: boolean;
  /** What it has cost; undefined: nothing, or it runs still. */
  spent: Money | undefined;
  /** What that cost the operator, as far as it is known. */
  own: Money | undefined;
  /** Its neighbours among the open holds. */
  older: Hold | undefined;
  newer: Hold | undefined;
}

export function newHold(terms: Terms, amount: Money, purse: Purse | undefined): Hold {
  return {
    terms,
    purse,
    sequence: 0,
    held: amount,
    extensions: 0,
    coveredOutput: terms.outputTokens,
    seenOutput: 0,
    notedOutput: 0,
    preparedOutput: -1,
    unpaid: false,
    sent: [],
    turn: undefined,
    record: undefined,
    ended: false,
    spent: undefined,
    own: undefined,
    older: undefined,
    newer: undefined,
  };
}

/** The attempts that left. The last did not when the write that it waited for has failed. */
export function departures(hold: Hold): readonly Departure[] {
  if (hold.turn?.failed === true) {
    hold.turn = undefined;
    hold.sent.pop();
  }
  return hold.sent;
}

export function holdRecord({ terms, held }: Hold, at: number): HoldRecord {
  const { price, version, tier } = priceAtHold(terms);
  return {
    kind: 'HOLD',
    id: terms.id,
    at,
    account: terms.accountId,
    key: terms.keyId,
    model: terms.model,
    plan: terms.plan?.terms.name,
    input: terms.inputTokens,
    output: terms.outputTokens,
    amount: held.toString(),
    price: encodePrice(price),
    ratio: encodeRatio(terms.ratio),
    version,
    tier: tier === '' ? undefined : tier,
    sent: undefined,
  };
}

/** The hold that a record of an earlier run tells of: charged by the price that its estimate had. */
export function holdOf(record: HoldRecord, sequence: number): Hold {
  const terms: Terms = {
    id: record.id,
    accountId: record.account,
    keyId: record.key,
    model: record.model,
    prices: new PriceVersion({ name: record.version, base: decodePrice(record.price), label: record.tier ?? '' }),
    at: record.at,
    context: {},
    ratio: decodeRatio(record.ratio),
    inputTokens: record.input,
    outputTokens: record.output,
    allowance: { tools: 0, images: 0, seconds: 0 },
    entry: undefined,
    plan: record.plan === undefined ? undefined : planNamed(record.plan, record.at),
  };
  const hold = newHold(terms, money(BigInt(record.amount)), undefined);
  hold.sequence = sequence;
  if (record.sent !== undefined) hold.sent.push(record.sent);
  return hold;
}

/** What the plan brings was given, or not, when the hold was taken. */
export function planNamed(name: string, at: number): StatedPlan {
  return { terms: { name, limits: {}, models: undefined, multiplier: undefined }, at };
}

/** All that was set aside leaves the hold: what the call did not cost goes back, what it cost beyond is taken. */
export function settleRecord(
  { terms, held }: Hold,
  at: number,
  { estimated, terminal, reason, finish, upstreamId }: Settlement,
  { cost, usage, priced, own }: Charge,
  { notes, absorbed }: Shares,
): SettleRecord {
  return {
    kind: 'SETTLE',
    id: terms.id,
    at,
    account: terms.accountId,
    key: terms.keyId,
    model: terms.model,
    plan: terms.plan?.terms.name,
    input: terms.inputTokens,
    held: held.toString(),
    cost: cost.toString(),
    usage,
    estimated,
    terminal,
    reason,
    finish,
    upstreamId,
    price: encodePrice(priced.price),
    ratio: encodeRatio(terms.ratio),
    version: priced.version,
    tier: priced.tier === '' ? undefined : priced.tier,
    own: own?.toString(),
    absorbed: toldIfAny(absorbed),
    attempts: notes,
  };
}

export function voidRecord({ terms, held }: Hold, at: number, reason: string, { notes, absorbed }: Shares): VoidRecord {
  return {
    kind: 'VOID',
    id: terms.id,
    at,
    account: terms.accountId,
    model: terms.model,
    held: held.toString(),
    reason,
    absorbed: toldIfAny(absorbed),
    attempts: notes,
  };
}

function toldIfAny(amount: Money): string | undefined {
  return amount === 0n ? undefined : amount.toString();
}
