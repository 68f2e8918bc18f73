/** A ledger of holds and settlements becomes one of movements: whatever has happened, every sum and every line stays what it was. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { noFiles } from '../../../plugins/billing/archive/reader.ts';
import { audit } from '../../../plugins/billing/audit/audit.ts';
import { applyBatch } from '../../../plugins/billing/ledger/batch.ts';
import type { JournalRecord } from '../../../plugins/billing/model/records.ts';
import { rowsOf, tablesOf } from '../../../plugins/billing/model/sql.ts';
import { ledgerPage, type StatementRow } from '../../../plugins/billing/reports/ledger-pages.ts';
import { sqlStore } from '../../../plugins/billing/store.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { type OldHold, OldLedger, type OldLine } from './old-ledger.ts';
import { leaveWorlds, lineOf, temporaryDirectory } from './world.ts';

after(leaveWorlds);

const migrations = new URL('../../../plugins/billing/migrations/', import.meta.url);

/** The migrations as they were before the ledger of movements. */
function earlierMigrations(): URL {
  const directory = temporaryDirectory();
  for (const name of readdirSync(migrations).filter((file) => file < '013'))
    cpSync(new URL(name, migrations), join(directory, name));
  return pathToFileURL(`${directory}/`);
}

const earlier = earlierMigrations();
const names = ['alice', 'bob', 'carol'];
const keys = ['key-1', 'key-2'];

const step = fc.record({
  does: fc.constantFrom(
    ...([
      'hold',
      'hold',
      'hold',
      'extend',
      'settle',
      'settle',
      'settle',
      'void',
      'authorize',
      'credit',
      'credit',
    ] as const),
    ...(['debit', 'buy', 'refund', 'pay out', 'lapse', 'pass'] as const),
  ),
  who: fc.nat(2),
  pick: fc.nat(9),
  amount: fc.integer({ min: 1, max: 900 }),
  /** Hundredths of a hold that the call cost. */
  cost: fc.constantFrom(0, 1, 30, 99, 100, 160),
  tries: fc.nat(2),
  absorbed: fc.constantFrom(0, 7),
  lastsDays: fc.constantFrom(0, 0, 1, 30),
  dayLimit: fc.option(fc.constantFrom(0, 50, 500), { nil: undefined }),
  hours: fc.constantFrom(0, 1, 30),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Some of every kind, so that what follows has something to go on. */
function begin(old: OldLedger): void {
  for (const account of names) {
    old.credit(account, 5_000n, 0, undefined);
    old.credit(account, 400n, 1, 100n);
    old.hold(account, 90n, keys[0]!, false);
    old.end(old.open[0]!, 80n, 1, 7n);
    old.refund(old.calls.at(-1)!, 5n);
    old.debit(account, 20n);
    old.buy(account, 30n);
    old.payOut(account, 40n);
    old.now += 30 * 3_600_000;
    old.lapse(account);
  }
}

function run(old: OldLedger, given: Step): void {
  const account = names[given.who]!;
  const key = keys[given.pick % 2]!;
  const amount = BigInt(given.amount);
  const hold = old.open[given.pick % Math.max(1, old.open.length)];
  const call = old.calls[given.pick % Math.max(1, old.calls.length)];
  old.now += 1_000;
  if (given.does === 'pass') old.now += given.hours * 3_600_000;
  else if (given.does === 'hold') old.hold(account, amount, key, false);
  else if (given.does === 'authorize') old.hold(account, amount, key, true);
  else if (given.does === 'credit')
    old.credit(
      account,
      amount * 5n,
      given.lastsDays,
      given.dayLimit === undefined ? undefined : BigInt(given.dayLimit),
    );
  else if (given.does === 'debit') old.debit(account, amount);
  else if (given.does === 'buy') old.buy(account, given.cost === 0 ? 0n : amount);
  else if (given.does === 'pay out') old.payOut(account, amount);
  else if (given.does === 'lapse') old.lapse(account);
  else if (given.does === 'refund') call !== undefined && old.refund(call, amount);
  else if (hold === undefined) return;
  else if (given.does === 'extend') old.extend(hold, amount);
  else if (given.does === 'settle')
    old.end(hold, (hold.held * BigInt(given.cost)) / 100n, given.tries, BigInt(given.absorbed));
  else old.end(hold, undefined, given.tries, given.tries === 0 ? 0n : BigInt(given.absorbed));
}

/** Everything of these tables, in order. */
async function contentOf(
  { orm, schema }: TestDatabase,
  name: string,
  order: string,
  columns = '*',
): Promise<unknown[]> {
  return [
    ...(await rowsOf(orm, sql`select ${sql.raw(columns)} from ${tablesOf(schema)(name)} order by ${sql.raw(order)}`)),
  ];
}

/** Nothing is archived here. */
const archive = noFiles();

async function statementIn({ orm, schema }: TestDatabase, accountId: string): Promise<StatementRow[]> {
  const lines: StatementRow[] = [];
  for (let after: string | undefined; ; ) {
    const { rows, next } = await ledgerPage({ orm, schema, archive }, accountId, {}, { limit: 500, after });
    lines.push(...rows);
    if (next === undefined) return lines;
    after = next;
  }
}

const newNames: Record<string, string> = { SETTLE: 'CHARGE', LAPSE: 'EXPIRE' };

const reported = ({ kind, requestId, change, balanceAfter, at }: OldLine) => {
  return { kind: newNames[kind] ?? kind, requestId, change, balanceAfter, at };
};

async function checkBalances(
  database: TestDatabase,
  old: OldLedger,
  changes = new Map<string, bigint>(),
): Promise<void> {
  const { orm, schema } = database;
  const rows = await rowsOf<{ id: string; balance: string; held: string; moved: string }>(
    orm,
    sql`select account_id as id, balance::text, held::text, (select coalesce(sum(amount), 0)::text
          from ${tablesOf(schema)('movements')} as ledger where ledger.account_id = balances.account_id) as moved
        from ${tablesOf(schema)('balances')} as balances order by 1`,
  );
  const expected = [...old.accounts].toSorted().map(([id, { balance, held }]) => {
    const authorized = old.open.filter(({ account, isAuthorization }) => account === id && isAuthorization);
    const aside = authorized.reduce((sum, hold) => sum + hold.held, 0n);
    const whole = balance + held + (changes.get(id) ?? 0n);
    return { id, balance: `${whole - aside}`, held: `${aside}`, moved: `${whole}` };
  });
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    expected,
  );
}

async function checkCalls({ orm, schema }: TestDatabase, old: OldLedger): Promise<void> {
  const rows = await rowsOf<Record<string, unknown>>(
    orm,
    sql`select id, account_id as account, key_id as key, settled, reason, held::text, cost::text, own_cost::text as own, absorbed::text,
          attempts, (extract(epoch from held_at) * 1000)::bigint::text as "heldAt",
          (extract(epoch from created_at) * 1000)::bigint::text as at
        from ${tablesOf(schema)('calls')} order by id`,
  );
  const digits = (value: unknown) => (typeof value === 'bigint' || typeof value === 'number' ? `${value}` : value);
  const expected = old.calls
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((call) => Object.fromEntries(Object.entries(call).map(([name, value]) => [name, digits(value)])));
  const plain = JSON.parse(JSON.stringify(rows.map((row) => ({ ...row })))) as unknown;
  assert.deepEqual(plain, JSON.parse(JSON.stringify(expected)));
}

async function checkKeys(database: TestDatabase, old: OldLedger): Promise<void> {
  const since = old.now - 40 * 3_600_000;
  const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
  for (const key of keys)
    assert.deepEqual(await sqlStore(database).spentBy(key, since), {
      settled: sum(old.calls.filter((call) => call.key === key && call.at >= since).map(({ cost }) => cost)),
      ordered: sum(old.open.filter((hold) => hold.key === key && hold.isAuthorization).map(({ held }) => held)),
    });
}

/** Calls that ran meanwhile are charged by the journal, and what was ordered by the one that made it. */
async function proceed(database: TestDatabase, old: OldLedger): Promise<Map<string, bigint>> {
  const { orm, schema } = database;
  const changes = new Map<string, bigint>();
  const charge = ({ account }: OldHold, cost: bigint) => changes.set(account, (changes.get(account) ?? 0n) - cost);
  const node = { journal: 'node', owner: 'o' };
  await orm.execute(
    sql`insert into ${tablesOf(schema)('journal_cursor')} (journal, owner, updated_at) values ('node', 'o', now())`,
  );
  const running = old.open.filter(({ isAuthorization }) => !isAuthorization);
  const records = running.map((hold, index): JournalRecord => {
    const { id, account, key, held, at: heldAt } = hold;
    const ended = { id, at: old.now, account, key, model: 'm', heldAt, input: 1, held: `${held}` };
    if (index % 3 === 2) return { kind: 'VOID', ...ended, reason: 'not_sent', attempts: [] } as never;
    charge(hold, held);
    const target = { provider: 'vendor', model: 'vendor-m', credential: 'c', protocol: 'chat' };
    const attempt = { number: 1, ...target, startedAt: heldAt, result: 'answered', durationMs: 5, bearer: 'client' };
    return {
      ...{ kind: 'SETTLE', ...ended, cost: `${held}`, usage: { input: Number(held) }, price: { input: '1000000' } },
      ...{ ratio: '1/1', version: 'v1', estimated: false, terminal: true, reason: 'answered', attempts: [attempt] },
    } as never;
  });
  if (records.length > 0) {
    const accounts = new Map(running.map(({ account }) => [account, money(0n)]));
    const cursor = { ...node, applied: records.length, leaseMs: 30_000 };
    const text = lineOf(1, ...records).toString();
    // An answer may be lost: then it comes twice.
    for (let times = 0; times < 2; times++) await applyBatch({ orm, schema }, text, accounts, cursor);
  }
  for (const hold of old.open.filter(({ isAuthorization }) => isAuthorization))
    await sqlStore(database).transact(hold.account, old.now, async ({ tables }) => {
      const kept = await tables.authorizations.find(hold.id);
      assert.equal(kept!.held, hold.held);
      await tables.authorizations.remove(hold.id, kept!.held);
    });
  old.open.length = 0;
  return changes;
}

const allocated = 'seq, grant_id, amount, source, held_at';

test('any history of the earlier ledger keeps money, statements, calls, allocations, refunds and key spend, and calls continue', async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 150, size: 'max' }), async (steps) => {
      const old = new OldLedger();
      begin(old);
      for (const given of steps) run(old, given);
      const database = await openDatabase();
      await database.migrate('billing', earlier);
      await old.save(database);
      const before = [
        await contentOf(database, 'draws', 'seq, grant_id', allocated),
        await contentOf(database, 'refunds', 'grant_id'),
        await contentOf(database, 'pots', 'grant_id'),
        await contentOf(database, 'deposits', 'request_id'),
      ];
      await database.migrate('billing', migrations);
      assert.deepEqual((await audit(database.orm, database.schema)).violations, []);
      await checkBalances(database, old);
      for (const [account, lines] of old.lines) {
        const shown = await statementIn(database, account);
        assert.deepEqual(
          shown
            .filter(({ change }) => change !== 0n)
            .map(reported)
            .toReversed(),
          lines.map(reported),
        );
        for (const { kind } of lines) seen.add(kind);
      }
      await checkCalls(database, old);
      await checkKeys(database, old);
      assert.deepEqual(
        [
          await contentOf(database, 'allocations', 'seq, grant_id', allocated),
          await contentOf(database, 'refunds', 'grant_id'),
          await contentOf(database, 'grant_balances', 'grant_id'),
          await contentOf(database, 'deposits', 'request_id'),
        ],
        before,
      );
      const store = sqlStore(database);
      for (const { id, settled, attempts } of old.calls.slice(0, 5)) {
        const free = attempts.length === 0 ? 'free' : 'in_vain';
        assert.equal(await store.endOf(id), settled ? 'charged' : free);
      }
      assert.equal(await store.endOf(randomUUID()), undefined);
      const changes = await proceed(database, old);
      assert.deepEqual((await audit(database.orm, database.schema)).violations, []);
      await checkBalances(database, old, changes);
      await database.close();
    }),
    { numRuns: runsOf(3, 60), endOnFailure: true },
  );
  assert.deepEqual([...seen].toSorted(), ['CREDIT', 'DEBIT', 'LAPSE', 'PAYOUT', 'PURCHASE', 'REFUND', 'SETTLE']);
});
