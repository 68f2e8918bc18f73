/** The sums that are kept of requests, written with their rows: counts by result, and histograms of both durations. */
import { type SQL, sql } from 'drizzle-orm';
import { histogramOf } from '../common/kit/sums/histogram.ts';
import { keptWith, type SumTable } from '../common/kit/sums/table.ts';
import { results } from './queries-sql.ts';

const noId = sql`'00000000-0000-0000-0000-000000000000'::uuid`;
const noName = sql`''`;

export const requestSums: SumTable = {
  name: 'request_sums',
  rows: 'requests',
  at: sql`received_at`,
  dimensions: [
    { name: 'account_id', value: sql`account_id`, none: noId },
    { name: 'key_id', value: sql`key_id`, none: noId },
    { name: 'model', value: sql`model`, none: noName },
    { name: 'provider', value: sql`provider`, none: noName },
    { name: 'operation', value: sql`operation`, none: noName },
    {
      name: 'result',
      value: sql`case when ${results.ok} then 'ok' when ${results.client_error} then 'client_error' when ${results.left} then 'left' else 'upstream_error' end`,
      none: noName,
    },
  ],
  measures: [
    { name: 'requests', sum: sql`count(*)` },
    { name: 'first_byte', sum: histogramOf(sql`first_byte_ms`) },
    { name: 'total', sum: histogramOf(sql`total_ms`) },
  ],
};

/** Adds rows, a JSON array, and their sums. A row that is there already changes nothing. */
export function addRows(schema: string, rows: string): SQL {
  const requests = sql`${sql.identifier(schema)}.requests`;
  return sql`with added as (
      insert into ${requests} select * from jsonb_populate_recordset(null::${requests}, ${rows}::jsonb)
      on conflict (id) do nothing
      returning received_at, account_id, key_id, model, provider, operation, status, outcome, first_byte_ms, total_ms
    ), ${keptWith(schema, requestSums, 'added')} select 1`;
}
