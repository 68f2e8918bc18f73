/** The statements on leases against a real database: the oracle's sums, two connections at once, windows, release. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import {
  type LeaseRequest,
  listNodes,
  type Node,
  releaseNode,
  sqlLeases,
} from '../../../../plugins/billing/leases/store.ts';
import { applyBatch } from '../../../../plugins/billing/ledger/batch.ts';
import { leasedOf } from '../../../../plugins/billing/ledger/entry-rows.ts';
import { viewPool } from '../../../../plugins/billing/ledger/listing.ts';
import { applyDueTerms } from '../../../../plugins/billing/ledger/terms.ts';
import type { JournalRecord } from '../../../../plugins/billing/model/records.ts';
import { rowsOf, tablesOf } from '../../../../plugins/billing/model/sql.ts';
import { sqlStore } from '../../../../plugins/billing/store.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { openDatabase, type TestDatabase, testOnServer } from '../../../helpers/database.ts';
import { runsOf } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';
import { lineOf } from '../world.ts';
import { LeaseModel } from './lease-model.ts';

const lastsMs = 600_000;
const now = Date.UTC(2026, 5, 1, 12);

async function openStore() {
  return openDatabase({ plugins: ['billing'] });
}

async function newNode({ orm, schema }: TestDatabase): Promise<Node> {
  const node = { journal: randomUUID(), owner: randomUUID() };
  await claim({ orm, schema }, node.journal, node.owner);
  return node;
}

/** As a run of a process does that has its journal. */
async function claim(
  { orm, schema }: Pick<TestDatabase, 'orm' | 'schema'>,
  journal: string,
  owner: string,
): Promise<void> {
  await orm.execute(
    sql`insert into ${tablesOf(schema)('journal_cursor')} (journal, owner, updated_at) values (${journal}, ${owner}, now())
        on conflict (journal) do update set owner = excluded.owner, asked = 0, updated_at = now()`,
  );
}

async function openAccount({ orm, schema }: TestDatabase, balance: bigint, held = 0n): Promise<string> {
  const accountId = randomUUID();
  const balances = tablesOf(schema)('balances');
  await orm.execute(
    sql`insert into ${balances} (account_id, balance, held, funding)
        values (${accountId}, ${balance.toString()}::bigint, ${held.toString()}::bigint, ${(-balance - held).toString()}::bigint)`,
  );
  return accountId;
}

function requestOf(
  accountId: string,
  amounts: Partial<Record<'pending' | 'keep' | 'need' | 'target', bigint>>,
): LeaseRequest {
  const { pending = 0n, keep = 0n, need = 0n, target: wish = 0n } = amounts;
  const fixed = { smallest: money(need), ahead: money(0n), leaving: false, owing: false };
  return { accountId, pending: money(pending), keep: money(keep), need: money(need), target: money(wish), ...fixed };
}

let rounds = 0;

async function take({ orm, schema }: TestDatabase, node: Node, wanted: LeaseRequest, number = ++rounds) {
  const round = { number, requests: [wanted], lastsMs, at: now };
  return (await sqlLeases(orm, schema).take(node, round)).get(wanted.accountId)!;
}

test('leased money of a grant does not expire before its processes report their charges', async () => {
  const database = await openStore();
  const node = await newNode(database);
  const accountId = randomUUID();
  const store = sqlStore(database);
  const hourMs = 3_600_000;
  const grant = { kind: 'promotion', reason: 'test', reference: randomUUID(), expiresAt: now + hourMs };
  await store.transact(accountId, now, (entries) => entries.credit(money(100n), grant));
  await take(database, node, requestOf(accountId, { target: 30n }));
  const balanceAfter = (ms: number) =>
    store.transact(accountId, now + ms, async (entries) => {
      entries.isComplete = true;
      await applyDueTerms(entries, undefined);
      return entries.balance;
    });
  assert.deepEqual([await balanceAfter(2 * hourMs), await balanceAfter(72 * hourMs)], [100n, 100n]);
  await take(database, node, requestOf(accountId, {}));
  assert.equal(await balanceAfter(73 * hourMs), 0n);
});

test('one statement cuts shares as the oracle does, after any requests and batches', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const table = tablesOf(schema);
  const nodes = [await newNode(store), await newNode(store), await newNode(store)];
  const amount = fc.bigInt({ min: 0n, max: 60n });
  const steps = fc.array(
    fc.oneof(
      fc.record({
        node: fc.nat(2),
        pending: fc.bigInt({ min: 0n, max: 20n }),
        keep: amount,
        need: amount,
        target: amount,
      }),
      fc.record({
        node: fc.nat(2),
        charges: fc.bigInt({ min: -40n, max: 40n }),
        open: fc.bigInt({ min: 0n, max: 30n }),
      }),
    ),
    { minLength: 1, maxLength: 10 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.bigInt({ min: -20n, max: 200n }),
      fc.constantFrom(0n, 7n),
      steps,
      async (balance, held, list) => {
        // What authorizations set aside is no longer in the balance, and no node's affair.
        const accountId = await openAccount(store, balance, held);
        const model = new LeaseModel(balance);
        for (const { journal } of nodes) model.living.add(journal);
        for (const step of list) {
          const node = nodes[step.node]!;
          if ('charges' in step) {
            const { charges, open } = step;
            model.apply(node.journal, charges, open);
            await orm.execute(
              sql`update ${table('balances')} set balance = balance - ${charges.toString()}::bigint where account_id = ${accountId}`,
            );
            if (!model.leases.has(node.journal)) continue;
            await orm.execute(
              sql`insert into ${table('leases')} as leases (account_id, node, epoch, amount, open, expires_at)
                values (${accountId}, ${node.journal}, 'e', ${(-charges).toString()}::bigint, ${open.toString()}::bigint, now() + interval '10 minutes')
                on conflict (account_id, node) do update set amount = leases.amount + excluded.amount, open = excluded.open`,
            );
            continue;
          }
          const wanted = requestOf(accountId, step);
          const { pool, term, lastsMs: lasts, ...answer } = await take(store, node, wanted);
          assert.deepEqual(answer, model.take(node.journal, wanted));
          assert.deepEqual([pool, term, lasts], [undefined, undefined, lastsMs]);
        }
        const known = await leasedOf(orm, schema, accountId);
        const sum = (amountOf: (lease: bigint, open: bigint) => bigint) =>
          [...model.leases].reduce((total, [name, lease]) => {
            const amount = amountOf(lease, model.open.get(name)!);
            return total + (amount > 0n ? amount : 0n);
          }, 0n);
        assert.deepEqual(known, {
          leased: sum((lease) => lease),
          byLiving: sum((lease, open) => lease - open),
          open: sum((lease, open) => (lease < open ? lease : open)),
        });
      },
    ),
    { numRuns: runsOf(6, 40) },
  );
  await store.close();
});

test('two concurrent connections never take more than the balance', async () => {
  const store = await openStore();
  const nodes = await Promise.all(Array.from({ length: 4 }, () => newNode(store)));
  for (let round = 0; round < 10; round++) {
    const accountId = await openAccount(store, 100n);
    const wanted = requestOf(accountId, { need: 30n, target: 30n });
    const answers = await Promise.all(nodes.map((node) => take(store, node, wanted)));
    assert.deepEqual(
      answers.map(({ amount }) => amount).toSorted((left, right) => Number(left - right)),
      [0n, 30n, 30n, 30n],
    );
  }
  await store.close();
});

/** Runs `work` while the account's row is locked by somebody else. */
async function whileLocked({ orm, schema }: TestDatabase, accountId: string, work: () => Promise<void>): Promise<void> {
  await orm.transaction(async (transaction) => {
    await transaction.execute(
      sql`select from ${tablesOf(schema)('balances')} where account_id = ${accountId} for update`,
    );
    await work();
  });
}

/** Resolves when an ask waits for a lock. */
async function untilOneWaits({ orm }: TestDatabase): Promise<void> {
  const waiting = sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%take_slice%'`;
  for (let tries = 0; (await rowsOf(orm, waiting)).length === 0; tries++) {
    assert(tries < 5_000, 'no statement waits');
    await pause(10);
  }
}

const answered = (row: { amount: bigint }) => row.amount;
const refused = (error: Error) => error.message;

// The embedded database has one session, in which nothing waits.
testOnServer('a delayed statement of an earlier run does not undo the later one', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const [node, other] = [await newNode(store), await newNode(store)];
  const accountId = await openAccount(store, 100n);
  assert.equal((await take(store, node, requestOf(accountId, { need: 80n }))).amount, 80n);
  let late: Promise<bigint | string> | undefined;
  await whileLocked(store, accountId, async () => {
    late = take(store, node, requestOf(accountId, { keep: 80n, need: 80n })).then(answered, refused);
    await untilOneWaits(store);
    await claim(store, node.journal, 'a later run');
    await sqlLeases(orm, schema).returnAll({ ...node, owner: 'a later run' });
  });
  assert.match(String(await late), /belongs to another process/);
  assert.equal((await leasedOf(orm, schema, accountId)).leased, 0n);
  assert.equal((await take(store, other, requestOf(accountId, { need: 100n }))).amount, 100n);
  await store.close();
});

test('an abandoned request for money that runs late does not undo later ones', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const node = await newNode(store);
  const accountIds = [await openAccount(store, 100n), await openAccount(store, 100n)];
  const round = (number: number, need: bigint) => ({
    number,
    requests: accountIds.map((accountId) => requestOf(accountId, { need })),
    lastsMs,
    at: now,
  });
  await sqlLeases(orm, schema).take(node, round(8, 60n));
  await assert.rejects(sqlLeases(orm, schema).take(node, round(7, 10n)), /belongs to another process/);
  // Nor does one behind a batch, which has moved the lease and what the journal owes.
  await applyBatch({ orm, schema }, '', new Map(), { ...node, applied: 0, leaseMs: lastsMs, number: 10 });
  await assert.rejects(sqlLeases(orm, schema).take(node, round(9, 10n)), /belongs to another process/);
  for (const accountId of accountIds) assert.equal((await leasedOf(orm, schema, accountId)).leased, 60n);
  await store.close();
});

test('a batch takes from balance and lease alike, once, and begins a returned lease again', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const node = await newNode(store);
  const accountId = await openAccount(store, 100n);
  await take(store, node, requestOf(accountId, { need: 40n, target: 40n }));
  const terms = { account: accountId, key: 'k', model: 'm', input: 1, ratio: '1/1', version: 'v' };
  const at = now;
  const apply = (text: string, open: bigint, applied: number) =>
    applyBatch({ orm, schema }, text, new Map([[accountId, money(open)]]), { ...node, applied, leaseMs: lastsMs });
  const charge = (first: number, cost: bigint) =>
    lineOf(first, {
      ...{
        kind: 'SETTLE',
        id: randomUUID(),
        at,
        heldAt: at,
        ...terms,
        held: '15',
        cost: `${cost}`,
        price: {},
        usage: {},
      },
      ...{ estimated: false, terminal: true, reason: 'answered', attempts: [] },
    } as JournalRecord).toString();
  const first = charge(1, 15n);
  await apply(first, 12n, 1);
  await apply(first, 12n, 1);
  // A hold is in the lease alone: the balance has what moved, and others cannot have what calls hold of it.
  assert.deepEqual(await leasedOf(orm, schema, accountId), { leased: 25n, byLiving: 13n, open: 12n });
  const [balance] = await rowsOf<{ balance: string }>(
    orm,
    sql`select balance::text from ${tablesOf(schema)('balances')} where account_id = ${accountId}`,
  );
  assert.deepEqual(balance, { balance: '85' });
  await sqlLeases(orm, schema).returnAll(node);
  const back = { kind: 'VOID', id: randomUUID(), at, heldAt: at, ...terms, held: '15', reason: 'test', attempts: [] };
  await apply(lineOf(2, back as JournalRecord).toString(), 0n, 2);
  assert.deepEqual(await leasedOf(orm, schema, accountId), { leased: 0n, byLiving: 0n, open: 0n });
  // What a call cost that nothing is leased for is owed, until the next request for a lease.
  await apply(charge(3, 5n), 4n, 3);
  const [lease] = await rowsOf(
    orm,
    sql`select amount::text, open::text from ${tablesOf(schema)('leases')} where account_id = ${accountId}`,
  );
  assert.deepEqual(lease, { amount: '-5', open: '4' });
  assert.equal((await take(store, node, requestOf(accountId, { keep: 15n, target: 0n }))).allowed, 80n);
  await store.close();
});

test("a lease is bounded by the windows' rest and by grants that expire during it", async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const table = tablesOf(schema);
  const node = await newNode(store);
  const accountId = await openAccount(store, 100n);
  const grant = async (amount: bigint, expiresAt: number, windows: string | null) => {
    const id = randomUUID();
    await orm.execute(
      sql`insert into ${table('grants')} (id, account_id, kind, amount, reason, reference, created_at, expires_at, source, windows, anchor)
          values (${id}::uuid, ${accountId}, 'plan', ${amount.toString()}::bigint, 'test', ${id}, now(), ${new Date(expiresAt).toISOString()}::timestamptz,
            ${windows === null ? null : id}::text, ${windows}::json, ${windows === null ? null : new Date(now).toISOString()}::timestamptz)`,
    );
    await orm.execute(
      sql`insert into ${table('grant_balances')} (grant_id, account_id, remaining, expires_at) values (${id}::uuid, ${accountId}, ${amount.toString()}::bigint, ${new Date(expiresAt).toISOString()}::timestamptz)`,
    );
  };
  // 100 in all: 40 whose day window lets 10 be spent, 30 that expire in ten seconds, 30 that never do.
  await grant(40n, now + 10 * 86_400_000, '{"day":"10"}');
  await grant(30n, now + 10_000, null);
  const whole = await take(store, node, requestOf(accountId, { need: 35n, target: 1_000n }));
  assert.deepEqual([whole.amount, whole.allowed, whole.rest, whole.lastsMs], [40n, 40n, 100n, lastsMs]);
  assert.equal(whole.pool!.grants.length, 2);
  // What is free only for ten seconds is leased for ten seconds, to a call that needs it.
  const short = await take(store, node, requestOf(accountId, { keep: 40n, need: 65n, target: 1_000n }));
  assert.deepEqual([short.amount, short.allowed, short.lastsMs], [70n, 70n, 10_000]);
  const refused = await take(store, node, requestOf(accountId, { keep: 70n, need: 71n }));
  assert.deepEqual([refused.amount, refused.rest], [70n, 100n]);
  await store.close();
});

test('an expired lease is given to no other node, unless an operator releases its node', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const [lost, other] = [await newNode(store), await newNode(store)];
  const accountId = await openAccount(store, 100n);
  await take(store, lost, requestOf(accountId, { need: 50n, target: 50n }));
  assert.equal(await releaseNode(orm, schema, lost.journal), 0, 'it still runs');
  await orm.execute(sql`update ${tablesOf(schema)('leases')} set expires_at = now() - interval '1 second'`);
  const after = await take(store, other, requestOf(accountId, { need: 80n, target: 80n }));
  assert.deepEqual([after.amount, after.allowed, after.elsewhere], [0n, 50n, 0n]);
  const [view] = await listNodes(orm, schema);
  assert.deepEqual([view!.node, view!.amount, view!.expired], [lost.journal, 50n, true]);
  assert.equal(await releaseNode(orm, schema, lost.journal), 1);
  assert.equal((await take(store, other, requestOf(accountId, { need: 80n, target: 80n }))).amount, 80n);
  // It was not lost after all: it keeps nothing of what it had.
  const back = await take(store, lost, requestOf(accountId, { keep: 50n, need: 60n }));
  assert.deepEqual([back.amount, back.allowed], [0n, 20n]);
  await store.close();
});

test('nodes are counted while they live, and one whose journal has another owner gets nothing', async () => {
  const store = await openStore();
  const { orm, schema } = store;
  const [one, two] = [await newNode(store), await newNode(store)];
  const accountId = await openAccount(store, 100n);
  assert.equal((await take(store, one, requestOf(accountId, { target: 100n }))).amount, 50n);
  assert.equal(await sqlLeases(orm, schema).countOthers(one.journal), 1);
  await sqlLeases(orm, schema).heartbeat(two, false);
  assert.equal(await sqlLeases(orm, schema).countOthers(one.journal), 0);
  assert.equal((await take(store, one, requestOf(accountId, { keep: 50n, target: 100n }))).amount, 100n);
  await claim({ orm, schema }, one.journal, 'another run');
  await assert.rejects(take(store, one, requestOf(accountId, { target: 100n })), /belongs to another process/);
  await store.close();
});

test('the share of a process that no longer answers is shown as blocked, and cannot be spent', async () => {
  const database = await openStore();
  const { orm, schema } = database;
  const [living, dead] = [await newNode(database), await newNode(database)];
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        own: fc.bigInt({ min: 0n, max: 400n }),
        lost: fc.bigInt({ min: 1n, max: 400n }),
        open: fc.bigInt({ min: 0n, max: 400n }),
      }),
      async ({ own, lost, open }) => {
        const accountId = await openAccount(database, 1_000n);
        if (own > 0n) await take(database, living, requestOf(accountId, { need: own }));
        await orm.execute(
          sql`insert into ${tablesOf(schema)('leases')} (account_id, node, epoch, amount, open, expires_at)
              values (${accountId}, ${dead.journal}, '1', ${String(lost)}::bigint, ${String(open)}::bigint, now() - interval '1 minute')`,
        );
        const view = () => sqlStore(database).transact(accountId, now, viewPool);
        const held = open < lost ? open : lost;
        const { balance, blocked, spendable } = await view();
        assert.deepEqual([balance, blocked, spendable], [1_000n - held, lost - held, 1_000n - lost]);
        assert.ok((await releaseNode(orm, schema, dead.journal)) > 0);
        const released = await view();
        assert.deepEqual([released.blocked, released.spendable], [0n, 1_000n]);
      },
    ),
    { numRuns: runsOf(10, 100) },
  );
  await database.close();
});
