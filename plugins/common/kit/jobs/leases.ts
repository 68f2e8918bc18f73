/** Leases on due rows of a table: one worker at a time has a row, by the database's clock. */
import { type SQL, sql } from 'drizzle-orm';
import type { Random } from '../../../../core/contract/host-tools.ts';
import { inMs, millisecondsOf, type Runner, rowsOf } from '../sql.ts';

/** A table with the columns `due_at, lease, lease_until`. */
export interface LeasedTable {
  readonly runner: Runner;
  readonly table: SQL;
  /** The column of the row's id as text; default: `id`. */
  readonly id?: SQL;
  /** Columns that a worker reads of a row, which is called `taken`. */
  readonly columns: SQL;
  /** Rows with work left; by default those that are due some time. */
  readonly open?: SQL;
}

/** Sets the columns of a row that no worker has any more. */
export const givenBack: SQL = sql`lease = null, lease_until = null`;

const hasWork = sql`due_at is not null`;

export class Leases<Row> {
  readonly #leased: Required<LeasedTable>;

  constructor(leased: LeasedTable) {
    this.#leased = { id: sql`id`, open: hasWork, ...leased };
  }

  /** Takes at most `limit` due rows that no worker has, the longest due first. */
  take(token: string, limit: number, forMs: number): Promise<Row[]> {
    const { runner, table, id, columns, open } = this.#leased;
    return rowsOf<Row>(
      runner,
      sql`with due as (
          select ${id} as key from ${table} where ${open} and due_at <= now() and (lease_until is null or lease_until <= now())
          order by due_at limit ${limit}::int for update skip locked
        )
        update ${table} as taken set lease = ${token}, lease_until = ${inMs(forMs)}
        from due where taken.${id} = due.key returning ${columns}`,
    );
  }

  /** Reads `columns` of the row; undefined: another worker has it now. */
  async renew<Renewed>(id: string, token: string, forMs: number, columns = sql`1`): Promise<Renewed | undefined> {
    return (await this.#change<Renewed>(id, token, sql`lease_until = ${inMs(forMs)}`, columns))[0];
  }

  /** Sets columns of a row; false: another worker has it now. */
  async change(id: string, token: string, changes: SQL, runner?: Runner): Promise<boolean> {
    return (await this.#change(id, token, changes, sql`1`, runner)).length === 1;
  }

  #change<Row>(id: string, token: string, changes: SQL, columns: SQL, runner = this.#leased.runner): Promise<Row[]> {
    const { table, id: column } = this.#leased;
    const mine = sql`${column} = ${id} and lease = ${token}`;
    return rowsOf<Row>(runner, sql`update ${table} set ${changes} where ${mine} returning ${columns}`);
  }
}

/** Milliseconds until a row of such a table is due that no worker has; undefined: none will be. */
export async function nextDueMs(runner: Runner, table: SQL, open = hasWork): Promise<number | undefined> {
  const next = millisecondsOf(sql`min(greatest(due_at, lease_until)) - now()`);
  const [row] = await rowsOf<{ ms: number | null }>(runner, sql`select ${next} as ms from ${table} where ${open}`);
  return row?.ms ?? undefined;
}

/** Renews a lease every so often while the work runs. */
export async function whileRenewed<Result>(
  everyMs: number,
  renew: () => void,
  work: () => Promise<Result>,
): Promise<Result> {
  const renewing = setInterval(renew, everyMs).unref();
  try {
    return await work();
  } finally {
    clearInterval(renewing);
  }
}

/** Doubles from `firstMs` up to `longestMs`, less up to a quarter as jitter. */
export function backOff(tries: number, firstMs: number, longestMs: number, random: Random): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(tries, 20));
  return full * (1 - random.fraction() / 4);
}
