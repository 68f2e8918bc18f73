/** The service `requestQueries`: pages of rows, single rows, and sums. */
import { type SQL, sql } from 'drizzle-orm';
import type { RequestQueries } from '../common/domain/admin/requests.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import { isUuid, rowsUnder, rowWith, sourcesOf, viewColumns, viewOf } from './queries-sql.ts';
import { groupsOf, type Store, seriesBetween, sumsOf } from './sums.ts';

/** `calls`: the view of calls that are requests, where there is one. */
export function openRequestQueries({ orm, schema, sums }: Store, calls: () => SQL | undefined): RequestQueries {
  const store = { orm, schema, sums };
  const sources = () => sourcesOf(schema, calls());
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Record<string, unknown>[];
  return {
    async list(filter, page) {
      const limit = rowsFor(page);
      const after = cursorIn(page, uuidForm);
      const older = after === undefined ? sql`` : sql`and requests.id < ${after}::uuid`;
      const columns = sql`requests.id as place, ${viewColumns}`;
      const rest = sql`${older} order by requests.id desc limit ${limit}::int`;
      const found = rowsUnder(sources(), { columns, filter, rest });
      if (found === undefined) return { rows: [], next: undefined };
      const rows = await rowsOf(sql`select * from (${found}) as found order by place desc limit ${limit}::int`);
      return pageOf(rows, page, ({ id }) => String(id), viewOf);
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
