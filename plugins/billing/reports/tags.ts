/** Sums of calls by their tags, and the names that an account has tags of. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { SpendTableQuery } from '../../common/domain/admin/ledger.ts';
import { instantText } from '../../common/kit/paging.ts';
import type { SumsRow } from '../../common/rollups/read.ts';
import { column, quarterMs } from '../../common/rollups/table.ts';
import { callSumNames } from '../ledger/batch-columns.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

const dimensionOf = { model: 'model', key: 'key_id', tag: 'tag' } as const;

/** The sums of a table by tags, one row for each slot and group. */
export function tagRows(
  runner: Runner,
  schema: string,
  { accountId, keyIds, models, tag, bounds, by }: SpendTableQuery & { readonly tag: string },
  ending: SQL,
): Promise<SumsRow[]> {
  if (bounds.slice(0, -1).some((at) => at % quarterMs !== 0)) {
    const message = 'Calls are summed up by their tags for whole quarters of an hour: begin and divide the time there.';
    throw new GatewayError('invalid_request', message, { field: 'start_time', shouldRetry: false });
  }
  const instants = sql`array(select value::timestamptz
    from json_array_elements_text(${jsonOf(bounds.map(instantText))}) with ordinality order by ordinality)`;
  const groups = by.map((name) => column(dimensionOf[name]));
  const group = groups.length === 0 ? sql`''` : sql`json_build_array(${sql.join(groups, sql`, `)})::text`;
  const totals = callSumNames.measures.map((name) => sql`sum(${column(name)})::text as ${column(name)}`);
  const wanted = [
    sql`account_id = ${accountId} and ${withTag(tag)}`,
    sql`at >= ${instantText(bounds[0]!)}::timestamptz and at < ${instantText(bounds.at(-1)!)}::timestamptz`,
    ...(keyIds === undefined ? [] : [isAmong('key_id', keyIds)]),
    ...(models === undefined ? [] : [isAmong('model', models)]),
  ];
  return rowsOf<SumsRow>(
    runner,
    sql`select slot::text as slot, "group", ${sql.join(totals, sql`, `)}
        from (select width_bucket(at, ${instants}) as slot, ${group} as "group", * from ${tablesOf(schema)('tag_sums')}
          where ${sql.join(wanted, sql` and `)}) as found
        group by slot, "group" ${ending}`,
  );
}

const isAmong = (name: string, values: readonly string[]) =>
  sql`${column(name)} in (select value from json_array_elements_text(${jsonOf(values)}))`;

/** `=` is in no name or value, and `>` comes right behind it. */
const withTag = (tag: string) =>
  tag.includes('=') ? sql`tag = ${tag}` : sql`tag >= ${`${tag}=`} and tag < ${`${tag}>`}`;

/** Each is looked up behind the one before. */
export async function tagNames(runner: Runner, schema: string, accountId: string): Promise<string[]> {
  const first = (behind: SQL) =>
    sql`select min(tag) as tag from ${tablesOf(schema)('tag_sums')} where account_id = ${accountId} ${behind}`;
  const rows = await rowsOf<{ name: string }>(
    runner,
    sql`with recursive names as (
          ${first(sql``)}
          union all
          select (${first(sql`and tag >= split_part(names.tag, '=', 1) || '>'`)}) from names where names.tag is not null
        ) select split_part(tag, '=', 1) as name from names where tag is not null`,
  );
  return rows.map(({ name }) => name).sort();
}
