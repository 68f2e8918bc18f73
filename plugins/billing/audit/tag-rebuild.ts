/** Makes sums by tag again from the tagged calls, hour by hour. Sums of calls that have their tags no more stay. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../common/domain/database.ts';
import { column, dayMs, hourMs, namesOf, type Range, rowsWithin, withinRange } from '../../common/rollups/table.ts';
import { callSums } from '../ledger/call-sums.ts';
import { mostNames, mostTags, otherValues, tagsKeptFrom } from '../ledger/tag-rows.ts';
import { tablesOf } from '../model/sql.ts';
import { taggedDays } from './tags.ts';

/** `from`, in wall-clock milliseconds: days that end before stay as they are. */
export async function rebuildTagSums(orm: Orm, schema: string, from = Number.NEGATIVE_INFINITY): Promise<void> {
  for (const day of await taggedDays(orm, schema)) {
    const until = (day + 1) * dayMs;
    if (until <= from) continue;
    for (let hour = day * dayMs; hour < until; hour += hourMs) await remakeHour(orm, schema, hour);
  }
}

/** Batches wait for it, and tags that are to be removed. */
function remakeHour(orm: Orm, schema: string, hour: number): Promise<void> {
  const table = tablesOf(schema);
  return orm.transaction(async (transaction) => {
    // Which tags are removed is written there before they are.
    await transaction.execute(sql`lock table ${table('facts_forgotten')} in share mode`);
    const range: Range = [Math.max(hour, await tagsKeptFrom(transaction, schema)), hour + hourMs];
    if (range[0] >= range[1]) return;
    await transaction.execute(sql`select from ${namesOf(schema, callSums).state} for update`);
    await transaction.execute(sql`delete from ${table('tag_sums')} where ${withinRange(column('at'), range)}`);
    await transaction.execute(sumsOf(schema, range));
    await transaction.execute(sql`delete from ${table('tag_spending')} where ${withinRange(column('at'), range)}`);
    await transaction.execute(spendingOf(schema, range));
  });
}

/** As calls are summed up when they come: the first tags of an account in an hour by themselves, further ones by name. */
function sumsOf(schema: string, range: Range): SQL {
  const table = tablesOf(schema);
  const names = sql.join(
    callSums.measures.map(({ name }) => column(name)),
    sql`, `,
  );
  const measures = sql.join(
    callSums.measures.map(({ sum }) => sum),
    sql`, `,
  );
  const rows = rowsWithin(schema, callSums, range);
  const others = (tag: SQL) => sql`split_part(${tag}, '=', 1) || ${`=${otherValues}`}::text`;
  return sql`
    with tagged as materialized (
      select tags.account_id, tags.id, tags.tag from ${rows}
        join ${table('call_tags')} as tags on tags.account_id = given.account_id and tags.id = given.id),
      places as (
        select account_id, tag, row_number() over (partition by account_id order by min(id::text), tag) as place
          from tagged group by account_id, tag),
      names as (
        select account_id, ${others(sql`tag`)} as name, row_number() over (partition by account_id order by min(place)) as place
          from places where place > ${mostTags}::int group by 1, 2),
      summed as (
        select distinct tagged.account_id, tagged.id, case when places.place <= ${mostTags}::int then tagged.tag
            when names.place <= ${mostNames}::int then names.name else ${otherValues}::text end as tag
          from tagged join places using (account_id, tag)
            left join names on names.account_id = tagged.account_id and names.name = ${others(sql`tagged.tag`)})
    insert into ${table('tag_sums')} (account_id, tag, at, key_id, model, ${names})
    select given.account_id, tags.tag, date_bin('15 minutes', created_at, timestamptz 'epoch'), coalesce(key_id, ''), model, ${measures}
      from ${rows} join summed as tags on tags.account_id = given.account_id and tags.id = given.id
      group by 1, 2, 3, 4, 5`;
}

/** What tags with a budget have cost. */
function spendingOf(schema: string, range: Range): SQL {
  const table = tablesOf(schema);
  return sql`
    insert into ${table('tag_spending')} (account_id, tag, at, cost)
    select given.account_id, tags.tag, date_bin('15 minutes', created_at, timestamptz 'epoch'), sum(cost)
      from ${rowsWithin(schema, callSums, range)}
        join ${table('call_tags')} as tags on tags.account_id = given.account_id and tags.id = given.id
        join ${table('budget_tags')} as known on known.account_id = tags.account_id and known.tag = tags.tag
      group by 1, 2, 3 having sum(cost) > 0`;
}
