/** What the request log's retention removes of calls: in bounded steps that can be interrupted; money stays, and so does the speed of sums. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import { moneyColumns, openCallRows, ownColumns } from '../../../plugins/billing/ledger/call-rows.ts';
import { callSums } from '../../../plugins/billing/ledger/call-sums.ts';
import { rowsOf, tablesOf } from '../../../plugins/billing/model/sql.ts';
import { spendBetween } from '../../../plugins/billing/reports/sums.ts';
import type { Orm } from '../../../plugins/common/domain/database.ts';
import { firstIdAt } from '../../../plugins/common/kit/arrival.ts';
import { sliceRows } from '../../../plugins/common/kit/key-slices.ts';
import { rebuildSums } from '../../../plugins/common/rollups/rebuild.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;
const start = Date.UTC(2026, 8, 1);
/** Between two calls. */
const everyMs = 4 * minuteMs;

async function openLedger(): Promise<TestDatabase> {
  return openDatabase({ plugins: ['billing'] });
}

/** Calls with the facts of their requests, one every few minutes. */
async function addCalls({ orm, schema }: TestDatabase, from: number, days: number): Promise<number> {
  const count = (days * dayMs) / everyMs;
  const at = sql`to_timestamp((${from}::bigint + n * ${everyMs}::bigint) / 1000.0)`;
  await orm.execute(sql`
    insert into ${tablesOf(schema)('calls')} (id, account_id, key_id, model, settled, reason, provider, classes, held, cost, absorbed, estimated,
      terminal, upstream_id, price, price_version, ratio, attempts, held_at, created_at, status, outcome, operation, protocol, tries,
      first_byte_ms, total_ms, bytes_in, bytes_out, story)
    select (lpad(to_hex(${from}::bigint + n * ${everyMs}::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
      'alice', 'key', 'small', true, 'answered', 'one', '{"input": 3}', 0, 0, 0, false, true, md5(n::text), '{"input": "1"}', 'v1', '1/1',
      json_build_array(repeat('attempt ', 20)), ${at}, ${at} + interval '3 seconds', 200, 'complete', 'chat', 'chat', 1, 20.5, 3000, 100, 900,
      repeat('event ', 20)
    from generate_series(0, ${count}::int - 1) as n`);
  return count;
}

const moneyOf = async ({ orm, schema }: TestDatabase) =>
  (
    await rowsOf<{ digest: string }>(
      orm,
      sql`select md5(string_agg(row (${sql.raw(moneyColumns.join(', '))})::text, ' ' order by id)) as digest from ${tablesOf(schema)('calls')}`,
    )
  )[0]!.digest;

const countOf = async ({ orm, schema }: TestDatabase, condition: SQL) =>
  (
    await rowsOf<{ count: number }>(
      orm,
      sql`select count(*)::int as count from ${tablesOf(schema)('calls')} where ${condition}`,
    )
  )[0]!.count;

/** The database as callers see it, with every statement passed to `seen` before or instead. */
function watched(database: TestDatabase, seen: (statement: SQL) => Promise<void>): TestDatabase {
  const execute = async (statement: SQL) => {
    await seen(statement);
    return database.orm.execute(statement);
  };
  return { ...database, orm: { execute } as unknown as Orm };
}

test('the database protects the columns of money that the audit checks', async () => {
  const { orm, schema } = await openLedger();
  const guarded = await rowsOf<{ name: string }>(
    orm,
    sql`select attname::text as name from pg_trigger
      join pg_attribute on attrelid = tgrelid and attnum = any (tgattr::int2[])
      where tgrelid = (quote_ident(${schema}::text) || '.calls')::regclass and tgname = 'immutable'`,
  );
  assert.deepEqual(guarded.map(({ name }) => name).sort(), [...moneyColumns, ...ownColumns].sort());
});

test('facts are removed in bounded steps; an interruption at any of them loses none, and the rest does not start over', async () => {
  const database = await openLedger();
  const days = 20;
  const all = await addCalls(database, start, days);
  assert.ok(all > 3 * sliceRows);
  const money = await moneyOf(database);
  const until = start + 18 * dayMs;
  const wanted = sql`status is not null and id < ${firstIdAt(until)}::uuid`;
  let [left, most, statements] = [await countOf(database, wanted), 0, 0];
  const count = async () => {
    const now = await countOf(database, wanted);
    most = Math.max(most, left - now);
    left = now;
    statements += 1;
  };
  // A slice takes two, and each turn one before its slices and two behind them.
  for (let run = 1, hasEnded = false; !hasEnded; run++) {
    assert.ok(run < 14, `${left} rows are left after ${run} runs`);
    const allowed = Math.min(run, 5);
    statements = 0;
    const stopping = watched(database, async () => {
      await count();
      if (statements > allowed) throw new Error('The process has ended.');
    });
    hasEnded = await openCallRows(stopping)
      .forgetFacts(until)
      .then(
        () => true,
        (error: Error) => {
          assert.equal(error.message, 'The process has ended.');
          return false;
        },
      );
    await count();
    assert.equal(await moneyOf(database), money);
  }
  assert.ok(most > 0 && most <= sliceRows, `${most} rows in one statement`);
  assert.equal(await countOf(database, wanted), 0);
  assert.equal(await countOf(database, sql`status is not null`), all * (2 / days));
  // The next turn goes through the last hour alone.
  statements = 0;
  await openCallRows(watched(database, count)).forgetFacts(until + minuteMs);
  assert.ok(statements <= 6, `${statements} statements`);
  await database.close();
});

interface Plan {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
}

test('where new calls fill the space of removed facts, the sums of some minutes still read few pages', async () => {
  const database = await openLedger();
  const { orm, schema } = database;
  const calls = tablesOf(schema)('calls');
  await addCalls(database, start, 30);
  await orm.execute(sql`vacuum analyze ${calls}`);
  await openCallRows(database).forgetFacts(start + 15 * dayMs);
  await orm.execute(sql`vacuum ${calls}`);
  const later = start + 30 * dayMs;
  await addCalls(database, later, 10);
  await orm.execute(sql`analyze ${calls}`);
  await rebuildSums(orm, schema, callSums);
  const [size] = await rowsOf<{ pages: number }>(
    orm,
    sql`select (pg_relation_size(${`"${schema}".calls`}::regclass) / 8192)::int as pages`,
  );
  const plans: Plan[] = [];
  const explained = watched(database, async (statement) => {
    const [row] = await rowsOf<Record<string, [{ Plan: Plan }]>>(
      orm,
      sql`explain (analyze, buffers, format json) ${statement}`,
    );
    plans.push(row!['QUERY PLAN']![0].Plan);
  });
  for (const day of [20, 33, 38]) {
    plans.length = 0;
    const from = start + day * dayMs + minuteMs;
    const [slot] = await spendBetween(explained.orm, schema, {}, [from, from + 10 * minuteMs]);
    assert.equal(slot!.requests, 2);
    const pages = Math.max(...plans.map((plan) => plan['Shared Hit Blocks'] + plan['Shared Read Blocks']));
    assert.ok(pages < 60 && size!.pages > 600, `${pages} of ${size!.pages} pages for day ${day}`);
  }
  await database.close();
});
