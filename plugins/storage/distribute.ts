/**
 * Tables of a PostgreSQL that an extension distributes over many servers (Citus, or a hosted one with the same functions): what has the account
 * in each of its keys is distributed by it, what such tables refer to is copied to each server, and the rest stays on the coordinator.
 */
import { sql } from 'drizzle-orm';
import type { Orm } from '../common/domain/database.ts';

const distributionColumn = 'account_id';

export interface TableKeys {
  readonly name: string;
  /** Columns of its primary and unique keys, in order. */
  readonly keys: readonly (readonly string[])[];
  /** Whether it has the column by which rows are distributed. */
  readonly hasAccount: boolean;
  /** Tables that it refers to by keys without and with that column. */
  readonly refersTo: readonly { readonly name: string; readonly byAccount: boolean }[];
}

/** Every table of the schema, as the catalogue has it. */
export async function tablesIn(orm: Orm, schema: string): Promise<TableKeys[]> {
  const rows = await orm.execute(sql`
    select tables.relname as name,
      exists (select from pg_catalog.pg_attribute where attrelid = tables.oid and attname = ${distributionColumn}) as "hasAccount",
      coalesce((select json_agg(array(
          select coalesce(columns.attname::text, 'an expression') from unnest(keys.indkey) with ordinality as key (number, place)
          left join pg_catalog.pg_attribute as columns on columns.attrelid = tables.oid and columns.attnum = key.number order by place)
        order by keys.indexrelid) from pg_catalog.pg_index as keys where keys.indrelid = tables.oid and keys.indisunique), '[]') as keys,
      coalesce((select json_agg(json_build_object('name', others.relname, 'byAccount', exists (
          select from pg_catalog.pg_attribute where attrelid = tables.oid and attnum = any (foreigns.conkey) and attname = ${distributionColumn})))
        from pg_catalog.pg_constraint as foreigns join pg_catalog.pg_class as others on others.oid = foreigns.confrelid
        where foreigns.conrelid = tables.oid and foreigns.contype = 'f'), '[]') as "refersTo"
    from pg_catalog.pg_class as tables
    where tables.relnamespace = (select oid from pg_catalog.pg_namespace where nspname = ${schema}) and tables.relkind = 'r'
    order by 1`);
  return rows as unknown as TableKeys[];
}

/** By which tables rows of one account lie on one server. `small`: those that others refer to, on each server. */
export function distributionOf(tables: readonly TableKeys[]): { distributed: string[]; small: string[] } {
  const byAccount = new Set(
    tables
      .filter(({ hasAccount, keys }) => hasAccount && keys.every((key) => key.includes(distributionColumn)))
      .map(({ name }) => name),
  );
  const distributed = tables.filter(({ name }) => byAccount.has(name));
  const named = distributed.flatMap(({ refersTo }) =>
    refersTo.filter(({ name }) => !byAccount.has(name)).map(({ name }) => name),
  );
  return { distributed: distributed.map(({ name }) => name), small: [...new Set(named)] };
}

/** Distributes what is not distributed yet. Throws one sentence where the server cannot. */
export async function distribute(orm: Orm, schema: string): Promise<void> {
  const [server] = (await orm.execute(
    sql`select to_regproc('create_distributed_table') is not null as "isAble"`,
  )) as unknown as { isAble: boolean }[];
  if (!server!.isAble)
    throw new Error(
      'storage.distributed is set, and this PostgreSQL has no create_distributed_table: install Citus in the database, or unset it.',
    );
  const { distributed, small } = distributionOf(await tablesIn(orm, schema));
  const done = (await orm.execute(
    sql`select relname as name from pg_catalog.pg_dist_partition join pg_catalog.pg_class as tables on tables.oid = logicalrelid
        where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = ${schema})`,
  )) as unknown as { name: string }[];
  const known = new Set(done.map(({ name }) => name));
  const nameOf = (table: string) => `"${schema}"."${table}"`;
  for (const table of small)
    if (!known.has(table)) await orm.execute(sql`select create_reference_table(${nameOf(table)}::text::regclass)`);
  for (const table of distributed)
    if (!known.has(table))
      await orm.execute(
        sql`select create_distributed_table(${nameOf(table)}::text::regclass, ${distributionColumn}::text)`,
      );
}
