/** Statements of either driver, and values in them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database, Orm } from '../domain/database.ts';
import { type Money, money } from '../domain/money.ts';

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

/** A column of a statement, and how its value is read. */
interface Column<Value> {
  readonly select: SQL;
  readonly read: (stored: never) => Value;
}
/** A column by its name, or what is selected instead. */
type Source = string | SQL;
const sourceOf = (source: Source) => (typeof source === 'string' ? sql.raw(source) : source);

/** As both drivers return it. */
export function column<Value>(source: Source): Column<Value> {
  return { select: sourceOf(source), read: (stored: Value) => stored };
}
/** null is undefined. */
export function optional<Value>({ select, read }: Column<Value>): Column<Value | undefined> {
  return { select, read: (stored) => (stored === null ? undefined : read(stored)) };
}
/** Drivers parse JSON in ways of their own: it is read as text. */
export function jsonColumn<Value>(source: Source): Column<Value> {
  return { select: sql`${sourceOf(source)}::text`, read: (stored: string) => JSON.parse(stored) as Value };
}
export function usdColumn(source: Source): Column<Money> {
  return { select: sql`${sourceOf(source)}::text`, read: (stored: string) => money(BigInt(stored)) };
}
export function countColumn(source: Source): Column<number> {
  return { select: sql`${sourceOf(source)}::text`, read: Number };
}
/** In whole milliseconds. */
export function timeColumn(source: Source): Column<number> {
  return countColumn(sql`(extract(epoch from ${sourceOf(source)}) * 1000)::bigint`);
}

/** What a statement selects, each under its member's name, and what reads a row of it. */
export function columnsOf<Columns extends Readonly<Record<string, Column<unknown>>>>(columns: Columns) {
  type Read = { readonly [Name in keyof Columns]: ReturnType<Columns[Name]['read']> };
  const all = Object.entries(columns);
  const select = sql.join(
    all.map(([name, one]) => sql`${one.select} as ${sql.identifier(name)}`),
    sql`, `,
  );
  const read = (row: Readonly<Record<string, never>>) =>
    Object.fromEntries(all.map(([name, one]) => [name, one.read(row[name]!)])) as Read;
  return { select, read };
}
