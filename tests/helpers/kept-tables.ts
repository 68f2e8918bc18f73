/** Schemas with the tables of plugins, for one test after another: emptying one takes a tenth of the time that making one takes. */
import { sql } from 'drizzle-orm';
import type { Orm } from '../../plugins/common/domain/database.ts';

/** https://www.postgresql.org/docs/current/errcodes-appendix.html */
const insufficientPrivilege = '42501';

/** How a schema was when its tables had just been made. */
interface Fresh {
  /** Its tables, columns, constraints and triggers. */
  readonly shape: string;
  /** Rows that migrations write, by table, as JSON. */
  readonly rows: ReadonlyMap<string, readonly string[]>;
}

export interface Taken {
  readonly schema: string;
  /** No one may use it from here on. */
  giveBack(): void;
}

export class KeptTables {
  readonly #orm: Orm;
  readonly #make: (plugins: readonly string[]) => Promise<string>;
  /** By list of plugins. */
  readonly #fresh = new Map<string, Fresh>();
  readonly #free = new Map<string, string[]>();
  readonly #made: string[] = [];

  /** `orm` runs statements, as a superuser or else no schema is used again; `make` makes a schema with the tables of these plugins, and resolves with its name. */
  constructor(orm: Orm, make: (plugins: readonly string[]) => Promise<string>) {
    this.#orm = orm;
    this.#make = make;
  }

  /** A schema with tables as their migrations leave them. */
  async take(plugins: readonly string[]): Promise<Taken> {
    const key = plugins.join();
    const free = this.#free.get(key) ?? [];
    this.#free.set(key, free);
    let schema = free.pop();
    while (schema !== undefined && !(await this.#isFitAgain(schema, this.#fresh.get(key)!))) schema = free.pop();
    if (schema === undefined) {
      schema = await this.#make(plugins);
      this.#made.push(schema);
      if (!this.#fresh.has(key)) this.#fresh.set(key, await this.#lookAt(schema));
    }
    return { schema, giveBack: () => void free.push(schema) };
  }

  async drop(): Promise<void> {
    for (const schema of this.#made.splice(0))
      await this.#orm.execute(sql`drop schema if exists ${sql.identifier(schema)} cascade`);
  }

  async #lookAt(schema: string): Promise<Fresh> {
    const rows = new Map<string, string[]>();
    for (const { name } of await this.#rows<{ name: string }>(
      sql`select tablename as name from pg_catalog.pg_tables where schemaname = ${schema} and tablename <> 'migrations'`,
    )) {
      const found = await this.#rows<{ row: string }>(
        sql`select to_jsonb(t)::text as row from ${sql.identifier(schema)}.${sql.identifier(name)} t`,
      );
      if (found.length > 0)
        rows.set(
          name,
          found.map(({ row }) => row),
        );
    }
    return { shape: await this.#shapeOf(schema), rows };
  }

  /** false: a test has changed its tables, or this role may not empty them. */
  async #isFitAgain(schema: string, fresh: Fresh): Promise<boolean> {
    if ((await this.#shapeOf(schema)) !== fresh.shape) return false;
    try {
      await this.#empty(schema, fresh);
      return true;
    } catch (error) {
      if (((error as Error).cause as { code?: string } | undefined)?.code === insufficientPrivilege) return false;
      throw error;
    }
  }

  async #empty(schema: string, fresh: Fresh): Promise<void> {
    await this.#orm.transaction(async (orm) => {
      // No trigger that keeps rows from being deleted, and no order in which foreign keys want it, counts now.
      await orm.execute(sql`set local session_replication_role = replica`);
      await orm.execute(sql.raw(emptying(schema)));
      for (const [table, rows] of fresh.rows)
        for (const row of rows) {
          const name = sql`${sql.identifier(schema)}.${sql.identifier(table)}`;
          await orm.execute(
            sql`insert into ${name} overriding system value select * from jsonb_populate_record(null::${name}, ${row}::jsonb)`,
          );
        }
    });
  }

  async #shapeOf(schema: string): Promise<string> {
    const [row] = await this.#rows<{ shape: string }>(sql`
      with ours as (select oid, relname, relkind, relnatts from pg_catalog.pg_class
        where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = ${schema}))
      select md5(concat_ws(';',
        (select string_agg(concat_ws(',', relname, relkind, relnatts), ';' order by relname) from ours),
        (select string_agg(concat_ws(',', relname, attname, atttypid, attnotnull, atthasdef), ';' order by relname, attnum)
          from pg_catalog.pg_attribute join ours on attrelid = ours.oid where relkind in ('r', 'p') and attnum > 0),
        (select string_agg(concat_ws(',', relname, conname), ';' order by relname, conname)
          from pg_catalog.pg_constraint join ours on conrelid = ours.oid),
        (select string_agg(concat_ws(',', relname, tgname, tgenabled, tgtype), ';' order by relname, tgname)
          from pg_catalog.pg_trigger join ours on tgrelid = ours.oid where not tgisinternal),
        (select string_agg(proname, ';' order by proname) from pg_catalog.pg_proc
          where pronamespace = (select oid from pg_catalog.pg_namespace where nspname = ${schema})))) as shape`);
    return row!.shape;
  }

  async #rows<Row>(statement: ReturnType<typeof sql>): Promise<Row[]> {
    const answer = (await this.#orm.execute(statement)) as unknown as Row[] | { rows: Row[] };
    return Array.isArray(answer) ? answer : answer.rows;
  }
}

/** One statement, since there are fifty tables. Sequences begin again; long tables are truncated, so that none is read slowly. */
const emptying = (schema: string) => `do $$
declare name text;
begin
  for name in select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_catalog.pg_tables
      where schemaname = '${schema}' and tablename <> 'migrations' loop
    if pg_catalog.pg_relation_size(name::regclass) > 262144 then execute 'truncate ' || name || ' cascade';
    else execute 'delete from ' || name;
    end if;
  end loop;
  for name in select quote_ident(schemaname) || '.' || quote_ident(sequencename) from pg_catalog.pg_sequences
      where schemaname = '${schema}' and last_value is not null loop
    execute 'alter sequence ' || name || ' restart';
  end loop;
end $$`;
