/** SQL helpers of this plugin: rows of any driver, tables of this schema. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';

/** The database or one transaction. */
export type Runner = Pick<Orm, 'execute'>;

/**
 * The rows of one statement. Drivers differ in the result's shape and in the type of a bigint, so statements cast
 * amounts to text and `BigInt` parses them.
 */
export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return (Array.isArray(result) ? result : (result as { rows: Row[] }).rows) as Row[];
}

/** Names tables of one schema: `table('ledger')` is `"main"."ledger"`. */
export function tablesOf(schema: string): (name: string) => SQL {
  return (name) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
}

/** A value as a JSON parameter. Passed as text, so that no driver encodes it a second time. */
export function jsonOf(value: unknown): SQL {
  return sql`${JSON.stringify(value)}::text::json`;
}

/** Wall-clock milliseconds as a database timestamp. */
export function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
