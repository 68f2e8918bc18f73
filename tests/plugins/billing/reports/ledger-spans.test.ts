/** Statements of a span of time: the rows that a list of all movements has, whatever came late, and read without what lies outside. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { postRecords } from '../../../../plugins/billing/ledger/batch.ts';
import { callSums } from '../../../../plugins/billing/ledger/call-sums.ts';
import type { EndRecord } from '../../../../plugins/billing/model/records.ts';
import { type Runner, rowsOf } from '../../../../plugins/billing/model/sql.ts';
import { flowsOf } from '../../../../plugins/billing/reports/flows.ts';
import { type LedgerStore, ledgerPage } from '../../../../plugins/billing/reports/ledger-pages.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { requestIdAt } from '../../../helpers/fakes.ts';
import { fc } from '../../../helpers/properties.ts';

const minuteMs = 60_000;
const start = Date.UTC(2026, 5, 1);

/** A charge: when its row was written, by the clock of the database, and when its call ended, by that of its gateway. */
interface Charge {
  readonly account: 'alice' | 'bob';
  readonly writtenMs: number;
  readonly createdMs: number;
  readonly tookMs: number;
  readonly isArchived: boolean;
  /** Its id says nothing about its arrival. */
  readonly isForeign: boolean;
  /** Null: an earlier version wrote it. */
  readonly isLate: boolean | null;
}

const charge = fc.record({
  account: fc.constantFrom('alice' as const, 'bob' as const),
  // Since the row before.
  passed: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 0, max: 4 }) }, fc.integer({ min: 5, max: 60 })),
  waited: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 0, max: 10 }) },
    fc.integer({ min: 11, max: 400 }),
    fc.integer({ min: -400, max: -11 }),
  ),
  took: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 500 })),
  isArchived: fc.boolean(),
  isKnown: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
  isForeign: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true)),
});

type Drawn = typeof charge extends fc.Arbitrary<infer One> ? One : never;

function chargesOf(drawn: readonly Drawn[]): Charge[] {
  let writtenMs = start;
  return drawn.map(({ account, passed, waited, took, isArchived, isKnown, isForeign }) => {
    writtenMs += passed * minuteMs;
    return {
      ...{
        account,
        writtenMs,
        createdMs: writtenMs - waited * minuteMs,
        tookMs: took * minuteMs,
        isArchived,
        isForeign,
      },
      isLate: isKnown ? Math.abs(waited) > 10 : null,
    };
  });
}

async function put({ orm, schema }: TestDatabase, charges: readonly Charge[]): Promise<void> {
  const at = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  const columns = (row: Charge, seq: number) => ({
    ...{
      account_id: row.account,
      seq,
      id: row.isForeign ? randomUUID() : requestIdAt(row.createdMs - row.tookMs),
      balance_after: 1,
      is_late: row.isLate,
    },
    ...{ created_at: new Date(row.createdMs).toISOString(), cost: 1, archived: row.isArchived },
  });
  const rows = sql`json_to_recordset(${JSON.stringify(charges.map((row, index) => columns(row, index + 1)))}::text::json) as given
    (account_id text, seq bigint, id uuid, balance_after bigint, is_late boolean, created_at timestamptz, cost bigint, archived boolean)`;
  await orm.execute(sql`insert into ${at('archived_charges')} (account_id, seq, id, cost, balance_after, created_at, is_late)
    select account_id, seq, id, cost, balance_after, created_at, is_late from ${rows} where archived`);
  await orm.execute(sql`insert into ${at('calls')} (account_id, seq, id, cost, balance_after, created_at, is_late, model, settled, held, absorbed,
      estimated, terminal, attempts, held_at)
    select account_id, seq, id, cost, balance_after, created_at, is_late, 'm', true, 1, 0, false, true, '[]', created_at
    from ${rows} where not archived`);
}

/** What the migration does to the rows that it finds. */
async function markAsMigration({ orm, schema }: TestDatabase): Promise<void> {
  const migration = readFileSync(
    new URL('../../../../plugins/billing/migrations/006-late.sql', import.meta.url),
    'utf8',
  );
  const [update] = /^update [^;]*/m.exec(migration)!;
  const calls = sql`${sql.identifier(schema)}.calls`;
  await orm.execute(sql`alter table ${calls} disable trigger immutable`);
  await orm.execute(sql.raw(update.replaceAll('{schema}', `"${schema}"`)));
  await orm.execute(sql`alter table ${calls} enable trigger immutable`);
}

const storeOf = ({ orm, schema }: TestDatabase) =>
  ({ orm, schema, archive: { linesOf: async () => [] } }) as unknown as LedgerStore;

async function allOf(store: LedgerStore, account: string | undefined, span: object): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const { rows, next } = await ledgerPage(store, account, span, { limit: 7, after });
    found.push(...rows.map(({ seq }) => seq));
    if (next === undefined) return found;
    after = next;
  }
}

test('a list of a span has each charge of it once, newest first, late and archived ones and those of earlier versions too', async () => {
  // Near the end of some call.
  const edge = fc.record({ near: fc.nat(59), minutes: fc.integer({ min: -30, max: 30 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(charge, { minLength: 1, maxLength: 60 }),
      fc.option(fc.constantFrom('alice', 'bob'), { nil: undefined }),
      fc.array(fc.record({ from: edge, until: edge }, { requiredKeys: [] }), { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      async (drawn, account, spans, isMigrated) => {
        await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
        const charges = chargesOf(drawn);
        await put(
          database,
          isMigrated ? charges.map((row) => ({ ...row, isLate: row.isArchived ? null : false })) : charges,
        );
        if (isMigrated) await markAsMigration(database);
        const at = ({ near, minutes }: { readonly near: number; readonly minutes: number }) =>
          charges[near % charges.length]!.createdMs + minutes * minuteMs;
        for (const { from, until } of spans) {
          const span = {
            ...(from === undefined ? {} : { from: at(from) }),
            ...(until === undefined ? {} : { until: at(until) }),
          };
          const expected = charges.flatMap((row, index) =>
            (account === undefined || row.account === account) &&
            row.createdMs >= (span.from ?? -Infinity) &&
            row.createdMs < (span.until ?? Infinity)
              ? [String(index + 1)]
              : [],
          );
          assert.deepEqual(await allOf(storeOf(database), account, span), expected.toReversed());
        }
      },
    ),
    { numRuns: 20 },
  );
});

test('a charge is written as late if its call ended more than ten minutes before or after, by the clock of the database', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  const { orm, schema } = database;
  const now = Date.now();
  const end = (at: number, cost: string) => ({
    ...{
      kind: 'SETTLE',
      id: requestIdAt(at),
      account: 'alice',
      model: 'm',
      cost,
      held: '1',
      heldAt: at,
      at,
      attempts: [],
      reason: 'answered',
    },
    ...{ estimated: false, terminal: true, usage: {}, price: {}, version: 'v', ratio: '1/1' },
  });
  const ends = [0, -9, 9, -11, 11]
    .map((minutes) => end(now + minutes * minuteMs, '5'))
    .concat(end(now - 11 * minuteMs, '0'));
  await orm.transaction((transaction) => postRecords(transaction, schema, 'alice', ends as unknown as EndRecord[]));
  const rows = await rowsOf<{ late: boolean | null }>(
    orm,
    sql`select is_late as late from ${sql.identifier(schema)}.calls order by array_position(${sql.raw(`array['${ends.map(({ id }) => id).join("','")}']::uuid[]`)}, id)`,
  );
  assert.deepEqual(
    rows.map(({ late }) => late),
    [false, false, false, true, true, null],
  );
});

const count = 10_000;

/** A charge a minute, each thousandth ten hours late, each paid by its account's grant. */
async function putMany(database: TestDatabase): Promise<void> {
  const charges = Array.from({ length: count }, (_, index): Charge => {
    const isLate = index % 1_000 === 999;
    const writtenMs = start + index * minuteMs;
    const createdMs = writtenMs - (isLate ? 600 * minuteMs : 0);
    return {
      ...{ account: index % 2 === 0 ? 'alice' : 'bob', writtenMs, createdMs, tookMs: 0 },
      isLate,
      isArchived: false,
      isForeign: false,
    };
  });
  await put(database, charges);
  const { orm, schema } = database;
  const at = (name: string) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`;
  await orm.execute(sql`insert into ${at('grants')} (account_id, kind, amount, reason, reference, created_at, expires_at)
    select account_id, 'plan', 1000000, 'plan', account_id, min(created_at), 'infinity' from ${at('calls')} group by account_id`);
  await orm.execute(sql`insert into ${at('allocations')} (seq, grant_id, amount, held_at, account_id)
    select seq, grants.id, cost, held_at, calls.account_id from ${at('calls')} as calls join ${at('grants')} as grants on grants.account_id = calls.account_id`);
  for (const name of ['calls', 'allocations']) await orm.execute(sql`analyze ${at(name)}`);
}

/** Rows that a statement's scans have looked at. */
async function rowsReadBy({ orm }: TestDatabase, statement: SQL): Promise<number> {
  const plan = await rowsOf<Record<string, string>>(orm, sql`explain (analyze, timing off, costs off) ${statement}`);
  return plan.reduce((read, row) => {
    const line = row['QUERY PLAN']!;
    const passed = /(?:Index|Seq|Heap|Only) Scan.*actual rows=([\d.]+) loops=(\d+)/.exec(line);
    const removed = Number(/Rows Removed by Filter: (\d+)/.exec(line)?.[1] ?? 0);
    return read + removed + (passed === null ? 0 : Number(passed[1]) * Number(passed[2]));
  }, 0);
}

test('a page of a span reads its own rows and few beside them, of ten thousand', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  await putMany(database);
  let read = 0;
  const explain = async (statement: SQL) => {
    read = await rowsReadBy(database, statement);
    return [];
  };
  const store = { ...storeOf(database), orm: { execute: explain } } as unknown as LedgerStore;
  const [early, middle] = [start + 1_000 * minuteMs, start + 5_000 * minuteMs];
  for (const account of ['alice', undefined])
    for (const span of [
      { until: early },
      { from: middle, until: middle + 30 * minuteMs },
      { from: start + 9_990 * minuteMs },
    ]) {
      await ledgerPage(store, account, span, { limit: 50 });
      assert.ok(read < 1_000, `${account} ${JSON.stringify(span)}: ${read} rows`);
    }
});

test('the money of an hour reads what grants have paid for its calls, not for all ten thousand', async () => {
  await using database = await openDatabase({ plugins: ['request-log', 'billing'] });
  await putMany(database);
  const { orm, schema } = database;
  const until = start + count * minuteMs;
  const read: number[] = [];
  const execute = async (statement: SQL) => {
    const { sql: text } = new PgDialect().sqlToQuery(statement);
    if (/allocations.*draws on draws.account_id = entries/s.test(text))
      read.push(await rowsReadBy(database, statement));
    return orm.execute(statement);
  };
  const span = { from: until - 60 * minuteMs, until };
  const flows = await flowsOf({ execute } as unknown as Runner, schema, span, async () => callSums);
  // A late one is among the 60.
  assert.equal(flows.usedGiven, 59n);
  assert.equal(read.length, 3);
  assert.ok(Math.max(...read) < 1_000, read.join(', '));
});
