/** Rows of the kinds that a gateway leaves only after faults, payments or long times: one in each table that has none. */
import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../plugins/common/domain/database.ts';
import { rowsOf } from '../../plugins/common/kit/sql.ts';

/** What a column without a default has, by its type. */
const values: Readonly<Record<string, string>> = {
  text: "'x'",
  uuid: "'01a22427-0000-7000-8000-000000000000'",
  bigint: '1',
  integer: '1',
  smallint: '1',
  numeric: '1',
  boolean: 'false',
  json: "'{}'",
  jsonb: "'{}'",
  ARRAY: "'{}'",
  'timestamp with time zone': "'2026-11-28T12:00:00Z'",
};

/** Where that is not enough. Tables that refer to others come after them. */
const chosen: readonly (readonly [table: string, columns: Readonly<Record<string, string>>])[] = [
  ['alerts', { phase: "'running'", began_at: 'now()' }],
  ['alert_messages', { alert_id: '(select id from SCHEMA.alerts limit 1)' }],
  ['body_recordings', { until: "'2100-01-01T00:00:00Z'" }],
  ['request_bodies', { expires_at: "'2100-01-01T00:00:00Z'" }],
  [
    'batch_lines',
    {
      account_id: '(select account_id from SCHEMA.batches limit 1)',
      batch_id: '(select id from SCHEMA.batches limit 1)',
    },
  ],
  [
    'vendor_batches',
    {
      account_id: '(select account_id from SCHEMA.batches limit 1)',
      batch_id: '(select id from SCHEMA.batches limit 1)',
      state: "'ended'",
    },
  ],
  ['call_timelines', { stories: `'{"[]"}'` }],
  ['console_people', {}],
  ['console_sessions', { user_id: '(select id from SCHEMA.console_people limit 1)' }],
  ['console_identities', { user_id: '(select id from SCHEMA.console_people limit 1)' }],
  ['console_passkeys', { user_id: '(select id from SCHEMA.console_people limit 1)' }],
  ['console_two_factors', { user_id: '(select id from SCHEMA.console_people limit 1)' }],
  ['deposits', { account_id: '(select account_id from SCHEMA.grants limit 1)', held: '0' }],
  ['issued_ids', { expires_at: "'2100-01-01T00:00:00Z'" }],
  ['key_digests', { key_id: '(select id from SCHEMA.keys limit 1)' }],
  ['leases', { amount: '0', expires_at: "'2026-11-28T12:00:00Z'" }],
  ['restores', { accepted_at: 'now()', lost: "'[]'" }],
  ['vendor_secrets', { name: "'none'" }],
  ['payment_orders', { state: "'expired'" }],
  ['payment_withdrawals', { order_id: '(select id from SCHEMA.payment_orders limit 1)' }],
  ['payment_takings', { withdrawal: '(select id from SCHEMA.payment_withdrawals limit 1)' }],
];

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
}

/** An archived call needs its file, which no row has. */
const left = new Set(['archives', 'archived_charges', 'migrations']);

export async function otherRows({ orm, schema }: Database): Promise<void> {
  const columns = await rowsOf<Column>(
    orm,
    sql`select table_name as table, column_name as name, data_type as type from information_schema.columns
        join information_schema.tables using (table_schema, table_name)
        where table_schema = ${schema} and table_type = 'BASE TABLE' and is_nullable = 'NO' and column_default is null and is_identity = 'NO'
        order by table_name, ordinal_position`,
  );
  const byTable = Map.groupBy(columns, ({ table }) => table);
  const overridden = new Map(chosen);
  const order = [...byTable.keys()].filter((table) => !overridden.has(table) && !left.has(table));
  for (const table of [...chosen.map(([name]) => name), ...order]) {
    if (!byTable.has(table)) continue;
    const name = sql`${sql.identifier(schema)}.${sql.identifier(table)}`;
    if ((await rowsOf(orm, sql`select 1 from ${name} limit 1`)).length > 0) continue;
    const given = {
      ...Object.fromEntries(byTable.get(table)!.map((column) => [column.name, values[column.type]!])),
      ...overridden.get(table),
    };
    await orm.execute(insertOf(name, given, schema));
  }
}

/** What the gateway does with what is left of an expired grant, later than this script waits. */
export async function bookExpired({ orm, schema }: Database): Promise<void> {
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  await orm.execute(sql`
    with gone as (
      select account_id, grant_id, remaining, expires_at from ${table('grant_balances')} where remaining > 0 and expires_at < now()
    ), moved as (
      update ${table('balances')} as balances set balance = balance - gone.remaining, funding = funding + gone.remaining
      from gone where balances.account_id = gone.account_id returning balances.account_id, balance + held as total
    ), entered as (
      insert into ${table('ledger')} (account_id, kind, grant_id, amount, funding, balance_after, detail, created_at)
      select account_id, 'EXPIRE', grant_id, -remaining, remaining, total,
        json_build_object('reason', 'what was left of a grant expired', 'grant', grant_id), expires_at from gone join moved using (account_id)
    )
    update ${table('grant_balances')} as known set remaining = 0 from gone
    where known.account_id = gone.account_id and known.grant_id = gone.grant_id`);
}

function insertOf(table: SQL, given: Readonly<Record<string, string>>, schema: string): SQL {
  const names = Object.keys(given).map((name) => sql.identifier(name));
  const texts = Object.values(given).map((text) => sql.raw(text.replaceAll('SCHEMA', `"${schema}"`)));
  return sql`insert into ${table} (${sql.join(names, sql`, `)}) values (${sql.join(texts, sql`, `)})`;
}
