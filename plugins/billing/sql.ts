/** Small helpers of every statement in this plugin: rows of any driver, tables of this schema. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../core/vocabulary.ts';

/** What runs a statement: the database or one transaction of it. */
export type Runner = Pick<Orm, 'execute'>;

/**
 * The rows of one statement. Drivers differ in the result's shape and in what they make of a bigint, so statements cast
 * amounts to text and `BigInt` reads them.
 */
export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return (Array.isArray(result) ? result : (result as { rows: Row[] }).rows) as Row[];
}

/** Names tables of one schema: `table('ledger')` is `"main"."ledger"`. */
export function tablesOf(schema: string): (name: string) => SQL {
  return (name) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
}

/** A value as a JSON parameter. By way of text, so that no driver encodes it a second time. */
export function jsonOf(value: unknown): SQL {
  return sql`${JSON.stringify(value)}::text::json`;
}

/** Wall-clock milliseconds as a database reads them. */
export function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
