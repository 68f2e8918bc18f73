/** The rows of batches of all accounts, for operators. Lines are not counted: a page would read those of many batches. */
import { type SQL, sql } from 'drizzle-orm';
import type { BatchAdmin, OwnedBatch } from '../common/domain/admin/batches.ts';
import type { Page, PageRequest } from '../common/domain/admin/pages.ts';
import type { Database } from '../common/domain/database.ts';
import { cursorFor, noSuchPage, pageOf, rowsFor, valuesIn } from '../common/kit/paging.ts';
import { column, columnsOf, jsonColumn, optional, rowsOf, tableOf, timeColumn, usdColumn } from '../common/kit/sql.ts';
import type { Counts } from './batch.ts';

type Filter = Parameters<BatchAdmin['listAll']>[0];

// As the indexes have them.
const stateWord = sql.raw('coalesce(batches.outcome, batches.state)');
const endpointName = sql.raw("regexp_replace(batches.endpoint, '^(/v1beta/models/)[^/]+:', '\\1{model}:')");

const columns = columnsOf({
  id: column<string>('batches.id'),
  accountId: column<string>('batches.account_id'),
  keyId: column<string>('key_id'),
  endpoint: column<string>('endpoint'),
  state: column<OwnedBatch['state']>('batches.state'),
  outcome: optional(column<NonNullable<OwnedBatch['outcome']>>('outcome')),
  total: column<number>('total'),
  counts: optional(jsonColumn<Counts>('counts')),
  cost: optional(usdColumn('cost')),
  provider: optional(column<string>('provider')),
  /** As the database keeps it: a page begins at exactly one row. */
  createdUs: column<string>(sql`(extract(epoch from created_at) * 1000000)::bigint::text`),
  endedAt: optional(timeColumn('batches.ended_at')),
  cancelAt: optional(timeColumn('batches.cancel_at')),
  expiresAt: timeColumn('batches.expires_at'),
});

export class AllBatchRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(filter: Filter, page: PageRequest): Promise<Page<OwnedBatch>> {
    const rows = (await rowsOf<never>(this.#database.orm, this.statement(filter, page))).map(columns.read);
    const viewOf = ({ createdUs, ...row }: (typeof rows)[number]): OwnedBatch => {
      return { ...row, createdAt: Math.floor(Number(createdUs) / 1000) };
    };
    return pageOf(rows, page, ({ createdUs, id }) => cursorFor([createdUs, id]), viewOf);
  }

  /** Reads one row more than the page has. */
  statement(filter: Filter, page: PageRequest): SQL {
    return sql`select ${columns.select}
      from ${tableOf(this.#database, 'batches')} as batches
      left join ${tableOf(this.#database, 'vendor_batches')} as vendor
        on vendor.account_id = batches.account_id and vendor.batch_id = batches.id
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
    ...(accountId === undefined ? [] : [sql`batches.account_id = ${accountId}`]),
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
