/** The way of the journal's text to the database: order, batches, the cursor, pauses after failures, and balances read anew. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Money, money } from '../../../core/money.ts';
import { Backlog } from '../../../plugins/billing/backlog.ts';
import { Flusher } from '../../../plugins/billing/flusher.ts';
import { availableIn, Purses } from '../../../plugins/billing/purses.ts';
import { fakeHost } from '../../helpers/fakes.ts';

function newFlusher() {
  const { clock, log, advance, lines } = fakeHost();
  const state = {
    balance: 0n,
    fails: false,
    applied: [] as { text: string; accountIds: readonly string[]; cursor: number }[],
    balances: new Map<string, Money>(),
    readings: 0,
    duringReading: async () => {},
    duringBatch: async () => {},
  };
  const fundsOf = async () => ({ balance: money(state.balance) });
  const purses = new Purses({ clock, limit: 10, idleMs: 1_000, fundsOf });
  const slab = Buffer.alloc(1_000);
  const freed: Buffer[] = [];
  const backlog = new Backlog((free) => freed.push(free));
  const flusher = new Flusher({
    backlog,
    purses,
    clock,
    log,
    applied: 0,
    apply: async (text, accountIds, cursor) => {
      if (state.fails) throw new Error('the database is down');
      state.applied.push({ text, accountIds, cursor });
      await state.duringBatch();
      return state.balances;
    },
    fundsOf: async (accountIds) => {
      state.readings += 1;
      const balance = state.balance;
      await state.duringReading();
      if (state.fails) throw new Error('the database is down');
      return new Map(accountIds.map((accountId) => [accountId, { balance: money(balance) }]));
    },
  });
  let used = 0;
  /** One line of a single word. */
  const write = (word: string, last: number) => {
    const from = used;
    used += slab.write(`${word}\n`, used);
    backlog.written(slab, from, used, last);
  };
  return { flusher, backlog, freed, slab, write, purses, state, advance, lines };
}

test('lines go in order, many at once, and those that come meanwhile go next; the slab is free when all are there', async () => {
  const { flusher, backlog, freed, slab, write, purses, state } = newFlusher();
  const [alice, bob] = [await purses.acquire('alice'), await purses.acquire('bob')];
  backlog.post(alice, money(-3n));
  backlog.post(alice, money(-2n));
  write('one', 2);
  backlog.post(bob, money(-1n));
  write('two', 4);
  state.duringBatch = async () => {
    state.duringBatch = async () => {};
    backlog.post(alice, money(1n), 1);
    write('three', 5);
    assert.deepEqual([backlog.rows, backlog.oldestSequence, freed.length], [4, 1, 0]);
  };
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(state.applied, [
    { text: 'one\ntwo\n', accountIds: ['alice', 'bob'], cursor: 4 },
    { text: 'three\n', accountIds: ['alice'], cursor: 5 },
  ]);
  assert.deepEqual([backlog.rows, backlog.bytes, backlog.oldestSequence], [0, 0, Number.POSITIVE_INFINITY]);
  assert.deepEqual([flusher.appliedSequence, freed], [5, [slab]]);
});

test('what is appended but not written waits, and counts', async () => {
  const { flusher, backlog, purses, state, write } = newFlusher();
  const alice = await purses.acquire('alice');
  backlog.post(alice, money(-3n));
  assert.equal(await flusher.drain(), true);
  assert.deepEqual([state.applied, backlog.rows], [[], 1]);
  write('one', 1);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual([state.applied.length, backlog.rows], [1, 0]);
});

test('a balance that the database tells gets on top what it does not have yet', async () => {
  const { flusher, backlog, write, purses, state } = newFlusher();
  const alice = await purses.acquire('alice');
  backlog.post(alice, money(-3n));
  write('one', 1);
  state.balances = new Map([['alice', money(97n)]]);
  state.duringBatch = async () => {
    state.duringBatch = async () => {};
    backlog.post(alice, money(-10n));
    write('two', 2);
    backlog.post(alice, money(-100n));
    state.balances = new Map([['alice', money(87n)]]);
  };
  assert.equal(await flusher.drain(), true);
  assert.equal(availableIn(alice), -13n);
  assert.deepEqual([alice.rows, alice.appliedRows], [3, 2]);
  write('three', 3);
  state.balances = new Map([['alice', money(-13n)]]);
  await flusher.drain();
  assert.equal(availableIn(alice), -13n);
  purses.release(alice);
  purses.sweep(0);
  assert.equal(purses.find('alice'), undefined);
});

test('a batch that failed is repeated as it was, whatever was written since', async () => {
  const { flusher, backlog, write, state, advance } = newFlusher();
  backlog.postEnd('carol', 1);
  write('one', 1);
  state.fails = true;
  assert.equal(await flusher.drain(), false);
  write('two', 2);
  state.fails = false;
  advance(5_000);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(
    state.applied.map(({ text, accountIds, cursor }) => [text, accountIds, cursor]),
    [
      ['one\n', ['carol'], 1],
      ['two\n', [], 2],
    ],
  );
});

test('after a failure it pauses, twice as long each time up to five seconds, and loses nothing', async () => {
  const { flusher, write, state, advance, lines } = newFlusher();
  write('one', 1);
  state.fails = true;
  const pauses: number[] = [];
  for (let waited = 0; pauses.length < 9; waited += 10) {
    const before = lines.length;
    assert.equal(await flusher.drain(), false);
    if (lines.length > before) {
      pauses.push(waited);
      waited = 0;
    }
    advance(10);
  }
  assert.deepEqual(pauses, [0, 50, 100, 200, 400, 800, 1_600, 3_200, 5_000]);
  state.fails = false;
  advance(5_000);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(state.applied, [{ text: 'one\n', accountIds: [], cursor: 1 }]);
});

test('an account’s balance is read anew once for all who ask, and again for news that come while it is read', async () => {
  const { flusher, purses, state } = newFlusher();
  const purse = await purses.acquire('alice');
  state.balance = 5n;
  let late: Promise<boolean> | undefined;
  state.duringReading = async () => {
    if (late !== undefined) return;
    state.balance = 9n;
    late = flusher.refresh('alice');
  };
  assert.deepEqual(await Promise.all([flusher.refresh('alice'), flusher.refresh('alice')]), [true, true]);
  assert.equal(await late, true);
  assert.deepEqual([availableIn(purse), state.readings], [9n, 2]);
});

test('news of an account outlast a failing database', async () => {
  const { flusher, purses, state, advance } = newFlusher();
  const purse = await purses.acquire('alice');
  state.balance = 5n;
  state.fails = true;
  assert.equal(await flusher.refresh('alice'), false);
  await flusher.drain();
  state.fails = false;
  advance(5_000);
  await flusher.drain();
  assert.equal(availableIn(purse), 5n);
});

test('for refused calls the database is asked at most once a second', async () => {
  const { flusher, purses, state, advance } = newFlusher();
  const purse = await purses.acquire('alice');
  let late: Promise<boolean> | undefined;
  state.duringReading = async () => {
    late ??= flusher.freshen(purse);
  };
  const asked = async () => Promise.all([flusher.freshen(purse), flusher.freshen(purse)]);
  assert.deepEqual(await asked(), [true, true]);
  assert.equal(await late, true);
  assert.deepEqual(await asked(), [false, false]);
  advance(1_000);
  await asked();
  assert.equal(state.readings, 2);
});
