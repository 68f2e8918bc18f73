/** SQL of uploaded files: found, listed and removed one by one. */
import { type SQL, sql } from 'drizzle-orm';
import type { FileAdmin, OwnedFile } from '../common/domain/admin/files.ts';
import type { Database } from '../common/domain/database.ts';
import type { UploadedFile, UploadQuery } from '../common/domain/stored-files.ts';
import { column, columnsOf, countColumn, instant, optional, rowsOf, timeColumn } from '../common/kit/sql.ts';

const columns = columnsOf({
  id: column<string>('id'),
  accountId: column<string>('account_id'),
  name: column<string>('name'),
  chosenName: optional(column<string>('chosen_name')),
  purpose: column<string>('purpose'),
  sha256: optional(column<string>('sha256')),
  mediaType: column<string>('media_type'),
  bytes: countColumn('bytes'),
  createdAt: timeColumn('created_at'),
  expiresAt: timeColumn('sweep_at'),
});

/** A file of a task, without a name. */
interface TaskFile {
  readonly id: string;
  readonly number: number;
  readonly bytes: number;
}

type Filter = Parameters<FileAdmin['list']>[0];

export interface UploadPage {
  readonly limit: number;
  /** The file behind which it begins. */
  readonly after: Pick<UploadedFile, 'createdAt' | 'id'> | undefined;
}

export class UploadRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(accountId: string, id: string, now: number): Promise<UploadedFile | undefined> {
    const chosen = /^files\/(.+)$/.exec(id)?.[1];
    const which = chosen === undefined ? sql`id = ${id}` : sql`chosen_name = ${chosen}`;
    const [file] = await this.#select(sql`account_id = ${accountId} and ${which}`, now, sql``);
    return file;
  }

  /** One file more than the page has, if there is one. */
  list(accountId: string, query: UploadQuery, after: UploadedFile | undefined, now: number): Promise<UploadedFile[]> {
    const { purpose, order, limit } = query;
    const direction = order === 'asc' ? sql`asc` : sql`desc`;
    const ofPurpose = purpose === undefined ? sql`` : sql`and purpose = ${purpose}`;
    const sign = order === 'asc' ? sql`>` : sql`<`;
    const behind =
      after === undefined ? sql`` : sql`and (created_at, id) ${sign} (${instant(after.createdAt)}, ${after.id})`;
    const ending = sql`order by created_at ${direction}, id ${direction} limit ${limit + 1}::int`;
    return this.#select(sql`account_id = ${accountId} ${ofPurpose} ${behind}`, now, ending);
  }

  async findAny(id: string, now: number): Promise<OwnedFile | undefined> {
    const [file] = await this.#select(sql`id = ${id}`, now, sql``);
    return file;
  }

  /** Files of all accounts, newest first. */
  async listAll(filter: Filter, page: UploadPage, now: number): Promise<OwnedFile[]> {
    return (await rowsOf<never>(this.#database.orm, this.statement(filter, page, now))).map(columns.read);
  }

  statement({ accountId, purpose }: Filter, { limit, after }: UploadPage, now: number): SQL {
    const which = [
      sql`true`,
      ...(accountId === undefined ? [] : [sql`account_id = ${accountId}`]),
      ...(purpose === undefined ? [] : [sql`purpose = ${purpose}`]),
      ...(after === undefined ? [] : [sql`(created_at, id) < (${instant(after.createdAt)}, ${after.id})`]),
    ];
    const ending = sql`order by created_at desc, id desc limit ${limit}::int`;
    return this.#selection(sql.join(which, sql` and `), now, ending);
  }

  /** Files of a task without a name, by their numbers. */
  async ofTask(accountId: string, taskId: string, now: number): Promise<TaskFile[]> {
    const rows = await rowsOf<{ id: string; number: number; bytes: string }>(
      this.#database.orm,
      sql`select id, number, bytes::text as bytes from ${this.#files}
        where account_id = ${accountId} and task_id = ${taskId} and state = 'kept' and sweep_at > ${instant(now)}
        order by number`,
    );
    return rows.map(({ id, number, bytes }) => ({ id, number, bytes: Number(bytes) }));
  }

  async remove(accountId: string, id: string, now: number): Promise<boolean> {
    const rows = await rowsOf(
      this.#database.orm,
      sql`update ${this.#files} set state = 'gone', sweep_at = ${instant(now)}
        where account_id = ${accountId} and id = ${id} and state = 'kept' and purpose is not null
          and sweep_at > ${instant(now)} returning id`,
    );
    return rows.length === 1;
  }

  async #select(which: SQL, now: number, ending: SQL): Promise<OwnedFile[]> {
    return (await rowsOf<never>(this.#database.orm, this.#selection(which, now, ending))).map(columns.read);
  }

  #selection(which: SQL, now: number, ending: SQL): SQL {
    return sql`select ${columns.select}
      from ${this.#files} where ${which} and purpose is not null and state = 'kept' and sweep_at > ${instant(now)}
      ${ending}`;
  }

  get #files(): SQL {
    return sql`${sql.identifier(this.#database.schema)}.files`;
  }
}
