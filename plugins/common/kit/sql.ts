/** Statements of either driver, and values in them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../domain/database.ts';

/** The database or one of its transactions. */
export type Runner = Pick<Orm, 'execute'>;

/**
 * The rows of one statement. Drivers differ in the result's shape and in the type of a bigint, so statements cast
 * amounts to text and `BigInt` parses them.
 */
export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return [...(Array.isArray(result) ? result : (result as { rows: Row[] }).rows)] as Row[];
}

/** A table of the gateway's own schema, as part of a statement. */
export function tableOf({ schema }: Pick<Database, 'schema'>, name: string): SQL {
  return sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
}

/** A value as a JSON parameter, sent as text so that no driver encodes it twice. PostgreSQL text cannot hold NUL. */
export function jsonOf(value: unknown): SQL {
  if (value === undefined) return sql`null::json`;
  return sql`${JSON.stringify(value).replaceAll('\\u0000', '\\ufffd')}::text::json`;
}

/** As text, since drivers encode dates differently. */
export function instant(milliseconds: number): SQL {
  return sql`${new Date(milliseconds).toISOString()}::timestamptz`;
}

/** A time in milliseconds, as a number with every driver. */
export function millisecondsOf(time: SQL): SQL {
  return sql`(extract(epoch from ${time}) * 1000)::float8`;
}

/** Now plus this time, by the database's clock, which all processes share. */
export function inMs(milliseconds: number): SQL {
  return sql`now() + ${Math.round(milliseconds)}::bigint * interval '1 millisecond'`;
}
