/** Ledger queries: pages of the ledger and of charges, consistent sums, the audit in sentences, the nodes. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import packageFile from '../../../../package.json' with { type: 'json' };
import { caller } from '../../../../plugins/common/domain/accounts.ts';
import {
  type ChargeView,
  type LedgerQueries,
  type LedgerRow,
  ledgerQueries,
  type SpendSums,
} from '../../../../plugins/common/domain/admin/ledger.ts';
import { marginOf } from '../../../../plugins/common/domain/admin/margin.ts';
import type { Page, PageRequest, Span } from '../../../../plugins/common/domain/admin/pages.ts';
import { pool } from '../../../../plugins/common/domain/ledger.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { flatBook } from '../../../../plugins/common/domain/prices.ts';
import { runsOf } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';
import { answer, attemptOf, entered, leaveWorlds, newWorld, price, send, usd, type World } from '../world.ts';

after(leaveWorlds);

const hourMs = 3_600_000;
const always = { from: 0, until: 4_000_000_000_000 };

async function charge(
  world: World,
  accountId: string,
  output: number,
  model = 'test-model',
  isCosted = true,
): Promise<string> {
  const own = isCosted ? { cost: flatBook({ input: 1_000_000_000n }, 'own') } : {};
  const options = { id: model, prices: flatBook(price, 'v1'), ...own };
  const attribution = { person: output % 2 > 0 ? 'ann' : undefined, project: ['web', 'lab', undefined][output % 3] };
  const who = { accountId, keyId: 'key-1', plan: 'free', models: undefined, attribution };
  const exchange = await entered(world, { call: { model }, model: options, facts: [[caller, who]] });
  await answer(exchange, { input: 1_000, output });
  return exchange.id;
}

const queriesOf = (world: World): LedgerQueries => world.host.get(ledgerQueries);

async function allPages<Row>(read: (page: PageRequest) => Promise<Page<Row>>, limit: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (let after: string | undefined; ; ) {
    const page = await read({ limit, after });
    assert.ok(page.rows.length <= limit);
    rows.push(...page.rows);
    if (page.next === undefined) return rows;
    after = page.next;
  }
}

async function chargesWithin(world: World, { from, until }: Span): Promise<readonly ChargeView[]> {
  const rows = await world.rows<{ id: string }>(
    sql`select id from ${world.table('calls')} where settled
        and created_at >= to_timestamp(${from} / 1000.0) and created_at < to_timestamp(${until} / 1000.0)`,
  );
  return queriesOf(world).chargesOf(
    rows.map(({ id }) => id),
    undefined,
  );
}

const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

test('the ledger is paged newest first, without authorizations', async () => {
  const world = await newWorld({ credit: '1' });
  await world.credit('1', 'bob');
  for (const output of [10, 20, 30]) await charge(world, 'alice', output);
  await charge(world, 'bob', 10);
  await world.tick('write the ledger');
  const queries = queriesOf(world);
  const rows = await allPages((page) => queries.ledger('alice', {}, page), 2);
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ['CHARGE', 'CHARGE', 'CHARGE', 'CREDIT'],
  );
  assert.deepEqual(
    rows.map(({ change }) => change),
    [-usd('0.0023'), -usd('0.0022'), -usd('0.0021'), usd('1')],
  );
  assert.equal(rows[0]!.balanceAfter, await world.balance());
  assert.equal(rows[3]!.reason, 'test');
  assert.match(rows[3]!.reference!, /^world_/);
  const credits = await allPages((page) => queries.ledger(undefined, { kinds: ['CREDIT', 'EXPIRE'] }, page), 1);
  assert.deepEqual(
    credits.map(({ accountId }) => accountId),
    ['bob', 'alice'],
  );
  const later: Page<LedgerRow> = await queries.ledger('alice', { from: world.host.clock.now() + 1 }, { limit: 5 });
  assert.deepEqual(later, { rows: [], next: undefined });
});

test('queries with impossible values name their field', async () => {
  const queries = queriesOf(await newWorld());
  const refused = (request: Promise<unknown>, field: string) =>
    assert.rejects(request, (error: GatewayError) => error.kind === 'invalid_request' && error.field === field);
  await refused(queries.ledger('alice', {}, { limit: 0 }), 'limit');
  await refused(queries.ledger('alice', {}, { limit: 501 }), 'limit');
  await refused(queries.ledger('alice', {}, { limit: 5, after: "1' or true" }), 'after');
  for (const kind of ['THEFT', 'HOLD', 'VOID', 'SETTLE', 'LAPSE'])
    await refused(queries.ledger('alice', { kinds: [kind] }, { limit: 5 }), 'kinds');
  await refused(queries.spend(always, 'day', 1_501), 'limit');
});

test('a charge has its formula, refunds and attempts, and is visible to its account only', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  Object.assign(await send(exchange), { ...attemptOf('unknown'), error: 'reset' });
  await answer(exchange, { input: 1_000, output: 50 });
  await world.tick('write the ledger');
  const entry = { reason: 'sorry', reference: 'refund-1' };
  await world.host.get(pool).refundRequest('alice', exchange.id, usd('0.001'), entry);
  const found = await queriesOf(world).charge(exchange.id, 'alice');
  assert.equal(found!.cost, usd('0.0025'));
  assert.equal(found!.refunded, usd('0.001'));
  assert.equal(found!.held, usd('0.003'));
  assert.equal(found!.formula, '(1000 input × 2.00 + 50 output × 10.00) / 1M');
  assert.equal(found!.priceVersion, 'v1');
  assert.deepEqual(
    found!.attempts.map(({ number, result, borneBy, absorbed, durationMs }) => ({
      number,
      result,
      borneBy,
      absorbed,
      durationMs,
    })),
    [
      { number: 1, result: 'unknown', borneBy: 'operator', absorbed: usd('0.002'), durationMs: 5 },
      { number: 2, result: 'answered', borneBy: 'client', absorbed: 0n, durationMs: 5 },
    ],
  );
  const queries = queriesOf(world);
  assert.equal((await queries.charge(exchange.id, undefined))!.accountId, 'alice');
  assert.equal(await queries.charge(exchange.id, 'bob'), undefined);
  assert.equal(await queries.charge('no id', undefined), undefined);
  const totals = await queries.totals(always);
  assert.equal(totals.calls.writtenOff, usd('0.002'));
  assert.equal(totals.calls.refunded, usd('0.001'));
});

test('spend is grouped by time, model, key, account and provider', async () => {
  const world = await newWorld();
  for (const accountId of ['alice', 'bob']) await world.credit('1', accountId);
  await charge(world, 'alice', 10);
  await charge(world, 'bob', 1, 'small-model');
  world.host.advance(hourMs);
  await charge(world, 'alice', 20);
  await world.tick('write the ledger');
  const queries = queriesOf(world);
  const start = 1_800_000_000_000 - (1_800_000_000_000 % hourMs);
  const shown = (groups: Awaited<ReturnType<LedgerQueries['spend']>>) =>
    groups.map(({ group, requests, cost }) => [group, requests, cost]);
  assert.deepEqual(shown(await queries.spend(always, 'hour', 10)), [
    [String(start), 2, usd('0.00411')],
    [String(start + hourMs), 1, usd('0.0022')],
  ]);
  assert.deepEqual(shown(await queries.spend(always, 'hour', 1)), [[String(start + hourMs), 1, usd('0.0022')]]);
  assert.deepEqual(shown(await queries.spend(always, 'model', 10)), [
    ['test-model', 2, usd('0.0043')],
    ['small-model', 1, usd('0.00201')],
  ]);
  assert.deepEqual(shown(await queries.spend({ ...always, accountId: 'bob' }, 'account', 10)), [
    ['bob', 1, usd('0.00201')],
  ]);
  const [whole] = await queries.spend(always, 'provider', 10);
  assert.deepEqual(whole, {
    group: 'vendor',
    requests: 3,
    cost: usd('0.00631'),
    ownCost: usd('0.003'),
    ownCostUnknown: 0,
    uncosted: 0n,
    writtenOff: 0n,
    refunded: 0n,
    usage: { input: 3_000, output: 31 },
  });
  const exchange = await entered(world);
  await answer(exchange, { input: 1_000, output: 10 });
  await world.tick('write the ledger');
  const { ownCost, ownCostUnknown, uncosted } = (await queries.totals(always)).calls;
  assert.deepEqual(
    [ownCost, ownCostUnknown, uncosted],
    [usd('0.003'), 1, usd('0.0021')],
    'one call is of a model without an own cost',
  );
  const [ofVendor] = await queries.spend(always, 'provider', 10);
  assert.deepEqual([ofVendor!.ownCost, ofVendor!.ownCostUnknown], [usd('0.003'), 1]);
  const bounds = [start, start + hourMs, start + 90 * 60_000, start + 48 * hourMs];
  const series = await queries.spendBetween({}, bounds);
  assert.deepEqual(
    series.map(({ at }) => at),
    bounds.slice(0, -1),
  );
  for (const [index, { at, cost }] of series.entries()) {
    const rows = await chargesWithin(world, { from: at, until: bounds[index + 1]! });
    assert.equal(cost, sum(rows.map((row) => row.cost)));
  }
  assert.equal((await queries.spendBetween({ provider: 'vendor' }, bounds))[0]!.cost, series[0]!.cost);
  assert.equal((await queries.spendBetween({ provider: 'another' }, bounds))[0]!.requests, 0);
});

test('balances of many accounts are read at once, 0 where there is none', async () => {
  const world = await newWorld({ credit: '1' });
  const balances = await queriesOf(world).balances(['alice', 'missing']);
  assert.deepEqual(
    [...balances],
    [
      ['alice', usd('1')],
      ['missing', 0n],
    ],
  );
});

/** Refunds are part of these sums, whenever they were made; the margin is that of the calls with an own cost. */
function isOfCharges(sums: SpendSums, charges: readonly ChargeView[], what: string): void {
  const costed = charges.filter(({ ownCost }) => ownCost !== undefined);
  const net = (some: readonly ChargeView[]) => sum(some.map(({ cost, refunded }) => money(cost - refunded)));
  assert.equal(sums.refunded, sum(charges.map(({ refunded }) => refunded)), what);
  assert.equal(sums.uncosted, net(charges) - net(costed), what);
  const margin = net(costed) - sum(costed.map(({ ownCost }) => ownCost!));
  assert.equal(marginOf(sums), costed.length === 0 && charges.length > 0 ? undefined : margin, what);
}

test('reconciling returns the audit in sentences, once for all concurrent callers', async () => {
  const world = await newWorld({ credit: '1' });
  const queries = queriesOf(world);
  const [first, second] = await Promise.all([queries.reconcile(), queries.reconcile()]);
  assert.equal(first, second);
  assert.deepEqual(first, { checkedAt: world.host.clock.now(), ok: true, findings: [], rows: 1 });
  await world.rows(sql`update ${world.table('balances')} set balance = balance + 1`);
  const { ok, findings } = await queries.reconcile();
  assert.equal(ok, false);
  assert.deepEqual(findings, ['The balance is not the sum of the ledger rows: alice (rule M1).']);
});

test('the nodes are listed with their pending rows and leases; this one first', async () => {
  const world = await newWorld({ credit: '1' });
  await world.rows(sql`insert into ${world.table('journal_cursor')} (journal, owner, updated_at)
    values ('other', 'x', now()), ('left', 'x', '-infinity'), ('dead', 'x', '-infinity')`);
  await world.rows(sql`insert into ${world.table('leases')} (account_id, node, epoch, amount, expires_at)
    values ('alice', 'dead', 'x', 5, now()), ('bob', 'dead', 'x', -3, now())`);
  const exchange = await entered(world);
  assert.equal((await queriesOf(world).nodes())[0]!.journalPending, 0, 'a hold makes no row');
  await answer(exchange, { input: 1_000, output: 10 });
  const nodes = await queriesOf(world).nodes();
  assert.deepEqual(
    nodes.map(({ self, journalPending, leases, leased }) => ({ self, journalPending, leases, leased })),
    [
      { self: true, journalPending: 1, leases: 0, leased: 0n },
      { self: false, journalPending: undefined, leases: 0, leased: 0n },
      { self: false, journalPending: undefined, leases: 2, leased: 5n },
    ],
  );
  assert.deepEqual(
    nodes.slice(1).map(({ name }) => name),
    ['other', 'dead'],
  );
  const [self, other] = nodes;
  assert.equal(self!.version, packageFile.version, 'the version that runs');
  assert.ok(self!.startedAt! <= Date.now() && self!.startedAt! > Date.now() - 60_000, 'by the clock of the database');
  assert.deepEqual([other!.version, other!.startedAt], [undefined, undefined], 'a node of an earlier version');
});

const calls = fc.record({
  accountId: fc.constantFrom('alice', 'bob', 'carol'),
  model: fc.constantFrom('test-model', 'small-model'),
  output: fc.nat(300),
  pauseMs: fc.nat(30 * hourMs),
  refund: fc.boolean(),
});

test('after any calls, the groups of every kind, the charges and the ledger have the same sum', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(calls, { maxLength: 25 }), fc.nat(40 * hourMs), async (list, fromMs) => {
      await using world = await newWorld();
      const begin = world.host.clock.now();
      for (const accountId of ['alice', 'bob', 'carol']) await world.credit('10', accountId);
      for (const { accountId, model, output, pauseMs, refund } of list) {
        const id = await charge(world, accountId, output, model, output % 3 > 0);
        await world.tick('write the ledger');
        const entry = { reason: 'test', reference: `refund-${id}` };
        if (refund) await world.host.get(pool).refundRequest(accountId, id, usd('0.000001'), entry);
        world.host.advance(pauseMs);
      }
      const queries = queriesOf(world);
      const span = { from: begin + fromMs, until: begin + 100 * 30 * hourMs };
      const charges = await chargesWithin(world, span);
      const whole = sum(charges.map(({ cost }) => cost));
      const settled = await allPages((page) => queries.ledger(undefined, { kinds: ['CHARGE'], ...span }, page), 7);
      assert.equal(-sum(settled.map(({ change }) => change)), whole);
      for (const by of ['day', 'hour', 'model', 'key', 'account', 'provider', 'person', 'project'] as const) {
        const groups = await queries.spend(span, by, 1_500);
        assert.equal(sum(groups.map(({ cost }) => cost)), whole, by);
        assert.equal(
          groups.reduce((total, { requests }) => total + requests, 0),
          charges.length,
        );
      }
      const totals = await queries.totals(span);
      assert.equal(totals.calls.cost, whole);
      assert.equal(totals.calls.ownCost, sum(charges.map(({ ownCost }) => ownCost ?? 0n)));
      const every = await chargesWithin(world, { from: begin, until: span.until });
      const all = { from: begin, until: span.until };
      isOfCharges((await queries.totals(all)).calls, every, 'all');
      const calledFor = { person: 'person', project: 'project' } as const;
      const groupOf = {
        model: 'model',
        key: 'keyId',
        account: 'accountId',
        provider: 'provider',
        ...calledFor,
      } as const;
      for (const [by, field] of Object.entries(groupOf) as [
        keyof typeof groupOf,
        (typeof groupOf)[keyof typeof groupOf],
      ][]) {
        const groups = await queries.spend(all, by, 1_500);
        for (const group of groups) {
          const some = every.filter((charge) => (charge[field] ?? '') === group.group);
          isOfCharges(group, some, by);
          const [same] = await queries.spendOfGroups({}, [all.from, all.until], by, [group.group]);
          isOfCharges(same!, some, by);
          const filters = { person: { personId: group.group }, project: { projectIds: [group.group] } };
          if (by !== 'person' && by !== 'project') continue;
          const [filtered] = await queries.spendBetween(filters[by], [all.from, all.until]);
          isOfCharges(filtered!, some, `filtered by ${by}`);
        }
      }
      assert.equal(new Set(every.map(({ requestId }) => requestId)).size, list.length);
      const ids = [...every.map(({ requestId }) => requestId), '00000000-0000-7000-8000-000000000000'];
      assert.deepEqual(await queries.chargesOf(ids, undefined), every);
      const ofBob = every.filter(({ accountId }) => accountId === 'bob');
      assert.deepEqual(await queries.chargesOf(ids.toReversed(), 'bob'), ofBob);
      assert.deepEqual(await queries.chargesOf([], undefined), []);
    }),
    { numRuns: runsOf(3, 15) },
  );
});
