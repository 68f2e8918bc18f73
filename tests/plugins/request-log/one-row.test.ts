/** A call and its request are one row, whatever comes between its end, its facts, the batches, an outage and a crash. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import fc from 'fast-check';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { rowsOf } from '../../../plugins/billing/ledger/sql.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { type RequestView, requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { type Database, database, type Orm } from '../../../plugins/common/domain/database.ts';
import { defineEvent, recordEvent } from '../../../plugins/common/domain/timeline.ts';
import requestLog from '../../../plugins/request-log/index.ts';
import { type FakeExchange, type FakeHost, okAnswer, requestIdAt, setUp } from '../../helpers/fakes.ts';
import { runsOf } from '../../helpers/histories.ts';
import { closeEngine, newCall, newWorld, report, send, type World } from '../billing/world.ts';

after(closeEngine);

const accountIds = [randomUUID(), randomUUID()];
const keyId = randomUUID();
const [from, until] = [1_700_000_000_000, 2_000_000_000_000];
const noted = defineEvent('test.one-row', (text: string) => text);

/** A gateway with billing and the request log. */
interface Shop {
  readonly world: World;
  readonly log: PluginInstance;
}

const logs = new WeakMap<object, PluginInstance>();

async function newShop(section: object = {}): Promise<Shop> {
  const world = await newWorld({ beside: (host, store) => setUpLog(host, store, section) });
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
  await log.start!();
  logs.set(host, log);
  host.provide(database, store);
}

interface Asked {
  readonly exchange: FakeExchange;
  /** Billing has a hold for it. */
  readonly isHeld: boolean;
  /** What the core does right before the last bytes. */
  readonly beforeEnd: ((kind: 'complete') => void | Promise<void>)[];
}

async function enter({ world, log }: Shop, who: number, isBillable = true): Promise<Asked> {
  const id = requestIdAt(world.host.clock.now());
  const exchange = newCall({ id, accountId: accountIds[who]!, call: { billable: isBillable, model: 'an-alias' } });
  const beforeEnd: Asked['beforeEnd'] = [];
  Object.assign(exchange, { beforeEnd: (work: Asked['beforeEnd'][number]) => void beforeEnd.push(work) });
  exchange.set(caller, { accountId: accountIds[who]!, keyId, plan: 'free', models: undefined });
  await log.handle!(exchange, async () => {
    await world.part.handle!(exchange, async () => okAnswer);
    return okAnswer;
  });
  recordEvent(exchange, exchange.receivedAt + 7, noted, [`story of ${id}`]);
  return { exchange, isHeld: isBillable, beforeEnd };
}

/** It is answered and charged; its last bytes have not been sent. */
async function settle({ exchange, beforeEnd }: Asked): Promise<void> {
  if (exchange.find(usageReport) !== undefined) return;
  Object.assign(await send(exchange), { result: 'answered', status: 200 });
  exchange.set(usageReport, report({ input: 900, output: 20 }));
  for (const work of beforeEnd) await work('complete');
}

async function end({ exchange }: Asked, wasSent: boolean, kind: 'complete' | 'client_left'): Promise<void> {
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
  await shop.log.stop!();
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

test('whatever happens between them, each request is listed once, with its money and its facts in one row', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), async (steps) => {
      let shop = await newShop();
      let open: Asked[] = [];
      /** Ended and in the journal's file; ended in this turn; ended and in the queue of the log. */
      const safe = new Set<string>();
      let fresh: Asked[] = [];
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
          const asked = await enter(shop, who, isBillable).catch(() => undefined);
          if (asked !== undefined) open.push(asked);
        } else if (does === 'end' && open.length > 0) {
          const [asked] = open.splice(pick % open.length, 1);
          await end(asked!, wasSent, kind);
          fresh.push(asked!);
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
      for (const asked of open) {
        await end(asked, true, 'complete');
        fresh.push(asked);
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
          view.story.find(({ by }) => by === 'test'),
          { atMs: 7, by: 'test', text: `story of ${view.id}` },
        );
      }
      for (const { id, complete } of calls.values())
        assert.equal(complete, safe.has(id), 'facts are lost in a crash alone');
      assert.deepEqual((await shop.world.audit()).violations, []);
      await shop.world.stop();
    }),
    { numRuns: runsOf(20, 300), endOnFailure: true },
  );
});
