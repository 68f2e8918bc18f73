/** Tags of calls and sums by tag, written in the transaction of their calls. Batches of calls without tags do not come here. */
import { type SQL, sql } from 'drizzle-orm';
import { sliceRows } from '../../common/kit/key-slices.ts';
import { ceiling } from '../../common/rollups/check.ts';
import { type Columns, type Marks, marksFor } from '../../common/rollups/columns.ts';
import { filled, rowsOfColumns, wordingOf } from '../../common/rollups/named-parameters.ts';
import { type SumNames, SumsInMemory } from '../../common/rollups/sums-in-memory.ts';
import { column, hourMs } from '../../common/rollups/table.ts';
import type { EndRecord } from '../model/records.ts';
import { jsonOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import { addEnd, callSumNames } from './batch-columns.ts';
import { callRecordsIn } from './call-texts.ts';
import { addTagSpending, type TaggedCall } from './tag-spending.ts';

/** Only a record of a call with tags has it: within a text of JSON its quotation marks are escaped. */
export const tagsMember = ',"tags":"';

/** Different tags that an account has sums of in an hour; further values of a name are summed up as one, and so are further names. */
export const mostTags = 200;
export const mostNames = 50;
export const otherValues = '*';

const tagSums: SumNames = {
  name: 'tag_sums',
  dimensions: ['account_id', 'tag', 'key_id', 'model'],
  measures: callSumNames.measures,
};

/** Within the locks of the accounts, so that no other process adds tags of theirs at the same time. `present`: calls that have rows. */
export async function addTags(
  transaction: Runner,
  schema: string,
  text: string,
  present: readonly string[],
): Promise<void> {
  const known = new Set(present);
  const tagged: TaggedCall[] = [];
  for (const end of callRecordsIn(text).ends) {
    if (end.tags !== undefined && !known.has(end.id)) tagged.push({ end, tags: end.tags.split(',') });
    known.add(end.id);
  }
  if (tagged.length === 0) return;
  const table = tablesOf(schema);
  const rows = tagged.flatMap(({ end, tags }) => tags.map((tag) => ({ account_id: end.account, tag, id: end.id })));
  await transaction.execute(
    sql`insert into ${table('call_tags')} (account_id, tag, id)
        select account_id, tag, id from json_to_recordset(${jsonOf(rows)}) as given (account_id text, tag text, id uuid)`,
  );
  const sums = new SumsInMemory();
  const bounds = await boundsOf(transaction, table, tagged);
  for (const { end, tags } of tagged) {
    const within = new Set(tags.map((tag) => bounds.get(hourOf(end))!.take(tag)));
    for (const tag of within) addEnd(sums.groupOf(end.at, [end.account, tag, end.key ?? '', end.model]), end);
  }
  await addSums(transaction, table, sums, marksFor(text));
  await addTagSpending(transaction, schema, tagged);
}

// ---------------------------------------------------------------------------------------------------------------- bounds

const hourOf = ({ account, at }: EndRecord) => `${account} ${Math.floor(at / hourMs)}`;

/** The tags that an account has sums of in an hour. */
class HourOfTags {
  readonly #known: Set<string>;
  #count: number;

  /** `known`: those of the batch that have sums; `count`: all that have. */
  constructor(known: readonly string[], count: number) {
    this.#known = new Set(known);
    this.#count = count;
  }

  /** The tag by which a call with this one is summed up. */
  take(tag: string): string {
    if (this.#known.has(tag)) return tag;
    const others = `${tag.slice(0, tag.indexOf('='))}=${otherValues}`;
    if (this.#count < mostTags) return this.#add(tag);
    return this.#known.has(others) || this.#count < mostTags + mostNames ? this.#add(others) : otherValues;
  }

  #add(tag: string): string {
    if (!this.#known.has(tag)) this.#count++;
    this.#known.add(tag);
    return tag;
  }
}

/** By account and hour of these calls. */
async function boundsOf(
  transaction: Runner,
  table: ReturnType<typeof tablesOf>,
  tagged: readonly TaggedCall[],
): Promise<ReadonlyMap<string, HourOfTags>> {
  const hours = [...Map.groupBy(tagged, ({ end }) => hourOf(end))].map(([hour, calls]) => {
    const tags = new Set(
      calls.flatMap(({ tags: own }) => own.flatMap((tag) => [tag, `${tag.split('=', 1)[0]}=${otherValues}`])),
    );
    const { account, at } = calls[0]!.end;
    const from = Math.floor(at / hourMs) * hourMs;
    return { hour, account_id: account, from: time(from), until: time(from + hourMs), tags: [...tags] };
  });
  const within = sql`sums.account_id = given.account_id and sums.at >= given."from" and sums.at < given.until`;
  const found = await rowsOf<{ hour: string; known: string; count: number }>(
    transaction,
    sql`select hour, coalesce((select json_agg(tag) from json_array_elements_text(given.tags) as tag (tag)
            where exists (select from ${table('tag_sums')} as sums where ${within} and sums.tag = tag.tag)), '[]')::text as known,
          (select count(distinct tag)::int from ${table('tag_sums')} as sums where ${within}) as count
        from json_to_recordset(${jsonOf(hours)}) as given (hour text, account_id text, "from" timestamptz, until timestamptz, tags json)`,
  );
  return new Map(found.map(({ hour, known, count }) => [hour, new HourOfTags(JSON.parse(known) as string[], count)]));
}

// ------------------------------------------------------------------------------------------------------------------ sums

async function addSums(
  transaction: Runner,
  table: ReturnType<typeof tablesOf>,
  sums: SumsInMemory,
  marks: Marks,
): Promise<void> {
  const columns: Columns = { ...marks };
  sums.put(columns, marks, tagSums);
  const wording = wordingOf(sumsAdded(table));
  await transaction.execute(
    filled(
      wording,
      wording.names.map((name) => columns[name]),
    ),
  );
}

function sumsAdded(table: ReturnType<typeof tablesOf>): SQL {
  const typed = [
    { name: 'at', type: 'bigint' },
    ...tagSums.dimensions.map((name) => ({ name, type: 'text' })),
    ...tagSums.measures.map((name) => ({ name, type: 'bigint' })),
  ];
  const measures = tagSums.measures.map(column);
  const given = typed.map(({ name, type }) => ({ name: `${tagSums.name}.${name}`, type }));
  const list = sql.join([...tagSums.dimensions.map(column), ...measures], sql`, `);
  const sets = measures.map(
    (each) => sql`${each} = coalesce(kept.${each} + excluded.${each}, kept.${each}, excluded.${each})`,
  );
  return sql`
    insert into ${table('tag_sums')} as kept (at, ${list})
    select to_timestamp(at::float8 / 1000), ${list} from ${rowsOfColumns(
      given,
      typed.map(({ name }) => name),
    )} as given
    order by account_id, tag, at, key_id, model
    on conflict (account_id, tag, at, key_id, model) do update set ${sql.join(sets, sql`, `)}`;
}

// --------------------------------------------------------------------------------------------------------------- removal

/** No request that has a call runs for so long. */
export const longestMs = hourMs;

/** The quarter of an hour from which on all calls still have their tags, which go with the facts of requests. None of these calls is archived. */
export async function tagsKeptFrom(runner: Runner, schema: string): Promise<number> {
  const [row] = await rowsOf<{ before: string }>(
    runner,
    sql`select (extract(epoch from before) * 1000)::bigint::text as before from ${tablesOf(schema)('facts_forgotten')}`,
  );
  return row === undefined ? 0 : ceiling(Number.parseInt(row.before, 10) + longestMs);
}

/** Removes the tags of calls that arrived before the id `until`. Their sums stay. */
export async function forgetTags(runner: Runner, schema: string, until: string): Promise<void> {
  const tags = tablesOf(schema)('call_tags');
  for (let removed = sliceRows; removed === sliceRows; ) {
    const [row] = await rowsOf<{ removed: number }>(
      runner,
      sql`with old as (select account_id, tag, id from ${tags} where id < ${until}::uuid order by id limit ${sliceRows}::int),
          removed as (delete from ${tags} as tags using old
            where tags.account_id = old.account_id and tags.tag = old.tag and tags.id = old.id returning 1)
          select count(*)::int as removed from removed`,
    );
    removed = row!.removed;
  }
}
