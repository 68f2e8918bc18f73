/** SQL of the rows of calls: made from journal text, with the facts of their requests, which may also come later or be removed. */
import { type SQL, sql } from 'drizzle-orm';
import type { CallRows } from '../../common/domain/call-facts.ts';
import type { Database } from '../../common/domain/database.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { keySlices, sliceRows } from '../../common/kit/key-slices.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import type { CallTexts } from './call-texts.ts';

/** The columns that are no money: they may be added later, and are removed. */
const factColumns = [
  ...['operation', 'protocol', 'asked_model', 'last_provider', 'last_model', 'streamed', 'status', 'outcome', 'tries'],
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

/** The end of a call; the first if it has two. Earlier versions named the target of the last attempt in `attempts` alone. */
export function endsIn({ ends }: CallTexts): SQL {
  return sql`
    select distinct on (id) *, coalesce(provider, attempts->-1->>'provider') as "sentTo", coalesce(target, attempts->-1->>'model') as "sentModel"
    from rows from (json_to_recordset(${ends}::text::json) as (
      kind text, id uuid, at bigint, "heldAt" bigint, account text, key text, model text, plan text, input bigint,
      held bigint, cost bigint, usage jsonb, estimated boolean, terminal boolean, reason text, finish text,
      "upstreamId" text, price json, ratio text, version text, tier text, own bigint, absorbed bigint, provider text, target text,
      attempts json
    )) with ordinality as record (kind, id, at, "heldAt", account, key, model, plan, input, held, cost, usage, estimated, terminal,
      reason, finish, "upstreamId", price, ratio, version, tier, own, absorbed, provider, target, attempts, position)
    order by id, position`;
}

export function factsIn({ facts }: CallTexts, areKept: boolean): SQL {
  return sql`
    select record.* from rows from (json_to_recordset(${areKept ? facts : '[]'}::text::json) as (
      id uuid, operation text, protocol text, asked text, provider text, target text, streamed boolean, status smallint,
      outcome text, "errorKind" text, "errorCode" text, tries smallint, "firstByteMs" real, "totalMs" real, "bytesIn" integer,
      "bytesOut" bigint, dropped text[], story text
    )) with ordinality as record (id, operation, protocol, asked, provider, target, streamed, status, outcome, "errorKind",
      "errorCode", tries, "firstByteMs", "totalMs", "bytesIn", "bytesOut", dropped, story, position)`;
}

/** Fewer timelines than this stay in the rows of their calls: a row of their own would take more. */
const fewTimelines = 8;

/** The timelines of a batch as one row, each in the place of its facts. */
export function sharedTimelines(table: (name: string) => SQL): SQL {
  return sql`
    insert into ${table('call_timelines')} (newest, stories)
    select (array_agg(id order by id desc))[1], array_agg(story order by position) from received_facts
    having count(story) >= ${sql.raw(String(fewTimelines))} returning id`;
}

const sharedRow = sql`(select id from shared_timelines)`;
const factValues = sql`facts.streamed, facts.status, facts.outcome, facts."errorKind", facts."errorCode", facts.tries,
    facts."firstByteMs", facts."totalMs", facts."bytesIn", facts."bytesOut", facts.dropped,
    case when ${sharedRow} is null then facts.story end, case when facts.story is not null then ${sharedRow} end,
    case when facts.story is not null and ${sharedRow} is not null then facts.position end`;

export const callRows = sql`
  (id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes, estimated_input, held, cost, own_cost,
    absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio, attempts, held_at, created_at,
    operation, protocol, asked_model, last_provider, last_model, streamed, status, outcome, error_kind, error_code, tries,
    first_byte_ms, total_ms, bytes_in, bytes_out, dropped, story, timelines, timeline)
  select given.id, given.account, given.key, given.model, given.plan, given.kind = 'SETTLE', given.reason,
    given."sentTo", given."sentModel", given.usage, given.input, given.held, coalesce(given.cost, 0),
    given.own, coalesce(given.absorbed, 0), coalesce(given.estimated, false), coalesce(given.terminal, false), given.finish,
    given."upstreamId", given.price, given.version, given.tier, given.ratio, given.attempts,
    to_timestamp(coalesce(given."heldAt", given.at) / 1000.0), to_timestamp(given.at / 1000.0),
    facts.operation, facts.protocol, nullif(facts.asked, given.model), nullif(facts.provider, given."sentTo"),
    nullif(facts.target, given."sentModel"), ${factValues}
  from given left join facts using (id) order by given.position`;

/** The summed columns of a row: to hand the whole row on would cost more than the sums. */
export const summed = sql`calls.id, calls.account_id, calls.key_id, calls.model, calls.provider, calls.settled, calls.cost,
  calls.own_cost, calls.absorbed, calls.classes, calls.created_at, calls.operation, calls.outcome, calls.status, calls.first_byte_ms, calls.total_ms,
  calls.error_kind, calls.error_code, calls.asked_model, calls.last_provider`;

/** Adds request facts to call rows that an earlier batch inserted. */
export function completedRows(table: (name: string) => SQL): SQL {
  return sql`
    update ${table('calls')} as calls set operation = facts.operation, protocol = facts.protocol,
      asked_model = nullif(facts.asked, calls.model), last_provider = nullif(facts.provider, calls.provider),
      last_model = nullif(facts.target, calls.target_model),
      (streamed, status, outcome, error_kind, error_code, tries, first_byte_ms, total_ms, bytes_in, bytes_out, dropped, story,
        timelines, timeline) = row (${factValues})
    from facts where calls.id = facts.id and calls.status is null and not exists (select from called where called.id = facts.id)
    returning ${summed}`;
}

const requestValues = sql`account_id::uuid as account_id, key_id::uuid as key_id, coalesce(asked_model, model) as model,
  coalesce(last_provider, provider) as provider, operation, outcome, status, error_kind, error_code, first_byte_ms, total_ms,
  to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at`;

/** A part of the statement: the requests that it writes the facts of, as rows of the view. */
export const requestsWritten = sql`
  requested as (select ${requestValues} from called where status is not null union all select ${requestValues} from completed)`;

/** No request that has a call runs for so long. */
const longestMs = 3_600_000;

export function openCallRows({ orm, schema }: Database): CallRows {
  const table = tablesOf(schema);
  return {
    view: table('call_requests'),
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
          select id from ${timelines} where id < coalesce((select id from ${timelines} where newest >= ${until}::uuid order by id limit 1),
            9223372036854775807) order by id limit ${sliceRows}::int
        ), removed as (delete from ${timelines} as timelines using old where timelines.id = old.id returning 1)
        select count(*)::int as removed from removed`,
    );
    removed = row!.removed;
  }
}
