/** The sums that are kept of requests, written with their rows: counts by result, and histograms of both durations. */
import { type SQL, sql } from 'drizzle-orm';
import { firstIdAt } from '../common/kit/arrival.ts';
import { instantText } from '../common/kit/paging.ts';
import { keptWith, type SumTable } from '../common/rollups/table.ts';
import { histogramOf } from './histogram.ts';
import { causeOf, failed, results } from './queries-sql.ts';

const noId = sql`'00000000-0000-0000-0000-000000000000'::uuid`;
const noName = sql`''`;

export const requestSums: SumTable = {
  name: 'request_sums',
  rows: 'requests',
  at: sql`received_at`,
  dimensions: [
    { name: 'account_id', value: sql`account_id`, none: noId, isUuid: true },
    { name: 'key_id', value: sql`key_id`, none: noId, isUuid: true },
    { name: 'model', value: sql`model`, none: noName },
    { name: 'provider', value: sql`provider`, none: noName },
    { name: 'operation', value: sql`operation`, none: noName },
    {
      name: 'result',
      value: sql`case when ${results.ok} then 'ok' when ${results.client_error} then 'client_error' when ${results.left} then 'left' else 'upstream_error' end`,
      none: noName,
    },
    { name: 'cause', value: sql`case when ${failed} then ${causeOf} end`, none: noName, later: true },
  ],
  measures: [
    { name: 'requests', sum: sql`count(*)`, isCount: true },
    { name: 'first_byte', sum: histogramOf(sql`first_byte_ms`), isHistogram: true },
    { name: 'total', sum: histogramOf(sql`total_ms`), isHistogram: true },
  ],
};

/** The sums of all requests: those of the table, and those that are calls, in this view. */
export function requestSumsWith(calls: () => SQL | undefined): SumTable {
  return { ...requestSums, given: (schema, span) => sql`(${givenIn(schema, calls(), span)}) as requests` };
}

/** The core takes a request's id and its time of arrival one after the other. */
const idSlackMs = 1_000;

/** The time of arrival of a call is that in its id, and need not be computed to choose a span. */
function givenIn(schema: string, calls: SQL | undefined, span: readonly [number, number] | undefined): SQL {
  const columns = sql`model, provider, operation, outcome, status, error_kind, error_code, received_at, first_byte_ms, total_ms`;
  const within = ([from, until]: readonly [number, number]) =>
    sql`id >= ${firstIdAt(from)}::uuid and id < ${firstIdAt(until)}::uuid`;
  const owned =
    span &&
    sql`where ${within([span[0] - idSlackMs, span[1] + idSlackMs])}
      and received_at >= ${instantText(span[0])}::timestamptz and received_at < ${instantText(span[1])}::timestamptz`;
  const own = sql`select id, account_id, key_id, ${columns} from ${sql.identifier(schema)}.requests ${owned ?? sql``}`;
  if (calls === undefined) return own;
  const called = span && sql`where ${within(span)}`;
  return sql`${own} union all select id, account_id::uuid, key_id::uuid, ${columns} from ${calls} ${called ?? sql``}`;
}

/** Adds rows, a JSON array of what the log line has, and their sums. A row that is there already changes nothing. */
export function addRows(schema: string, rows: string): SQL {
  const requests = sql`${sql.identifier(schema)}.requests`;
  return sql`with added as (
      insert into ${requests} select made.* from jsonb_array_elements(${rows}::jsonb) as given (line),
        jsonb_populate_record(null::${requests}, given.line || jsonb_build_object('id', given.line->'request_id')) as made
      on conflict (id) do nothing
      returning received_at, account_id, key_id, model, provider, operation, status, outcome, error_kind, error_code,
        first_byte_ms, total_ms
    ), ${keptWith(schema, requestSums, 'added')} select 1`;
}
