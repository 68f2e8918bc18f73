/** Sums of requests as pages ask for them: of a span, by time, by group; from the rollups (`request-sums.ts`). */
import { sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Span } from '../common/domain/admin/pages.ts';
import type {
  DurationCounts,
  FailureCause,
  FailureResult,
  RequestBucket,
  RequestCounts,
  RequestFilter,
  RequestGroup,
  RequestSums,
  RequestTimes,
} from '../common/domain/admin/requests.ts';
import type { Database } from '../common/domain/database.ts';
import {
  type Condition,
  keysCondition,
  type ReadMeasure,
  readSums,
  type SumsQuery,
  type SumsRow,
} from '../common/rollups/read.ts';
import type { SumTable } from '../common/rollups/table.ts';
import { countsBetween, percentilesIn } from './histogram.ts';
import { canMatch, instant } from './queries-sql.ts';
import { requestSums } from './request-sums.ts';

const maxBuckets = 1_500;
const maxGroups = 500;
const longestSpanMs = 1_100 * 86_400_000;

/** A schema, and the sums that are kept in it. */
export type Store = Pick<Database, 'orm' | 'schema'> & { readonly sums: SumTable };
type GroupBy = RequestGroup;

const dimensionOf: { readonly [By in GroupBy]: string } = {
  model: 'model',
  provider: 'provider',
  operation: 'operation',
  account: 'account_id',
  key: 'key_id',
  person: 'person',
  project: 'project',
};

const ofResult = (result: string) => sql`filter (where result = ${sql.raw(`'${result}'`)})`;
const [, , , , , result] = requestSums.dimensions;
const counts: readonly ReadMeasure[] = [
  { name: 'requests', of: 'requests', ofKept: sql`sum(requests)`, ofRows: sql`count(*)` },
  ...['ok', 'client_error', 'upstream_error', 'left'].map((name) => ({
    name,
    of: 'requests',
    ofKept: sql`sum(requests) ${ofResult(name)}`,
    ofRows: sql`count(*) filter (where ${result!.value} = ${sql.raw(`'${name}'`)})`,
  })),
];
const times: readonly ReadMeasure[] = requestSums.measures.slice(1).map(({ name, sum }) => {
  return { name, of: name, ofKept: sql`sum(${sql.identifier(name)})`, ofRows: sum };
});
const both = [...counts, ...times];

export async function sumsOf({ orm, schema, sums }: Store, filter: RequestFilter): Promise<RequestSums> {
  const query = queryOf(filter, [filter.from, filter.until]);
  const [row] = query === undefined ? [] : await readSums(orm, schema, sums, { ...query, measures: both });
  return sumsIn(row);
}

const durationEdges = [0, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000];

export async function durationsOf({ orm, schema, sums }: Store, filter: RequestFilter): Promise<DurationCounts> {
  const query = queryOf(filter, [filter.from, filter.until]);
  const [row] = query === undefined ? [] : await readSums(orm, schema, sums, { ...query, measures: times });
  const counts = (name: string) => countsBetween(row?.[name] ?? null, durationEdges);
  return { edges: durationEdges, firstByte: counts('first_byte'), total: counts('total') };
}

export async function seriesBetween(
  { orm, schema, sums }: Store,
  filter: Omit<RequestFilter, keyof Span>,
  bounds: readonly number[],
): Promise<RequestBucket[]> {
  checkBounds(bounds);
  const query = queryOf(filter, bounds);
  const rows = query === undefined ? [] : await readSums(orm, schema, sums, { ...query, measures: both });
  const found = new Map(rows.map((row) => [Number(row.slot), sumsIn(row)]));
  return bounds.slice(0, -1).map((at, index) => ({ at, ...(found.get(index + 1) ?? sumsIn(undefined)) }));
}

/** Buckets of each of these groups; those without a request are left out. */
export async function seriesOfGroups(
  { orm, schema, sums }: Store,
  filter: Omit<RequestFilter, keyof Span>,
  bounds: readonly number[],
  by: GroupBy,
  groups: readonly string[],
): Promise<(RequestBucket & { readonly group: string })[]> {
  checkBounds(bounds);
  checkGroups(groups.length);
  const query = queryOf(filter, bounds);
  if (query === undefined) return [];
  const dimension = dimensionOf[by];
  const conditions: Condition[] = [...query.conditions, [dimension, groups]];
  const rows = await readSums(orm, schema, sums, { ...query, conditions, by: dimension, measures: both });
  return rows.map((row) => ({ at: bounds[Number(row.slot) - 1]!, group: row.group, ...sumsIn(row) }));
}

type Grouped<Sums> = readonly (Sums & { readonly group: string })[];

export async function groupsOf(
  store: Store,
  filter: RequestFilter,
  by: GroupBy,
  limit: number,
): Promise<Grouped<RequestSums>> {
  const largest = await groupCountsOf(store, filter, by, limit);
  const groups = largest.map(({ group }) => group);
  const timesOf = await groupTimesOf(store, filter, by, groups);
  return largest.map((row) => ({ ...row, ...timesOf(row.group) }));
}

export async function groupCountsOf(
  { orm, schema, sums }: Store,
  filter: RequestFilter,
  by: GroupBy,
  limit: number,
): Promise<Grouped<RequestCounts>> {
  checkGroups(limit);
  const query = queryOf(filter, [filter.from, filter.until]);
  if (query === undefined) return [];
  const dimension = dimensionOf[by];
  const rows = await readSums(orm, schema, sums, {
    ...query,
    conditions: [...query.conditions, [dimension, null]],
    by: dimension,
    measures: counts,
    ending: sql`order by sum(requests) desc, "group" limit ${limit}::int`,
  });
  return rows.map((row) => ({ group: row.group, ...countsIn(row) }));
}

/** Times of these groups alone: histograms of all would be many. */
export async function groupTimesOf(
  { orm, schema, sums }: Store,
  filter: RequestFilter,
  by: GroupBy,
  groups: readonly string[],
): Promise<(group: string) => RequestTimes> {
  const query = groups.length === 0 ? undefined : queryOf(filter, [filter.from, filter.until]);
  if (query === undefined) return () => timesIn(undefined);
  checkGroups(groups.length);
  const dimension = dimensionOf[by];
  const conditions: Condition[] = [...query.conditions, [dimension, groups]];
  const rows = await readSums(orm, schema, sums, { ...query, conditions, by: dimension, measures: times });
  const found = new Map(rows.map((row) => [row.group, row]));
  return (group) => timesIn(found.get(group));
}

/** Failures by cause, the most frequent first. */
export async function causesOf(
  { orm, schema, sums }: Store,
  filter: RequestFilter,
  limit: number,
  among?: readonly string[],
): Promise<FailureCause[]> {
  checkGroups(limit);
  const query = queryOf(filter, [filter.from, filter.until]);
  if (query === undefined) return [];
  const [count] = counts;
  const rows = await readSums(orm, schema, sums, {
    ...query,
    conditions: [...query.conditions, ['cause', null], ...(among === undefined ? [] : [['cause', among] as const])],
    by: ['result', 'cause'],
    measures: [count!],
    ending: sql`order by sum(requests) desc, "group" limit ${limit}::int`,
  });
  return rows.map((row) => {
    const [result, cause] = JSON.parse(row.group) as [FailureResult, string];
    return { result, cause, requests: Number(row['requests']) };
  });
}

const sumsIn = (row: SumsRow | undefined): RequestSums => ({ ...countsIn(row), ...timesIn(row) });

function countsIn(row: SumsRow | undefined): RequestCounts {
  const count = (name: string) => Number(row?.[name] ?? 0);
  return {
    requests: count('requests'),
    results: {
      ok: count('ok'),
      client_error: count('client_error'),
      upstream_error: count('upstream_error'),
      left: count('left'),
    },
  };
}

function timesIn(row: SumsRow | undefined): RequestTimes {
  const percentiles = (name: string) => percentilesIn(row?.[name] ?? null);
  return { firstByte: percentiles('first_byte'), total: percentiles('total') };
}

/** Undefined: nothing can match. */
export function queryOf(
  filter: Omit<RequestFilter, keyof Span>,
  bounds: readonly number[],
): Pick<SumsQuery, 'bounds' | 'conditions'> | undefined {
  const [from, until] = [bounds[0]!, bounds.at(-1)!];
  for (const [at, field] of [
    [from, 'from'],
    [until, 'until'],
  ] as const)
    instant(at, field);
  if (until - from > longestSpanMs) {
    const days = longestSpanMs / 86_400_000;
    throw new GatewayError('invalid_request', `At most ${days} days are summed up at once.`, { field: 'from' });
  }
  if (from >= until || !canMatch(filter)) return undefined;
  return { bounds, conditions: conditionsOf(filter) };
}

/** The filter as conditions on the rollups. */
export function conditionsOf(filter: Omit<RequestFilter, keyof Span>): Condition[] {
  const { accountId, keyId, keys, personId, projectIds, model, provider, operation, result, cause } = filter;
  const { withoutOperations = [], withoutCauses = [] } = filter;
  const wanted: [string, string | undefined][] = [
    ['account_id', accountId],
    ['key_id', keyId],
    ['model', model],
    ['provider', provider],
    ['operation', operation],
    ['result', result],
    ['cause', cause],
    ['person', personId],
  ];
  const conditions = wanted.flatMap(([name, value]): Condition[] => (value === undefined ? [] : [[name, value]]));
  if (withoutOperations.length > 0) conditions.push(['operation', withoutOperations, 'not']);
  if (projectIds !== undefined) conditions.push(['project', projectIds]);
  if (withoutCauses.length > 0) conditions.push(['cause', withoutCauses, 'not']);
  return [...conditions, ...keysCondition(keys)];
}

export function checkGroups(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= maxGroups) return;
  throw new GatewayError('invalid_request', `The limit must be from 1 to ${maxGroups} groups.`, { field: 'limit' });
}

/** Throws invalid_request unless they are two instants or more, in order. */
function checkBounds(bounds: readonly number[]): void {
  const inOrder = bounds.every((at, index) => Number.isFinite(at) && (index === 0 || at > bounds[index - 1]!));
  if (inOrder && bounds.length >= 2 && bounds.length <= maxBuckets + 1) return;
  throw new GatewayError('invalid_request', `A series has 1 to ${maxBuckets} buckets, in order.`, { field: 'bounds' });
}
