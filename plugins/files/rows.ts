/** SQL of the rows of files. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { type FileOwner, type KeptFile, nameTaken } from '../common/domain/stored-files.ts';
import { instant, type Runner, rowsOf } from '../common/kit/sql.ts';
import { isSpace, type Paying, Room, type RoomLimits } from './room.ts';

/** A file that has no row yet. */
export interface NewFile {
  readonly id: string;
  readonly owner: FileOwner;
  readonly mediaType: string;
  readonly bytes: number;
  /** Further columns of an upload. */
  readonly named?: {
    readonly name: string;
    readonly chosenName: string | undefined;
    readonly purpose: string;
    readonly mostFiles: number;
    readonly sha256: string | undefined;
  };
  /** Name of the space that was reserved for it. */
  readonly space?: string | undefined;
}

/** A file and its account. */
export interface OwnedFile {
  readonly file: KeptFile;
  readonly accountId: string;
}

interface FileRow {
  readonly id: string;
  readonly account_id: string;
  readonly media_type: string;
  readonly bytes: string;
  readonly sweep_ms: string;
}

/** How long a row may be in `writing`, and how long a sweep holds its claim. */
const writingMs = 3_600_000;
const claimMs = 300_000;

export class FileRows {
  readonly room: Room;
  readonly #orm: Orm;
  readonly #schema: string;

  constructor(database: Database, paying?: Paying) {
    this.#orm = database.orm;
    this.#schema = database.schema;
    this.room = new Room(database, paying);
  }

  /** The setting's value; sets it to `value` if there is none. */
  async getOrSetSetting(name: string, value: string): Promise<string> {
    const settings = this.#table('file_settings');
    await this.#orm.execute(
      sql`insert into ${settings} (name, value) values (${name}, ${value}) on conflict do nothing`,
    );
    const rows = await rowsOf<{ value: string }>(this.#orm, sql`select value from ${settings} where name = ${name}`);
    return rows[0]!.value;
  }

  async findSetting(name: string): Promise<string | undefined> {
    const settings = this.#table('file_settings');
    const rows = await rowsOf<{ value: string }>(this.#orm, sql`select value from ${settings} where name = ${name}`);
    return rows[0]?.value;
  }

  async removeSetting(name: string): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#table('file_settings')} where name = ${name}`);
  }

  /** A stored file by id, of this account. */
  async find(id: string, accountId: string, now: number): Promise<KeptFile | undefined> {
    return this.#findKept(sql`id = ${id} and account_id = ${accountId}`, now);
  }

  /** A stored file by id, of any account. */
  async findOfAny(id: string, now: number): Promise<OwnedFile | undefined> {
    const [row] = await this.#readKept(sql`id = ${id}`, now, this.#orm);
    return row && { file: fileOf(row), accountId: row.account_id };
  }

  /** When each of these stored files expires. */
  async expiries(ids: readonly string[], now: number): Promise<ReadonlyMap<string, number>> {
    if (ids.length === 0) return new Map();
    const rows = await rowsOf<{ id: string; sweep_ms: string }>(
      this.#orm,
      sql`select id, (extract(epoch from sweep_at) * 1000)::bigint::text as sweep_ms from ${this.#files}
        where id in (select value from json_array_elements_text(${JSON.stringify(ids)}::text::json))
          and state = 'kept' and sweep_at > ${instant(now)}`,
    );
    return new Map(rows.map((row) => [row.id, Number(row.sweep_ms)]));
  }

  /** The task's file with this number. */
  async findOfTask(owner: FileOwner, now: number, runner: Runner = this.#orm): Promise<KeptFile | undefined> {
    const { accountId, taskId, number } = owner;
    return this.#findKept(sql`account_id = ${accountId} and task_id = ${taskId} and number = ${number}`, now, runner);
  }

  async #findKept(which: SQL, now: number, runner: Runner = this.#orm): Promise<KeptFile | undefined> {
    const [row] = await this.#readKept(which, now, runner);
    return row && fileOf(row);
  }

  #readKept(which: SQL, now: number, runner: Runner): Promise<FileRow[]> {
    return rowsOf<FileRow>(
      runner,
      sql`select id, account_id, media_type, bytes::text as bytes,
          (extract(epoch from sweep_at) * 1000)::bigint::text as sweep_ms
        from ${this.#files} where ${which} and state = 'kept' and sweep_at > ${instant(now)}`,
    );
  }

  /**
   * Makes a row in `writing`, and supersedes a concurrent writer of the same file; a row with the same id, of a writer that was
   * killed, is used again. Resolves with the file that exists already, if any. Throws like `Room.ensure`.
   */
  async begin(file: NewFile, limits: RoomLimits, now: number): Promise<KeptFile | undefined> {
    const { accountId, taskId, number } = file.owner;
    return this.#orm.transaction(async (transaction) => {
      await this.room.lock(transaction);
      const same = sql`account_id = ${accountId} and task_id = ${taskId} and number = ${number} and state <> 'gone'`;
      // A concurrent writer completes the row before this lock, or fails afterwards.
      await transaction.execute(sql`select id from ${this.#files} where ${same} for update`);
      const other = await this.findOfTask(file.owner, now, transaction);
      if (other !== undefined) return other;
      if (await this.#useAgain(file, limits, now, transaction)) return undefined;
      if (file.space !== undefined) await this.room.spend(accountId, file.space, file.bytes, transaction);
      await this.room.ensure(accountId, file.bytes, limits, transaction);
      if (file.named !== undefined) await this.#ensureNamed(accountId, file.named, now, transaction);
      await transaction.execute(sql`${this.#markGone(now)} where ${same}`);
      await transaction.execute(
        sql`insert into ${this.#files}
            (id, account_id, task_id, number, state, media_type, bytes, created_at, sweep_at, name, purpose, chosen_name, sha256)
          values (${file.id}, ${accountId}, ${taskId}, ${number}, 'writing', ${file.mediaType}, ${file.bytes},
            ${instant(now)}, ${instant(now + writingMs)}, ${file.named?.name ?? null}, ${file.named?.purpose ?? null},
            ${file.named?.chosenName ?? null}, ${file.named?.sha256 ?? null})`,
      );
      return undefined;
    });
  }

  /** Whether there was a row of that id in `writing`, which is the new writer's now. */
  async #useAgain(
    { id, owner: { accountId, taskId, number }, bytes, mediaType }: NewFile,
    limits: RoomLimits,
    now: number,
    runner: Runner,
  ): Promise<boolean> {
    const [row] = await rowsOf<{ bytes: string }>(
      runner,
      sql`select bytes::text as bytes from ${this.#files}
        where id = ${id} and account_id = ${accountId} and task_id = ${taskId} and number = ${number} and state = 'writing'`,
    );
    if (row === undefined) return false;
    const growth = bytes - Number(row.bytes);
    await this.room.ensure(accountId, growth, limits, runner);
    await runner.execute(
      sql`update ${this.#files} set media_type = ${mediaType}, bytes = ${bytes}, created_at = ${instant(now)},
        sweep_at = ${instant(now + writingMs)} where id = ${id}`,
    );
    await this.room.grow(accountId, growth, runner);
    return true;
  }

  async #ensureNamed(
    accountId: string,
    { chosenName, mostFiles }: NonNullable<NewFile['named']>,
    now: number,
    runner: Runner,
  ): Promise<void> {
    if (chosenName !== undefined) await this.#ensureFree(accountId, chosenName, now, runner);
    const [row] = await rowsOf<{ files: number }>(
      runner,
      sql`select count(*)::int as files from ${this.#files}
        where account_id = ${accountId} and purpose is not null and state <> 'gone'`,
    );
    if (row!.files < mostFiles) return;
    throw new GatewayError('forbidden', `This account has ${mostFiles} files, as many as it may have; delete some.`, {
      code: 'too_many_files',
      shouldRetry: false,
    });
  }

  async #ensureFree(accountId: string, chosenName: string, now: number, runner: Runner): Promise<void> {
    const same = sql`account_id = ${accountId} and chosen_name = ${chosenName} and state <> 'gone'`;
    await runner.execute(sql`${this.#markGone(now)} where ${same} and state = 'kept' and sweep_at <= ${instant(now)}`);
    const rows = await rowsOf(runner, sql`select 1 from ${this.#files} where ${same}`);
    if (rows.length > 0) throw nameTaken(chosenName);
  }

  /** Marks the bytes as stored. false: the row of this writer, begun then, was superseded or removed. */
  async complete(id: string, begunAt: number, expiresAt: number): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`update ${this.#files} set state = 'kept', sweep_at = ${instant(expiresAt)}
        where id = ${id} and state = 'writing' and created_at = ${instant(begunAt)} returning id`,
    );
    return rows.length === 1;
  }

  /** Whether the row of a writer that began then is another's now, as are the bytes. */
  async isUsedAgain(id: string, begunAt: number): Promise<boolean> {
    const rows = await rowsOf(
      this.#orm,
      sql`select 1 from ${this.#files} where id = ${id} and created_at <> ${instant(begunAt)} and state <> 'gone'`,
    );
    return rows.length > 0;
  }

  /** Marks the failed write that was begun then: the next sweep deletes its bytes, which are not those of another writer of that id. */
  async abandon(id: string, begunAt: number, now: number): Promise<void> {
    await this.#orm.execute(
      sql`update ${this.#files} set state = 'gone', sweep_at = ${instant(now)}
        where id = ${id} and created_at = ${instant(begunAt)}`,
    );
  }

  /**
   * Hides files at once. The next sweep deletes them, except those that another process may still be writing. Resolves
   * with their number.
   */
  async remove(accountId: string, taskId: string | undefined, now: number): Promise<number> {
    const task = taskId === undefined ? sql`` : sql`and task_id = ${taskId}`;
    const rows = await rowsOf(
      this.#orm,
      sql`${this.#markGone(now)} where account_id = ${accountId} ${task} and state <> 'gone' returning id`,
    );
    return rows.length;
  }

  /** Stored files by account; the largest first. */
  async usage(now: number): Promise<{ accountId: string; files: number; bytes: number }[]> {
    const rows = await rowsOf<{ account_id: string; files: string; bytes: string }>(
      this.#orm,
      sql`select account_id, (count(*) filter (where not (${isSpace})))::text as files, sum(bytes)::text as bytes from ${this.#files}
        where state = 'kept' and sweep_at > ${instant(now)} group by account_id order by sum(bytes) desc, account_id`,
    );
    return rows.map((row) => ({ accountId: row.account_id, files: Number(row.files), bytes: Number(row.bytes) }));
  }

  #markGone(now: number): SQL {
    return sql`update ${this.#files} set state = 'gone',
      sweep_at = case when state = 'writing' then sweep_at else ${instant(now)} end`;
  }

  /** Claims up to `limit` due files for five minutes: `forget` them until then. */
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

  /** Deletes the rows after their bytes. */
  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const list = sql.join(
      ids.map((id) => sql`${id}`),
      sql`, `,
    );
    await this.#orm.transaction(async (transaction) => {
      // Without the lock, two deletions could each wait for an account that the other has counted.
      await this.room.lock(transaction);
      await transaction.execute(sql`delete from ${this.#files} where id in (${list}) and state = 'gone'`);
    });
  }

  get #files(): SQL {
    return this.#table('files');
  }

  #table(name: string): SQL {
    return sql`${sql.identifier(this.#schema)}.${sql.identifier(name)}`;
  }
}

function fileOf({ id, media_type: mediaType, bytes, sweep_ms: sweepMs }: FileRow): KeptFile {
  return { id, mediaType, bytes: Number(bytes), expiresAt: Number(sweepMs) };
}
