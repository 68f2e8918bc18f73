/** Leases on due rows, and the places of a process for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { backOff, givenBack, Leases, nextDueMs } from '../../plugins/common/kit/jobs/leases.ts';
import { Workers } from '../../plugins/common/kit/jobs/workers.ts';
import { inMs, tableOf } from '../../plugins/common/kit/sql.ts';
import { openDatabase } from '../helpers/database.ts';
import { fakeHost } from '../helpers/fakes.ts';

test('a due row is taken by one worker, the longest due first, until its lease ends or it is returned', async (t) => {
  const database = await openDatabase();
  t.after(() => database.close());
  const { orm } = database;
  const table = tableOf(database, 'jobs');
  await orm.execute(sql`create schema if not exists ${sql.identifier(database.schema)}`);
  await orm.execute(sql`create table ${table} (id text, due_at timestamptz, lease text, lease_until timestamptz)`);
  await orm.execute(sql`insert into ${table} values ('later', now()), ('first', ${inMs(-60_000)}), ('not due', ${inMs(60_000)}),
    ('done', null)`);
  const leases = new Leases<{ id: string }>({ runner: orm, table, columns: sql`taken.id` });
  assert.ok((await nextDueMs(orm, table))! <= -60_000);
  assert.deepEqual(await leases.take('a', 1, 60_000), [{ id: 'first' }]);
  assert.deepEqual(await leases.take('b', 9, -1), [{ id: 'later' }]);
  // The lease of `b` has ended: the row is another's.
  assert.deepEqual(await leases.take('c', 9, 60_000), [{ id: 'later' }]);
  assert.deepEqual(await leases.take('d', 9, 60_000), []);
  assert.equal(await leases.renew('later', 'b', 60_000), undefined);
  assert.deepEqual(await leases.renew('later', 'c', 60_000, sql`id`), { id: 'later' });
  assert.equal(await leases.change('first', 'c', givenBack), false);
  assert.equal(await leases.change('first', 'a', sql`${givenBack}, due_at = ${inMs(30_000)}`), true);
  const nextMs = (await nextDueMs(orm, table))!;
  assert.ok(nextMs > 20_000 && nextMs <= 30_000, String(nextMs));
  assert.equal(await nextDueMs(orm, table, sql`id = 'done'`), undefined);
});

function newWorkers(places: number) {
  const rows: string[] = [];
  const open = new Map<string, () => void>();
  const state = { taken: 0, freed: 0 };
  const workers = new Workers<string>({
    places,
    random: fakeHost().random,
    async take(_lease, limit) {
      state.taken += 1;
      return rows.splice(0, limit);
    },
    work: (row) => new Promise((resolve) => open.set(row, resolve)),
    freed() {
      state.freed += 1;
    },
  });
  return { workers, rows, open, state };
}

test('a turn takes as many rows as there are free places, and queries none while all are taken', async () => {
  const { workers, rows, open, state } = newWorkers(2);
  rows.push('a', 'b', 'c');
  await workers.turn();
  assert.deepEqual([workers.active, [...open.keys()], state.taken], [2, ['a', 'b'], 1]);
  await workers.turn();
  assert.equal(state.taken, 1);
  open.get('a')!();
  await new Promise(setImmediate);
  assert.equal(state.freed, 1);
  await workers.turn();
  assert.deepEqual([workers.active, rows], [2, []]);
});

test('a turn requested during another follows it, and none begins after a drain', async () => {
  const { workers, rows, open, state } = newWorkers(1);
  await Promise.all([workers.turn(), workers.turn()]);
  assert.deepEqual(state, { taken: 1, freed: 1 });
  rows.push('a', 'b');
  await workers.turn();
  let stopped = false;
  const stopping = workers.stop().then(() => {
    stopped = true;
  });
  await workers.turn();
  await new Promise(setImmediate);
  assert.deepEqual([stopped, rows], [false, ['b']]);
  open.get('a')!();
  await stopping;
  assert.equal(workers.active, 0);
});

test('pauses double up to the longest, less up to a quarter', () => {
  const random = (fraction: number) => ({ ...fakeHost().random, fraction: () => fraction });
  assert.deepEqual(
    [0, 1, 5, 99].map((tries) => backOff(tries, 100, 1_000, random(0))),
    [100, 200, 1_000, 1_000],
  );
  assert.equal(backOff(1, 100, 1_000, random(1)), 150);
});
