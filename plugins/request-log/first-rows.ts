/** The first rows of a filter by time, from as few quarters of an hour as have them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Span } from '../common/domain/admin/pages.ts';
import type { RequestFilter } from '../common/domain/admin/requests.ts';
import { isSelective, placesOf } from './places.ts';
import { canMatch, instant, rowsUnder, type sourcesOf, viewColumns } from './queries-sql.ts';
import type { Store } from './sums.ts';

export type Row = Readonly<Record<string, unknown>>;

/** Spans of one statement. */
const spansAtOnce = 16;

function inChunks(spans: readonly Span[]): Span[][] {
  const count = Math.ceil(spans.length / spansAtOnce);
  return Array.from({ length: count }, (_, index) => spans.slice(index * spansAtOnce, (index + 1) * spansAtOnce));
}

/** The time in a request's id. */
const arrivalOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) + 1;

/** Sources of the rows, and the database. */
export interface Reader extends Store {
  readonly sources: () => ReturnType<typeof sourcesOf>;
  readonly rowsOf: (statement: SQL) => Promise<Row[]>;
}

/** The spans to read for a page, a few at a time. */
export async function spansOf(
  reader: Reader,
  filter: RequestFilter,
  {
    after,
    rows,
    order,
  }: { readonly after?: string | undefined; readonly rows: number; readonly order: First['order'] },
): Promise<Span[][]> {
  instant(filter.from, 'from');
  instant(filter.until, 'until');
  if (!isSelective(filter) || !canMatch(filter)) return [[filter]];
  const at = after === undefined ? undefined : arrivalOf(after);
  return inChunks(await placesOf(reader, filter, { at, rows, order }));
}

export interface First {
  readonly columns: SQL;
  readonly after?: string | undefined;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

/** The first rows of a filter within some spans, as `place` and columns; undefined: none can match. */
export function firstOf(
  { sources }: Reader,
  filter: RequestFilter,
  spans: readonly Span[],
  first: First,
): SQL | undefined {
  const { columns, after, limit } = first;
  const order = sql.raw(first.order);
  const behind = first.order === 'desc' ? sql`<` : sql`>`;
  const rest = sql`${after === undefined ? sql`` : sql`and requests.id ${behind} ${after}::uuid`} order by requests.id ${order} limit ${limit}::int`;
  const wanted = { columns: sql`requests.id as place, ${columns}`, rest };
  const found = spans.map((span) => rowsUnder(sources(), { ...wanted, filter: { ...filter, ...span } }));
  if (found.includes(undefined)) return undefined;
  const all = sql.join(found as SQL[], sql` union all `);
  return sql`select * from (${all}) as found order by place ${order} limit ${limit}::int`;
}

/** The first rows of a filter. */
export async function readFirst(reader: Reader, filter: RequestFilter, first: First): Promise<Row[]> {
  const rows: Row[] = [];
  for (const spans of await spansOf(reader, filter, { ...first, rows: first.limit })) {
    const statement = firstOf(reader, filter, spans, first);
    if (statement === undefined) break;
    rows.push(...(await reader.rowsOf(statement)));
    if (rows.length >= first.limit) break;
  }
  return rows.slice(0, first.limit);
}

/** Rows in the order of these ids. */
export async function rowsWith({ sources, rowsOf }: Reader, filter: RequestFilter, ids: readonly string[]) {
  const rest = sql`and requests.id in (select value::uuid from json_array_elements_text(${JSON.stringify(ids)}::text::json))`;
  const found = rowsUnder(sources(), { columns: viewColumns, filter, rest });
  const rows = found === undefined || ids.length === 0 ? [] : await rowsOf(found);
  const byId = new Map(rows.map((row) => [String(row['id']), row]));
  return ids.flatMap((id): Row[] => {
    const row = byId.get(id);
    return row === undefined ? [] : [row];
  });
}
