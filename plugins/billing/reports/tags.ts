/** Sums of calls by their tags, and the names that an account has tags of. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { SpendTableQuery } from '../../common/domain/admin/ledger.ts';
import { instantText } from '../../common/kit/paging.ts';
import type { SumsRow } from '../../common/rollups/read.ts';
import { column, quarterMs, rowsWithin } from '../../common/rollups/table.ts';
import { callSumNames } from '../ledger/batch-columns.ts';
import { callSums } from '../ledger/call-sums.ts';
import { tagsKeptFrom } from '../ledger/tag-rows.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

const dimensionOf = { model: 'model', key: 'key_id', tag: 'tag' } as const;

type TagQuery = SpendTableQuery & { readonly tags: readonly string[] };

/** The sums of a table by tags, one row for each slot and group. */
export async function tagRows(runner: Runner, schema: string, query: TagQuery, ending: SQL): Promise<SumsRow[]> {
  const { accountId, keyIds, models, tags, bounds, by } = query;
  if (bounds.slice(0, -1).some((at) => at % quarterMs !== 0)) {
    const message = 'Calls are summed up by their tags for whole quarters of an hour: begin and divide the time there.';
    throw new GatewayError('invalid_request', message, { field: 'start_time', shouldRetry: false });
  }
  const instants = sql`array(select value::timestamptz
    from json_array_elements_text(${jsonOf(bounds.map(instantText))}) with ordinality order by ordinality)`;
  const groups = by.map((name) => column(dimensionOf[name as keyof typeof dimensionOf]));
  const group = groups.length === 0 ? sql`''` : sql`json_build_array(${sql.join(groups, sql`, `)})::text`;
  const totals = callSumNames.measures.map((name) => sql`sum(${column(name)})::text as ${column(name)}`);
  const [tag] = tags;
  const source = tags.length === 1 ? tablesOf(schema)('tag_sums') : await callsWithTags(runner, schema, query);
  const wanted = [
    sql`account_id = ${accountId} and ${tags.length === 1 ? withTag(sql`tag`, tag!) : sql`true`}`,
    sql`at >= ${instantText(bounds[0]!)}::timestamptz and at < ${instantText(bounds.at(-1)!)}::timestamptz`,
    ...(keyIds === undefined ? [] : [isAmong('key_id', keyIds)]),
    ...(models === undefined ? [] : [isAmong('model', models)]),
  ];
  return rowsOf<SumsRow>(
    runner,
    sql`select slot::text as slot, "group", ${sql.join(totals, sql`, `)}
        from (select width_bucket(at, ${instants}) as slot, ${group} as "group", * from ${source}
          where ${sql.join(wanted, sql` and `)}) as found
        group by slot, "group" ${ending}`,
  );
}

const isAmong = (name: string, values: readonly string[]) =>
  sql`${column(name)} in (select value from json_array_elements_text(${jsonOf(values)}))`;

/** `=` is in no name or value, and `>` comes right behind it. */
const withTag = (own: SQL, tag: string) =>
  tag.includes('=') ? sql`${own} = ${tag}` : sql`${own} >= ${`${tag}=`} and ${own} < ${`${tag}>`}`;

/** Calls that have all of these tags, each with the columns of a sum: of several tags together none are kept. */
async function callsWithTags(runner: Runner, schema: string, { accountId, tags, bounds }: TagQuery): Promise<SQL> {
  const [from, until] = [bounds[0]!, bounds.at(-1)!];
  const keptFrom = await tagsKeptFrom(runner, schema);
  if (from < keptFrom) {
    const since = new Date(keptFrom).toISOString();
    const message = `Calls have their tags since ${since}: several tags together are summed up from then on.`;
    throw new GatewayError('invalid_request', message, { field: 'start_time', shouldRetry: false });
  }
  const whole = tags.filter((tag) => tag.includes('='));
  const [grouped] = tags.filter((tag) => !tag.includes('='));
  const inOrder = grouped === undefined ? whole : [...whole, grouped];
  const name = (index: number) => sql.raw(`tag_${index}`);
  const joins = inOrder.map(
    (
      tag,
      index,
    ) => sql`join ${tablesOf(schema)('call_tags')} as ${name(index)} on ${name(index)}.account_id = ${accountId}
      and ${name(index)}.id = given.id and ${withTag(sql`${name(index)}.tag`, tag)}`,
  );
  const shown = grouped === undefined ? sql`${tags.join(',')}::text` : sql`${name(whole.length)}.tag`;
  const measures = callSums.measures.map(({ name, sum }) => sql`${sum} as ${column(name)}`);
  return sql`(select given.account_id, ${shown} as tag, created_at as at, coalesce(key_id, '') as key_id, model, ${sql.join(measures, sql`, `)}
    from ${rowsWithin(schema, callSums, [from, until])} ${sql.join(joins, sql` `)}
    where given.account_id = ${accountId} group by 1, 2, 3, 4, 5) as calls`;
}

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
