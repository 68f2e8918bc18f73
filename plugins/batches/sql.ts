/** Statements of either driver, and values in them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../common/domain/database.ts';

export type Runner = Pick<Orm, 'execute'>;

/** Rows of either driver. */
export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return [...(Array.isArray(result) ? result : (result as { rows: Row[] }).rows)] as Row[];
}

/** A value as a JSON parameter, sent as text so that no driver encodes it twice. PostgreSQL text cannot hold NUL. */
export function jsonOf(value: unknown): SQL {
  if (value === undefined) return sql`null::json`;
  return sql`${JSON.stringify(value).replaceAll('\\u0000', '\\ufffd')}::text::json`;
}

/** Now plus this time, by the database's clock, which all processes share. */
export function inMs(milliseconds: number): SQL {
  return sql`now() + ${Math.round(milliseconds)}::bigint * interval '1 millisecond'`;
}
