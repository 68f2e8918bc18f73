/**
 * Makes columns of one batch of journal text: the rows of calls and charges, and their sums. It runs where the
 * driver does, beside the thread that serves requests. Pure.
 */
import type { CallFacts } from '../../common/domain/call-facts.ts';
import { type UsageClass, usageClasses } from '../../common/domain/usage.ts';
import { type Column, type Columns, type Marks, marksFor, putColumn } from '../../common/rollups/columns.ts';
import {
  add,
  addRequest,
  requestSumNames,
  type SummedRequest,
  type SumNames,
  SumsInMemory,
} from '../../common/rollups/sums-in-memory.ts';
import type { EndRecord, SettleRecord } from '../model/records.ts';
import { callRecordsIn } from './call-texts.ts';

export interface BatchInput {
  /** The names of the parameters, in their order. */
  readonly names: readonly string[];
  /** Journal lines. */
  readonly text: string;
  /** The locked accounts: all money of each, and what its running calls hold. */
  readonly accounts: readonly LockedAccount[];
  /** Ids of calls that have rows. */
  readonly present: readonly string[];
  /** Whether facts of requests are kept. */
  readonly keepsFacts: boolean;
  /** Parameters that are ready. */
  readonly given: Readonly<Columns>;
}

/** The parameters of a batch's statement. */
export function parametersOf(input: BatchInput): string[] {
  const columns = { ...columnsOf(input), ...input.given };
  return input.names.map((name) => columns[name]!);
}

type LockedAccount = readonly [id: string, total: string, open: string];

interface Call {
  readonly end: EndRecord;
  readonly settled: SettleRecord | undefined;
  /** The target of the last attempt. */
  readonly provider: string | undefined;
  readonly model: string | undefined;
  readonly facts: CallFacts | undefined;
  /** The place of its timeline among those of the batch, or the timeline itself. */
  readonly timeline: number | undefined;
  readonly story: string | undefined;
}

interface CallColumn extends Column<Call> {
  /** The type that the database casts it to. */
  readonly cast?: 'json' | 'jsonb' | 'text[]' | 'time';
}

const ofMoney: readonly CallColumn[] = [
  { name: 'id', type: 'uuid', of: ({ end }) => end.id },
  { name: 'account_id', type: 'text', of: ({ end }) => end.account },
  { name: 'key_id', type: 'text', of: ({ end }) => end.key },
  { name: 'model', type: 'text', of: ({ end }) => end.model },
  { name: 'plan', type: 'text', of: ({ end }) => end.plan },
  { name: 'settled', type: 'boolean', of: ({ settled }) => settled !== undefined },
  { name: 'reason', type: 'text', of: ({ end }) => end.reason },
  { name: 'provider', type: 'text', of: ({ provider }) => provider },
  { name: 'target_model', type: 'text', of: ({ model }) => model },
  { name: 'classes', type: 'text', cast: 'jsonb', of: ({ settled }) => jsonOf(settled?.usage) },
  { name: 'estimated_input', type: 'bigint', of: ({ end }) => end.input },
  { name: 'held', type: 'bigint', of: ({ end }) => end.held },
  { name: 'cost', type: 'bigint', of: ({ settled }) => settled?.cost ?? 0 },
  { name: 'own_cost', type: 'bigint', of: ({ settled }) => settled?.own },
  { name: 'absorbed', type: 'bigint', of: ({ end }) => end.absorbed ?? 0 },
  { name: 'estimated', type: 'boolean', of: ({ settled }) => settled?.estimated ?? false },
  { name: 'terminal', type: 'boolean', of: ({ settled }) => settled?.terminal ?? false },
  { name: 'finish', type: 'text', of: ({ settled }) => settled?.finish },
  { name: 'upstream_id', type: 'text', of: ({ settled }) => settled?.upstreamId },
  { name: 'price', type: 'text', cast: 'json', of: ({ settled }) => jsonOf(settled?.price) },
  { name: 'price_version', type: 'text', of: ({ settled }) => settled?.version },
  { name: 'tier', type: 'text', of: ({ settled }) => settled?.tier },
  { name: 'ratio', type: 'text', of: ({ settled }) => settled?.ratio },
  { name: 'attempts', type: 'text', cast: 'json', of: ({ end }) => jsonOf(end.attempts) },
  { name: 'held_at', type: 'bigint', cast: 'time', of: ({ end }) => end.heldAt ?? end.at },
  { name: 'created_at', type: 'bigint', cast: 'time', of: ({ end }) => end.at },
];

const ofFacts: readonly CallColumn[] = [
  { name: 'operation', type: 'text', of: ({ facts }) => facts?.operation },
  { name: 'protocol', type: 'text', of: ({ facts }) => facts?.protocol },
  { name: 'asked_model', type: 'text', of: ({ facts, end }) => unless(facts?.asked, end.model) },
  { name: 'last_provider', type: 'text', of: ({ facts, provider }) => unless(facts?.provider, provider) },
  { name: 'last_model', type: 'text', of: ({ facts, model }) => unless(facts?.target, model) },
  { name: 'streamed', type: 'boolean', of: ({ facts }) => facts?.streamed },
  { name: 'status', type: 'smallint', of: ({ facts }) => facts?.status },
  { name: 'outcome', type: 'text', of: ({ facts }) => facts?.outcome },
  { name: 'error_kind', type: 'text', of: ({ facts }) => facts?.errorKind },
  { name: 'error_code', type: 'text', of: ({ facts }) => facts?.errorCode },
  { name: 'tries', type: 'smallint', of: ({ facts }) => facts?.tries },
  { name: 'first_byte_ms', type: 'real', of: ({ facts }) => facts?.firstByteMs },
  { name: 'total_ms', type: 'real', of: ({ facts }) => facts?.totalMs },
  { name: 'bytes_in', type: 'integer', of: ({ facts }) => facts?.bytesIn },
  { name: 'bytes_out', type: 'bigint', of: ({ facts }) => facts?.bytesOut },
  { name: 'dropped', type: 'text', cast: 'text[]', of: ({ facts }) => arrayOf(facts?.dropped) },
  { name: 'story', type: 'text', of: ({ story }) => story },
  { name: 'timeline', type: 'integer', of: ({ timeline }) => timeline },
];

/** The columns of `calls` but `timelines`, which the timelines' own row decides. */
export const callColumns: readonly CallColumn[] = [...ofMoney, ...ofFacts];

const unless = (text: string | undefined, known: string | undefined) => (text === known ? undefined : text);
const jsonOf = (value: unknown) => (value === undefined || value === null ? undefined : JSON.stringify(value));
const arrayOf = (texts: readonly string[] | null | undefined) =>
  texts && `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;

// ------------------------------------------------------------------------------------------------------------- one batch

/** Fewer timelines than this stay in the rows of their calls: a row of their own would take more. */
const fewTimelines = 8;

function columnsOf(input: BatchInput): Columns {
  const { text, accounts, keepsFacts } = input;
  const records = callRecordsIn(text);
  const facts = keepsFacts ? records.facts : [];
  const isShared = facts.filter(({ story }) => typeof story === 'string').length >= fewTimelines;
  const places = firstPlaces(facts);
  const calls = callsOf(records.ends, new Set(input.present), facts, places, isShared);
  const marks = marksFor(text);
  const columns: Columns = {
    ...marks,
    newest: isShared ? facts.reduce((newest, { id }) => (id > newest ? id : newest), '') : firstId,
    isShared: String(isShared),
    lateIds: `{${[...places.keys()].join(',')}}`,
    late: JSON.stringify(Array.from(places.values(), (place) => ({ ...facts[place - 1]!, place }))),
  };
  for (const column of callColumns) putColumn(columns, marks, column, calls);
  putColumn(columns, marks, { name: 'stories', type: 'text', of: ({ story }) => story }, isShared ? facts : []);
  for (const column of lockedColumns) putColumn(columns, marks, column, accounts);
  putCharges(columns, marks, calls, accounts);
  putSums(columns, marks, calls, keepsFacts);
  return columns;
}

const firstId = '00000000-0000-0000-0000-000000000000';

/** The place of the first facts of each request, from 1, by its id. */
function firstPlaces(facts: readonly CallFacts[]): Map<string, number> {
  const places = new Map<string, number>();
  for (const [index, { id }] of facts.entries()) if (!places.has(id)) places.set(id, index + 1);
  return places;
}

/** The calls without a row; of two ends of one call the first counts. Takes the facts of these calls out of `places`. */
function callsOf(
  ends: readonly EndRecord[],
  present: Set<string>,
  facts: readonly CallFacts[],
  places: Map<string, number>,
  isShared: boolean,
): Call[] {
  const calls: Call[] = [];
  for (const end of ends) {
    if (present.has(end.id)) continue;
    present.add(end.id);
    const place = places.get(end.id);
    places.delete(end.id);
    const its = place === undefined ? undefined : facts[place - 1];
    const last = end.attempts.at(-1) as { readonly provider?: string; readonly model?: string } | undefined;
    calls.push({
      end,
      settled: end.kind === 'SETTLE' ? end : undefined,
      // Earlier versions named the target of the last attempt in `attempts` alone.
      provider: end.provider ?? last?.provider,
      model: end.target ?? last?.model,
      facts: its,
      story: isShared ? undefined : its?.story,
      timeline: isShared && typeof its?.story === 'string' ? place : undefined,
    });
  }
  return calls;
}

export const lockedColumns: readonly Column<LockedAccount>[] = [
  { name: 'locked.id', type: 'text', of: ([id]) => id },
  { name: 'locked.total', type: 'bigint', of: ([, total]) => total },
  { name: 'locked.open', type: 'bigint', of: ([, , open]) => open },
];

interface Charge {
  readonly end: EndRecord;
  readonly cost: bigint;
  readonly balance: bigint | undefined;
}

export const chargeColumns: readonly Column<Charge>[] = [
  { name: 'charge.id', type: 'uuid', of: ({ end }) => end.id },
  { name: 'charge.account', type: 'text', of: ({ end }) => end.account },
  { name: 'charge.cost', type: 'bigint', of: ({ cost }) => cost },
  { name: 'charge.at', type: 'bigint', of: ({ end }) => end.at },
  { name: 'charge.balance', type: 'bigint', of: ({ balance }) => balance },
];

/** The charge of an account that is not locked has no balance, which fails the statement. */
function putCharges(columns: Columns, marks: Marks, calls: readonly Call[], accounts: readonly LockedAccount[]): void {
  const left = new Map(accounts.map(([id, total]) => [id, BigInt(total)]));
  const charges: Charge[] = [];
  for (const { end, settled } of calls) {
    const cost = BigInt(settled?.cost ?? 0);
    if (cost <= 0n) continue;
    const before = left.get(end.account);
    const balance = before === undefined ? undefined : before - cost;
    if (balance !== undefined) left.set(end.account, balance);
    charges.push({ end, cost, balance });
  }
  for (const column of chargeColumns) putColumn(columns, marks, column, charges);
}

// ------------------------------------------------------------------------------------------------------------------ sums

const ofAll = ['charged', 'cost', 'own_cost', 'own_unknown', 'absorbed', 'uncosted'] as const;

/** The names of `callSums`, in its order. */
export const callSumNames: SumNames = {
  name: 'call_sums',
  dimensions: ['account_id', 'key_id', 'model', 'provider'],
  measures: [...ofAll, ...usageClasses],
};

const place = new Map(callSumNames.measures.map((name, index) => [name, index]));
const [charged, cost, ownCost, ownUnknown, absorbed, uncosted] = ofAll.map((name) => place.get(name)!) as [
  ...[number, number, number, number, number, number],
];

function putSums(columns: Columns, marks: Marks, calls: readonly Call[], keepsFacts: boolean): void {
  const ofCalls = new SumsInMemory();
  const ofRequests = new SumsInMemory();
  for (const call of calls) {
    addCall(ofCalls, call);
    if (keepsFacts && typeof call.facts?.status === 'number') addRequest(ofRequests, requestOf(call, call.facts));
  }
  ofCalls.put(columns, marks, callSumNames);
  if (keepsFacts) ofRequests.put(columns, marks, requestSumNames);
}

function addCall(sums: SumsInMemory, { end, settled, provider }: Call): void {
  const group = sums.groupOf(end.at, [end.account, end.key ?? '', end.model, provider ?? '']);
  const charge = BigInt(settled?.cost ?? 0);
  add(group, cost, charge);
  const borne = BigInt(end.absorbed ?? 0);
  if (borne !== 0n) add(group, absorbed, borne);
  if (settled === undefined) return;
  add(group, charged, 1n);
  if (settled.own === undefined || settled.own === null) {
    add(group, ownUnknown, 1n);
    if (charge !== 0n) add(group, uncosted, charge);
  } else add(group, ownCost, BigInt(settled.own));
  for (const name in settled.usage) {
    const used = settled.usage[name as UsageClass];
    const measure = place.get(name);
    if (measure !== undefined && used !== undefined && used !== null) add(group, measure, BigInt(used));
  }
}

/** A request as the row of the view has it. */
const requestOf = ({ end, provider }: Call, facts: CallFacts): SummedRequest => ({
  ...facts,
  at: Number.parseInt(end.id.slice(0, 8) + end.id.slice(9, 13), 16),
  account: end.account,
  key: end.key,
  model: facts.asked ?? end.model,
  provider: facts.provider ?? provider,
});
