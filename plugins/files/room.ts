/** Space of accounts: what they have used of it, what they may use, and what others of its users reserve. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Database, Orm } from '../common/domain/database.ts';
import { instant, type Runner, rowsOf } from '../common/kit/sql.ts';
import { storageFull } from './disk-space.ts';

export interface RoomLimits {
  readonly accountBytes: number;
  readonly totalBytes: number;
  /** Bytes of all accounts that have not paid, and of each of them. */
  readonly freeBytes: number;
  readonly freeAccountBytes: number;
}

/** The accounts among these that have paid. */
export type Paying = (accountIds: readonly string[], runner: Runner) => Promise<ReadonlySet<string>>;

/** Bytes that are no file, under a name. */
export interface Space {
  readonly accountId: string;
  readonly name: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

interface Used {
  readonly own: number;
  readonly all: number;
  readonly free: number;
  readonly paid: boolean;
}

/** Accounts of which a refresh asks whether they have paid. */
const refreshed = 500;

export class Room {
  readonly #orm: Orm;
  readonly #schema: string;
  readonly #paying: Paying;

  constructor({ orm, schema }: Database, paying: Paying = async (accountIds) => new Set(accountIds)) {
    this.#orm = orm;
    this.#schema = schema;
    this.#paying = paying;
  }

  /** Files of all accounts. */
  async keptBytes(): Promise<number> {
    const [row] = await rowsOf<{ bytes: string }>(
      this.#orm,
      sql`select (coalesce((select sum(bytes) from ${this.#usage}), 0)
          - coalesce((select sum(bytes) from ${this.#files} where ${isSpace}), 0))::text as bytes`,
    );
    return Number(row!.bytes);
  }

  /** Stored bytes of one account, with files that are being deleted. */
  async storedBytes(accountId: string): Promise<number> {
    const [row] = await rowsOf<{ bytes: string }>(
      this.#orm,
      sql`select bytes::text as bytes from ${this.#usage} where account_id = ${accountId}`,
    );
    return Number(row?.bytes ?? 0);
  }

  /** Throws if `bytes` more do not fit: forbidden for the account's limit, overloaded for one that it shares. */
  async ensure(accountId: string, bytes: number, limits: RoomLimits, runner: Runner = this.#orm): Promise<void> {
    const { own, all, free, paid } = await this.#used(accountId, runner);
    if (own + bytes > limits.accountBytes) throw usedUp('The files of this account take all the space that they may.');
    if (all + bytes > limits.totalBytes) throw storageFull();
    const isLarge = own + bytes > limits.freeAccountBytes;
    // The last result may be old, and matters only here.
    if (!isLarge && (paid || free + bytes <= limits.freeBytes)) return;
    const hasPaid = (await this.#paying([accountId], runner)).has(accountId);
    if (hasPaid !== paid) await this.#notePaid([accountId], hasPaid, runner);
    if (hasPaid) return;
    if (isLarge) throw usedUp('The files of an account that has not paid take all the space that they may.');
    if (free + (paid ? own : 0) + bytes > limits.freeBytes)
      throw storageFull(
        undefined,
        'Accounts that have not paid have no room for files at the moment; try again later.',
      );
  }

  async #used(accountId: string, runner: Runner): Promise<Used> {
    const [row] = await rowsOf<{ own: string; everything: string; free: string; paid: boolean }>(
      runner,
      sql`select coalesce(sum(bytes) filter (where account_id = ${accountId}), 0)::text as own,
          coalesce(sum(bytes), 0)::text as everything, coalesce(sum(bytes) filter (where not paid), 0)::text as free,
          coalesce(bool_or(paid) filter (where account_id = ${accountId}), false) as paid
        from ${this.#usage}`,
    );
    const { own, everything, free, paid } = row!;
    return { own: Number(own), all: Number(everything), free: Number(free), paid };
  }

  async #notePaid(accountIds: readonly string[], paid: boolean, runner: Runner): Promise<void> {
    await runner.execute(
      sql`update ${this.#usage} set paid = ${paid}::boolean
        where account_id in (select value from json_array_elements_text(${JSON.stringify(accountIds)}::text::json))`,
    );
  }

  /** Finds out which accounts have paid since. */
  async refresh(): Promise<void> {
    const rows = await rowsOf<{ account_id: string }>(
      this.#orm,
      sql`select account_id from ${this.#usage} where not paid and bytes > 0 order by bytes desc limit ${refreshed}::int`,
    );
    const paying = await this.#paying(
      rows.map((row) => row.account_id),
      this.#orm,
    );
    if (paying.size === 0) return;
    await this.#orm.transaction(async (transaction) => {
      await this.lock(transaction);
      await this.#notePaid([...paying], true, transaction);
    });
  }

  /**
   * Sets how much is reserved under this name. What it grows by must fit into `limits`, if there are any: those of `ensure`.
   */
  async reserve(space: Space, limits: RoomLimits | undefined): Promise<void> {
    await this.#orm.transaction(async (transaction) => {
      await this.lock(transaction);
      const { accountId, bytes, expiresAt } = space;
      const before = await this.#reserved(space, transaction);
      if (limits !== undefined && bytes > (before ?? 0))
        await this.ensure(accountId, bytes - (before ?? 0), limits, transaction);
      const id = idOf(space);
      if (before === undefined)
        await transaction.execute(
          sql`insert into ${this.#files} (id, account_id, task_id, number, state, media_type, bytes, created_at, sweep_at)
            values (${id}, ${accountId}, ${id}, 0, 'kept', 'application/octet-stream', ${bytes}::bigint, now(), ${instant(expiresAt)})`,
        );
      else await this.#resize(space, bytes - before, transaction);
    });
  }

  /** Gives back what a file of so many bytes takes over, in the file's transaction. */
  async spend(accountId: string, name: string, bytes: number, runner: Runner): Promise<void> {
    const space = { accountId, name };
    const reserved = (await this.#reserved(space, runner)) ?? 0;
    if (reserved > 0) await this.#resize(space, -Math.min(reserved, bytes), runner);
  }

  async release(accountId: string, name: string): Promise<void> {
    await this.#orm.transaction(async (transaction) => {
      await this.lock(transaction);
      await transaction.execute(
        sql`delete from ${this.#files} where id = ${idOf({ name })} and account_id = ${accountId}`,
      );
    });
  }

  async #reserved({ accountId, name }: Pick<Space, 'accountId' | 'name'>, runner: Runner): Promise<number | undefined> {
    const [row] = await rowsOf<{ bytes: string }>(
      runner,
      sql`select bytes::text as bytes from ${this.#files} where id = ${idOf({ name })} and account_id = ${accountId}`,
    );
    return row && Number(row.bytes);
  }

  /** One that a sweep has claimed is kept again. */
  async #resize(
    space: Pick<Space, 'accountId' | 'name'> & Partial<Space>,
    growth: number,
    runner: Runner,
  ): Promise<void> {
    const until = space.expiresAt === undefined ? sql`` : sql`, state = 'kept', sweep_at = ${instant(space.expiresAt)}`;
    await runner.execute(
      sql`update ${this.#files} set bytes = bytes + ${growth}::bigint ${until} where id = ${idOf(space)}`,
    );
    await this.grow(space.accountId, growth, runner);
  }

  /** The trigger counts rows that come and go alone. */
  async grow(accountId: string, bytes: number, runner: Runner): Promise<void> {
    await runner.execute(
      sql`update ${this.#usage} set bytes = bytes + ${bytes}::bigint where account_id = ${accountId}`,
    );
  }

  /** Serialises all changes of the counted sizes until the transaction ends, so that no two use the same free space. */
  async lock(runner: Runner): Promise<void> {
    await runner.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${this.#schema}`}, 0))`);
  }

  get #files(): SQL {
    return sql`${sql.identifier(this.#schema)}.files`;
  }

  get #usage(): SQL {
    return sql`${sql.identifier(this.#schema)}.file_usage`;
  }
}

/** No client can name it. */
const idOf = ({ name }: Pick<Space, 'name'>) => `${spacePrefix}${name}`;

const spacePrefix = 'space-';
/** As the index has it. */
export const isSpace = sql.raw(`id like '${spacePrefix}%'`);

function usedUp(message: string): GatewayError {
  return new GatewayError('forbidden', message, { code: 'file_space_used_up', shouldRetry: false });
}
