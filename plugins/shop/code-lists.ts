/** Redeem codes as they are listed: whole batches, pages, and the batches themselves. */
import { sql } from 'drizzle-orm';
import type { CodeView, ShopAdmin } from '../common/domain/admin/shop.ts';
import type { Database } from '../common/domain/database.ts';
import { rowsOf } from '../common/kit/sql.ts';
import { type CodeRow, codeOf, columnsOf, milliseconds, numberOf } from './store.ts';

/** Most codes in one listing. */
const listed = 100_000;
const listedBatches = 1_000;

export type CodeLists = ReturnType<typeof openCodeLists>;

export function openCodeLists({ orm, schema }: Database) {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const columns = columnsOf(table);
  return {
    /** All codes or those of one batch, oldest first. */
    async list(batch: string | undefined): Promise<CodeView[]> {
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const rows = await rowsOf<CodeRow>(
        orm,
        sql`select ${columns} from ${table('codes')} as codes where ${chosen} order by codes.created_at, batch, prefix, id limit ${listed}::int`,
      );
      return rows.map(codeOf);
    },

    /** Newest first; `after`: id of the code behind which the rows begin. */
    async page(batch: string | undefined, limit: number, after: string | undefined): Promise<CodeView[]> {
      const all = table('codes');
      const chosen = batch === undefined ? sql`true` : sql`batch = ${batch}`;
      const behind =
        after === undefined
          ? sql``
          : sql`and (created_at, id) < (select created_at, id from ${all} where id = ${after}::uuid)`;
      const rows = await rowsOf<CodeRow>(
        orm,
        sql`select ${columns} from (select * from ${all} as each where ${chosen} ${behind}
              order by each.created_at desc, each.id desc limit ${limit}::int) as codes
            order by codes.created_at desc, codes.id desc`,
      );
      return rows.map(codeOf);
    },

    /** Newest first. */
    async batches(): ReturnType<ShopAdmin['batches']> {
      const rows = await rowsOf<{ batch: string; codes: number; uses: number; created_at: string }>(
        orm,
        sql`select batch, count(*)::int as codes, coalesce(sum(used.uses), 0)::int as uses, ${milliseconds('created_at', sql`min(created_at)`)}
            from ${table('codes')} as codes
            left join (select code_id, count(*) as uses from ${table('redemptions')} group by code_id) as used
              on used.code_id = codes.id
            group by batch order by min(codes.created_at) desc, batch limit ${listedBatches}::int`,
      );
      return rows.map(({ batch, codes, uses, created_at: createdAt }) => {
        return { batch, codes, uses, createdAt: numberOf(createdAt)! };
      });
    },
  };
}
