/** The service `requestQueries`: pages of rows, single rows, and sums. */
import { type SQL, sql } from 'drizzle-orm';
import type { Span } from '../common/domain/admin/pages.ts';
import type { RequestFilter, RequestQueries } from '../common/domain/admin/requests.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { isSelective, placesOf } from './places.ts';
import { canMatch, instant, isUuid, rowsUnder, rowWith, sourcesOf, viewColumns, viewOf } from './queries-sql.ts';
import { causesOf, durationsOf, groupsOf, type Store, seriesBetween, seriesOfGroups, sumsOf } from './sums.ts';

type Row = Readonly<Record<string, unknown>>;

/** Spans of one statement. */
const spansAtOnce = 16;

function inChunks(spans: readonly Span[]): Span[][] {
  const count = Math.ceil(spans.length / spansAtOnce);
  return Array.from({ length: count }, (_, index) => spans.slice(index * spansAtOnce, (index + 1) * spansAtOnce));
}

/** The time in a request's id. */
const arrivalOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) + 1;

type Sources = ReturnType<typeof sourcesOf>;

/** The spans to read for a page, a few at a time. */
async function spansOf(store: Store, filter: RequestFilter, after: string | undefined, rows: number) {
  instant(filter.from, 'from');
  instant(filter.until, 'until');
  if (!isSelective(filter) || !canMatch(filter)) return [[filter]];
  const before = after === undefined ? filter.until : arrivalOf(after);
  return inChunks(await placesOf(store, filter, { before, rows }));
}

function newestOf(store: Store, sources: () => Sources, rowsOf: (statement: SQL) => Promise<Row[]>) {
  return async (filter: RequestFilter, limit: number, after: string | undefined) => {
    const older = after === undefined ? sql`` : sql`and requests.id < ${after}::uuid`;
    const rest = sql`${older} order by requests.id desc limit ${limit}::int`;
    const wanted = { columns: sql`requests.id as place, ${viewColumns}`, rest };
    const rows: Row[] = [];
    for (const spans of await spansOf(store, filter, after, limit)) {
      const found = spans.map((span) => rowsUnder(sources(), { ...wanted, filter: { ...filter, ...span } }));
      if (found.includes(undefined)) break;
      const all = sql.join(found as SQL[], sql` union all `);
      rows.push(...(await rowsOf(sql`select * from (${all}) as found order by place desc limit ${limit}::int`)));
      if (rows.length >= limit) break;
    }
    return rows.slice(0, limit);
  };
}

/** `calls`: the view of calls that are requests, where there is one. `written`: how many requests this process has recorded. */
export function openRequestQueries(
  { orm, schema, sums }: Store,
  calls: () => SQL | undefined,
  written: () => number,
): RequestQueries {
  const store = { orm, schema, sums };
  const sources = () => sourcesOf(schema, calls());
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Row[];
  const newest = newestOf(store, sources, rowsOf);
  return {
    written,
    async list(filter, page) {
      const after = cursorIn(page, uuidForm);
      return pageOf(await newest(filter, rowsFor(page), after), page, ({ id }) => String(id), viewOf);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const [row] = await rowsOf(rowWith(sources(), id, accountId));
      return row === undefined ? undefined : viewOf(row);
    },

    sums: (filter) => sumsOf(store, filter),
    durations: (filter) => durationsOf(store, filter),
    causes: (filter, limit) => causesOf(store, filter, limit),
    seriesBetween: (filter, bounds) => seriesBetween(store, filter, bounds),
    groups: (filter, by, limit) => groupsOf(store, filter, by, limit),
    seriesOfGroups: (filter, bounds, by, groups) => seriesOfGroups(store, filter, bounds, by, groups),
  };
}
