/** Announcements to every process on this database: a table that each of them reads when it is notified, and every so often. */
import { type SQL, sql } from 'drizzle-orm';
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import type { Orm } from '../common/domain/database.ts';

export const pollIntervalMs = 250;
/** Where notifications arrive. */
export const heardPollIntervalMs = 2_000;
export const pruneIntervalMs = 600_000;

const maxRows = 1_000;
/** An id that was skipped may still be committed for so long; afterwards its transaction counts as undone. */
const gapLifetimeMs = 60_000;
const maxGaps = 1_000;
/** Ids below the first poll in which such gaps are looked for. */
const firstLookBack = 100;

interface Change {
  readonly id: bigint;
  readonly topic: string;
  readonly subject: string;
}

export interface ChangesOptions {
  readonly orm: Orm;
  /** Connection of the polls; default: `orm`. */
  readonly reader?: Orm;
  readonly schema: string;
  /** Notification channel that wakes listeners before their next poll. */
  readonly channel: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reads `<schema>.changes` and calls the listeners, once per announcement. */
export class Changes {
  readonly #orm: Orm;
  readonly #reader: Orm;
  readonly #table: SQL;
  readonly #channel: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #listeners = new Map<string, ((subject: string) => void)[]>();
  /** Highest id that was seen. */
  #highest = 0n;
  /**
   * Ids below it that were not seen, with the time from which they are missed. Ids are given when a row is written but
   * are seen when it is committed, so a lower one may come after a higher one.
   */
  readonly #gaps = new Map<bigint, number>();
  /** Announcements of other processes so far. */
  found = 0;
  /** Announcements of this process, delivered to its listeners before a poll has read them. */
  readonly #notified = new Set<bigint>();

  constructor({ orm, reader = orm, schema, channel, clock, log }: ChangesOptions) {
    this.#orm = orm;
    this.#reader = reader;
    this.#table = sql`${sql.identifier(schema)}.changes`;
    this.#channel = channel;
    this.#clock = clock;
    this.#log = log;
  }

  /** Starts at the newest announcement; earlier ones are not delivered. */
  async begin(): Promise<void> {
    const rows = await this.#read(sql`order by id desc limit ${firstLookBack}`);
    const oldest = rows.at(-1);
    if (oldest === undefined) return;
    this.#highest = oldest.id;
    for (const row of rows.toReversed()) this.#seen(row.id);
  }

  onChange(topic: string, listener: (subject: string) => void): void {
    this.#listeners.set(topic, [...(this.#listeners.get(topic) ?? []), listener]);
  }

  /** Resolves when it is in the table; listeners of this process have been called by then. */
  async announce(topic: string, subject: string): Promise<void> {
    this.#notifyListeners(await this.#insert(this.#orm, topic, subject));
  }

  /** The same, in one transaction with `work`: a crash leaves both or neither. */
  async change<T>(topic: string, subject: string, work: (orm: Orm) => Promise<T>): Promise<T> {
    const [result, change] = await this.#orm.transaction(async (orm) => {
      const done = await work(orm);
      return [done, await this.#insert(orm, topic, subject)] as const;
    });
    this.#notifyListeners(change);
    return result;
  }

  async #insert(orm: Orm, topic: string, subject: string): Promise<Change> {
    const rows = await orm.execute(
      sql`insert into ${this.#table} (topic, subject) values (${topic}, ${subject})
        returning id, pg_notify(${this.#channel}, '')::text`,
    );
    const { id } = (rows as { id: bigint }[])[0]!;
    return { id, topic, subject };
  }

  #notifyListeners(change: Change): void {
    const { id } = change;
    // A poll may have been faster than the answer to the statement.
    if (id <= this.#highest && !this.#gaps.has(id)) return;
    this.#notified.add(id);
    this.#notify(change);
  }

  /** Delivers new announcements. Rejects if the database cannot be read; the next poll then delivers them. */
  async poll(): Promise<void> {
    this.#forgetGaps();
    let rows: readonly Change[];
    do {
      rows = await this.#read(sql`where ${this.#unseen()} order by id limit ${maxRows}`);
      for (const row of rows) {
        this.#seen(row.id);
        if (this.#notified.delete(row.id)) continue;
        this.found += 1;
        this.#notify(row);
      }
    } while (rows.length === maxRows);
  }

  /** Wakes listeners without a change. */
  async wake(): Promise<void> {
    await this.#orm.execute(sql`select pg_notify(${this.#channel}, '')::text`);
  }

  async prune(): Promise<void> {
    await this.#orm.execute(sql`delete from ${this.#table} where at < now() - interval '1 hour'`);
  }

  async #read(clause: SQL): Promise<readonly Change[]> {
    return (await this.#reader.execute(sql`select id, topic, subject from ${this.#table} ${clause}`)) as Change[];
  }

  #unseen(): SQL {
    const isNew = sql`id > ${this.#highest}`;
    if (this.#gaps.size === 0) return isNew;
    const gaps = `[${[...this.#gaps.keys()].join(',')}]`;
    return sql`(${isNew} or id in (select value::int8 from json_array_elements_text(${gaps}::json)))`;
  }

  #seen(id: bigint): void {
    this.#gaps.delete(id);
    const now = this.#clock.monotonic();
    const first = id - this.#highest > maxGaps ? id - BigInt(maxGaps) : this.#highest + 1n;
    for (let missed = first; missed < id; missed += 1n) this.#gaps.set(missed, now);
    if (id > this.#highest) this.#highest = id;
  }

  #forgetGaps(): void {
    const before = this.#clock.monotonic() - gapLifetimeMs;
    for (const [id, since] of this.#gaps) {
      if (since > before && this.#gaps.size <= maxGaps) break;
      this.#gaps.delete(id);
      this.#notified.delete(id);
    }
  }

  #notify({ topic, subject }: Change): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener(subject);
      } catch (error) {
        this.#log.error({ error, topic }, 'a listener to changes failed');
      }
    }
  }
}
