/** SQL of the rows of calls: made from journal text, with the facts of their requests, which may also come later or be removed. */
import { type SQL, sql } from 'drizzle-orm';
import type { CallRows } from '../../common/domain/call-facts.ts';
import type { Database } from '../../common/domain/database.ts';
import { firstIdAt } from '../../common/kit/arrival.ts';
import { rowsOf, tablesOf, time } from './sql.ts';

/** The columns that are no money: they may be added later, and are removed. */
const factColumns = [
  ...['operation', 'protocol', 'asked_model', 'last_provider', 'last_model', 'streamed', 'status', 'outcome', 'tries'],
  ...['error_kind', 'error_code', 'first_byte_ms', 'total_ms', 'bytes_in', 'bytes_out', 'dropped', 'story'],
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

/**
 * The ends of calls, and the facts of requests, in the lines `CRC FIRST [RECORD, …]`. Kinds are left out rather than chosen: the
 * planner takes what is chosen for a row or two, and would compare each of them with each.
 */
export function recordsIn(text: string): SQL {
  return sql`
    select record.* from rows from (json_to_recordset(${arrayOf(text)}::text::json) as (
      kind text, id uuid, at bigint, "heldAt" bigint, account text, key text, model text, plan text, input bigint,
      held bigint, cost bigint, usage jsonb, estimated boolean, terminal boolean, reason text, finish text,
      "upstreamId" text, price json, ratio text, version text, tier text, own bigint, absorbed bigint, attempts json,
      operation text, protocol text, asked text, provider text, target text, streamed boolean, status smallint, outcome text,
      "errorKind" text, "errorCode" text, tries smallint, "firstByteMs" real, "totalMs" real, "bytesIn" integer,
      "bytesOut" bigint, dropped text[], story text
    )) with ordinality as record (kind, id, at, "heldAt", account, key, model, plan, input, held, cost, usage, estimated, terminal,
      reason, finish, "upstreamId", price, ratio, version, tier, own, absorbed, attempts, operation, protocol, asked, provider,
      target, streamed, status, outcome, "errorKind", "errorCode", tries, "firstByteMs", "totalMs", "bytesIn", "bytesOut", dropped,
      story, position)
    where kind not in ('HOLD', 'SENT', 'EXTEND', 'PROGRESS')`;
}

/** One array of the lines' records: the database would look at each character to take lines apart. */
function arrayOf(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '');
  return `[${lines.map((line) => line.slice(line.indexOf('[') + 1, line.lastIndexOf(']'))).join(',')}]`;
}

/** Of two ends of one call the first. */
export const ends = sql`
  select distinct on (id) *, attempts->-1->>'provider' as "sentTo", attempts->-1->>'model' as "sentModel"
  from records where kind <> 'FACTS' order by id, position`;
export const factsWhere = (areKept: boolean): SQL =>
  sql`select distinct on (id) * from records where kind not in ('SETTLE', 'VOID') and ${sql.raw(String(areKept))} order by id, position`;

const factValues = sql`facts.streamed, facts.status, facts.outcome, facts."errorKind", facts."errorCode", facts.tries,
    facts."firstByteMs", facts."totalMs", facts."bytesIn", facts."bytesOut", facts.dropped, facts.story`;

export const callRows = sql`
  (id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes, estimated_input, held, cost, own_cost,
    absorbed, estimated, terminal, finish, upstream_id, price, price_version, tier, ratio, attempts, held_at, created_at,
    operation, protocol, asked_model, last_provider, last_model, streamed, status, outcome, error_kind, error_code, tries,
    first_byte_ms, total_ms, bytes_in, bytes_out, dropped, story)
  select given.id, given.account, given.key, given.model, given.plan, given.kind = 'SETTLE', given.reason,
    given."sentTo", given."sentModel", given.usage, given.input, given.held, coalesce(given.cost, 0),
    given.own, coalesce(given.absorbed, 0), coalesce(given.estimated, false), coalesce(given.terminal, false), given.finish,
    given."upstreamId", given.price, given.version, given.tier, given.ratio, given.attempts,
    to_timestamp(coalesce(given."heldAt", given.at) / 1000.0), to_timestamp(given.at / 1000.0),
    facts.operation, facts.protocol, nullif(facts.asked, given.model), nullif(facts.provider, given."sentTo"),
    nullif(facts.target, given."sentModel"), ${factValues}
  from given left join facts using (id) order by given.position`;

/** What is summed up of a row: to hand the whole row on would cost more than the sums. */
export const summed = sql`calls.id, calls.account_id, calls.key_id, calls.model, calls.provider, calls.settled, calls.cost,
  calls.own_cost, calls.absorbed, calls.classes, calls.created_at, calls.operation, calls.outcome, calls.status, calls.first_byte_ms, calls.total_ms,
  calls.asked_model, calls.last_provider`;

/** Adds request facts to call rows that an earlier batch inserted. */
export function completedRows(table: (name: string) => SQL): SQL {
  return sql`
    update ${table('calls')} as calls set operation = facts.operation, protocol = facts.protocol,
      asked_model = nullif(facts.asked, calls.model), last_provider = nullif(facts.provider, calls.provider),
      last_model = nullif(facts.target, calls.target_model),
      (streamed, status, outcome, error_kind, error_code, tries, first_byte_ms, total_ms, bytes_in, bytes_out, dropped, story)
        = row (${factValues})
    from facts where calls.id = facts.id and calls.status is null and not exists (select from called where called.id = facts.id)
    returning ${summed}`;
}

const told = sql`account_id::uuid as account_id, key_id::uuid as key_id, coalesce(asked_model, model) as model,
  coalesce(last_provider, provider) as provider, operation, outcome, status, first_byte_ms, total_ms,
  to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint::float8 / 1000) as received_at`;

/** A part of the statement: the requests that it writes the facts of, as rows of the view. */
export const toldRequests = sql`
  told as (select ${told} from called where status is not null union all select ${told} from completed)`;

/** Maximum number of rows changed by one statement. */
const slice = 2_000;
/** No request that has a call runs for so long. */
const longestMs = 3_600_000;

export function openCallRows({ orm, schema }: Database): CallRows {
  const table = tablesOf(schema);
  return {
    view: table('call_requests'),
    forgetFacts: async (before) => {
      const until = firstIdAt(before);
      const [known] = await rowsOf<{ before: string }>(
        orm,
        sql`select (extract(epoch from before) * 1000)::bigint::text as before from ${table('facts_forgotten')}`,
      );
      let from = firstIdAt(known === undefined ? 0 : Number.parseInt(known.before, 10) - longestMs);
      while (from < until) from = await forgetSlice(orm, table, from, until);
      await orm.execute(
        sql`insert into ${table('facts_forgotten')} as known (before) values (${time(before)}::timestamptz)
            on conflict (one) do update set before = greatest(known.before, excluded.before)`,
      );
    },
  };
}

/** Removes the facts of some calls from the id `from` on; returns where to go on. */
async function forgetSlice(
  orm: Database['orm'],
  table: ReturnType<typeof tablesOf>,
  from: string,
  until: string,
): Promise<string> {
  const calls = table('calls');
  const [row] = await rowsOf<{ next: string }>(
    orm,
    sql`select id::text as next from ${calls} where id >= ${from}::uuid and id < ${until}::uuid order by id offset ${slice}::int limit 1`,
  );
  const next = row?.next ?? until;
  await orm.execute(
    sql`update ${calls} set ${sql.raw(factColumns.map((name) => `${name} = null`).join(', '))}
        where id >= ${from}::uuid and id < ${next}::uuid and status is not null`,
  );
  return next;
}
