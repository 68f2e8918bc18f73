/** Sums of requests by model and by provider, computed in one pass over the rows. */
import { sql } from 'drizzle-orm';
import type { RecentGroup, RecentGroups, RequestFilter, RequestResult } from '../common/domain/admin/requests.ts';
import { rowsOf } from '../common/kit/sql.ts';
import { conditionsOfRows, dimensionOf } from '../common/rollups/read.ts';
import { column, rowShape, rowsWithin } from '../common/rollups/table.ts';
import { cellOf, percentilesOf } from './histogram.ts';
import { checkGroups, queryOf, type Store } from './sums.ts';

/** The number of requests with this result and this histogram cell of the time to the first byte. `cell` is null if no byte was sent. */
type Cell = readonly [result: RequestResult, cell: number | null, requests: number];

/** Reading the rows is most of the cost, so the query reads each once and counts rows per cell. The histograms are built here. */
export async function recentGroupsOf(
  { orm, schema, sums }: Store,
  filter: RequestFilter,
  limit: number,
): Promise<RecentGroups> {
  checkGroups(limit);
  const query = queryOf(filter, [filter.from, filter.until]);
  if (query === undefined) return { model: [], provider: [] };
  const { value } = rowShape(sums);
  const columns = ['model', 'provider', 'result'].map((wanted) => {
    return sql`${value(dimensionOf(sums, wanted))} as ${column(wanted)}`;
  });
  const cell = sql`case when first_byte_ms is not null then ${cellOf(sql`first_byte_ms`)} end as cell`;
  const rows = await rowsOf<{ model: string; provider: string; cells: readonly Cell[] }>(
    orm,
    sql`select model, provider, json_agg(json_build_array(result, cell, requests)) as cells
        from (select ${sql.join(columns, sql`, `)}, ${cell}, count(*) as requests
          from ${rowsWithin(schema, sums, [filter.from, filter.until])} where ${conditionsOfRows(sums, query.conditions)}
          group by 1, 2, 3, 4) as found
        group by 1, 2 order by sum(requests) desc, 1, 2 limit ${limit}::int`,
  );
  const groupsBy = (by: 'model' | 'provider') =>
    [...Map.groupBy(rows, (row) => row[by])]
      .filter(([group]) => group !== '')
      .map(([group, found]) =>
        groupOf(
          group,
          found.flatMap(({ cells }) => cells),
        ),
      )
      .toSorted((one, other) => other.requests - one.requests);
  return { model: groupsBy('model'), provider: groupsBy('provider') };
}

function groupOf(group: string, cells: readonly Cell[]): RecentGroup {
  const results = { ok: 0, client_error: 0, upstream_error: 0, left: 0 };
  const counts: number[] = [];
  for (const [result, cell, requests] of cells) {
    results[result] += requests;
    if (cell !== null) counts[cell] = (counts[cell] ?? 0) + requests;
  }
  const requests = Object.values(results).reduce((sum, count) => sum + count, 0);
  return { group, requests, results, firstByte: percentilesOf(Array.from(counts, (count) => count ?? 0)) };
}
