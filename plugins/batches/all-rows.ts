/** The rows of batches of all accounts, for operators. Lines are not counted: a page would read those of many batches. */
import { type SQL, sql } from 'drizzle-orm';
import type { BatchAdmin, OwnedBatch } from '../common/domain/admin/batches.ts';
import type { Page, PageRequest } from '../common/domain/admin/pages.ts';
import type { Database } from '../common/domain/database.ts';
import { money } from '../common/domain/money.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import { rowsOf, tableOf } from '../common/kit/sql.ts';
import type { Counts } from './batch.ts';

type Filter = Parameters<BatchAdmin['listAll']>[0];

interface Row extends Pick<OwnedBatch, 'id' | 'endpoint' | 'state' | 'total'> {
  readonly account_id: string;
  readonly key_id: string;
  readonly outcome: NonNullable<OwnedBatch['outcome']> | null;
  readonly counts: string | null;
  readonly cost: string | null;
  readonly provider: string | null;
  /** Microseconds, as the database keeps them: a page begins at exactly one row. */
  readonly created_us: string;
  readonly ended_ms: string | null;
  readonly cancel_ms: string | null;
  readonly expires_ms: string;
}

// As the indexes have them.
const stateWord = sql.raw('coalesce(batches.outcome, batches.state)');
const endpointName = sql.raw("regexp_replace(batches.endpoint, '^(/v1beta/models/)[^/]+:', '\\1{model}:')");

export class AllBatchRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(filter: Filter, page: PageRequest): Promise<Page<OwnedBatch>> {
    const rows = await rowsOf<Row>(this.#database.orm, this.statement(filter, page));
    return pageOf(rows, page, ({ created_us, id }) => cursorFor([created_us, id]), viewOf);
  }

  /** Reads one row more than the page has. */
  statement(filter: Filter, page: PageRequest): SQL {
    const ms = (name: string) => sql.raw(`(extract(epoch from batches.${name}) * 1000)::bigint::text`);
    return sql`select batches.id, account_id, key_id, endpoint, batches.state, outcome, total, counts::text as counts,
        cost::text as cost, provider, (extract(epoch from created_at) * 1000000)::bigint::text as created_us,
        ${ms('ended_at')} as ended_ms, ${ms('cancel_at')} as cancel_ms, ${ms('expires_at')} as expires_ms
      from ${tableOf(this.#database, 'batches')} as batches
      left join ${tableOf(this.#database, 'vendor_batches')} as vendor on vendor.batch_id = batches.id
      where ${sql.join(conditionsOf(filter, page), sql` and `)}
      order by batches.created_at desc, batches.id desc limit ${rowsFor(page)}::int`;
  }

  async accountOf(id: string): Promise<string | undefined> {
    const [row] = await rowsOf<{ account_id: string }>(
      this.#database.orm,
      sql`select account_id from ${tableOf(this.#database, 'batches')} where id = ${id}`,
    );
    return row?.account_id;
  }
}

function conditionsOf({ accountId, state, endpoint }: Filter, page: PageRequest): SQL[] {
  const after = valuesIn(page, 'createdAt', 'id');
  if (after !== undefined && !/^\d{1,17}$/.test(after.createdAt)) throw noSuchPage();
  return [
    sql`true`,
    ...(accountId === undefined ? [] : [sql`account_id = ${accountId}`]),
    ...(state === undefined ? [] : [sql`${stateWord} = ${state}`]),
    ...(endpoint === undefined ? [] : [sql`${endpointName} = ${endpoint}`]),
    ...(after === undefined
      ? []
      : [
          sql`(batches.created_at, batches.id) <
            ('epoch'::timestamptz + ${after.createdAt}::bigint * interval '1 microsecond', ${after.id})`,
        ]),
  ];
}

function viewOf(row: Row): OwnedBatch {
  const { id, endpoint, state, total } = row;
  return {
    ...{ id, endpoint, state, total },
    accountId: row.account_id,
    keyId: row.key_id,
    outcome: row.outcome ?? undefined,
    counts: row.counts === null ? undefined : (JSON.parse(row.counts) as Counts),
    cost: row.cost === null ? undefined : money(BigInt(row.cost)),
    provider: row.provider ?? undefined,
    createdAt: Math.floor(Number(row.created_us) / 1000),
    endedAt: row.ended_ms === null ? undefined : Number(row.ended_ms),
    cancelAt: row.cancel_ms === null ? undefined : Number(row.cancel_ms),
    expiresAt: Number(row.expires_ms),
  };
}
