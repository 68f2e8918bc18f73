/** The rows of vector stores and of batches of their files. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../common/domain/database.ts';
import {
  column,
  columnsOf,
  jsonColumn,
  jsonOf,
  optional,
  type Runner,
  rowsOf,
  tableOf,
  timeColumn,
} from '../common/kit/sql.ts';
import type { StoreTerms } from './asked.ts';
import { type PageQuery, pageOf } from './pages.ts';
import type { FileBatch, FileCounts, Store } from './shapes.ts';

/** How long a store that has expired is listed. */
const expiredDays = 30;
/** Batches of a store that are listed. */
const mostBatches = 1_000;
const isExpired = sql`coalesce(last_active_at + expires_days * interval '1 day' <= now(), false)`;

/** Files are counted under this lock, and rows of the account are added. */
export async function lockAccount(runner: Runner, accountId: string): Promise<void> {
  await runner.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`vector stores of ${accountId}`}, 0))`);
}

/** Files by their state, as JSON text. `more`: members beside them. */
function counted(files: SQL, owned: SQL, more: SQL = sql``): SQL {
  const of = (state: string) => sql`${state}::text, count(*) filter (where state = ${state})`;
  return sql`(select json_build_object(${of('in_progress')}, ${of('completed')}, ${of('failed')}, ${of('cancelled')} ${more})
    from ${files} as files where ${owned})`;
}

export class StoreRows {
  readonly #orm: Orm;
  readonly #stores: SQL;
  readonly #files: SQL;
  readonly #batches: SQL;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#stores = tableOf(database, 'vector_stores');
    this.#files = tableOf(database, 'vector_store_files');
    this.#batches = tableOf(database, 'vector_store_batches');
  }

  /** false: the account has as many as it may have. */
  async create(
    accountId: string,
    store: StoreTerms & { readonly id: string; readonly model: string; readonly dimensions: number | undefined },
    most: number,
  ): Promise<boolean> {
    return this.#orm.transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const rows = await rowsOf(
        transaction,
        sql`insert into ${this.#stores} (account_id, id, name, description, metadata, model, dimensions, expires_days)
          select ${accountId}, ${store.id}, ${store.name}::text, ${store.description}::text, ${jsonOf(store.metadata)}, ${store.model},
            ${store.dimensions ?? null}::integer, ${store.expiresDays}::integer
          where (select count(*) from ${this.#stores} where account_id = ${accountId}) < ${most}::int
          returning id`,
      );
      return rows.length === 1;
    });
  }

  async find(accountId: string, id: string): Promise<Store | undefined> {
    return (await this.#select(sql`account_id = ${accountId} and id = ${id}`))[0];
  }

  list(accountId: string, page: PageQuery): Promise<Store[]> {
    return this.#select(pageOf(page, sql`id`, this.#stores, sql`account_id = ${accountId}`));
  }

  async change(accountId: string, id: string, terms: Partial<StoreTerms>): Promise<void> {
    const { name, description, metadata, expiresDays } = terms;
    await this.#orm.execute(
      sql`update ${this.#stores} set last_active_at = now()
        ${name === undefined ? sql`` : sql`, name = ${name}::text`}
        ${description === undefined ? sql`` : sql`, description = ${description}::text`}
        ${'metadata' in terms ? sql`, metadata = ${jsonOf(metadata)}` : sql``}
        ${expiresDays === undefined ? sql`` : sql`, expires_days = ${expiresDays}::integer`}
        where account_id = ${accountId} and id = ${id}`,
    );
  }

  /** It is used now. Not written each time. */
  async touch(accountId: string, id: string): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#stores} set last_active_at = now()
        where account_id = ${accountId} and id = ${id} and last_active_at < now() - interval '1 minute'`,
    );
  }

  async remove(accountId: string, id: string): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`delete from ${this.#stores} where account_id = ${accountId} and id = ${id} returning id`,
    );
    return rows.length === 1;
  }

  /** What expired stores have is deleted at once, they themselves after a while. */
  async sweep(): Promise<void> {
    await this.#orm.execute(
      sql`delete from ${this.#files} as files using ${this.#stores} as stores
        where stores.account_id = files.account_id and stores.id = files.store_id and ${isExpired}`,
    );
    await this.#orm.execute(
      sql`delete from ${this.#stores} where last_active_at + (expires_days + ${expiredDays}::int) * interval '1 day' <= now()`,
    );
  }

  async createBatch(accountId: string, storeId: string, id: string, runner: Runner): Promise<void> {
    await runner.execute(
      sql`insert into ${this.#batches} (account_id, store_id, id) values (${accountId}, ${storeId}, ${id})`,
    );
    const ofStore = sql`account_id = ${accountId} and store_id = ${storeId}`;
    await runner.execute(
      sql`delete from ${this.#batches} where ${ofStore} and id in (
        select id from ${this.#batches} where ${ofStore} order by created_at desc, id desc offset ${mostBatches}::int)`,
    );
  }

  async findBatch(accountId: string, storeId: string, id: string): Promise<FileBatch | undefined> {
    const counts = counted(this.#files, sql`files.account_id = batches.account_id and files.batch_id = batches.id`);
    const columns = columnsOf({
      id: column<string>('id'),
      storeId: column<string>('store_id'),
      cancelled: column<boolean>('cancelled'),
      createdAt: timeColumn('created_at'),
      counts: jsonColumn<FileCounts>(counts),
    });
    const [row] = await rowsOf<never>(
      this.#orm,
      sql`select ${columns.select} from ${this.#batches} as batches
        where account_id = ${accountId} and store_id = ${storeId} and id = ${id}`,
    );
    return row && columns.read(row);
  }

  /** Files that are not done stay as they are; what they have until now goes. */
  async cancelBatch(accountId: string, storeId: string, id: string): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#batches} as batches set cancelled = true
        where account_id = ${accountId} and store_id = ${storeId} and id = ${id} and exists (
          select from ${this.#files} as files where files.account_id = ${accountId} and batch_id = ${id} and state = 'in_progress')`,
    );
  }

  async #select(which: SQL): Promise<Store[]> {
    const ofStore = sql`files.account_id = stores.account_id and files.store_id = stores.id`;
    const columns = columnsOf({
      id: column<string>('id'),
      name: column<string | null>('name'),
      description: column<string | null>('description'),
      metadata: optional(jsonColumn<Record<string, string>>('metadata')),
      model: column<string>('model'),
      dimensions: optional(column<number>('dimensions')),
      expiresDays: optional(column<number>('expires_days')),
      createdAt: timeColumn('created_at'),
      lastActiveAt: timeColumn('last_active_at'),
      isExpired: column<boolean>(isExpired),
      counts: jsonColumn<Store['counts']>(counted(this.#files, ofStore, sql`, 'bytes', coalesce(sum(bytes), 0)`)),
    });
    const rows = await rowsOf<never>(
      this.#orm,
      sql`select ${columns.select} from ${this.#stores} as stores where ${which}`,
    );
    return rows.map(columns.read);
  }
}
