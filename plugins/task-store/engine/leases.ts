/** Leases on due rows of a table: one worker at a time takes a row, with `for update skip locked`. */
import { type SQL, sql } from 'drizzle-orm';
import { inMs, type Runner, rowsOf } from './sql.ts';

/** A table with the columns `due_at, lease, lease_until` and a key. */
export interface Leased {
  readonly table: SQL;
  readonly key: SQL;
  /** The columns that a worker needs. */
  readonly columns: SQL;
}

/** Takes at most `limit` due rows that no worker holds, the longest due first. */
export function takeDue<Row>(
  runner: Runner,
  { table, key, columns }: Leased,
  token: string,
  limit: number,
  leaseMs: number,
): Promise<Row[]> {
  return rowsOf<Row>(
    runner,
    sql`
      with due as (
        select ${key} as key from ${table} where due_at <= now() and (lease_until is null or lease_until <= now())
        order by due_at limit ${limit}::int for update skip locked
      )
      update ${table} as taken set lease = ${token}, lease_until = ${inMs(leaseMs)}
      from due where taken.${key} = due.key returning ${columns}`,
  );
}

/** Milliseconds until a row is due that no worker holds; undefined: none will be. */
export async function nextDueMs(runner: Runner, table: SQL): Promise<number | undefined> {
  const [row] = await rowsOf<{ milliseconds: number | null }>(
    runner,
    sql`select (extract(epoch from min(greatest(due_at, lease_until)) - now()) * 1000)::float8 as milliseconds
        from ${table} where due_at is not null`,
  );
  return row?.milliseconds ?? undefined;
}

/** false: another worker holds the row now. */
export async function renewLease(
  runner: Runner,
  { table, key }: Leased,
  id: string,
  token: string,
  leaseMs: number,
): Promise<boolean> {
  const rows = await rowsOf(
    runner,
    sql`update ${table} set lease_until = ${inMs(leaseMs)} where ${key}::text = ${id} and lease = ${token} returning 1`,
  );
  return rows.length === 1;
}
