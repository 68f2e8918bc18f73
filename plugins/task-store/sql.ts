/** Small helpers of every statement of this plugin. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../core/vocabulary.ts';

/** What runs a statement: the database or one transaction of it. */
export type Runner = Pick<Orm, 'execute'>;

export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  const result: unknown = await runner.execute(statement);
  return [...(Array.isArray(result) ? result : (result as { rows: Row[] }).rows)] as Row[];
}

/** A value as a JSON parameter, by way of text, so that no driver encodes it twice; undefined is null. */
export function jsonOf(value: unknown): SQL {
  return value === undefined ? sql`null::json` : sql`${withoutNul(JSON.stringify(value))}::text::json`;
}

/** A database's text cannot hold NUL. */
function withoutNul(json: string): string {
  return json.includes('\\u0000') ? json.replaceAll('\\u0000', '\\ufffd') : json;
}

/** Milliseconds of a time, as a number that every driver gives alike. */
export function millisecondsOf(column: SQL): SQL {
  return sql`(extract(epoch from ${column}) * 1000)::float8`;
}

/** Now, by the database's clock: the one that all nodes share. */
export function inMs(milliseconds: number): SQL {
  return sql`now() + ${Math.max(0, Math.round(milliseconds))}::bigint * interval '1 millisecond'`;
}
