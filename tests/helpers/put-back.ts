/** A database that is put back: all rows of a schema as they were, as a dump and its restoration leave them. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../../plugins/common/domain/database.ts';

async function rowsOf<Row>(orm: Pick<Orm, 'execute'>, statement: ReturnType<typeof sql>): Promise<Row[]> {
  const answer = (await orm.execute(statement)) as unknown as Row[] | { rows: Row[] };
  return [...(Array.isArray(answer) ? answer : answer.rows)];
}

/** Takes a dump of every table of the schema. Resolves with what puts it back. */
export async function dump(orm: Orm, schema: string): Promise<() => Promise<void>> {
  const tables = await rowsOf<{ name: string }>(
    orm,
    sql`select tablename as name from pg_catalog.pg_tables where schemaname = ${schema} and tablename <> 'migrations'`,
  );
  const kept = new Map<string, string[]>();
  for (const { name } of tables) {
    const table = sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
    const rows = await rowsOf<{ row: string }>(orm, sql`select to_jsonb(t)::text as row from ${table} as t`);
    kept.set(
      name,
      rows.map(({ row }) => row),
    );
  }
  return () =>
    orm.transaction(async (transaction) => {
      await transaction.execute(sql`set local session_replication_role = replica`);
      for (const [name, rows] of kept) {
        const table = sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
        await transaction.execute(sql`delete from ${table}`);
        for (const row of rows)
          await transaction.execute(
            sql`insert into ${table} overriding system value select * from jsonb_populate_record(null::${table}, ${row}::jsonb)`,
          );
      }
    });
}
