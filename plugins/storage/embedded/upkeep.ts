/** Maintenance that PostgreSQL does in processes of its own: checkpoints, vacuum and analysis. Clients wait during each step. */
import type { PGlite } from '@electric-sql/pglite';

/** Write-ahead log after which a checkpoint lets old log files go, and after which a new copy of the directory is due. */
export const checkpointAfterBytes = 64 * 2 ** 20;

interface DueTable {
  readonly name: string;
  readonly vacuums: boolean;
  /** Rows changed since all columns were analyzed. */
  readonly changed: number;
  /** The indexed columns as a list in SQL. Null if all columns are to be analyzed. */
  readonly columns: string | null;
}

export class Upkeep {
  readonly #pglite: PGlite;
  /** By table: the value of `changed` when its indexed columns were last analyzed. */
  readonly #analyzed = new Map<string, number>();

  constructor(pglite: PGlite) {
    this.#pglite = pglite;
  }

  /** A checkpoint, or one table's vacuum or analysis, if one is due. false: nothing was. */
  async step(): Promise<boolean> {
    return (await this.#checkpoint()) || (await this.#vacuumOrAnalyze());
  }

  /** Without a checkpointer the log would grow until the next stop, and a start after a crash would replay all of it. */
  async #checkpoint(): Promise<boolean> {
    const { rows } = await this.#pglite.query<{ due: boolean }>(
      `select pg_current_wal_insert_lsn() - redo_lsn > ${checkpointAfterBytes} as due from pg_control_checkpoint()`,
    );
    if (rows[0]?.due !== true) return false;
    await this.#pglite.exec('checkpoint');
    return true;
  }

  /**
   * Without autovacuum, dead rows would never be removed and the planner would use old statistics. The thresholds are autovacuum's
   * defaults, with one exception: columns without an index are analyzed only when half of the rows have changed, because they take most
   * of the time and affect few plans. PostgreSQL does not reset its count of changed rows when only some columns are analyzed.
   */
  async #vacuumOrAnalyze(): Promise<boolean> {
    await this.#pglite.exec('select pg_stat_force_next_flush()'); // What the next statement reads is then up to date.
    const analyzed = JSON.stringify([...this.#analyzed].map(([name, changed]) => ({ name, before: changed })));
    const { rows } = await this.#pglite.query<DueTable>(
      `select name, vacuums, changed::float8 as changed, case when changed <= 50 + 0.5 * n_live_tup then columns end as columns from (
         select format('%I.%I', schemaname, relname) as name, n_dead_tup, n_live_tup, n_mod_since_analyze as changed,
           n_dead_tup > 50 + 0.2 * n_live_tup or n_ins_since_vacuum > 1000 + 0.2 * n_live_tup as vacuums,
           (select string_agg(quote_ident(attname), ', ') from pg_attribute where attrelid = relid and attnum > 0
             and attnum = any (array(select unnest(indkey) from pg_index where indrelid = relid))) as columns
         from pg_stat_user_tables
       ) as tables left join json_to_recordset($1::json) as analyzed (name text, before bigint) using (name)
       where vacuums or changed - least(coalesce(before, 0), changed) > 50 + 0.1 * n_live_tup
       order by n_dead_tup desc limit 1`,
      [analyzed],
    );
    const [due] = rows;
    if (due === undefined) return false;
    const { name, vacuums, changed, columns } = due;
    if (vacuums) await this.#pglite.exec(`vacuum ${name}`);
    else if (columns === null) await this.#pglite.exec(`analyze ${name}`);
    else await this.#pglite.exec(`analyze ${name} (${columns})`);
    if (!vacuums) this.#analyzed.set(name, columns === null ? 0 : changed);
    return true;
  }
}
