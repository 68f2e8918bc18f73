/** Finds the parts of a database that belong to gateways: their schemas, tables in an order in which they can be filled, and sequences. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';

export type Runner = Pick<Orm, 'execute'>;

export interface Migration {
  readonly plugin: string;
  readonly number: number;
  /** Exports of versions before the first release lack it. */
  readonly name?: string;
  readonly checksum: string;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

export interface Sequence {
  readonly name: string;
  readonly last: string;
  readonly called: boolean;
}

/** What of its rows a copy must have too: their number, and a sum over all of them in any order. */
export interface Sum {
  readonly rows: number;
  readonly sum: string;
}

export async function rowsOf<Row>(runner: Runner, statement: SQL): Promise<Row[]> {
  return [...((await runner.execute(statement)) as unknown as Row[])];
}

export const tableOf = (schema: string, table: string): SQL => sql`${sql.identifier(schema)}.${sql.identifier(table)}`;

/** A row as one line. Texts keep every character: a line feed in JSON stands outside of them. */
export const lineOfRow = sql`translate(row_to_json(each)::text, E'\n\r', '  ')`;

/** Schemas with tables of gateways. */
export async function schemasIn(runner: Runner): Promise<string[]> {
  const rows = await rowsOf<{ schema: string }>(
    runner,
    sql`select table_schema as schema from information_schema.columns
        where table_name = 'migrations' and column_name in ('plugin', 'number', 'name', 'checksum')
        group by table_schema having count(*) = 4 order by table_schema`,
  );
  return rows.map(({ schema }) => schema);
}

export function migrationsOf(runner: Runner, schema: string): Promise<Migration[]> {
  return rowsOf(
    runner,
    sql`select plugin, number, name, checksum from ${tableOf(schema, 'migrations')} order by applied_at, plugin, number`,
  );
}

/** Tables behind those that they refer to. */
export async function tablesIn(runner: Runner, schema: string): Promise<Table[]> {
  const tables = await rowsOf<{ name: string; columns: string[] }>(
    runner,
    sql`select relname::text as name, array(select attname::text from pg_catalog.pg_attribute
          where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = '' order by attnum) as columns
        from pg_catalog.pg_class where relnamespace = ${schema}::regnamespace and relkind = 'r' and relname <> 'migrations' order by relname`,
  );
  const references = await rowsOf<{ from: string; to: string }>(
    runner,
    sql`select one.relname::text as from, other.relname::text as to from pg_catalog.pg_constraint
        join pg_catalog.pg_class as one on one.oid = conrelid join pg_catalog.pg_class as other on other.oid = confrelid
        where contype = 'f' and one.relnamespace = ${schema}::regnamespace and conrelid <> confrelid`,
  );
  const ordered: Table[] = [];
  const place = (table: Table) => {
    if (ordered.includes(table)) return;
    for (const { from, to } of references) if (from === table.name) place(tables.find(({ name }) => name === to)!);
    ordered.push(table);
  };
  for (const table of tables) place(table);
  return ordered;
}

export function sequencesIn(runner: Runner, schema: string): Promise<Sequence[]> {
  return rowsOf(
    runner,
    sql`select sequencename::text as name, coalesce(last_value, start_value)::text as last, last_value is not null as called
        from pg_catalog.pg_sequences where schemaname = ${schema} order by sequencename`,
  );
}

/** Sixty bits of each row's digest are added up. */
export async function sumOf(runner: Runner, schema: string, table: string): Promise<Sum> {
  const [row] = await rowsOf<{ rows: number; sum: string }>(
    runner,
    sql`select count(*)::int as rows, coalesce(sum(('x' || left(md5(${lineOfRow}), 15))::bit(60)::bigint), 0)::text as sum
        from ${tableOf(schema, table)} as each`,
  );
  return row!;
}

/** A table with rows that no start makes by itself; undefined: the schema is empty, or is not there. */
export async function filledTable(runner: Runner, schema: string): Promise<string | undefined> {
  const tables = await rowsOf<{ name: string }>(
    runner,
    // Tables with at most one row (their key is a truth value), secrets that a start draws, and announcements do not count.
    sql`select relname::text as name from pg_catalog.pg_class
        where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = ${schema}) and relkind = 'r'
          and relname not in ('migrations', 'changes') and relname not like '%\\_settings'
          and not exists (select from pg_catalog.pg_index join pg_catalog.pg_attribute on attrelid = indrelid and attnum = indkey[0]
            where indrelid = pg_class.oid and indisprimary and indnkeyatts = 1 and atttypid = 'boolean'::regtype)`,
  );
  if (tables.length === 0) return undefined;
  const each = tables.map(({ name }) => sql`(select ${name}::text as name from ${tableOf(schema, name)} limit 1)`);
  const [filled] = await rowsOf<{ name: string }>(
    runner,
    sql`select name from (${sql.join(each, sql` union all `)}) as filled limit 1`,
  );
  return filled?.name;
}
