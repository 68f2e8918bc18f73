/** The service `requestQueries`: pages of rows, single rows, and sums. */
import type { RequestQueries, RequestSort } from '../common/domain/admin/requests.ts';
import type { CallRows } from '../common/domain/call-facts.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { causesOf, failuresBy, type Newest, type Row } from './causes.ts';
import { type Reader, readFirst, rowsWith } from './first-rows.ts';
import { isUuid, rowWith, sourcesOf, viewColumns, viewOf } from './queries-sql.ts';
import { sortedPage } from './sorted.ts';
import { durationsOf, groupsOf, type Store, seriesBetween, seriesOfGroups, sumsOf } from './sums.ts';

const newestFirst: RequestSort = { by: 'time', order: 'desc' };

/** `calls`: the rows of calls that are requests, where there are any. `written`: how many requests this process has recorded. */
export function openRequestQueries(
  { orm, schema, sums }: Store,
  calls: () => CallRows | undefined,
  written: () => number,
): RequestQueries {
  const store = { orm, schema, sums };
  const rowsOf: Reader['rowsOf'] = async (statement) => (await orm.execute(statement)) as unknown as Row[];
  const sources = () => sourcesOf(schema, calls()?.view);
  const reader: Reader = { ...store, sources, rowsOf };
  const newest: Newest = (filter, columns, limit, after) =>
    readFirst(reader, filter, { columns, limit, after, order: 'desc' });
  return {
    written,
    async list({ cause, sort = newestFirst, ...filter }, page) {
      const among = cause === undefined ? undefined : await failuresBy(newest, filter, cause);
      if (sort.by !== 'time' || (among !== undefined && sort.order === 'asc'))
        return sortedPage(reader, filter, { ...sort, costOf: calls()?.costOf, among }, page);
      const limit = rowsFor(page);
      const after = cursorIn(page, uuidForm);
      if (among === undefined) {
        const rows = await readFirst(reader, filter, { columns: viewColumns, limit, after, order: sort.order });
        return pageOf(rows, page, ({ id }) => String(id), viewOf);
      }
      const ids = among.filter((id) => after === undefined || id < after.toLowerCase()).slice(0, limit);
      return pageOf(await rowsWith(reader, filter, ids), page, ({ id }) => String(id), viewOf);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const [row] = await rowsOf(rowWith(reader.sources(), id, accountId));
      return row === undefined ? undefined : viewOf(row);
    },

    sums: (filter) => sumsOf(store, filter),
    durations: (filter) => durationsOf(store, filter),
    causes: (filter) => causesOf(newest, filter),
    seriesBetween: (filter, bounds) => seriesBetween(store, filter, bounds),
    groups: (filter, by, limit) => groupsOf(store, filter, by, limit),
    seriesOfGroups: (filter, bounds, by, groups) => seriesOfGroups(store, filter, bounds, by, groups),
  };
}
