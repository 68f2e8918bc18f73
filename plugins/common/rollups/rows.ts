/** Rows of a statement, whatever the driver. */
import type { SQL } from 'drizzle-orm';
import type { Orm } from '../domain/database.ts';

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
