/** Requests by what they cost or took: of a bounded number of the newest ones, since no index has these orders. */
import { type SQL, sql } from 'drizzle-orm';
import type { PageRequest } from '../common/domain/admin/pages.ts';
import type { RequestFilter, RequestSort } from '../common/domain/admin/requests.ts';
import { tokenClasses } from '../common/domain/usage.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, uuidForm, valuesIn } from '../common/kit/paging.ts';
import { firstOf, type Reader, rowsWith, spansOf } from './first-rows.ts';
import { canMatch, viewOf } from './queries-sql.ts';

const mostSorted = 50_000;

interface Sorting extends RequestSort {
  readonly costOf: ((id: SQL) => SQL) | undefined;
}

/** The sort key of rows, as a number that grows towards the end of the list; those without one come last. */
function rankOf({ by, order, costOf }: Sorting): SQL {
  const names = JSON.stringify(tokenClasses);
  const values: { readonly [By in RequestSort['by']]: SQL } = {
    time: sql`extract(epoch from received_at)`,
    cost: costOf?.(sql`requests.id`) ?? sql`null::bigint`,
    tokens: sql`(select sum(count::numeric) from jsonb_each_text(usage) as counted (class, count)
      where class in (select value from json_array_elements_text(${names}::text::json)))`,
    firstByte: sql`first_byte_ms`,
    duration: sql`total_ms`,
  };
  return sql`coalesce(${order === 'desc' ? sql`-` : sql``}(${values[by]})::numeric, 1e30)`;
}

const rankForm = /^-?\d{1,31}(\.\d{1,20})?$/;

function cursorOf(page: PageRequest): { readonly rank: string; readonly id: string } | undefined {
  const after = valuesIn(page, 'rank', 'id');
  if (after !== undefined && !(rankForm.test(after.rank) && uuidForm.test(after.id))) throw noSuchPage();
  return after;
}

interface Ranked {
  readonly id: string;
  readonly rank: string;
}

/** Selects the newest rows of a part of the list, no more than `most`, with this column. */
type Newest = (column: SQL, most: number) => SQL;

async function partsOf(reader: Reader, filter: RequestFilter): Promise<readonly Newest[]> {
  const chunks = await spansOf(reader, filter, { rows: mostSorted, order: 'desc' });
  if (!canMatch(filter)) return [];
  return chunks.map(
    (spans) => (column, limit) => firstOf(reader, filter, spans, { columns: column, limit, order: 'desc' })!,
  );
}

/** A page in any order. */
export async function sortedPage(reader: Reader, filter: RequestFilter, sorting: Sorting, page: PageRequest) {
  const { ranked, sortedOf } = await sortedIds(reader, await partsOf(reader, filter), sorting, page);
  const cursors = new Map(ranked.map(({ id, cursor }) => [id, cursor]));
  const rows = await rowsWith(reader, filter, [...cursors.keys()]);
  return { ...pageOf(rows, page, ({ id }) => cursors.get(String(id))!, viewOf), sortedOf };
}

/** The rows of a page and one more, if there is one. Every part gives its first rows, and the first of these are taken. */
async function sortedIds({ rowsOf }: Reader, parts: readonly Newest[], sorting: Sorting, page: PageRequest) {
  const limit = rowsFor(page);
  const after = cursorOf(page);
  const rank = sql`${after?.rank ?? null}::numeric`;
  const behind =
    after === undefined ? sql`true` : sql`(rank > ${rank} or rank = ${rank} and place < ${after.id}::uuid)`;
  const found: Ranked[] = [];
  let seen = 0;
  for (const newest of parts) {
    const [row] =
      await rowsOf(sql`with newest as materialized (${newest(sql`${rankOf(sorting)} as rank`, mostSorted - seen)}),
        first as (select rank, place from newest where ${behind} order by rank, place desc limit ${limit}::int)
      select (select count(*)::int from newest) as seen,
        (select coalesce(json_agg(json_build_object('rank', rank::text, 'id', place)), '[]') from first) as first`);
    seen += Number(row!['seen']);
    found.push(...(row!['first'] as Ranked[]));
    if (seen >= mostSorted) break;
  }
  return {
    ranked: found
      .sort((left, right) => Number(left.rank) - Number(right.rank) || (left.id < right.id ? 1 : -1))
      .slice(0, limit)
      .map(({ rank, id }) => ({ id, cursor: cursorFor([rank, id]) })),
    sortedOf: seen >= mostSorted ? mostSorted : undefined,
  };
}
