/** The service `requestQueries`: pages of rows, single rows, and sums. */
import { type SQL, sql } from 'drizzle-orm';
import type { RequestQueries } from '../common/domain/admin/requests.ts';
import type { Database } from '../common/domain/database.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import { conditionOf, instant, isUuid, viewColumns, viewOf } from './queries-sql.ts';
import { groupsOf, seriesBetween, sumsOf } from './sums.ts';

export function openRequestQueries(database: Database): RequestQueries {
  const { orm, schema } = database;
  const requests = sql`${sql.identifier(schema)}.requests`;
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Record<string, unknown>[];
  return {
    async list(filter, page) {
      const limit = rowsFor(page);
      const cursor = valuesIn(page, 'at', 'id');
      if (cursor !== undefined && (Number.isNaN(Date.parse(cursor.at)) || !isUuid(cursor.id))) throw noSuchPage();
      const wanted = conditionOf(filter);
      if (wanted === undefined) return { rows: [], next: undefined };
      const older = cursor === undefined ? sql`` : sql`and (received_at, id) < ${positionOf(cursor)}`;
      const rows = await rowsOf(
        sql`select ${viewColumns} from ${requests} where ${wanted} ${older} order by requests.received_at desc, requests.id desc limit ${limit}::int`,
      );
      return pageOf(rows.map(viewOf), page, cursorOf, (view) => view);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const owned = accountId === undefined ? sql`` : sql`and account_id = ${accountId}::uuid`;
      const [row] = await rowsOf(sql`select ${viewColumns} from ${requests} where id = ${id}::uuid ${owned}`);
      return row === undefined ? undefined : viewOf(row);
    },

    sums: (filter) => sumsOf(database, filter),
    seriesBetween: (filter, bounds) => seriesBetween(database, filter, bounds),
    groups: (filter, by, limit) => groupsOf(database, filter, by, limit),
  };
}

function cursorOf({ receivedAt, id }: ReturnType<typeof viewOf>): string {
  return cursorFor([instant(receivedAt, 'after'), id]);
}

/** The row that a page ended with. */
function positionOf({ at, id }: { readonly at: string; readonly id: string }): SQL {
  return sql`(${instant(Date.parse(at), 'after')}::timestamptz, ${id}::uuid)`;
}
