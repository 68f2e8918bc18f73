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
  /** All money of its account after its charge; undefined: it moved nothing, or the account is not locked. */
  readonly balance: bigint | undefined;
  /** The place of its timeline among those of its account in the batch, or the timeline itself. */
  timeline: number | undefined;
  story: string | undefined;
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
  { name: 'person', type: 'text', of: ({ end }) => end.person },
  { name: 'project', type: 'text', of: ({ end }) => end.project },
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
  { name: 'balance_after', type: 'bigint', of: ({ balance }) => balance },
  { name: 'is_long', type: 'boolean', of: ({ end }) => isLong(end) || undefined },
];

const ofFacts: readonly CallColumn[] = [
  { name: 'operation', type: 'text', of: ({ facts }) => facts?.operation },
  { name: 'protocol', type: 'text', of: ({ facts }) => facts?.protocol },
  { name: 'requested_model', type: 'text', of: ({ facts, end }) => unless(facts?.asked, end.model) },
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

/** The columns of `calls` except `seq` and `timelines`: the database numbers these. */
export const callColumns: readonly CallColumn[] = [...ofMoney, ...ofFacts];

/** Calls that took longer are found by an index of their own; an id of another kind says nothing about the arrival. */
export const longMs = 300_000;

function isLong({ id, at }: EndRecord): boolean {
  const took = at - arrivalOf(id);
  return took < 0 || took > longMs;
}

/** When the request arrived, in wall-clock milliseconds. */
const arrivalOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

const unless = (text: string | undefined, known: string | undefined) => (text === known ? undefined : text);
const jsonOf = (value: unknown) => (value === undefined || value === null ? undefined : JSON.stringify(value));
const arrayOf = (texts: readonly string[] | null | undefined) =>
  texts && `{${texts.map((text) => `"${text.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;

// ------------------------------------------------------------------------------------------------------------- one batch

/** Fewer timelines of an account than this stay in the rows of their calls: a row of their own would take more. */
const fewTimelines = 8;

function columnsOf(input: BatchInput): Columns {
  const { text, accounts, keepsFacts } = input;
  const records = callRecordsIn(text);
  const facts = keepsFacts ? records.facts : [];
  const first = firstFacts(facts);
  const left = new Map(accounts.map(([id, total]) => [id, BigInt(total)]));
  const calls = callsOf(records.ends, new Set(input.present), first, left);
  const marks = marksFor(text);
  const columns: Columns = {
    ...marks,
    lateIds: `{${[...first.keys()].join(',')}}`,
    late: JSON.stringify([...first.values()]),
  };
  const timelines = sharedTimelinesOf(calls, marks.nothing);
  for (const column of callColumns) putColumn(columns, marks, column, calls);
  for (const column of timelineColumns) putColumn(columns, marks, column, timelines);
  const changed = accounts.map(([id, total, open]): Change => ({ id, open, cost: BigInt(total) - left.get(id)! }));
  for (const column of lockedColumns) putColumn(columns, marks, column, changed);
  putSums(columns, marks, calls, keepsFacts);
  return columns;
}

const firstId = '00000000-0000-0000-0000-000000000000';

/** The first facts of each request, by its id. */
function firstFacts(facts: readonly CallFacts[]): Map<string, CallFacts> {
  const first = new Map<string, CallFacts>();
  for (const each of facts) if (!first.has(each.id)) first.set(each.id, each);
  return first;
}

/**
 * The calls without a row; of two ends of one call the first counts. Takes the facts of these calls out of `facts`, and what they cost
 * from what is `left` of their accounts.
 */
function callsOf(
  ends: readonly EndRecord[],
  present: Set<string>,
  facts: Map<string, CallFacts>,
  left: Map<string, bigint>,
): Call[] {
  const calls: Call[] = [];
  for (const end of ends) {
    if (present.has(end.id)) continue;
    present.add(end.id);
    const its = facts.get(end.id);
    facts.delete(end.id);
    const last = end.attempts.at(-1) as { readonly provider?: string; readonly model?: string } | undefined;
    calls.push({
      end,
      settled: end.kind === 'SETTLE' ? end : undefined,
      // Earlier versions named the target of the last attempt in `attempts` alone.
      provider: end.provider ?? last?.provider,
      model: end.target ?? last?.model,
      facts: its,
      balance: balanceAfter(end, left),
      story: its?.story ?? undefined,
      timeline: undefined,
    });
  }
  return calls;
}

/** A charge of an account that is not locked has no balance after it, which fails the statement. */
function balanceAfter(end: EndRecord, left: Map<string, bigint>): bigint | undefined {
  const cost = end.kind === 'SETTLE' ? BigInt(end.cost) : 0n;
  const before = left.get(end.account);
  if (cost <= 0n || before === undefined) return undefined;
  left.set(end.account, before - cost);
  return before - cost;
}

// ------------------------------------------------------------------------------------------------------------- timelines

interface Timelines {
  readonly account: string;
  readonly newest: string;
  /** With the mark for no text between them. */
  readonly stories: string;
}

export const timelineColumns: readonly Column<Timelines>[] = [
  { name: 'shared.account', type: 'text', of: ({ account }) => account },
  { name: 'shared.newest', type: 'uuid', of: ({ newest }) => newest },
  { name: 'shared.stories', type: 'text', of: ({ stories }) => stories },
];

/** Takes the timelines of accounts with many out of the rows of their calls. */
function sharedTimelinesOf(calls: readonly Call[], mark: string): Timelines[] {
  const withTimeline = calls.filter(({ story }) => story !== undefined);
  const shared: Timelines[] = [];
  for (const [account, own] of Map.groupBy(withTimeline, ({ end }) => end.account)) {
    if (own.length < fewTimelines) continue;
    const newest = own.reduce((latest, { end }) => (end.id > latest ? end.id : latest), firstId);
    shared.push({ account, newest, stories: own.map(({ story }) => story).join(mark) });
    for (const [index, call] of own.entries()) Object.assign(call, { story: undefined, timeline: index + 1 });
  }
  return shared;
}

// -------------------------------------------------------------------------------------------------------------- accounts

interface Change {
  readonly id: string;
  readonly open: string;
  readonly cost: bigint;
}

export const lockedColumns: readonly Column<Change>[] = [
  { name: 'locked.id', type: 'text', of: ({ id }) => id },
  { name: 'locked.open', type: 'bigint', of: ({ open }) => open },
  { name: 'locked.cost', type: 'bigint', of: ({ cost }) => cost },
];

// ------------------------------------------------------------------------------------------------------------------ sums

const ofAll = ['charged', 'cost', 'own_cost', 'own_unknown', 'absorbed', 'uncosted'] as const;

/** The names of `callSums`, in its order. */
export const callSumNames: SumNames = {
  name: 'call_sums',
  dimensions: ['account_id', 'key_id', 'model', 'provider', 'person', 'project'],
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

function addCall(sums: SumsInMemory, { end, provider }: Call): void {
  const { account, key = '', model, person = '', project = '' } = end;
  addEnd(sums.groupOf(end.at, [account, key, model, provider ?? '', person, project]), end);
}

/** Adds the measures of a call's end to its group. */
export function addEnd(group: ReturnType<SumsInMemory['groupOf']>, end: EndRecord): void {
  const settled = end.kind === 'SETTLE' ? end : undefined;
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
  at: arrivalOf(end.id),
  account: end.account,
  key: end.key,
  model: facts.asked ?? end.model,
  provider: facts.provider ?? provider,
  person: end.person,
  project: end.project,
});
