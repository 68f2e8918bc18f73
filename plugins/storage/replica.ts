/**
 * Reads of pages and exports from a replica of the database, as long as it is not further behind than is allowed; from the database itself
 * otherwise, and whenever the replica fails.
 */
import { type SQLWrapper, sql } from 'drizzle-orm';
import type { Clock, Log } from '../../core/contract/host-tools.ts';
import { Outage } from '../../core/contract/outage.ts';
import type { Orm, ReplicaState } from '../common/domain/database.ts';
import type { Connection } from './connect.ts';

export const replicaLookMs = 1_000;
/** A look without an answer for so long makes what the last one saw worthless. */
const staleAfterMs = 5 * replicaLookMs;

export interface ReplicaOptions {
  readonly name: string;
  readonly primary: Orm;
  readonly replica: Connection;
  /** The longest lag that pages may have. */
  readonly lagMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

interface Seen {
  readonly lagMs: number;
  /** Monotonic. */
  readonly at: number;
}

export class Replica {
  readonly #options: ReplicaOptions;
  readonly #outage: Outage;
  #seen: Seen | undefined;
  #looking: Promise<void> | undefined;
  #isBehind = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { clock, log, name } = options;
    const [began, over] = [
      'pages read the database itself: its replica does not answer',
      'pages read the replica again',
    ];
    this.#outage = new Outage({ clock, log, began, over, fields: { store: 'replica', database: name } });
  }

  /** Statements that only read, each by itself: on the replica, or where that cannot be on the database itself. */
  readonly orm = { execute: (statement: SQLWrapper | string) => this.#execute(statement) } as unknown as Orm;

  get state(): ReplicaState {
    return { isUsed: this.#isGood(), lagMs: this.#seen === undefined ? undefined : Math.round(this.#seen.lagMs) };
  }

  /** Measures the lag; one look at a time. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  close(): Promise<void> {
    return this.#options.replica.close();
  }

  async #execute(statement: SQLWrapper | string): Promise<unknown> {
    const { primary, replica } = this.#options;
    if (!this.#isGood()) return primary.execute(statement);
    try {
      return await replica.orm.execute(statement);
    } catch (error) {
      // It may be away, or have cancelled the statement to go on with its replay. What is wrong in itself fails there too.
      const rows = await primary.execute(statement);
      this.#fail(error);
      return rows;
    }
  }

  #isGood(): boolean {
    const { clock, lagMs } = this.#options;
    const seen = this.#seen;
    return seen !== undefined && seen.lagMs <= lagMs && clock.monotonic() - seen.at <= staleAfterMs;
  }

  #fail(error: unknown): void {
    this.#seen = undefined;
    this.#outage.failed(error);
  }

  async #look(): Promise<void> {
    const { primary, replica, clock } = this.#options;
    const at = clock.monotonic();
    let end: string;
    try {
      end = (await rowOf<{ end: string }>(primary, sql`select pg_current_wal_lsn()::text as "end"`)).end;
    } catch {
      return; // Then the database is away, which is noted elsewhere; pages are read from the replica until this look is too old.
    }
    try {
      // Nothing to replay is no lag, however long ago the last commit was.
      const { lag } = await rowOf<{ lag: number | null }>(
        replica.orm,
        sql`select case when not pg_is_in_recovery() then null
          when pg_last_wal_replay_lsn() >= ${end}::pg_lsn then 0
          else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 end::float8 as lag`,
      );
      if (lag === null) throw new Error('it follows no other server');
      this.#seen = { lagMs: Math.max(0, lag), at };
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#outage.succeeded();
    this.#noteLag();
  }

  #noteLag(): void {
    const { lagMs, log, name } = this.#options;
    const isBehind = this.#seen!.lagMs > lagMs;
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    const fields = { database: name, seconds: Math.round(this.#seen!.lagMs / 1_000) };
    if (isBehind) log.warn(fields, 'pages read the database itself: its replica lags');
    else log.info(fields, 'the replica has caught up: pages read it again');
  }
}

async function rowOf<Row>(orm: Orm, statement: SQLWrapper): Promise<Row> {
  return ((await orm.execute(statement)) as unknown as Row[])[0]!;
}
