/** Compares sums by tag with the tagged calls, for as long as their tags are kept. */
import { type SQL, sql } from 'drizzle-orm';
import { column, dayMs, type Range, rowsWithin, withinRange } from '../../common/rollups/table.ts';
import { callSums } from '../ledger/call-sums.ts';
import { otherValues, tagsKeptFrom } from '../ledger/tag-rows.ts';
import { type Runner, rowsOf, tablesOf } from '../model/sql.ts';

const keys = ['account_id', 'tag', 'at', 'key_id', 'model'].map(column);
/** At most so many differences of a day are read. */
const mostRead = 100;

/** Names sums by tag that are not those of their calls. `days`: of so many days, by chance, instead of all. */
export async function checkTagSums(runner: Runner, schema: string, days?: number): Promise<{ subject: string }[]> {
  const from = await tagsKeptFrom(runner, schema);
  const found: { subject: string }[] = [];
  for (const day of await taggedDays(runner, schema, days)) {
    const range: Range = [Math.max(day * dayMs, from), (day + 1) * dayMs];
    if (range[0] >= range[1]) continue;
    for (const wrong of [differences(schema, range), wrongSpending(schema, range)])
      found.push(...(await rowsOf<{ subject: string }>(runner, wrong)));
  }
  return found;
}

/** Days since the epoch with tagged calls or sums by tag; `most`: so many that have sums, by chance. */
export async function taggedDays(runner: Runner, schema: string, most?: number): Promise<number[]> {
  const table = tablesOf(schema);
  const day = (at: SQL) => sql`select floor(extract(epoch from ${at}) / 86400)::int as day`;
  const ofSums = sql`${day(sql`at`)} from ${table('tag_sums')}`;
  const found = await rowsOf<{ day: number }>(
    runner,
    most === undefined
      ? sql`${ofSums} union ${day(sql`${table('arrival_of')}(id)`)} from ${table('call_tags')} order by 1`
      : sql`select day from (select distinct day from (${ofSums}) as days) as days order by random() limit ${most}::int`,
  );
  return found.map((row) => row.day);
}

function differences(schema: string, range: Range): SQL {
  const table = tablesOf(schema);
  const list = (each: (measure: SQL) => SQL) =>
    sql.join(
      callSums.measures.map(({ name }) => each(column(name))),
      sql`, `,
    );
  const row = (name: string) => sql`row (${list((measure) => sql`coalesce(${sql.raw(name)}.${measure}, 0)`)})`;
  const measures = sql.join(
    callSums.measures.map(({ name, sum }) => sql`${sum} as ${column(name)}`),
    sql`, `,
  );
  const inHour = (
    tags: SQL,
  ) => sql`exists (select from ${table('tag_sums')} as sums where sums.account_id = compared.account_id
    and sums.at >= date_trunc('hour', compared.at, 'UTC') and sums.at < date_trunc('hour', compared.at, 'UTC') + interval '1 hour'
    and sums.tag in (${tags}))`;
  const others = sql`${otherValues}, split_part(compared.tag, '=', 1) || ${`=${otherValues}`}`;
  return sql`
    select concat_ws(' ', tag, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'), account_id, key_id, model) as subject from (
      select ${sql.join(keys, sql`, `)} from (
        select given.account_id, tags.tag, date_bin('15 minutes', created_at, timestamptz 'epoch') as at,
          coalesce(key_id, '') as key_id, model, ${measures}
        from ${rowsWithin(schema, callSums, range)}
        join ${table('call_tags')} as tags on tags.account_id = given.account_id and tags.id = given.id
        group by 1, 2, 3, 4, 5) as made
      full join (select * from ${table('tag_sums')} where ${withinRange(sql`at`, range)} and tag not like ${`%${otherValues}`}) as found
        using (${sql.join(keys, sql`, `)})
      where ${row('made')} is distinct from ${row('found')}) as compared
    where ${inHour(sql`compared.tag`)} or not ${inHour(others)}
    order by 1 limit ${mostRead}::int`;
}

/** What tags with a budget have cost, from the first whole quarter of an hour in which all of their calls count. */
function wrongSpending(schema: string, range: Range): SQL {
  const table = tablesOf(schema);
  const isKnown = sql`at >= date_bin('15 minutes', since, timestamptz 'epoch') + interval '15 minutes'`;
  return sql`
    select concat_ws(' ', 'budget of', tag, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"'), account_id) as subject from (
      select made.* from (
        select given.account_id, tags.tag, date_bin('15 minutes', created_at, timestamptz 'epoch') as at, sum(cost)::bigint as cost
        from ${rowsWithin(schema, callSums, range)}
        join ${table('call_tags')} as tags on tags.account_id = given.account_id and tags.id = given.id
        group by 1, 2, 3 having sum(cost) > 0) as made join ${table('budget_tags')} as known
        on known.account_id = made.account_id and known.tag = made.tag and ${isKnown}) as called
    full join (select kept.* from ${table('tag_spending')} as kept join ${table('budget_tags')} as known
        on known.account_id = kept.account_id and known.tag = kept.tag and ${isKnown}
      where ${withinRange(sql`at`, range)}) as spent using (account_id, tag, at)
    where called.cost is distinct from spent.cost
    order by 1 limit ${mostRead}::int`;
}
