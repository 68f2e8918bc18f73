/** Redeem codes as they are listed: whole batches, pages, and the batches themselves. */
import { sql } from 'drizzle-orm';
import type { CodeView, ShopAdmin } from '../common/domain/admin/shop.ts';
import type { Database } from '../common/domain/database.ts';
import { column, columnsOf, rowsOf, tableOf, timeColumn } from '../common/kit/sql.ts';
import { codeColumns } from './store.ts';

/** Most codes in one listing. */
const listed = 100_000;
const listedBatches = 1_000;

export type CodeLists = ReturnType<typeof openCodeLists>;

const batchColumns = columnsOf({
  batch: column<string>('batch'),
  codes: column<number>(sql`count(*)::int`),
  uses: column<number>(sql`coalesce(sum(used.uses), 0)::int`),
  createdAt: timeColumn('min(created_at)'),
});

const redemptionColumns = columnsOf({
  number: column<number>('number'),
  accountId: column<string>('account_id'),
  at: timeColumn('redeemed_at'),
});

export function openCodeLists(database: Database) {
  const { orm } = database;
  const table = (name: string) => tableOf(database, name);
  const columns = codeColumns(database);
  return {
    /** All codes or those of one batch, oldest first. */
    async list(batch: string | undefined): Promise<CodeView[]> {
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const rows = await rowsOf<never>(
        orm,
        sql`select ${columns.select} from ${table('codes')} as codes where ${chosen} order by codes.created_at, batch, prefix, id limit ${listed}::int`,
      );
      return rows.map(columns.read);
    },

    /** Newest first; `after`: id of the code behind which the rows begin. */
    async page(batch: string | undefined, limit: number, after: string | undefined): Promise<CodeView[]> {
      const all = table('codes');
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const behind =
        after === undefined
          ? sql``
          : sql`and (created_at, id) < (select created_at, id from ${all} where id = ${after}::uuid)`;
      const rows = await rowsOf<never>(
        orm,
        sql`select ${columns.select} from (select * from ${all} as each where ${chosen} ${behind}
              order by each.created_at desc, each.id desc limit ${limit}::int) as codes
            order by codes.created_at desc, codes.id desc`,
      );
      return rows.map(columns.read);
    },

    /** The latest first; `before`: the number of the one behind which the rows begin. */
    async redemptions(codeId: string, limit: number, before: string | undefined) {
      const rows = await rowsOf<never>(
        orm,
        sql`select ${redemptionColumns.select} from ${table('redemptions')} where code_id = ${codeId}::text::uuid
            and number < coalesce(${before ?? null}::text::int, 2147483647) order by number desc limit ${limit}::int`,
      );
      return rows.map(redemptionColumns.read);
    },

    /** Newest first. */
    async batches(): ReturnType<ShopAdmin['batches']> {
      const rows = await rowsOf<never>(
        orm,
        sql`select ${batchColumns.select}
            from ${table('codes')} as codes
            left join (select code_id, count(*) as uses from ${table('redemptions')} group by code_id) as used
              on used.code_id = codes.id
            group by batch order by min(codes.created_at) desc, batch limit ${listedBatches}::int`,
      );
      return rows.map(batchColumns.read);
    },
  };
}
