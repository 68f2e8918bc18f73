/** The service `requestQueries`: pages of rows, single rows, and sums. */
import type { RequestQueries, RequestSort } from '../common/domain/admin/requests.ts';
import type { CallRows } from '../common/domain/call-facts.ts';
import { type Database, isUuid } from '../common/domain/database.ts';
import type { GuardrailVerdicts } from '../common/guardrails/verdicts.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import type { SumTable } from '../common/rollups/table.ts';
import { type Reader, type Row, readFirst } from './first-rows.ts';
import { rowWith, sourcesOf, viewColumns, viewOf } from './queries-sql.ts';
import { recentGroupsOf } from './recent.ts';
import { sortedPage } from './sorted.ts';
import {
  causesOf,
  durationsOf,
  groupCountsOf,
  groupsOf,
  groupTimesOf,
  type Store,
  seriesBetween,
  seriesOfGroups,
  sumsOf,
} from './sums.ts';

const newestFirst: RequestSort = { by: 'time', order: 'desc' };

/** Those of `database`, and for pages those of its replica, if it has one. */
export function requestQueriesOf(
  { orm, schema, pages }: Pick<Database, 'orm' | 'schema' | 'pages'>,
  sums: SumTable,
  ...rest: [calls: () => CallRows | undefined, written: () => number, verdicts?: () => GuardrailVerdicts | undefined]
): RequestQueries {
  const queries = openRequestQueries({ orm, schema, sums }, ...rest);
  return pages === undefined
    ? queries
    : { ...queries, pages: openRequestQueries({ orm: pages, schema, sums }, ...rest) };
}

/** `calls`: the rows of calls that are requests, where there are any. `written`: how many requests this process has recorded. */
function openRequestQueries(
  { orm, schema, sums }: Store,
  calls: () => CallRows | undefined,
  written: () => number,
  verdicts?: () => GuardrailVerdicts | undefined,
): RequestQueries {
  const store = { orm, schema, sums };
  const rowsOf: Reader['rowsOf'] = async (statement) => (await orm.execute(statement)) as unknown as Row[];
  const sources = () => sourcesOf(schema, calls(), verdicts?.());
  const reader: Reader = { ...store, sources, rowsOf };
  return {
    written,
    async list({ sort = newestFirst, ...filter }, page) {
      if (sort.by !== 'time') return sortedPage(reader, filter, { ...sort, costOf: calls()?.costOf }, page);
      const first = { columns: viewColumns, limit: rowsFor(page), after: cursorIn(page, uuidForm), order: sort.order };
      return pageOf(await readFirst(reader, filter, first), page, ({ id }) => String(id), viewOf);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const [row] = await rowsOf(rowWith(reader.sources(), id, accountId));
      return row === undefined ? undefined : viewOf(row);
    },

    sums: (filter) => sumsOf(store, filter),
    durations: (filter) => durationsOf(store, filter),
    causes: (filter, limit, among) => causesOf(store, filter, limit, among),
    seriesBetween: (filter, bounds) => seriesBetween(store, filter, bounds),
    groups: (filter, by, limit) => groupsOf(store, filter, by, limit),
    groupCounts: (filter, by, limit) => groupCountsOf(store, filter, by, limit),
    groupTimes: (filter, by, groups) => groupTimesOf(store, filter, by, groups),
    recentGroups: (filter, limit) => recentGroupsOf(store, filter, limit),
    seriesOfGroups: (filter, bounds, by, groups) => seriesOfGroups(store, filter, bounds, by, groups),
  };
}
