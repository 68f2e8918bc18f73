/** SQL helpers of this plugin. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../../common/domain/database.ts';

/** The database or one of its transactions. */
export type Runner = Pick<Orm, 'execute'>;

export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return [...(Array.isArray(result) ? result : (result as { rows: Row[] }).rows)] as Row[];
}

export function tableOf({ schema }: Pick<Database, 'schema'>, name: string): SQL {
  return sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
}

/** A value as a JSON parameter, sent as text so that no driver encodes it twice; undefined is null. */
export function jsonOf(value: unknown): SQL {
  return value === undefined ? sql`null::json` : sql`${withoutNul(JSON.stringify(value))}::text::json`;
}

/** PostgreSQL text cannot hold NUL. */
function withoutNul(json: string): string {
  return json.includes('\\u0000') ? json.replaceAll('\\u0000', '\\ufffd') : json;
}

/** A time in milliseconds, as a number with every driver. */
export function millisecondsOf(column: SQL): SQL {
  return sql`(extract(epoch from ${column}) * 1000)::float8`;
}

/** Now plus this time, by the database's clock, which all nodes share. */
export function inMs(milliseconds: number): SQL {
  return sql`now() + ${Math.max(0, Math.round(milliseconds))}::bigint * interval '1 millisecond'`;
}
