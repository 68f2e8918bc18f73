/** A hold: the money reserved for one request, and its journal records. Pure. */

import type { Model } from '../../common/domain/models.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { PriceVersion } from '../../common/domain/prices.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { Turn } from '../journal/journal.ts';
import type { Balance } from '../ledger/balance.ts';
import type { CallPlan } from '../ledger/terms.ts';
import { numberMember, pricedMembers, textMember } from '../model/record-texts.ts';
import {
  attemptsText,
  decodePrice,
  decodeRatio,
  encodeAttempts,
  encodePrice,
  encodeRatio,
  type HoldRecord,
  type SentAttempt,
  type ServedTerms,
  type VoidRecord,
} from '../model/records.ts';
import { boundOf, type Charge, priceAtHold } from './charge.ts';
import type { Settlement } from './outcome.ts';
import type { Terms } from './terms.ts';
import type { Shares } from './written-off.ts';

export interface Hold {
  /** Terms of the model that serves the call. */
  terms: Terms;
  /** The balance it is taken from; undefined for a hold recovered from the journal at the start. */
  readonly balance: Balance | undefined;
  /** Wall-clock milliseconds. */
  readonly at: number;
  /** Sequence number of its HOLD record. */
  sequence: number;
  /** Total held, including extensions. */
  held: Money;
  extensions: number;
  /** Output tokens that `held` pays for. */
  coveredOutput: number;
  /** Output tokens seen so far, and as of the last PROGRESS record. */
  seenOutput: number;
  notedOutput: number;
  /** The covered output when money for an extension was last requested. */
  preparedOutput: number;
  /** The answer was stopped: its output exceeds what could be paid. */
  unpaid: boolean;
  /** Attempts recorded as sent in the journal, or about to be. */
  sent: readonly SentAttempt[];
  /** The write that the last of them waited for. */
  turn: Turn | undefined;
  /** Members of its records that name the parties, while the requested model serves it. */
  parties: string;
  ended: boolean;
  /** Its cost; undefined: none, or it is still running. */
  spent: Money | undefined;
  /** The operator's cost, as far as known. */
  own: Money | undefined;
  /** The charged usage; undefined: none yet. */
  usage: Usage | undefined;
  /** Its neighbours among the open holds. */
  older: Hold | undefined;
  newer: Hold | undefined;
}

/** Most holds have one attempt. The list is made again for each more: one that `push` grows has room for seventeen. */
const none: readonly SentAttempt[] = [];

export function newHold(terms: Terms, amount: Money, balance: Balance | undefined, at: number): Hold {
  return {
    terms,
    balance,
    at,
    sequence: 0,
    held: amount,
    extensions: 0,
    coveredOutput: terms.outputTokens,
    seenOutput: 0,
    notedOutput: 0,
    preparedOutput: -1,
    unpaid: false,
    sent: none,
    turn: undefined,
    parties: partiesOf(terms),
    ended: false,
    spent: undefined,
    own: undefined,
    usage: undefined,
    older: undefined,
    newer: undefined,
  };
}

/** The attempts that were sent. The last was not if the write it waited for failed. */
export function sentAttempts(hold: Hold): readonly SentAttempt[] {
  if (hold.turn?.failed === true) {
    hold.turn = undefined;
    hold.sent = hold.sent.slice(0, -1);
  }
  return hold.sent;
}

/** The call goes on with another model behind this attempt. false: it is not among those that the hold covers. */
export function serveBy(hold: Hold, entry: Model, attempts: number): boolean {
  const { terms } = hold;
  const { cap, others } = terms;
  const other = others?.find((one) => one.entry === entry);
  if (hold.ended || other === undefined || boundOf(other, other.outputTokens) > hold.held) return false;
  hold.terms = { ...other, ...(cap === undefined ? {} : { cap }), others: others!, before: { terms, attempts } };
  hold.coveredOutput = other.outputTokens;
  hold.preparedOutput = -1;
  return true;
}

/** The price by which a call is charged from an attempt on. */
export function servedTerms(terms: Terms): ServedTerms {
  const { price, version, tier } = priceAtHold(terms);
  const { model, ratio } = terms;
  return { model, price: encodePrice(price), ratio: encodeRatio(ratio), version, tier: tier === '' ? undefined : tier };
}

/** Goes on with another model, as its first attempt's record says. */
export function servedAgain(hold: Hold, { model, price, ratio, version, tier = '' }: ServedTerms): void {
  const prices = new PriceVersion({ name: version, base: decodePrice(price), label: tier });
  hold.terms = { ...hold.terms, model, prices, ratio: decodeRatio(ratio) };
  hold.parties = partiesOf(hold.terms);
}

/** Its record. The first attempt is added where it is sent in the same turn. */
export function holdText(hold: Hold): string {
  const { terms } = hold;
  const { others } = terms.allowance;
  return (
    textMember('{"kind":"HOLD","id":"', terms.id) +
    numberMember(',"at":', hold.at) +
    hold.parties +
    numberMember(',"input":', terms.inputTokens) +
    numberMember(',"output":', terms.outputTokens) +
    (others === undefined ? '' : `,"counted":${JSON.stringify(others)}`) +
    `,"amount":"${hold.held}"` +
    pricedMembers(priceAtHold(terms), terms.ratio)
  );
}

/** The member `sent` of a record, or the rest of a record of its own. */
export function sentMembers({ number, at, provider, model, credential, protocol }: SentAttempt): string {
  return (
    numberMember('"number":', number) +
    numberMember(',"at":', at) +
    textMember(',"provider":"', provider) +
    textMember(',"model":"', model) +
    textMember(',"credential":"', credential) +
    textMember(',"protocol":"', protocol)
  );
}

interface Parties extends Pick<Terms, 'accountId' | 'model' | 'attribution' | 'tags'> {
  readonly plan: string | undefined;
  readonly text: string;
}

/** By key: its next call is nearly always for the same model on the same plan, and all that run share one text. */
const knownParties = new Map<string, Parties>();
const mostKnown = 10_000;

/** Members of both records of a call. */
function partiesOf({ accountId, keyId, model, plan, attribution, tags }: Terms): string {
  const name = plan?.terms.name;
  const known = knownParties.get(keyId);
  const isKnown = known !== undefined && known.model === model && known.plan === name && known.tags === tags;
  if (isKnown && known.accountId === accountId && known.attribution === attribution) return known.text;
  if (knownParties.size >= mostKnown) knownParties.clear();
  const text =
    textMember(',"account":"', accountId) +
    textMember(',"key":"', keyId) +
    textMember(',"model":"', model) +
    textMember(',"plan":"', name) +
    textMember(',"person":"', attribution?.person) +
    textMember(',"project":"', attribution?.project) +
    (tags === undefined ? '' : `,"tags":"${tags}"`);
  // One flat text instead of one that is made of parts.
  const flat = Buffer.from(text).toString();
  knownParties.set(keyId, { accountId, model, plan: name, attribution, tags, text: flat });
  return flat;
}

/** The hold of an earlier run's record: charged by the price of its estimate. */
export function holdOf(record: HoldRecord, sequence: number): Hold {
  const terms: Terms = {
    id: record.id,
    accountId: record.account,
    keyId: record.key,
    ...attributed(record),
    tags: record.tags,
    model: record.model,
    prices: new PriceVersion({ name: record.version, base: decodePrice(record.price), label: record.tier ?? '' }),
    at: record.at,
    context: {},
    ratio: decodeRatio(record.ratio),
    inputTokens: record.input,
    outputTokens: record.output,
    allowance: {
      tools: 0,
      images: 0,
      seconds: 0,
      ...(record.counted === undefined ? {} : { others: record.counted }),
    },
    entry: undefined,
    plan: record.plan === undefined ? undefined : planNamed(record.plan, record.at),
  };
  const hold = newHold(terms, money(BigInt(record.amount)), undefined, record.at);
  hold.sequence = sequence;
  if (record.sent !== undefined) hold.sent = [record.sent];
  return hold;
}

function attributed({ person, project }: HoldRecord): Pick<Terms, 'attribution'> {
  return person === undefined && project === undefined ? {} : { attribution: { person, project } };
}

/** The plan's due grants were already applied when the hold was taken. */
export function planNamed(name: string, at: number): CallPlan {
  return { terms: { name, limits: {}, models: undefined, multiplier: undefined }, at };
}

/** The record that ends the hold: money above the call's cost is released, cost above the hold is charged. */
export function settleText(hold: Hold, at: number, settlement: Settlement, charge: Charge, shares: Shares): string {
  const { terms } = hold;
  const { usage, own } = charge;
  const { notes, writtenOff } = shares;
  const last = settlement.served === undefined ? notes.at(-1) : undefined;
  return (
    textMember('{"kind":"SETTLE","id":"', terms.id) +
    numberMember(',"at":', at) +
    (terms.before === undefined ? hold.parties : partiesOf(terms)) +
    numberMember(',"heldAt":', hold.at) +
    numberMember(',"input":', terms.inputTokens) +
    `,"held":"${hold.held}","cost":"${charge.cost}","usage":${JSON.stringify(usage)}` +
    (settlement.estimated ? ',"estimated":true' : ',"estimated":false') +
    (settlement.terminal ? ',"terminal":true' : ',"terminal":false') +
    textMember(',"reason":"', settlement.reason) +
    textMember(',"finish":"', settlement.finish) +
    textMember(',"upstreamId":"', settlement.upstreamId) +
    pricedMembers(charge.priced, charge.ratio) +
    (own === undefined ? '' : `,"own":"${own}"`) +
    (writtenOff === 0n ? '' : `,"absorbed":"${writtenOff}"`) +
    textMember(',"provider":"', last?.provider) +
    textMember(',"target":"', last?.model) +
    `,"attempts":${attemptsText(notes, last)}`
  );
}

export function voidRecord(
  { terms, held, at: heldAt }: Hold,
  at: number,
  reason: string,
  { notes, writtenOff }: Shares,
): VoidRecord {
  const last = notes.at(-1);
  return {
    kind: 'VOID',
    id: terms.id,
    at,
    account: terms.accountId,
    key: terms.keyId,
    model: terms.model,
    plan: terms.plan?.terms.name,
    person: terms.attribution?.person,
    project: terms.attribution?.project,
    tags: terms.tags,
    heldAt,
    input: terms.inputTokens,
    held: held.toString(),
    reason,
    absorbed: writtenOff === 0n ? undefined : writtenOff.toString(),
    provider: last?.provider,
    target: last?.model,
    attempts: encodeAttempts(notes, last),
  };
}
