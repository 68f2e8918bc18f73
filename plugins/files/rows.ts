/** Every statement on the rows of files. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/errors.ts';
import type { Database, FileOwner, KeptFile, Orm } from '../../core/vocabulary.ts';

type Runner = Pick<Orm, 'execute'>;

/** A row that is not there yet. */
export interface NewFile {
  readonly id: string;
  readonly owner: FileOwner;
  readonly mediaType: string;
  readonly bytes: number;
}

export interface RoomLimits {
  readonly accountBytes: number;
  readonly totalBytes: number;
}

interface FileRow {
  readonly id: string;
  readonly media_type: string;
  readonly bytes: string;
  readonly sweep_ms: string;
}

/** How long a row may say that its bytes are being written, and how long a sweep may take to delete what it has taken. */
export const writingMs = 3_600_000;
const claimMs = 300_000;

export class FileRows {
  readonly #orm: Orm;
  readonly #schema: string;

  constructor({ orm, schema }: Database) {
    this.#orm = orm;
    this.#schema = schema;
  }

  /** The value of a setting, which is `value` where there was none. */
  async settle(name: string, value: string): Promise<string> {
    const settings = this.#table('file_settings');
    await this.#orm.execute(
      sql`insert into ${settings} (name, value) values (${name}, ${value}) on conflict do nothing`,
    );
    const rows = await rowsOf<{ value: string }>(this.#orm, sql`select value from ${settings} where name = ${name}`);
    return rows[0]!.value;
  }

  /** A kept file by id, of this account or (undefined) of any. */
  async find(id: string, accountId: string | undefined, now: number): Promise<KeptFile | undefined> {
    const whose = accountId === undefined ? sql`` : sql`and account_id = ${accountId}`;
    return this.#findKept(sql`id = ${id} ${whose}`, now);
  }

  /** The file that the task has under this number. */
  async findOfTask(owner: FileOwner, now: number, runner: Runner = this.#orm): Promise<KeptFile | undefined> {
    const { accountId, taskId, number } = owner;
    return this.#findKept(sql`account_id = ${accountId} and task_id = ${taskId} and number = ${number}`, now, runner);
  }

  async #findKept(which: SQL, now: number, runner: Runner = this.#orm): Promise<KeptFile | undefined> {
    const rows = await rowsOf<FileRow>(
      runner,
      sql`select id, media_type, bytes::text as bytes,
          (extract(epoch from sweep_at) * 1000)::bigint::text as sweep_ms
        from ${this.#files} where ${which} and state = 'kept' and sweep_at > ${instant(now)}`,
    );
    const row = rows[0];
    if (row === undefined) return undefined;
    return { id: row.id, mediaType: row.media_type, bytes: Number(row.bytes), expiresAt: Number(row.sweep_ms) };
  }

  /** Throws when `bytes` more do not fit: forbidden for the account, overloaded for all together. */
  async ensureRoom(accountId: string, bytes: number, limits: RoomLimits, runner: Runner = this.#orm): Promise<void> {
    const rows = await rowsOf<{ own: string; everything: string }>(
      runner,
      sql`select coalesce(sum(bytes) filter (where account_id = ${accountId}), 0)::text as own,
          coalesce(sum(bytes), 0)::text as everything
        from ${this.#table('file_usage')}`,
    );
    const { own, everything } = rows[0]!;
    if (Number(own) + bytes > limits.accountBytes) {
      throw new GatewayError('forbidden', 'The files of this account take all the space that they may.', {
        code: 'file_space_used_up',
        shouldRetry: false,
      });
    }
    if (Number(everything) + bytes > limits.totalBytes) throw storageFull();
  }

  /**
   * States that the bytes will be written; whoever else was writing them has lost. Resolves with the file that is there
   * already, if there is one. Throws as `ensureRoom` does.
   */
  async begin(file: NewFile, limits: RoomLimits, now: number): Promise<KeptFile | undefined> {
    const { accountId, taskId, number } = file.owner;
    return this.#orm.transaction(async (transaction) => {
      // One at a time, so that no two fit into the same room.
      await transaction.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${this.#schema}`}, 0))`);
      const same = sql`account_id = ${accountId} and task_id = ${taskId} and number = ${number} and state <> 'gone'`;
      // Whoever is writing it completes it before this is asked for it, or no more.
      await transaction.execute(sql`select id from ${this.#files} where ${same} for update`);
      const other = await this.findOfTask(file.owner, now, transaction);
      if (other !== undefined) return other;
      await this.ensureRoom(accountId, file.bytes, limits, transaction);
      await transaction.execute(sql`${this.#dropping(now)} where ${same}`);
      await transaction.execute(
        sql`insert into ${this.#files}
            (id, account_id, task_id, number, state, media_type, bytes, created_at, sweep_at)
          values (${file.id}, ${accountId}, ${taskId}, ${number}, 'writing', ${file.mediaType}, ${file.bytes},
            ${instant(now)}, ${instant(now + writingMs)})`,
      );
      return undefined;
    });
  }

  /** The bytes are there. false: the row was given up meanwhile, and they must go. */
  async complete(id: string, expiresAt: number): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`update ${this.#files} set state = 'kept', sweep_at = ${instant(expiresAt)}
        where id = ${id} and state = 'writing' returning id`,
    );
    return rows.length === 1;
  }

  /** Whoever was writing it has failed: the next sweep deletes what there is. */
  async giveUp(id: string, now: number): Promise<void> {
    await this.#orm.execute(sql`update ${this.#files} set state = 'gone', sweep_at = ${instant(now)} where id = ${id}`);
  }

  /**
   * They are not found from now on. The next sweep deletes them, but for those that somebody may still be writing.
   * Resolves with how many they are.
   */
  async remove(accountId: string, taskId: string | undefined, now: number): Promise<number> {
    const task = taskId === undefined ? sql`` : sql`and task_id = ${taskId}`;
    const rows = await rowsOf(
      this.#orm,
      sql`${this.#dropping(now)} where account_id = ${accountId} ${task} and state <> 'gone' returning id`,
    );
    return rows.length;
  }

  /** What may be had, by account; the largest first. */
  async usage(now: number): Promise<{ accountId: string; files: number; bytes: number }[]> {
    const rows = await rowsOf<{ account_id: string; files: string; bytes: string }>(
      this.#orm,
      sql`select account_id, count(*)::text as files, sum(bytes)::text as bytes from ${this.#files}
        where state = 'kept' and sweep_at > ${instant(now)} group by account_id order by sum(bytes) desc, account_id`,
    );
    return rows.map((row) => ({ accountId: row.account_id, files: Number(row.files), bytes: Number(row.bytes) }));
  }

  #dropping(now: number): SQL {
    return sql`update ${this.#files} set state = 'gone',
      sweep_at = case when state = 'writing' then sweep_at else ${instant(now)} end`;
  }

  /** Takes up to `limit` files whose time has come. Nobody else gets them for five minutes: `forget` them until then. */
  async claim(limit: number, now: number): Promise<string[]> {
    const rows = await rowsOf<{ id: string }>(
      this.#orm,
      sql`update ${this.#files} set state = 'gone', sweep_at = ${instant(now + claimMs)}
        where id in (
          select id from ${this.#files} where sweep_at <= ${instant(now)}
          order by sweep_at limit ${limit} for update skip locked)
        returning id`,
    );
    return rows.map(({ id }) => id);
  }

  /** The bytes are deleted. */
  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const list = sql.join(
      ids.map((id) => sql`${id}`),
      sql`, `,
    );
    await this.#orm.transaction(async (transaction) => {
      // Two deletions could each wait for an account that the other has counted.
      await this.#lock(transaction);
      await transaction.execute(sql`delete from ${this.#files} where id in (${list}) and state = 'gone'`);
    });
  }

  /** For everything that changes what the store holds by the counts, until the transaction ends. */
  async #lock(runner: Runner): Promise<void> {
    await runner.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${this.#schema}`}, 0))`);
  }

  get #files(): SQL {
    return this.#table('files');
  }

  #table(name: string): SQL {
    return sql`${sql.identifier(this.#schema)}.${sql.identifier(name)}`;
  }
}

export function storageFull(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The gateway has no room for files at the moment; try again later.', {
    code: 'storage_full',
    retryAfterMs: 60_000,
    cause,
  });
}

/** By way of text: drivers encode dates differently. */
function instant(milliseconds: number): SQL {
  return sql`${new Date(milliseconds).toISOString()}::timestamptz`;
}

async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  return (await runner.execute(statement)) as Row[];
}
