/** An engine that distributes rows by account can carry what grows with calls: keys of the catalogue, and the rows that a batch touches. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { applyBatch } from '../../../plugins/billing/ledger/batch.ts';
import type { JournalRecord } from '../../../plugins/billing/model/records.ts';
import { rowsOf } from '../../../plugins/billing/model/sql.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { requestSumsWith } from '../../../plugins/request-log/request-sums.ts';
import { distribute, distributionOf, tablesIn } from '../../../plugins/storage/distribute.ts';
import { migrationFolders } from '../../../plugins/storage/embedded/fresh.ts';
import { openDatabase } from '../../helpers/database.ts';
import { requestIdAt } from '../../helpers/fakes.ts';
import { lineOf } from '../billing/world.ts';

/** Tables that do not grow with calls: of the operator, of people, of money that comes in, and of processes. */
const small = words(`
  accounts alert_lease alert_messages alert_mutes alert_reports alert_tests alerts archive_state auth_settings body_recordings call_sums_state changes codes
  console_audit console_company_domains console_company_people console_company_providers console_config_nodes console_config_texts console_config_versions console_identities console_key_requests console_links console_passkeys
  console_people console_scim_group_members console_scim_groups console_scim_tokens console_scim_users console_sessions console_settings console_tokens console_two_factors console_verifications console_views disabled_upstreams
  facts_forgotten file_settings guardrail_digest_key identity journal_cursor key_digests keys mcp_connections mcp_visits member_invitations members migrations notice_announcements notice_look notice_prices payment_orders payment_takings
  payment_withdrawals projects redemptions replaced_secrets request_sums_state restores seal_settings statement_state task_secret vendor_secrets`);

/**
 * Those that stay on the coordinator although they have rows of accounts, each with the reason. None has a row for a call: the first is written by
 * movements outside of calls, the others live for minutes.
 */
const global = {
  movement_references: 'a second arrival of an event must be found whatever account it names',
  live_tokens: 'looked up by its digest before an account is known',
  realtime_secrets: 'looked up by its digest before an account is known',
};

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

test('every table that grows with calls has the account in each of its keys, except those with a reason', async () => {
  await using database = await openDatabase({ plugins: [...migrationFolders().keys()] });
  const tables = await tablesIn(database.orm, database.schema);
  const { distributed, small: copied } = distributionOf(tables);
  const rest = tables.map(({ name }) => name).filter((name) => !distributed.includes(name));
  assert.deepEqual(rest, [...small, ...Object.keys(global)].sort());
  assert.deepEqual(copied, [], 'what distributed tables refer to');
  assert.ok(distributed.includes('calls'));
});

test('statements join tables that grow by the account', () => {
  const root = new URL('../../../plugins/', import.meta.url);
  const found = globSync('**/*.ts', { cwd: fileURLToPath(root) }).flatMap((file) => {
    const text = readFileSync(new URL(file, root), 'utf8');
    // A join's condition ends where the next one, or another part of the statement, begins.
    const joins = text.matchAll(
      /\bjoin \$\{table\('(\w+)'\)\} as \w+\s+on\b([\s\S]*?)(?=\bjoin\b|\bwhere\b|\bgroup\b|\border\b|`)/g,
    );
    return [...joins].flatMap(([, table, on]) =>
      small.includes(table!) || on!.includes('account_id') ? [] : [`${file}: ${table}`],
    );
  });
  assert.deepEqual(found, []);
});

test('a server with the functions of such an engine gets each table once, and one without them is refused', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  const { orm, schema } = database;
  await assert.rejects(distribute(orm, schema), /storage\.distributed is set.*Citus/);
  const { distributed } = distributionOf(await tablesIn(orm, schema));
  const asked: string[] = [];
  /** Stands in for an engine: what is distributed is in its catalogue. */
  const engine = {
    execute: async (statement: SQL) => {
      const { sql: text, params } = new PgDialect().sqlToQuery(statement);
      if (text.includes('to_regproc')) return [{ isAble: true }];
      if (text.includes('pg_dist_partition')) return asked.map((line) => ({ name: /"([^".]+)"$/.exec(line)?.[1] }));
      const made = /create_\w+_table/.exec(text)?.[0];
      if (made === undefined) return orm.execute(statement);
      asked.push(`${made.slice(7, -6)} ${params[0]}`);
      return [];
    },
  } as unknown as typeof orm;
  await distribute(engine, schema);
  const named = (kind: string, name: string) => `${kind} "${schema}"."${name}"`;
  assert.deepEqual(
    asked,
    distributed.map((name) => named('distributed', name)),
  );
  const before = asked.length;
  await distribute(engine, schema);
  assert.equal(asked.length, before);
});

const at = Date.UTC(2026, 4, 1);
const accounts = [1, 2, 3].map((number) => `00000000-0000-7000-8000-00000000000${number}`);

let calls = 0;

function endOf(account: string): JournalRecord[] {
  const id = requestIdAt(at + ++calls);
  const called = {
    id,
    at,
    account,
    key: '00000000-0000-7000-8000-000000000011',
    model: 'm',
    plan: 'p',
    reason: 'answered',
    held: '9',
    heldAt: at,
    attempts: [[1, 0, 0]],
    provider: 'v',
    target: 't',
  };
  const charged = {
    price: { input: '7' },
    ratio: '1/1',
    version: 'v1',
    estimated: false,
    terminal: true,
    input: 5,
    cost: '7',
    usage: { input: 1 },
  };
  const facts = {
    operation: 'chat',
    streamed: false,
    status: 200,
    outcome: 'complete',
    tries: 1,
    totalMs: 5,
    bytesIn: 1,
    bytesOut: 1,
    story: '[]',
  };
  return [
    { kind: 'SETTLE', ...called, ...charged },
    { kind: 'FACTS', id, protocol: 'chat', ...facts },
  ] as unknown as JournalRecord[];
}

test('a batch touches rows of its accounts, and of small tables those that are named', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  const { orm, schema } = database;
  const table = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  await orm.execute(sql`insert into ${table('journal_cursor')} (journal, owner, updated_at) values ('n', 'o', now())`);
  const apply = (ids: readonly string[], applied: number) =>
    applyBatch(database, lineOf(1, ...ids.flatMap(endOf)).toString(), new Map(ids.map((id) => [id, money(0n)])), {
      ...{ journal: 'n', owner: 'o', applied, leaseMs: 1_000 },
      requestSums: requestSumsWith(() => table('call_requests')),
    });
  await apply(accounts, 1);
  const [before] = await rowsOf<{ id: string }>(orm, sql`select pg_current_xact_id()::text as id`);
  await apply(accounts.slice(1), 2);
  const touched: Record<string, string[]> = {};
  for (const { name, hasAccount } of await tablesIn(orm, schema)) {
    // Written or locked since.
    const account = hasAccount ? sql`account_id` : sql`'no account'`;
    const rows = await rowsOf<{ account: string }>(
      orm,
      sql`select distinct ${account} as account from ${table(name)} where greatest(xmin::text::bigint, xmax::text::bigint) > ${before!.id}::bigint order by 1`,
    );
    if (rows.length > 0) touched[name] = rows.map(({ account }) => account);
  }
  const others = Object.entries(touched).filter(([, ids]) => ids.includes('no account'));
  assert.deepEqual(
    others.map(([name]) => name),
    ['call_sums_state', 'journal_cursor', 'request_sums_state'],
  );
  const owned = Object.fromEntries(Object.entries(touched).filter(([, ids]) => !ids.includes('no account')));
  const own = accounts.slice(1);
  assert.deepEqual(owned, { balances: own, call_sums: own, calls: own, leases: own, request_sums: own });
});
