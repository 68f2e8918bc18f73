/** SQL helpers of this plugin: rows of any driver, tables of this schema. */
import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';

export { type Runner, rowsOf } from '../../common/kit/sql.ts';

/** Names tables of one schema: `table('ledger')` is `"main"."ledger"`. */
export function tablesOf(schema: string): (name: string) => SQL {
  return (name) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
}

/** The next number of a sequence. A value of its own would be looked up by name for each row. */
export function nextOf(schema: string, sequence: string): SQL {
  const name = `"${schema.replaceAll('"', '""')}".${sequence}`;
  return sql.raw(`nextval('${name.replaceAll("'", "''")}'::regclass)`);
}

/** A value as a JSON parameter. Passed as text, so that no driver encodes it a second time. */
export function jsonOf(value: unknown): SQL {
  return sql`${JSON.stringify(value)}::text::json`;
}

/** Wall-clock milliseconds as a database timestamp. */
export function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** A time as whole milliseconds in digits. */
export function millisecondsOf(time: SQL) {
  return sql`round(extract(epoch from ${time}) * 1000)::bigint::text`;
}

/** Wall-clock milliseconds in a bigint as a database timestamp. */
export function instantOf(milliseconds: SQLWrapper) {
  return sql`to_timestamp(${milliseconds}::float8 / 1000)`;
}
