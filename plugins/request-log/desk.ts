/** The request desk: rows of the log page by page, and their sums in time and by group. */
import { type SQL, sql } from 'drizzle-orm';
import type { RequestDesk, RequestFilter, RequestSums } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../../core/paging.ts';
import type { Database } from '../../core/vocabulary.ts';
import { checkSpan, conditionOf, instant, isUuid, sumColumns, sumsOf, viewColumns, viewOf } from './desk-sql.ts';

const maxBuckets = 1_500;
const maxGroups = 500;
const shortestBucketMs = 1_000;

const groupColumns = {
  model: sql`model`,
  provider: sql`provider`,
  operation: sql`operation`,
  account: sql`account_id`,
  key: sql`key_id`,
} as const;

export function openDesk({ orm, schema }: Database): RequestDesk {
  const requests = sql`${sql.identifier(schema)}.requests`;
  const rowsOf = async (statement: SQL) => (await orm.execute(statement)) as unknown as Record<string, unknown>[];
  return {
    async list(filter, ask) {
      const limit = rowsFor(ask);
      const cursor = valuesIn(ask, 'at', 'id');
      if (cursor !== undefined && (Number.isNaN(Date.parse(cursor.at)) || !isUuid(cursor.id))) throw noSuchPage();
      const wanted = conditionOf(filter);
      if (wanted === undefined) return { rows: [], next: undefined };
      const older =
        cursor === undefined ? sql`` : sql`and (received_at, id) < (${cursor.at}::timestamptz, ${cursor.id}::uuid)`;
      const rows = await rowsOf(
        sql`select ${viewColumns} from ${requests} where ${wanted} ${older} order by requests.received_at desc, requests.id desc limit ${limit}::int`,
      );
      return pageOf(
        rows.map(viewOf),
        ask,
        ({ receivedAt, id }) => cursorFor([instant(receivedAt, 'after'), id]),
        (view) => view,
      );
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

    async series(filter, bucketMs) {
      const buckets = bucketsOf(filter, bucketMs);
      const wanted = conditionOf(filter);
      if (wanted === undefined) return buckets.map((at) => ({ at, ...sumsOf(undefined) }));
      const place = sql`floor((extract(epoch from received_at) * 1000 - ${filter.from}::float8) / ${bucketMs}::float8)::int`;
      const rows = await rowsOf(
        sql`select ${place} as bucket, ${sumColumns} from ${requests} where ${wanted} group by 1`,
      );
      const found = new Map(rows.map((row) => [Number(row['bucket']), sumsOf(row)]));
      return buckets.map((at, index): RequestSums & { at: number } => ({
        at,
        ...(found.get(index) ?? sumsOf(undefined)),
      }));
    },

    async groups(filter, by, limit) {
      checkSpan(filter);
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > maxGroups)
        throw new GatewayError('invalid_request', `1 to ${maxGroups} groups are told.`, { field: 'limit' });
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

/** Where the buckets begin. Throws invalid_request for too many of them. */
function bucketsOf(filter: RequestFilter, bucketMs: number): number[] {
  checkSpan(filter);
  if (!Number.isSafeInteger(bucketMs) || bucketMs < shortestBucketMs)
    throw new GatewayError('invalid_request', 'A bucket has a second at least.', { field: 'bucketMs' });
  const count = Math.max(0, Math.ceil((filter.until - filter.from) / bucketMs));
  if (count > maxBuckets)
    throw new GatewayError('invalid_request', `A series has at most ${maxBuckets} buckets; take longer ones.`, {
      field: 'bucketMs',
    });
  return Array.from({ length: count }, (_, index) => filter.from + index * bucketMs);
}
