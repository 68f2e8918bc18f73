/** The service `requestQueries`: pages of rows, and sums by time and group. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { RequestBucket, RequestQueries } from '../common/domain/admin/requests.ts';
import type { Database } from '../common/domain/database.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import { checkSpan, conditionOf, instant, isUuid, sumColumns, sumsOf, viewColumns, viewOf } from './queries-sql.ts';

const maxBuckets = 1_500;
const maxGroups = 500;

const groupColumns = {
  model: sql`model`,
  provider: sql`provider`,
  operation: sql`operation`,
  account: sql`account_id`,
  key: sql`key_id`,
} as const;

export function openRequestQueries({ orm, schema }: Database): RequestQueries {
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

    async sums(filter) {
      checkSpan(filter);
      const wanted = conditionOf(filter);
      if (wanted === undefined) return sumsOf(undefined);
      const [row] = await rowsOf(sql`select ${sumColumns} from ${requests} where ${wanted}`);
      return sumsOf(row);
    },

    async seriesBetween(filter, bounds) {
      checkBounds(bounds);
      const span = { ...filter, from: bounds[0]!, until: bounds.at(-1)! };
      checkSpan(span);
      const wanted = conditionOf(span);
      const bucket = bucketIn(bounds);
      const rows =
        wanted === undefined
          ? []
          : await rowsOf(sql`select ${bucket} as bucket, ${sumColumns} from ${requests} where ${wanted} group by 1`);
      return seriesOf(rows, bounds);
    },

    async groups(filter, by, limit) {
      checkSpan(filter);
      checkGroups(limit);
      const wanted = conditionOf(filter);
      if (wanted === undefined) return [];
      const column = groupColumns[by];
      const rows = await rowsOf(
        sql`select ${column}::text as name, ${sumColumns} from ${requests} where ${wanted} and ${column} is not null
            group by ${column} order by count(*) desc, ${column}::text limit ${limit}::int`,
      );
      return rows.map((row) => ({ group: String(row['name']), ...sumsOf(row) }));
    },
  };
}

/** The number of a row's bucket, from 1. */
function bucketIn(bounds: readonly number[]): SQL {
  const list = JSON.stringify(bounds.map((at) => instant(at, 'bounds')));
  return sql`width_bucket(received_at, array(select value::timestamptz
    from json_array_elements_text(${list}::text::json) with ordinality order by ordinality))`;
}

function seriesOf(rows: readonly Record<string, unknown>[], bounds: readonly number[]): RequestBucket[] {
  const found = new Map(rows.map((row) => [Number(row['bucket']), sumsOf(row)]));
  return bounds.slice(0, -1).map((at, index) => ({ at, ...(found.get(index + 1) ?? sumsOf(undefined)) }));
}

function cursorOf({ receivedAt, id }: ReturnType<typeof viewOf>): string {
  return cursorFor([instant(receivedAt, 'after'), id]);
}

/** The row that a page ended with. */
function positionOf({ at, id }: { readonly at: string; readonly id: string }): SQL {
  return sql`(${instant(Date.parse(at), 'after')}::timestamptz, ${id}::uuid)`;
}

function checkGroups(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= maxGroups) return;
  throw new GatewayError('invalid_request', `The limit must be from 1 to ${maxGroups} groups.`, { field: 'limit' });
}

/** Throws invalid_request unless they are two instants or more, in order. */
function checkBounds(bounds: readonly number[]): void {
  const inOrder = bounds.every((at, index) => Number.isFinite(at) && (index === 0 || at > bounds[index - 1]!));
  if (inOrder && bounds.length >= 2 && bounds.length <= maxBuckets + 1) return;
  throw new GatewayError('invalid_request', `A series has 1 to ${maxBuckets} buckets, in order.`, { field: 'bounds' });
}
