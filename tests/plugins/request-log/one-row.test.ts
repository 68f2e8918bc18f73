/** A call and its request are one row, whatever comes between its end, its facts, the batches, an outage and a crash. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { rowsOf } from '../../../plugins/billing/model/sql.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type RequestView, requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { callRow } from '../../../plugins/common/domain/call-facts.ts';
import { attempts, dropped, usageReport } from '../../../plugins/common/domain/calls.ts';
import { type Database, database, type Orm } from '../../../plugins/common/domain/database.ts';
import { defineEvent, recordEvent } from '../../../plugins/common/domain/timeline.ts';
import { firstIdAt } from '../../../plugins/common/kit/arrival.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { type FakeExchange, type FakeHost, okAnswer, requestIdAt, setUp } from '../../helpers/fakes.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { attemptOf, leaveWorlds, newCall, newWorld, report, send, type World } from '../billing/world.ts';

after(leaveWorlds);

const accountIds = [randomUUID(), randomUUID()];
const keyId = randomUUID();
const [from, until] = [1_790_000_000_000, 1_810_000_000_000];
const noted = defineEvent('test.one-row', (text: string) => text);

/** A gateway with billing and the request log. */
interface Shop {
  readonly world: World;
  readonly log: PluginInstance;
}

const logs = new WeakMap<object, PluginInstance>();

async function newShop(section: object = {}, billing: object = {}): Promise<Shop> {
  const world = await newWorld({
    section: billing,
    plugins: ['request-log', 'billing'],
    beside: (host, store) => setUpLog(host, store, section),
  });
  for (const accountId of accountIds) await world.credit('5', accountId);
  return { world, log: logs.get(world.host)! };
}

async function restarted({ world }: Shop): Promise<Shop> {
  const next = await world.crash();
  return { world: next, log: logs.get(next.host)! };
}

async function setUpLog(host: FakeHost, store: Database, section: object): Promise<void> {
  // As the storage plugin's, which gives rows where the driver gives an object with them.
  const execute = async (statement: SQL) => [...(await rowsOf(store.orm, statement))];
  host.provide(database, { ...store, orm: { execute } as unknown as Orm });
  const log = await setUp(requestLog, host, section);
  await log.lifecycle!.start!();
  logs.set(host, log);
  host.provide(database, store);
}

interface Requested {
  readonly exchange: FakeExchange;
  /** Billing has a hold for it. */
  readonly isHeld: boolean;
  /** What the core does right before the last bytes. */
  readonly beforeEnd: ((kind: 'complete') => void | Promise<void>)[];
}

async function enter({ world, log }: Shop, who: number, isBillable = true): Promise<Requested> {
  const id = requestIdAt(world.host.clock.now());
  const exchange = newCall({ id, accountId: accountIds[who]!, call: { billable: isBillable, model: 'an-alias' } });
  const beforeEnd: Requested['beforeEnd'] = [];
  Object.assign(exchange, { beforeEnd: (work: Requested['beforeEnd'][number]) => void beforeEnd.push(work) });
  exchange.set(caller, { accountId: accountIds[who]!, keyId, plan: 'free', models: undefined });
  await log.handle!(exchange, async () => {
    await world.part.handle!(exchange, async () => okAnswer);
    return okAnswer;
  });
  recordEvent(exchange, exchange.receivedAt + 7, noted, [`timeline of ${id}`]);
  return { exchange, isHeld: isBillable, beforeEnd };
}

/** It is answered and charged; its last bytes have not been sent. */
async function settle({ exchange, beforeEnd }: Requested): Promise<void> {
  if (exchange.find(usageReport) !== undefined) return;
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report({ input: 900, output: 20 }));
  for (const work of beforeEnd) await work('complete');
}

async function end({ exchange }: Requested, wasSent: boolean, kind: 'complete' | 'client_left'): Promise<void> {
  if (wasSent && exchange.find(usageReport) === undefined) {
    Object.assign(await send(exchange), { result: 'answered', status: 200 });
    exchange.set(usageReport, report({ input: 900, output: 20 }));
  }
  const status = wasSent ? 200 : 503;
  await exchange.end({ kind, status, bytesOut: 77, firstByteMs: 12.5, totalMs: 44.25 });
}

const workOf = (shop: Shop, name: string) => shop.world.host.intervals.findLast((each) => each.name === name)!.work();

/** Lets everything that waits come into the database. */
async function flush(shop: Shop): Promise<void> {
  await setImmediate();
  await shop.world.tick('sync the journal');
  for (let tries = 0; tries < 3; tries++) {
    shop.world.host.advance(10_000);
    await shop.world.tick('write the ledger');
  }
  await shop.log.lifecycle!.stop!();
}

async function listed({ world }: Shop): Promise<RequestView[]> {
  const queries = world.host.get(requestQueries);
  const found: RequestView[] = [];
  for (let after: string | undefined; ; ) {
    const page = await queries.list({ from, until }, { limit: 7, after });
    found.push(...page.rows);
    if (page.next === undefined) return found;
    after = page.next;
  }
}

interface CallCount {
  readonly id: string;
  readonly cost: string;
  readonly complete: boolean;
}

const callsIn = ({ world }: Shop) =>
  world.rows<CallCount>(
    sql`select id::text as id, cost::text as cost, status is not null as complete from ${world.table('calls')} order by id`,
  );

const requestRows = ({ world }: Shop) =>
  world.rows<{ id: string }>(sql`select id::text as id from ${world.table('requests')}`);

const step = fc.record({
  does: fc.constantFrom(
    ...(['enter', 'enter', 'enter', 'settle', 'settle', 'end', 'end', 'end', 'turn'] as const),
    ...(['apply', 'apply', 'write', 'crash', 'down', 'up', 'lose'] as const),
  ),
  who: fc.nat(1),
  pick: fc.nat(20),
  wasSent: fc.boolean(),
  isBillable: fc.constantFrom(true, true, true, false),
  kind: fc.constantFrom('complete' as const, 'client_left' as const),
});

testHistory(
  'in any order of events, each request is listed once, with its money and its facts in one row',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), async (steps) => {
        let shop = await newShop();
        let open: Requested[] = [];
        /** Ended and in the journal's file; ended in this turn; ended and in the queue of the log. */
        const safe = new Set<string>();
        let fresh: Requested[] = [];
        let queued: string[] = [];
        const turn = async () => {
          await setImmediate();
          for (const { exchange, isHeld } of fresh) {
            if (isHeld) safe.add(exchange.id);
            else queued.push(exchange.id);
          }
          fresh = [];
        };
        for (const { does, who, pick, wasSent, isBillable, kind } of steps) {
          const { world } = shop;
          if (does === 'enter') {
            const requested = await enter(shop, who, isBillable).catch(() => undefined);
            if (requested !== undefined) open.push(requested);
          } else if (does === 'end' && open.length > 0) {
            const [requested] = open.splice(pick % open.length, 1);
            await end(requested!, wasSent, kind);
            fresh.push(requested!);
          } else if (does === 'settle' && open.length > 0) await settle(open[pick % open.length]!);
          else if (does === 'turn') await turn();
          else if (does === 'apply') {
            await turn();
            await world.tick('sync the journal');
            world.host.advance(10_000);
            await world.tick('write the ledger');
          } else if (does === 'write') {
            await turn();
            world.host.advance(1_000);
            await Promise.resolve(workOf(shop, 'write request rows')).then(
              () => {
                for (const id of queued) safe.add(id);
                queued = [];
              },
              () => {},
            );
          } else if (does === 'down') world.faults.down = true;
          else if (does === 'up') world.faults.down = false;
          else if (does === 'lose') world.faults.afterCommit = true;
          else if (does === 'crash') {
            await turn();
            [queued, open] = [[], []];
            Object.assign(world.faults, { down: false, afterCommit: false });
            shop = await restarted(shop);
          }
        }
        Object.assign(shop.world.faults, { down: false, afterCommit: false });
        for (const requested of open) {
          await end(requested, true, 'complete');
          fresh.push(requested);
        }
        await turn();
        await flush(shop);
        for (const id of queued) safe.add(id);
        const views = await listed(shop);
        assert.deepEqual(views.map(({ id }) => id).toSorted(), [...safe].toSorted());
        assert.deepEqual(
          views,
          views.toSorted((one, other) => (one.id < other.id ? 1 : -1)),
        );
        const calls = new Map((await callsIn(shop)).map((row) => [row.id, row]));
        const apart = new Set((await requestRows(shop)).map(({ id }) => id));
        for (const view of views) {
          assert.notEqual(calls.has(view.id), apart.has(view.id), 'a request has one row');
          assert.deepEqual(
            [view.model, view.keyId, view.totalMs, view.bytesOut, view.firstByteMs, view.operation],
            ['an-alias', keyId, 44.25, 77, 12.5, 'test'],
          );
          assert.deepEqual(
            view.story.flatMap(({ by, atMs, text }) => (by === 'test' ? [[atMs, text]] : [])),
            [[7, `timeline of ${view.id}`]],
          );
        }
        for (const { id, complete } of calls.values())
          assert.equal(complete, safe.has(id), 'facts are lost in a crash alone');
        const sort = { by: 'cost', order: 'desc' } as const;
        const byCost = await shop.world.host.get(requestQueries).list({ from, until, sort }, { limit: 500 });
        // A call that was not settled has no cost, as a request without one has none.
        const costs = byCost.rows.map(({ id }) => Number(calls.get(id)?.cost ?? 0));
        assert.deepEqual([costs.length, costs], [views.length, costs.toSorted((one, other) => other - one)]);
        assert.deepEqual((await shop.world.audit()).violations, []);
        await shop.world.stop();
      }),
      { numRuns: runsOf(4, 300), endOnFailure: true },
    );
  },
);

test('where the backlog has no room for facts, the log keeps a row of its own, and the call has none', async () => {
  const shop = await newShop({}, { journal: { backlog: 4 } });
  const ended: string[] = [];
  const first = await enter(shop, 0);
  await end(first, true, 'complete');
  await flush(shop);
  shop.world.faults.down = true;
  for (let count = 0; count < 4; count++) {
    const requested = await enter(shop, 0);
    await end(requested, true, 'complete');
    ended.push(requested.exchange.id);
    await setImmediate();
  }
  shop.world.faults.down = false;
  await flush(shop);
  ended.push(first.exchange.id);
  const views = await listed(shop);
  assert.deepEqual(views.map(({ id }) => id).toSorted(), ended.toSorted());
  const apart = (await requestRows(shop)).map(({ id }) => id);
  assert.ok(apart.length > 0 && apart.length < ended.length, `${apart.length} of ${ended.length} rows`);
  const complete = (await callsIn(shop)).filter((row) => row.complete).map(({ id }) => id);
  assert.deepEqual([...apart, ...complete].toSorted(), ended.toSorted());
  assert.deepEqual((await shop.world.audit()).violations, []);
  await shop.world.stop();
});

test('after the retention the facts are removed, and money and sums stay', async () => {
  const shop = await newShop({ retention: '2h' });
  const { host } = shop.world;
  const timelines: string[] = [];
  for (let count = 0; count < 6; count++) {
    const requested = await enter(shop, count % 2, count !== 4);
    await end(requested, true, 'complete');
    timelines.push(requested.exchange.id);
    await flush(shop);
    host.advance(3_000_000);
  }
  const before = await callsIn(shop);
  const kept = () => listed(shop).then((views) => views.map(({ id }) => id).toSorted());
  const expected = () => timelines.filter((id) => id >= firstIdAt(host.clock.now() - 7_200_000));
  for (let turns = 0; turns < 5; turns++) {
    await workOf(shop, 'prune request rows');
    assert.deepEqual(await kept(), expected().toSorted());
    host.advance(3_600_000);
  }
  assert.deepEqual(expected(), []);
  assert.deepEqual(
    (await callsIn(shop)).map(({ id, cost }) => [id, cost]),
    before.map(({ id, cost }) => [id, cost]),
  );
  const [left] = await shop.world.rows<{ left: number }>(
    sql`select count(*)::int as left from ${shop.world.table('calls')}
        where coalesce(story, operation, protocol, outcome, requested_model, total_ms::text, bytes_in::text, tries::text) is not null`,
  );
  assert.equal(left!.left, 0);
  const sums = await host.get(requestQueries).sums({ from, until });
  assert.equal(sums.requests, timelines.length);
  assert.deepEqual((await shop.world.audit()).violations, []);
  await shop.world.stop();
});

test('many timelines of an account in one batch are one row, read and removed as those of single calls', async () => {
  const shop = await newShop({ retention: '2h' });
  const { host } = shop.world;
  const expected: Record<string, string> = {};
  const late: Requested[] = [];
  for (const count of [3, 20, 1, 12]) {
    for (let number = 0; number < count; number++) {
      const requested = await enter(shop, number % 2);
      expected[requested.exchange.id] = `timeline of ${requested.exchange.id}`;
      await settle(requested);
      // Facts of some come with a later batch than the end of their call.
      if (number % 5 === 4) late.push(requested);
      else await end(requested, true, 'complete');
    }
    await flush(shop);
    host.advance(1_000);
  }
  for (const requested of late) await end(requested, true, 'complete');
  await flush(shop);
  const report = async () =>
    Object.fromEntries(
      (await listed(shop)).map(({ id, story: timeline }) => [id, timeline.find(({ by }) => by === 'test')?.text]),
    );
  assert.deepEqual(await report(), expected);
  const shelves = () =>
    shop.world.rows<{ count: number }>(
      sql`select cardinality(stories) as count from ${shop.world.table('call_timelines')} order by id`,
    );
  assert.deepEqual(
    (await shelves()).map(({ count }) => count),
    [8, 8],
  );
  await workOf(shop, 'prune request rows');
  assert.deepEqual(await report(), expected);
  host.advance(7_300_000);
  await workOf(shop, 'prune request rows');
  assert.deepEqual([await report(), await shelves()], [{}, []]);
  assert.deepEqual((await shop.world.audit()).violations, []);
  await shop.world.stop();
});

test('a call shows its requested model and its last target, also when that was never sent', async () => {
  const shop = await newShop();
  const requested = await enter(shop, 0);
  const sent = await send(requested.exchange);
  Object.assign(sent, { result: 'refused', status: 429 });
  requested.exchange.get(attempts).push({ ...attemptOf('not_sent', 2), provider: 'elsewhere', model: 'their-model' });
  requested.exchange.set(dropped, ['top_k', 'seed']);
  await requested.exchange.end({ kind: 'complete', status: 502, error: new GatewayError('upstream_failed', 'no') });
  await flush(shop);
  const queries = shop.world.host.get(requestQueries);
  const view = (await queries.find(requested.exchange.id, accountIds[0]))!;
  assert.deepEqual(
    [view.model, view.provider, view.upstreamModel, view.attempts, view.status, view.errorKind, view.dropped],
    ['an-alias', 'elsewhere', 'their-model', 2, 502, 'upstream_failed', ['top_k', 'seed']],
  );
  assert.equal(view.receivedAt, Number.parseInt(requested.exchange.id.replace('-', '').slice(0, 12), 16));
  assert.equal(await queries.find(requested.exchange.id, accountIds[1]), undefined);
  for (const filter of [
    { provider: 'elsewhere' },
    { model: 'an-alias' },
    { accountId: accountIds[0]!, keyId },
    { result: 'upstream_error' as const, operation: 'test' },
  ]) {
    assert.equal((await queries.list({ from, until, ...filter }, { limit: 5 })).rows.length, 1, JSON.stringify(filter));
    assert.equal((await queries.sums({ from, until, ...filter })).requests, 1, JSON.stringify(filter));
  }
  for (const filter of [{ provider: 'vendor' }, { model: 'test-model' }, { accountId: accountIds[1]! }])
    assert.equal((await queries.list({ from, until, ...filter }, { limit: 5 })).rows.length, 0, JSON.stringify(filter));
  await shop.world.stop();
});

test('the database lets facts be added and removed, and money never be changed', async () => {
  const shop = await newShop();
  await end(await enter(shop, 0), true, 'complete');
  await flush(shop);
  const calls = shop.world.table('calls');
  await shop.world.rows(sql`update ${calls} set status = 500, story = null`);
  const [columns] = await shop.world.rows<{ names: string[] }>(
    sql`select array_agg(attname::text) as names from pg_attribute where attrelid = ${`${shop.world.database.schema}.calls`}::regclass and attnum > 0`,
  );
  const facts = new Set([
    ...['bytes_out', 'bytes_in', 'first_byte_ms', 'total_ms', 'status', 'tries', 'streamed', 'operation', 'protocol'],
    ...['outcome', 'requested_model', 'last_provider', 'last_model', 'error_kind', 'error_code', 'dropped', 'story'],
    ...['timelines', 'timeline'],
  ]);
  for (const name of columns!.names.filter((column) => !facts.has(column)))
    await assert.rejects(
      shop.world.rows(sql`update ${calls} set ${sql.identifier(name)} = ${sql.identifier(name)}`),
      (error: Error) => /immutable/.test(String(error.cause ?? error)),
      name,
    );
  await assert.rejects(shop.world.rows(sql`delete from ${calls}`));
  await shop.world.rows(sql`drop trigger immutable on ${calls}`);
  const guard = sql`create trigger immutable before update of id or delete or truncate on ${calls}
    for each statement execute function ${shop.world.table('refuse_ledger_change')}()`;
  await shop.world.rows(guard);
  assert.deepEqual(
    (await shop.world.audit()).violations.filter(({ rule }) => rule === 'M2').map(({ subject }) => subject),
    ['calls'],
  );
  await shop.world.stop();
});

test('a request of an earlier version keeps its own row, and is listed once beside its call', async () => {
  const shop = await newShop();
  const requested = await enter(shop, 0);
  await settle(requested);
  // Its facts went into the other table, as they did before calls had a place for them.
  requested.exchange.set(callRow, { complete: () => false });
  await end(requested, true, 'complete');
  await flush(shop);
  const [view, ...others] = await listed(shop);
  assert.deepEqual([view!.id, others.length], [requested.exchange.id, 0]);
  assert.deepEqual(
    (await callsIn(shop)).map(({ id, complete }) => [id, complete]),
    [[requested.exchange.id, false]],
  );
  assert.equal((await shop.world.host.get(requestQueries).find(requested.exchange.id, undefined))!.totalMs, 44.25);
  await shop.world.stop();
});
