/** The rows of files in vector stores: put in, found, listed, taken out, and taken by workers. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../common/domain/database.ts';
import { givenBack, Leases, nextDueMs } from '../common/kit/jobs/leases.ts';
import {
  column,
  columnsOf,
  countColumn,
  inMs,
  jsonColumn,
  jsonOf,
  optional,
  type Runner,
  rowsOf,
  tableOf,
  timeColumn,
} from '../common/kit/sql.ts';
import type { Attributes } from './filters.ts';
import { type PageQuery, pageOf } from './pages.ts';
import type { FileState, StoreFile } from './shapes.ts';
import { lockAccount } from './store-rows.ts';
import type { Chunking } from './text/chunks.ts';

/** A file that is to be put into a store, and by whom. */
export interface NewFile {
  readonly id: string;
  readonly accountId: string;
  readonly storeId: string;
  readonly fileId: string;
  readonly name: string;
  readonly attributes: Attributes;
  readonly chunking: Chunking;
  readonly keyId: string;
  readonly remoteAddress: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a worker knows of a file. */
export interface Job extends StoreFile {
  readonly accountId: string;
  readonly keyId: string;
  readonly remoteAddress: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How often a call for its next pieces ran in vain. */
  tries: number;
  readonly chunks: number;
}

export type FileFault = {
  readonly code: 'server_error' | 'unsupported_file' | 'invalid_file';
  readonly message: string;
};

const isOpen = sql`state = 'in_progress'`;
const emptied = sql`chunks = 0, bytes = 0`;
const columns = columnsOf({
  id: column<string>('id'),
  storeId: column<string>('store_id'),
  fileId: column<string>('file_id'),
  name: column<string>('name'),
  attributes: jsonColumn<Attributes>(sql`coalesce(attributes, '{}')`),
  chunkTokens: column<number>('chunk_tokens'),
  overlapTokens: column<number>('overlap_tokens'),
  state: column<FileState>('state'),
  errorCode: optional(column<string>('error_code')),
  errorMessage: optional(column<string>('error_message')),
  bytes: countColumn('bytes'),
  createdAt: timeColumn('created_at'),
  accountId: column<string>('account_id'),
  keyId: column<string>('key_id'),
  remoteAddress: column<string>('remote_address'),
  headers: jsonColumn<Record<string, string>>('headers'),
  tries: column<number>('tries'),
  chunks: column<number>('chunks'),
});

export class FileRows {
  readonly #orm: Orm;
  readonly #files: SQL;
  readonly #chunks: SQL;
  readonly leases: Leases<unknown>;

  constructor(database: Database) {
    this.#orm = database.orm;
    this.#files = tableOf(database, 'vector_store_files');
    this.#chunks = tableOf(database, 'vector_chunks');
    this.leases = new Leases({ runner: this.#orm, table: this.#files, columns: sql`taken.id`, open: isOpen });
  }

  /**
   * Puts files into a store. One that is there in the same pieces stays, with the new attributes; any other begins again. false: the account has
   * as many files as it may have, and nothing is done. `first`: runs in the same transaction.
   */
  async add(
    accountId: string,
    files: readonly NewFile[],
    {
      most,
      batchId,
      first,
    }: { readonly most: number; readonly batchId?: string; readonly first?: (runner: Runner) => Promise<void> },
  ): Promise<boolean> {
    return this.#orm.transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const [row] = await rowsOf<{ count: number }>(
        transaction,
        sql`select count(*)::int as count from ${this.#files} where account_id = ${accountId}`,
      );
      if (row!.count + files.length > most) return false;
      await first?.(transaction);
      for (const file of files) await this.#add(transaction, file, batchId);
      return true;
    });
  }

  async #add(runner: Runner, file: NewFile, batchId: string | undefined): Promise<void> {
    const { accountId, storeId, fileId, chunking } = file;
    const same = sql`account_id = ${accountId} and store_id = ${storeId} and file_id = ${fileId}`;
    const kept = await rowsOf(
      runner,
      sql`update ${this.#files} set attributes = ${jsonOf(file.attributes)}, batch_id = ${batchId ?? null}::text
        where ${same} and state in ('in_progress', 'completed') and chunk_tokens = ${chunking.maxTokens}::int
          and overlap_tokens = ${chunking.overlapTokens}::int returning id`,
    );
    if (kept.length > 0) return;
    await runner.execute(sql`delete from ${this.#files} where ${same}`);
    await runner.execute(
      sql`insert into ${this.#files} (account_id, store_id, id, file_id, name, batch_id, attributes, chunk_tokens, overlap_tokens,
          key_id, remote_address, headers)
        values (${accountId}, ${storeId}, ${file.id}, ${fileId}, ${file.name}, ${batchId ?? null}::text, ${jsonOf(file.attributes)},
          ${chunking.maxTokens}::int, ${chunking.overlapTokens}::int, ${file.keyId}, ${file.remoteAddress}, ${jsonOf(file.headers)})`,
    );
  }

  async find(accountId: string, storeId: string, fileId: string): Promise<StoreFile | undefined> {
    return (await this.#select(sql`account_id = ${accountId} and store_id = ${storeId} and file_id = ${fileId}`))[0];
  }

  list(
    accountId: string,
    storeId: string,
    page: PageQuery,
    { batchId, state }: { readonly batchId?: string | undefined; readonly state?: FileState | undefined },
  ): Promise<StoreFile[]> {
    const ofBatch = batchId === undefined ? sql`` : sql`and batch_id = ${batchId}`;
    const inState = state === undefined ? sql`` : sql`and state = ${state}`;
    const owned = sql`account_id = ${accountId} and store_id = ${storeId} ${ofBatch} ${inState}`;
    return this.#select(pageOf(page, sql`file_id`, this.#files, owned));
  }

  /** All files with chunks of a store. */
  ready(accountId: string, storeId: string): Promise<StoreFile[]> {
    return this.#select(sql`account_id = ${accountId} and store_id = ${storeId} and chunks > 0`);
  }

  /** By their ids here. */
  async named(accountId: string, ids: readonly string[]): Promise<Map<string, StoreFile>> {
    const list = sql`(select value from json_array_elements_text(${JSON.stringify(ids)}::text::json))`;
    const found = await this.#select(sql`account_id = ${accountId} and id in ${list}`);
    return new Map(found.map((file) => [file.id, file]));
  }

  async setAttributes(accountId: string, storeId: string, fileId: string, attributes: Attributes): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#files} set attributes = ${jsonOf(attributes)}
        where account_id = ${accountId} and store_id = ${storeId} and file_id = ${fileId}`,
    );
  }

  async remove(accountId: string, storeId: string, fileId: string): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`delete from ${this.#files} where account_id = ${accountId} and store_id = ${storeId} and file_id = ${fileId} returning id`,
    );
    return rows.length === 1;
  }

  /** From all stores. */
  async removeEverywhere(accountId: string, fileId: string): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#files} where account_id = ${accountId} and file_id = ${fileId}`);
  }

  async cancelBatch(accountId: string, batchId: string): Promise<void> {
    await this.#orm.transaction(async (transaction) => {
      const rows = await rowsOf<{ id: string }>(
        transaction,
        sql`update ${this.#files} set state = 'cancelled', ${emptied}, ${givenBack}
          where account_id = ${accountId} and batch_id = ${batchId} and ${isOpen} returning id`,
      );
      for (const { id } of rows) await this.#empty(transaction, accountId, id);
    });
  }

  /** What is not whole is not found. */
  async #empty(runner: Runner, accountId: string, id: string): Promise<void> {
    await runner.execute(sql`delete from ${this.#chunks} where account_id = ${accountId} and file = ${id}`);
  }

  nextDueMs(): Promise<number | undefined> {
    return nextDueMs(this.#orm, this.#files, isOpen);
  }

  async take(token: string, limit: number, leaseMs: number): Promise<Job[]> {
    const taken = await this.leases.take(token, limit, leaseMs);
    if (taken.length === 0) return [];
    return this.#select(sql`lease = ${token} and ${isOpen}`);
  }

  /** `again`: a call for it ran in vain, and is made by another key. */
  async postpone(id: string, token: string, ms: number, again = false): Promise<void> {
    const tries = again ? sql`tries + 1` : sql`tries`;
    await this.leases.change(id, token, sql`${givenBack}, due_at = ${inMs(ms)}, tries = ${tries}`);
  }

  async complete(id: string, token: string): Promise<void> {
    await this.leases.change(id, token, sql`${givenBack}, state = 'completed'`);
  }

  async fail({ id, accountId }: Job, token: string, { code, message }: FileFault): Promise<void> {
    const fault = sql`state = 'failed', error_code = ${code}, error_message = ${message}`;
    await this.#orm.transaction(async (transaction) => {
      const isOwn = await this.leases.change(id, token, sql`${givenBack}, ${emptied}, ${fault}`, transaction);
      if (isOwn) await this.#empty(transaction, accountId, id);
    });
  }

  async #select(which: SQL): Promise<Job[]> {
    const rows = await rowsOf<never>(this.#orm, sql`select ${columns.select} from ${this.#files} where ${which}`);
    return rows.map(columns.read);
  }
}
