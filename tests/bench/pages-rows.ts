/** Rows of a month for `bench:pages`: calls, requests and movements as a gateway writes them, made by PostgreSQL itself. */
import type { TestPostgres } from '../helpers/postgres.ts';

const timeoutMs = 800_000;
export const accountCount = 1_000;
const models = 30;
const providers = 8;
const spanMs = 30 * 86_400_000;

export interface Made {
  /** The account with a tenth of all calls. */
  readonly accountId: string;
  readonly until: number;
  readonly calls: number;
}

/** Fills the schema of a gateway whose tables are there. The largest account has a tenth of all calls, the median one 0.04 %. */
export function makeRows(server: Pick<TestPostgres, 'sql'>, schema: string, { accountId, until, calls }: Made): void {
  const run = (text: string) =>
    server.sql(
      `set search_path to "${schema}"; set maintenance_work_mem = '512MB'; set work_mem = '256MB';
    set synchronous_commit = off; ${text}`,
      timeoutMs,
    );
  const step = (name: string, text: string) => {
    const begun = Date.now();
    run(text);
    console.log(`${name}: ${((Date.now() - begun) / 1_000).toFixed(0)} s`);
  };
  run(`insert into accounts (id, name, plan, created_at)
      select md5('account' || n)::uuid, 'account ' || n, 'free', now() from generate_series(1, ${accountCount - 1}) as n;
    insert into keys (id, account_id, name, prefix, hash, created_at)
      select md5('key' || n || '/' || k)::uuid, case n when 0 then '${accountId}'::uuid else md5('account' || n)::uuid end, 'key ' || k,
        left(md5('p' || n || k), 12), md5('h' || n || k), now() from generate_series(0, ${accountCount - 1}) as n, generate_series(1, 2) as k;
    insert into balances (account_id, balance) select id::text, 1000000000000 from accounts on conflict do nothing`);
  const indexes = run(`select indexdef || ';' from pg_indexes join pg_class on relname = indexname
    join pg_index on indexrelid = pg_class.oid and not indisprimary
    where schemaname = '${schema}' and tablename in ('calls', 'requests', 'ledger') and relnamespace = '${schema}'::regnamespace`);
  run(`do $$ declare name text; begin for name in select indexname from pg_indexes join pg_class on relname = indexname
    join pg_index on indexrelid = pg_class.oid and not indisprimary
    where schemaname = '${schema}' and tablename in ('calls', 'requests', 'ledger') and relnamespace = '${schema}'::regnamespace
    loop execute 'drop index ' || name; end loop; end $$`);
  step('random', randomRows(until, accountId, calls));
  step('requests', requestRows);
  step('calls', callRows);
  step('ledger', ledgerRows);
  step('indices', `drop table random; ${indexes}`);
}

/** Rows end where they were made: those of as long before are repeated until now. Returns the time of the newest one before that. */
export function repeatRows(server: Pick<TestPostgres, 'sql'>, schema: string, until: number): number {
  const newest = Number(
    server.sql(`select extract(epoch from max(at)) * 1000 from (
      (select created_at as at from "${schema}".calls order by id desc limit 1) union all
      (select received_at from "${schema}".requests order by id desc limit 1)) as newest`),
  );
  const lengthMs = Math.ceil(until - newest);
  if (lengthMs <= 0) return until;
  const later = `interval '${lengthMs} milliseconds'`;
  const first = `${Math.floor(newest - lengthMs)
    .toString(16)
    .padStart(12, '0')}${'0'.repeat(20)}`;
  const id = `(lpad(to_hex(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint + ${lengthMs}), 12, '0')
    || substr(replace(id::text, '-', ''), 13))::uuid`;
  const number = `'seq', case when cost > 0 then nextval('"${schema}".movement_numbers') end`;
  for (const [table, times, others] of [
    ['calls', ['held_at', 'created_at'], [number]],
    ['requests', ['received_at'], []],
  ] as const)
    server.sql(
      `insert into "${schema}".${table} select (row).* from (
        select jsonb_populate_record(old, jsonb_build_object('id', ${id},
          ${[...others, ...times.map((name) => `'${name}', ${name} + ${later}`)].join(', ')})) as row
        from "${schema}".${table} as old where id >= '${first}'::uuid) as copies`,
      timeoutMs,
    );
  return newest;
}

/** Each account has two keys and uses four models; a tenth of a model's calls is served by its second provider. */
function randomRows(until: number, accountId: string, calls: number): string {
  return `create unlogged table random as
    select n, at, overlay(overlay(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || md5(n::text) placing '7' from 13 for 1)
        placing '8' from 17 for 1)::varchar(32)::uuid as id,
      case account when 0 then '${accountId}'::uuid else md5('account' || account)::uuid end as account_id,
      md5('key' || account || '/' || (1 + (r3 * 2)::int % 2))::uuid as key_id, 'model-' || model as model,
      'provider-' || ((model + case when r4 < 0.1 then 1 else 0 end) % ${providers}) as provider,
      case account % 5 when 0 then 'messages' when 1 then 'responses' else 'chat' end as operation,
      case when r5 < 0.95 then 200 when r5 < 0.97 then 429 when r5 < 0.98 then 400 when r5 < 0.99 then 503 else 200 end as status,
      case when r5 < 0.99 then 'complete' else 'client_left' end as outcome,
      exp(5.5 + 0.8 * (r1 + r2 + r3 + r4 - 2))::real as first_byte_ms, exp(8 + 1.5 * (r2 + r3 + r4 + r6 - 2))::real as total_ms,
      (10 ^ (4 + 3 * r6))::bigint as cost, (r1 * 5000)::int as input, (r2 * 800)::int as output
    from (select *, (account * 7 + floor(4 * r2 * r2)::int) % ${models} as model
      from (select n, timestamptz 'epoch' + (${until - spanMs} + (n::float8 / ${calls}) * ${spanMs}) * interval '1 millisecond' as at,
          floor(${accountCount} * random() ^ 3)::int as account, random() as r1, random() as r2, random() as r3, random() as r4,
          random() as r5, random() as r6
        from generate_series(1, ${calls}) as n) as drawn) as chosen`;
}

/** Those that were refused before anything was held. */
const requestRows = `insert into requests (id, received_at, operation, protocol, account_id, key_id, model, provider, streamed,
    status, outcome, error_kind, attempts, total_ms, bytes_in, bytes_out)
  select id, at, operation, operation, account_id, key_id, model, null, true, status, outcome, 'rate_limited', 0, 2, 4000, 300
  from random where status in (400, 429) order by n`;

const callRows = `insert into calls (id, account_id, key_id, model, plan, settled, reason, provider, target_model, classes, estimated_input, held,
    cost, own_cost, absorbed, estimated, terminal, finish, price, price_version, tier, ratio, attempts, held_at, created_at, bytes_out,
    bytes_in, first_byte_ms, total_ms, status, tries, streamed, operation, protocol, outcome, error_kind, story, seq, balance_after, is_long, is_late)
  select id, account_id::text, key_id::text, model, 'free', status < 400, case when status < 400 then 'answered' else 'not_sent' end, provider,
    model, jsonb_build_object('input', input, 'output', output), input, cost * 2, case when status < 400 then cost else 0 end,
    case when n % 50 > 0 then cost / 2 end, 0, false, true, 'stop', json_build_object('input', '3000000000', 'output', '15000000000'),
    'list-2026', null, '1/1', json_build_array(json_build_object('number', 1, 'provider', provider, 'model', model, 'credential', provider || '#1',
      'protocol', 'chat', 'startedAt', (extract(epoch from at) * 1000)::bigint, 'result', 'answered', 'status', status,
      'durationMs', total_ms::int, 'bearer', 'client')), at,
    at + total_ms * interval '1 millisecond', 9000, 4000, case when status < 400 then first_byte_ms end, total_ms, status, 1, true, operation,
    operation, outcome, case when status >= 400 then 'upstream_error' end, '[[1, "route.target", "the first"]]',
    case when status < 400 then nextval('movement_numbers') end, case when status < 400 then 1000000000000 - cost end, case when total_ms > 300000 then true end,
    case when status < 400 then false end
  from random where status not in (400, 429) order by n`;

const ledgerRows = `insert into ledger (account_id, kind, reference, amount, funding, balance_after, detail, created_at)
    select account_id::text, 'DEBIT', 'debit ' || n, -1000000, 1000000, 1000000000000, '{"reason": "bench"}', at from random where n % 1000 = 0;`;
