/** Whatever the journal brings, however often and in whatever order: the sums that are kept of calls are those of the calls. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { audit } from '../../../../plugins/billing/audit/audit.ts';
import { applyBatch } from '../../../../plugins/billing/ledger/batch.ts';
import { callSums } from '../../../../plugins/billing/ledger/call-sums.ts';
import type { JournalRecord } from '../../../../plugins/billing/model/records.ts';
import { tablesOf } from '../../../../plugins/billing/model/sql.ts';
import { spendBetween, spendBy, spendOfGroups, spendTable } from '../../../../plugins/billing/reports/sums.ts';
import type { ChargeFilter, SpendSums } from '../../../../plugins/common/domain/admin/ledger.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { checkSums } from '../../../../plugins/common/rollups/check.ts';
import { foldSums } from '../../../../plugins/common/rollups/fold.ts';
import { rebuildSums } from '../../../../plugins/common/rollups/rebuild.ts';
import { boundsOf } from '../../../../plugins/console/api/time-zone.ts';
import { openDatabase, type TestDatabase, testOnServer } from '../../../helpers/database.ts';
import { requestIdAt } from '../../../helpers/fakes.ts';
import { runsOf, testHistory } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';
import { isAmong } from '../../console/fakes/lists.ts';
import { leaveWorlds, lineOf } from '../world.ts';

after(leaveWorlds);

const hourMs = 3_600_000;
const start = Date.UTC(2026, 9, 20);
const days = 9;
const accounts = ['alice', 'bob'];
const keys = ['key-1', 'key-2', undefined];
const models = ['small', 'large'];
const providers = ['one', 'two'];

const call = fc.record({
  at: fc.integer({ min: 0, max: days * 24 * hourMs - 1 }),
  /** From the time in its id to its end: rows are found by that time unless it is long or below zero. Undefined: an id without a time. */
  took: fc.constantFrom(0, 1, 900, 299_999, 300_000, 300_001, 7 * hourMs, -1, -600_000, undefined),
  account: fc.constantFrom(...accounts),
  key: fc.constantFrom(...keys),
  model: fc.constantFrom(...models),
  provider: fc.constantFrom(...providers, undefined),
  charged: fc.constantFrom(true, true, false),
  cost: fc.constantFrom(0n, 1n, 1_000n, 10n ** 12n),
  own: fc.option(fc.constantFrom(0n, 7n), { nil: undefined }),
  absorbed: fc.constantFrom(0n, 5n),
  usage: fc.constantFrom({}, { input: 3 }, { input: 0, output: 9 }, { image: 1, input: 2, web_search: 4 }),
});
type Drawn = typeof call extends fc.Arbitrary<infer T> ? T : never;
type Call = Drawn & { readonly id: string };

const identified = (each: Drawn): Call => ({
  ...each,
  id: each.took === undefined ? randomUUID() : requestIdAt(start + each.at - each.took),
});

const batch = fc.record({
  calls: fc.array(call, { maxLength: 20 }),
  times: fc.constantFrom(1, 1, 2),
  again: fc.boolean(),
  richRows: fc.constantFrom(1, 8, 5_000),
  foldsTo: fc.option(fc.integer({ min: 0, max: days * 24 }), { nil: undefined }),
});
const question = fc.record({
  from: fc.integer({ min: 0, max: days * 24 * hourMs }),
  lasts: fc.integer({ min: 1, max: days * 24 * hourMs }),
  zone: fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Asia/Kathmandu', 'America/St_Johns'),
  minutes: fc.constantFrom(15, 60, 180, 1_440, 10_080),
  accountId: fc.option(fc.constantFrom(...accounts), { nil: undefined }),
  keyId: fc.option(fc.constantFrom('key-1', 'key-2'), { nil: undefined }),
  /** Those of a project, or of none. */
  keys: fc.option(
    fc.record({ ids: fc.subarray(['key-1', 'key-2', 'key-3']), not: fc.constantFrom(undefined, true as const) }),
    { nil: undefined },
  ),
  model: fc.option(fc.constantFrom(...models), { nil: undefined }),
  provider: fc.option(fc.constantFrom(...providers), { nil: undefined }),
});

function recordOf({ id, at, account, key, model, provider, charged, cost, own, absorbed, usage }: Call): JournalRecord {
  const target = { provider, model: 'theirs', credential: 'c', protocol: 'chat' };
  const attempt = { number: 1, ...target, startedAt: start + at, result: 'answered', durationMs: 5 };
  const ended = {
    id,
    at: start + at,
    account,
    key,
    model,
    held: `${cost}`,
    absorbed: `${absorbed}`,
    attempts: [attempt],
  };
  if (!charged) return { kind: 'VOID', ...ended, reason: 'refused' } as never;
  return {
    ...{ kind: 'SETTLE', ...ended, input: 1, cost: `${cost}`, own: own?.toString(), usage, price: {}, ratio: '1/1' },
    ...{ version: 'v1', estimated: false, terminal: true, reason: 'answered' },
  } as never;
}

const sum = (amounts: readonly bigint[]) => money(amounts.reduce((total, amount) => total + amount, 0n));

function sumsOf(all: readonly Call[]): SpendSums {
  const calls = all.filter(({ charged }) => charged);
  const usage: Record<string, number> = {};
  for (const each of calls)
    for (const [name, count] of Object.entries(each.usage)) usage[name] = (usage[name] ?? 0) + count;
  return {
    requests: calls.length,
    cost: sum(calls.map(({ cost }) => cost)),
    ownCost: sum(calls.map(({ own }) => own ?? 0n)),
    ownCostUnknown: calls.filter(({ own }) => own === undefined).length,
    uncosted: sum(calls.filter(({ own }) => own === undefined).map(({ cost }) => cost)),
    writtenOff: sum(all.map(({ absorbed }) => absorbed)),
    usage,
  };
}

const isCharged = ([, calls]: readonly [string, readonly Call[]]) => calls.some(({ charged }) => charged);

const means =
  ({ from, until, accountId, keyId, keys: some, model, provider }: ChargeFilter) =>
  (each: Call) =>
    start + each.at >= from &&
    start + each.at < until &&
    (accountId === undefined || each.account === accountId) &&
    (keyId === undefined || each.key === keyId) &&
    (some === undefined || isAmong(each.key, some)) &&
    (model === undefined || each.model === model) &&
    (provider === undefined || each.provider === provider);

async function openLedger(): Promise<TestDatabase> {
  const database = await openDatabase({ plugins: ['billing'] });
  for (const journal of ['node', 'other'])
    await database.orm.execute(
      sql`insert into ${tablesOf(database.schema)('journal_cursor')} (journal, owner, updated_at) values (${journal}, 'o', now())`,
    );
  return database;
}

let applied = 0;

function write({ orm, schema }: TestDatabase, calls: readonly Call[], journal = 'node'): Promise<unknown> {
  const cursor = { journal, owner: 'o', applied: ++applied };
  const text = lineOf(1, ...calls.map(recordOf)).toString();
  return applyBatch({ orm, schema }, text, new Map(calls.map(({ account }) => [account, money(0n)])), cursor);
}

/** Every slot and group of an account is in the table, exactly, and nothing else is. */
async function requestTable(
  { orm, schema }: Pick<TestDatabase, 'orm' | 'schema'>,
  calls: readonly Call[],
  filter: ChargeFilter & { readonly accountId: string },
  bounds: readonly number[],
) {
  const { accountId, keyId, model } = filter;
  const keyIds = keyId === undefined ? undefined : [keyId, 'another'];
  const models = model === undefined ? undefined : [model, 'another'];
  const cells = await spendTable(orm, schema, { accountId, keyIds, models, bounds, by: ['model', 'key'] });
  const { provider: _, keys: _keys, ...byCaller } = filter;
  const wanted = bounds.slice(0, -1).flatMap((from, slot) => {
    const within = calls.filter(means({ ...byCaller, from, until: bounds[slot + 1]! }));
    const groups = Map.groupBy(within, (each) => JSON.stringify([each.model, each.key ?? '']));
    return [...groups]
      .filter(isCharged)
      .map(([group, same]) => ({ slot, group: JSON.parse(group) as string[], ...sumsOf(same) }));
  });
  const order = ({ slot, group }: { slot: number; group: readonly string[] }) => JSON.stringify([slot, group]);
  const sorted = <T extends { slot: number; group: readonly string[] }>(list: readonly T[]) =>
    list.toSorted((left, right) => (order(left) < order(right) ? -1 : 1));
  assert.deepEqual(sorted(cells), sorted(wanted));
}

async function send(
  { orm, schema }: TestDatabase,
  calls: readonly Call[],
  requested: typeof question extends fc.Arbitrary<infer T> ? T : never,
) {
  const { from: after, lasts, zone, minutes, ...wanted } = requested;
  const filter = { ...wanted, from: start + after, until: start + after + lasts };
  const chosen = calls.filter(means(filter));
  const bounds = boundsOf(filter, minutes, zone, 1_500);
  const series = await spendBetween(orm, schema, wanted, bounds);
  for (const [index, { at, ...slot }] of series.entries()) {
    assert.equal(at, bounds[index]);
    assert.deepEqual(slot, sumsOf(calls.filter(means({ ...filter, from: at, until: bounds[index + 1]! }))));
  }
  if (wanted.accountId !== undefined)
    await requestTable({ orm, schema }, calls, { ...filter, accountId: wanted.accountId }, bounds);
  const startOf = (ms: number) => (each: Call) => `${Math.floor((start + each.at) / ms) * ms}`;
  for (const [by, groupOf] of [
    ['model', ({ model }: Call) => model],
    ['key', ({ key }: Call) => key ?? ''],
    ['account', ({ account }: Call) => account],
    ['provider', ({ provider }: Call) => provider ?? ''],
    ['hour', startOf(hourMs)],
    ['day', startOf(24 * hourMs)],
  ] as const) {
    const groups = await spendBy(orm, schema, filter, by, 1_500);
    const charged = [...Map.groupBy(chosen, groupOf)].filter(isCharged).map(([group]) => group);
    assert.deepEqual(groups.map(({ group }) => group).toSorted(), charged.toSorted());
    for (const { group, ...sums } of groups)
      assert.deepEqual(sums, sumsOf(chosen.filter((each) => groupOf(each) === group)));
    if (by === 'hour' || by === 'day') continue;
    const some = groups.slice(0, 3).map(({ group }) => group);
    const within = chosen.filter((each) => some.includes(groupOf(each)));
    const found = await spendOfGroups(orm, schema, wanted, bounds, by, some);
    assert.equal(
      found.reduce((sum, { requests }) => sum + requests, 0),
      sumsOf(within).requests,
    );
    for (const { at, group, ...slot } of found) {
      const within = { ...filter, from: at, until: bounds[bounds.indexOf(at) + 1]! };
      assert.deepEqual(slot, sumsOf(calls.filter((each) => means(within)(each) && groupOf(each) === group)));
    }
  }
}

testHistory(
  'after batches in any order, retried, late and folded in between, series, groups and totals are those of the calls',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { minLength: 1, maxLength: 8 }),
        fc.array(question, { minLength: 3, maxLength: 6 }),
        async (batches, questions) => {
          const database = await openLedger();
          const { orm, schema } = database;
          const calls: Call[] = [];
          for (const { calls: given, times, again, foldsTo, richRows } of batches) {
            const fresh = given.map(identified);
            const sent = again ? [...fresh, ...calls.slice(-5)] : fresh;
            for (let time = 0; sent.length > 0 && time < times; time++) await write(database, sent);
            calls.push(...fresh);
            if (foldsTo !== undefined) await foldSums(orm, schema, callSums, start + foldsTo * hourMs, richRows);
          }
          assert.deepEqual(await checkSums(orm, schema, callSums), []);
          for (const requested of questions) await send(database, calls, requested);
          await rebuildSums(orm, schema, callSums);
          for (const requested of questions) await send(database, calls, requested);
          await database.close();
        },
      ),
      { numRuns: runsOf(2, 50), endOnFailure: true },
    );
  },
);

test('the audit names a sum that was changed by hand, and passes once sums are rebuilt', async () => {
  const database = await openLedger();
  const { orm, schema } = database;
  await write(database, fc.sample(call, { numRuns: 30, seed: 9 }).map(identified));
  await foldSums(orm, schema, callSums, start + 4 * 24 * hourMs, 1);
  const found = async () => (await audit(orm, schema)).violations.filter(({ rule }) => rule === 'M17');
  assert.deepEqual(await found(), []);
  for (let part = 0; part <= 14; part++) {
    const sums = tablesOf(schema)('call_sums');
    await orm.execute(
      sql`update ${sums} set charged = coalesce(charged, 0) + 1 where ctid = (select min(ctid) from ${sums} where part = ${part}::int)`,
    );
    const reported = await found();
    assert.equal(reported[0]?.what, 'a kept sum is not the sum of its rows');
    if (part > 0) assert.match(reported[0]!.subject, new RegExp(`^part ${part} 2026-10-\\d\\dT`));
    await rebuildSums(orm, schema, callSums);
    assert.deepEqual(await found(), []);
  }
  await database.close();
});

testOnServer(
  'concurrent batches of two processes, with hours folded meanwhile, lose nothing and do not deadlock',
  async () => {
    const database = await openLedger();
    const { orm, schema } = database;
    const sample = fc.sample(call, { numRuns: 2_000, seed: 11 }).map(identified);
    const part = (journal: string, calls: readonly Call[]) => async () => {
      for (let from = 0; from < calls.length; from += 40) await write(database, calls.slice(from, from + 40), journal);
    };
    let isDone = false;
    const fold = async () => {
      for (let hour = 1; !isDone; hour++) await foldSums(orm, schema, callSums, start + hour * 5 * hourMs, 20);
    };
    const folding = fold();
    // No account has calls in both: nothing but the rollups makes one wait for the other.
    const others = sample.slice(1_000).map((each) => ({ ...each, account: `${each.account}-2` }));
    await Promise.all([part('node', sample.slice(0, 1_000))(), part('other', others)()]);
    isDone = true;
    await folding;
    assert.deepEqual(await checkSums(orm, schema, callSums), []);
    const [whole] = await spendBetween(orm, schema, {}, [start, start + days * 24 * hourMs]);
    assert.deepEqual(whole, { at: start, ...sumsOf(sample) });
    await database.close();
  },
);
