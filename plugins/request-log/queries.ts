/** The service `requestQueries`: pages of rows, and sums by time and group. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { RequestBucket, RequestFilter, RequestQueries } from '../common/domain/admin/requests.ts';
import type { CallRows } from '../common/domain/call-facts.ts';
import type { Database } from '../common/domain/database.ts';
import { cursorIn, pageOf, rowsFor, uuidForm } from '../common/kit/paging.ts';
import {
  checkSpan,
  instant,
  isUuid,
  rowsUnder,
  rowWith,
  sourcesOf,
  sumColumns,
  summedColumns,
  sumsOf,
  viewColumns,
  viewOf,
} from './queries-sql.ts';

const maxBuckets = 1_500;
const maxGroups = 500;

const groupColumns = {
  model: sql`model`,
  provider: sql`provider`,
  operation: sql`operation`,
  account: sql`account_id`,
  key: sql`key_id`,
} as const;

export function openRequestQueries({ orm, schema }: Database, calls: () => CallRows | undefined): RequestQueries {
  const sources = () => sourcesOf(schema, calls()?.view);
  const rowsIn = (columns: SQL, filter: RequestFilter, rest?: SQL) => rowsUnder(sources(), { columns, filter, rest });
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Record<string, unknown>[];
  return {
    async list(filter, page) {
      const limit = rowsFor(page);
      const after = cursorIn(page, uuidForm);
      const older = after === undefined ? sql`` : sql`and requests.id < ${after}::uuid`;
      const newest = sql`order by requests.id desc limit ${limit}::int`;
      const found = rowsIn(sql`requests.id as place, ${viewColumns}`, filter, sql`${older} ${newest}`);
      if (found === undefined) return { rows: [], next: undefined };
      const rows = await rowsOf(sql`select * from (${found}) as found order by place desc limit ${limit}::int`);
      return pageOf(rows, page, ({ id }) => String(id), viewOf);
    },

    async find(id, accountId) {
      if (!isUuid(id) || (accountId !== undefined && !isUuid(accountId))) return undefined;
      const [row] = await rowsOf(rowWith(sources(), id, accountId));
      return row === undefined ? undefined : viewOf(row);
    },

    async sums(filter) {
      checkSpan(filter);
      const found = rowsIn(summedColumns, filter);
      if (found === undefined) return sumsOf(undefined);
      const [row] = await rowsOf(sql`select ${sumColumns} from (${found}) as found`);
      return sumsOf(row);
    },

    async seriesBetween(filter, bounds) {
      checkBounds(bounds);
      const span = { ...filter, from: bounds[0]!, until: bounds.at(-1)! };
      checkSpan(span);
      const found = rowsIn(summedColumns, span);
      const bucket = bucketIn(bounds);
      const rows =
        found === undefined
          ? []
          : await rowsOf(sql`select ${bucket} as bucket, ${sumColumns} from (${found}) as found group by 1`);
      return seriesOf(rows, bounds);
    },

    async groups(filter, by, limit) {
      checkSpan(filter);
      checkGroups(limit);
      const column = groupColumns[by];
      const found = rowsIn(sql`${column}::text as name, ${summedColumns}`, filter, sql`and ${column} is not null`);
      if (found === undefined) return [];
      const rows = await rowsOf(
        sql`select name, ${sumColumns} from (${found}) as found group by name order by count(*) desc, name limit ${limit}::int`,
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
