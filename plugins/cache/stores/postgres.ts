/** Answers in the database, for several processes. Only the database's clock decides when they end. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../common/domain/database.ts';
import { inMs, type Runner, rowsOf, tableOf } from '../../common/kit/sql.ts';
import { bytesOf, decodeEntry, type Entry, encodeHead, type Neighbour, vectorIn, vectorText } from '../entry.ts';
import type { Bounds, EntryStore, Found, Near, Place } from './store.ts';

/** The row of all accounts. */
const all = '*';

export class PostgresStore implements EntryStore {
  readonly #database: Database;
  readonly #bounds: Bounds;
  readonly #entries: SQL;
  readonly #bytes: SQL;
  readonly #flights: SQL;

  constructor(database: Database, bounds: Bounds) {
    this.#database = database;
    this.#bounds = bounds;
    this.#entries = tableOf(database, 'cache_entries');
    this.#bytes = tableOf(database, 'cache_bytes');
    this.#flights = tableOf(database, 'cache_flights');
  }

  async find({ accountId, key }: Place): Promise<Found> {
    // A call that is made takes less time than the database may, before it is given up.
    if (!this.#database.healthy()) throw new Error('the database cannot be reached');
    const [row] = await rowsOf<{ head: string | null; body: string | null; made: boolean }>(
      this.#database.orm,
      sql`select entries.head, encode(entries.body, 'base64') as body, exists (
            select from ${this.#flights} where account_id = ${accountId} and key = ${key} and held_until > now()) as made
          from (select) as one left join ${this.#entries} as entries
            on entries.account_id = ${accountId} and entries.key = ${key} and entries.expires_at > now()`,
    );
    const { head, body, made } = row!;
    const entry = head === null ? undefined : decodeEntry(key, head, Buffer.from(body ?? '', 'base64'));
    return { entry, isMade: made };
  }

  async claim({ accountId, key }: Place, owner: string, holdMs: number): Promise<boolean> {
    const rows = await rowsOf(
      this.#database.orm,
      sql`insert into ${this.#flights} as flights (account_id, key, owner, held_until)
          values (${accountId}, ${key}, ${owner}, ${inMs(holdMs)})
          on conflict (account_id, key) do update set owner = excluded.owner, held_until = excluded.held_until
            where flights.held_until <= now()
          returning true as mine`,
    );
    return rows.length > 0;
  }

  async renew({ accountId, key }: Place, owner: string, holdMs: number): Promise<void> {
    await this.#database.orm.execute(
      sql`update ${this.#flights} set held_until = ${inMs(holdMs)}
          where account_id = ${accountId} and key = ${key} and owner = ${owner}`,
    );
  }

  async release({ accountId, key }: Place, owner: string): Promise<void> {
    await this.#database.orm.execute(
      sql`delete from ${this.#flights} where account_id = ${accountId} and key = ${key} and owner = ${owner}`,
    );
  }

  async put(accountId: string, entry: Entry, keepMs: number, neighbour?: Neighbour): Promise<void> {
    const bytes = bytesOf(entry, neighbour);
    const { bytes: most, accountBytes } = this.#bounds;
    if (bytes > most || bytes > accountBytes) return;
    await this.#database.orm.transaction(async (orm) => {
      await this.#lock(orm, accountId);
      const own = sql`account_id = ${accountId} and key = ${entry.key}`;
      await this.#drop(orm, sql`(${own}) or expires_at <= now()`);
      const sums = await this.#lock(orm, accountId);
      const [overAccount, overAll] = [sums.account + bytes - accountBytes, sums.all + bytes - most];
      if (overAccount > 0) await this.#drop(orm, this.#oldest(sql`account_id = ${accountId}`, overAccount));
      // What the account gave up is gone from the sum of all, too.
      const rest = overAll <= 0 || overAccount <= 0 ? overAll : (await this.#lock(orm, accountId)).all + bytes - most;
      if (rest > 0) await this.#drop(orm, this.#oldest(sql`true`, rest));
      await orm.execute(sql`
        insert into ${this.#entries} (account_id, key, head, body, bytes, stored_at, expires_at, group_key, vector)
        values (${accountId}, ${entry.key}, ${encodeHead(entry)}, decode(${Buffer.from(entry.body).toString('base64')}, 'base64'),
          ${bytes}, clock_timestamp(), ${inMs(keepMs)}, ${neighbour?.group ?? null}::text,
          ${neighbour === undefined ? null : vectorText(neighbour.vector)}::text)`);
      await orm.execute(
        sql`update ${this.#bytes} set bytes = bytes + ${bytes} where account_id in (${accountId}, ${all})`,
      );
    });
  }

  async near(accountId: string, group: string, newest: number): Promise<readonly Near[]> {
    const rows = await rowsOf<{ key: string; vector: string }>(
      this.#database.orm,
      sql`select key, vector from ${this.#entries}
          where account_id = ${accountId} and group_key = ${group} and expires_at > now()
          order by stored_at desc limit ${newest}`,
    );
    return rows.map(({ key, vector }) => ({ key, vector: vectorIn(vector) }));
  }

  async bytes(accountId = all): Promise<number> {
    const [row] = await rowsOf<{ bytes: string }>(
      this.#database.orm,
      sql`select bytes::text as bytes from ${this.#bytes} where account_id = ${accountId}`,
    );
    return Number(row?.bytes ?? 0);
  }

  /** Takes out what has ended, and marks of processes that have died. */
  async sweep(): Promise<void> {
    await this.#database.orm.transaction(async (orm) => {
      await this.#lock(orm, all);
      await this.#drop(orm, sql`expires_at <= now()`);
      await orm.execute(sql`delete from ${this.#bytes} where bytes <= 0 and account_id <> ${all}`);
      await orm.execute(sql`delete from ${this.#flights} where held_until <= now()`);
    });
  }

  /** Writers come one after the other, as they all take the row of all accounts first. */
  async #lock(orm: Runner, accountId: string): Promise<{ all: number; account: number }> {
    for (const id of new Set([all, accountId])) {
      await orm.execute(
        sql`insert into ${this.#bytes} (account_id, bytes) values (${id}, 0) on conflict (account_id) do nothing`,
      );
      await orm.execute(sql`select from ${this.#bytes} where account_id = ${id} for update`);
    }
    const rows = await rowsOf<{ account_id: string; bytes: string }>(
      orm,
      sql`select account_id, bytes::text as bytes from ${this.#bytes} where account_id in (${all}, ${accountId})`,
    );
    const of = (id: string) => Number(rows.find((row) => row.account_id === id)?.bytes ?? 0);
    return { all: of(all), account: of(accountId) };
  }

  /** The oldest of these entries, as many as make room for so many bytes. */
  #oldest(those: SQL, bytes: number): SQL {
    return sql`(account_id, key) in (
      select account_id, key from (
        select account_id, key, sum(bytes) over (order by stored_at, account_id, key) - bytes as before
        from ${this.#entries} where ${those}) as ordered
      where before < ${bytes})`;
  }

  async #drop(orm: Runner, those: SQL): Promise<void> {
    await orm.execute(sql`
      with gone as (delete from ${this.#entries} where ${those} returning account_id, bytes),
        freed as (
          select account_id, sum(bytes) as bytes from gone group by account_id
          union all select ${all}::text, coalesce(sum(bytes), 0) from gone)
      update ${this.#bytes} as sums set bytes = sums.bytes - freed.bytes from freed where sums.account_id = freed.account_id`);
  }
}
