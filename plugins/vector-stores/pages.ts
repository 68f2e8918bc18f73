/** Pages of lists by ids, forwards and backwards, as the official API has them. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import { jsonAnswer } from '../common/kit/dialects.ts';

export interface PageQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly after: string | undefined;
  readonly before: string | undefined;
}

export const listParameters = {
  limit: 'Entries of a page, 1 to 100.',
  order: '"asc" or "desc", by the time of creation.',
  after: 'Id of the entry before the page.',
  before: 'Id of the entry behind the page.',
};

/** Throws invalid_request. */
export function pageQueryOf(query: URLSearchParams): PageQuery {
  const text = query.get('limit') ?? '20';
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > 100) throw wrong('limit', '"limit" is a whole number from 1 to 100.');
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrong('order', '"order" is "asc" or "desc".');
  return { limit, order, after: query.get('after') ?? undefined, before: query.get('before') ?? undefined };
}

/** Only the end of the page is named: it is read from there. */
const isBackwards = ({ after, before }: PageQuery) => before !== undefined && after === undefined;

/** What is selected of a list that is ordered by `created_at` and `id`: one entry more than the page has. */
export function pageOf(page: PageQuery, id: SQL, table: SQL, owned: SQL): SQL {
  const place = (cursor: string) => sql`(select created_at, ${id} from ${table} where ${owned} and ${id} = ${cursor})`;
  const [behind, ahead] = page.order === 'asc' ? [sql`>`, sql`<`] : [sql`<`, sql`>`];
  const after = page.after === undefined ? sql`` : sql`and (created_at, ${id}) ${behind} ${place(page.after)}`;
  const before = page.before === undefined ? sql`` : sql`and (created_at, ${id}) ${ahead} ${place(page.before)}`;
  const direction = (page.order === 'asc') === isBackwards(page) ? sql`desc` : sql`asc`;
  return sql`${owned} ${after} ${before} order by created_at ${direction}, ${id} ${direction} limit ${page.limit + 1}::int`;
}

export function listAnswer<Row>(
  rows: readonly Row[],
  page: PageQuery,
  idOf: (row: Row) => string,
  shape: (row: Row) => object,
) {
  const shown = rows.slice(0, page.limit);
  if (isBackwards(page)) shown.reverse();
  return jsonAnswer(
    JSON.stringify({
      ...{ object: 'list', data: shown.map(shape) },
      ...{
        first_id: shown.length === 0 ? null : idOf(shown[0]!),
        last_id: shown.length === 0 ? null : idOf(shown.at(-1)!),
      },
      has_more: rows.length > page.limit,
    }),
  );
}

function wrong(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}
