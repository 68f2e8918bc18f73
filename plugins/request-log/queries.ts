/** The service `requestQueries`: pages of rows, single rows, and sums. */
import { type SQL, sql } from 'drizzle-orm';
import type { Span } from '../common/domain/admin/pages.ts';
import type { RequestFilter, RequestQueries } from '../common/domain/admin/requests.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { isSelective, placesOf } from './places.ts';
import { canMatch, instant, isUuid, rowsUnder, rowWith, sourcesOf, viewColumns, viewOf } from './queries-sql.ts';
import { groupsOf, type Store, seriesBetween, sumsOf } from './sums.ts';

/** Spans of one statement. */
const spansAtOnce = 16;

function inChunks(spans: readonly Span[]): Span[][] {
  const count = Math.ceil(spans.length / spansAtOnce);
  return Array.from({ length: count }, (_, index) => spans.slice(index * spansAtOnce, (index + 1) * spansAtOnce));
}

/** The time in a request's id. */
const arrivalOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) + 1;

/** `calls`: the view of calls that are requests, where there is one. */
export function openRequestQueries({ orm, schema, sums }: Store, calls: () => SQL | undefined): RequestQueries {
  const store = { orm, schema, sums };
  const sources = () => sourcesOf(schema, calls());
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Record<string, unknown>[];
  /** Where to look for a page, a few spans at a time. */
  const spansOf = async (filter: RequestFilter, after: string | undefined, rows: number): Promise<Span[][]> => {
    instant(filter.from, 'from');
    instant(filter.until, 'until');
    if (!isSelective(filter) || !canMatch(filter)) return [[filter]];
    const before = after === undefined ? filter.until : arrivalOf(after);
    return inChunks(await placesOf(store, filter, { before, rows }));
  };
  return {
    async list(filter, page) {
      const limit = rowsFor(page);
      const after = cursorIn(page, uuidForm);
      const older = after === undefined ? sql`` : sql`and requests.id < ${after}::uuid`;
      const columns = sql`requests.id as place, ${viewColumns}`;
      const rest = sql`${older} order by requests.id desc limit ${limit}::int`;
      const rows: Record<string, unknown>[] = [];
      for (const spans of await spansOf(filter, after, limit)) {
        const found = spans.map((span) => rowsUnder(sources(), { columns, filter: { ...filter, ...span }, rest }));
        if (found.includes(undefined)) break;
        const all = sql.join(found as SQL[], sql` union all `);
        rows.push(...(await rowsOf(sql`select * from (${all}) as found order by place desc limit ${limit}::int`)));
        if (rows.length >= limit) break;
      }
      return pageOf(rows.slice(0, limit), page, ({ id }) => String(id), viewOf);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const [row] = await rowsOf(rowWith(sources(), id, accountId));
      return row === undefined ? undefined : viewOf(row);
    },

    sums: (filter) => sumsOf(store, filter),
    seriesBetween: (filter, bounds) => seriesBetween(store, filter, bounds),
    groups: (filter, by, limit) => groupsOf(store, filter, by, limit),
  };
}
