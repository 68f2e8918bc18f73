/** SQL of the rows of calls: made from journal text, with the facts of their requests, which may also come later or be removed. */
import { type SQL, sql } from 'drizzle-orm';
import type { CallRows } from '../../common/domain/call-facts.ts';
import type { Database } from '../../common/domain/database.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { keySlices, sliceRows } from '../../common/kit/key-slices.ts';
import { named, rowsOfColumns } from '../../common/rollups/named-parameters.ts';
import { instantOf, nextOf, rowsOf, tablesOf } from '../model/sql.ts';
import { callColumns, timelineColumns } from './batch-columns.ts';
import { forgetTags, longestMs } from './tag-rows.ts';

/** The columns that are no money: they may be added later, and are removed. */
const factColumns = [
  ...[
    'operation',
    'protocol',
    'requested_model',
    'last_provider',
    'last_model',
    'streamed',
    'status',
    'outcome',
    'tries',
  ],
  ...['error_kind', 'error_code', 'first_byte_ms', 'total_ms', 'bytes_in', 'bytes_out', 'dropped', 'story'],
  ...['timelines', 'timeline'],
];

/** The others, which never change. */
export const moneyColumns = [
  ...[
    'id',
    'account_id',
    'key_id',
    'model',
    'plan',
    'person',
    'project',
    'settled',
    'reason',
    'provider',
    'target_model',
    'classes',
    'held',
    'cost',
  ],
  ...[
    'estimated_input',
    'own_cost',
    'absorbed',
    'estimated',
    'terminal',
    'finish',
    'upstream_id',
    'price',
    'price_version',
  ],
  ...['tier', 'ratio', 'attempts', 'held_at', 'created_at'],
];

/** Those that no line of an archived file has. */
export const ownColumns = ['seq', 'balance_after', 'is_long', 'is_late'];

/** Facts of calls that have rows already. */
export const lateFacts = sql`
    select * from json_to_recordset(${named('late', 'json')}) as facts (
      id uuid, operation text, protocol text, asked text, provider text, target text, streamed boolean, status smallint,
      outcome text, "errorKind" text, "errorCode" text, tries smallint, "firstByteMs" real, "totalMs" real, "bytesIn" integer,
      "bytesOut" bigint, dropped text[], story text)`;

/** The timelines of each account with many in the batch as one row. All rows have one number. */
export function sharedTimelines(table: (name: string) => SQL): SQL {
  return sql`
    insert into ${table('call_timelines')} (account_id, id, newest, stories)
    select account, (select id from timeline_number), newest, string_to_array(stories, ${named('nothing')}) from ${rowsOfColumns(timelineColumns, ['account', 'newest', 'stories'])} as shared`;
}

/** Drawn once, by the first row that needs it. */
export const timelineNumber = (schema: string): SQL => sql`select ${nextOf(schema, 'timeline_numbers')} as id`;

const factValues = sql`facts.streamed, facts.status, facts.outcome, facts."errorKind", facts."errorCode", facts.tries,
    facts."firstByteMs", facts."totalMs", facts."bytesIn", facts."bytesOut", facts.dropped, facts.story`;

const names = sql.raw(callColumns.map(({ name }) => name).join(', '));
const values = callColumns.map(({ name, cast }) => {
  const value = sql.identifier(name);
  if (cast === undefined) return value;
  return cast === 'time' ? instantOf(value) : sql`${value}::${sql.raw(cast)}`;
});

/**
 * Rows of the ends of calls, with the facts of their requests that came with them. A charge is a movement, which has a number, and is late
 * where it waited in a journal, or where the clock of its gateway is wrong: its number is not where its time would have it.
 */
export const callRows = (schema: string): SQL => sql`
  (${names}, seq, is_late, timelines)
  select ${sql.join(values, sql`, `)},
    case when balance_after is not null then ${nextOf(schema, 'movement_numbers')} end,
    case when balance_after is not null then abs(extract(epoch from ${instantOf(sql`created_at`)} - clock_timestamp())) > 600 end,
    case when timeline is not null then (select id from timeline_number) end
  from ${rowsOfColumns(callColumns)} as given`;

/** The summed columns of a row: to hand the whole row on would cost more than the sums. */
const summed = sql`calls.id, calls.account_id, calls.key_id, calls.model, calls.provider, calls.person, calls.project, calls.settled, calls.cost,
  calls.own_cost, calls.absorbed, calls.classes, calls.created_at, calls.operation, calls.outcome, calls.status, calls.first_byte_ms, calls.total_ms,
  calls.error_kind, calls.error_code, calls.requested_model, calls.last_provider`;

/** Adds request facts to call rows that an earlier batch inserted. Their ids apart: from JSON the planner expects so many that it reads the whole table. */
export function completedRows(table: (name: string) => SQL): SQL {
  return sql`
    update ${table('calls')} as calls set operation = facts.operation, protocol = facts.protocol,
      requested_model = nullif(facts.asked, calls.model), last_provider = nullif(facts.provider, calls.provider),
      last_model = nullif(facts.target, calls.target_model),
      (streamed, status, outcome, error_kind, error_code, tries, first_byte_ms, total_ms, bytes_in, bytes_out, dropped, story) = row (${factValues})
    from facts where calls.id = any (${named('lateIds', 'uuid[]')}) and calls.id = facts.id and calls.status is null
    returning ${summed}`;
}

const requestValues = sql`account_id::uuid as account_id, key_id::uuid as key_id, coalesce(requested_model, model) as model,
  coalesce(last_provider, provider) as provider, operation, outcome, status, error_kind, error_code, first_byte_ms, total_ms,
  person, project, to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at`;

/** A part of the statement: the requests with facts that came later than their calls, as rows of the view. */
export const requestsCompleted = sql`requested as (select ${requestValues} from completed)`;

export function openCallRows({ orm, schema }: Database): CallRows {
  const table = tablesOf(schema);
  return {
    view: table('call_requests'),
    tagged: (accountId, tag, first, end) =>
      sql`select tags.id from ${table('call_tags')} as tags where tags.account_id = ${accountId} and tags.tag = ${tag}
            and tags.id >= ${first}::uuid and tags.id < ${end}::uuid`,
    costOf: (id) => sql`(select cost from ${table('calls')} as charged where charged.id = ${id} and charged.settled)`,
    forgetFacts: async (before) => {
      const [known] = await rowsOf<{ before: string }>(
        orm,
        sql`select (extract(epoch from before) * 1000)::bigint::text as before from ${table('facts_forgotten')}`,
      );
      const from = firstIdAt(known === undefined ? 0 : Number.parseInt(known.before, 10) - longestMs);
      const until = firstIdAt(before);
      for await (const slice of keySlices(orm, table('calls'), { from, until }))
        await orm.execute(forgottenRows(table, slice));
      await forgetTimelines(orm, table, until);
      await forgetTags(orm, schema, until);
    },
  };
}

/** Removes the facts of some calls, and keeps how far that has come: an interrupted run continues from there. */
function forgottenRows(table: (name: string) => SQL, [from, until]: readonly [string, string]): SQL {
  const emptied = sql.raw(factColumns.map((name) => `${name} = null`).join(', '));
  return sql`
    with forgotten as (
      update ${table('calls')} set ${emptied} where id >= ${from}::uuid and id < ${until}::uuid and status is not null
    )
    insert into ${table('facts_forgotten')} as known (before) values (${table('arrival_of')}(${until}::uuid))
    on conflict (one) do update set before = greatest(known.before, excluded.before)`;
}

/** Removes the timelines of batches in which all requests arrived before the id `until`. They are in the order of their batches. */
async function forgetTimelines(orm: Database['orm'], table: ReturnType<typeof tablesOf>, until: string): Promise<void> {
  const timelines = table('call_timelines');
  for (let removed = sliceRows; removed === sliceRows; ) {
    const [row] = await rowsOf<{ removed: number }>(
      orm,
      sql`with old as (
          select account_id, id from ${timelines} where id < coalesce((select id from ${timelines} where newest >= ${until}::uuid order by id limit 1),
            9223372036854775807) order by id limit ${sliceRows}::int
        ), removed as (delete from ${timelines} as timelines using old where timelines.account_id = old.account_id and timelines.id = old.id returning 1)
        select count(*)::int as removed from removed`,
    );
    removed = row!.removed;
  }
}
