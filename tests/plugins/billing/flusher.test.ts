/** The way of entries to the database: order, batches, the cursor, pauses after failures, and balances read anew. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Money, money, one } from '../../../core/money.ts';
import { Flusher } from '../../../plugins/billing/flusher.ts';
import { type Entry, holdEntry, newHold } from '../../../plugins/billing/hold.ts';
import { Purses } from '../../../plugins/billing/purses.ts';
import { fakeHost } from '../../helpers/fakes.ts';

function newFlusher() {
  const { clock, log, advance, lines } = fakeHost();
  const state = {
    written: 1_000,
    balance: 0n,
    fails: false,
    applied: [] as { sequences: number[]; cursor: number }[],
    readings: 0,
    duringReading: async () => {},
  };
  const balanceOf = async () => money(state.balance);
  const purses = new Purses({ clock, limit: 10, idleMs: 1_000, balanceOf });
  const flusher = new Flusher({
    purses,
    clock,
    log,
    batchSize: 3,
    applied: 0,
    writtenSequence: () => state.written,
    apply: async (entries, cursor) => {
      if (state.fails) throw new Error('the database is down');
      state.applied.push({ sequences: entries.map(({ sequence }) => sequence), cursor });
      return new Map<string, Money>();
    },
    balancesOf: async (accountIds) => {
      state.readings += 1;
      const balance = state.balance;
      await state.duringReading();
      if (state.fails) throw new Error('the database is down');
      return new Map(accountIds.map((accountId) => [accountId, money(balance)]));
    },
    onApplied: () => {},
  });
  return { flusher, purses, state, advance, lines };
}

function entryOf(sequence: number): Entry {
  const terms = {
    id: `${sequence}`,
    accountId: 'alice',
    keyId: 'k',
    model: 'm',
    price: {},
    priceVersion: 'v',
    ratio: one,
  };
  const hold = newHold({ ...terms, inputTokens: 0, outputTokens: 0 }, 0, money(1n), undefined);
  hold.sequence = sequence;
  return holdEntry(hold);
}

test('entries go in order and in batches, and the cursor never passes one that is left', async () => {
  const { flusher, state } = newFlusher();
  for (const sequence of [2, 5, 6, 9, 10, 14, 20]) flusher.push(entryOf(sequence));
  state.written = 15;
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(state.applied, [
    { sequences: [2, 5, 6], cursor: 8 },
    { sequences: [9, 10, 14], cursor: 15 },
  ]);
  assert.deepEqual([flusher.backlog, flusher.appliedSequence], [1, 15]);
});

test('after a failure it pauses, twice as long each time up to five seconds, and loses nothing', async () => {
  const { flusher, state, advance, lines } = newFlusher();
  flusher.push(entryOf(1));
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
  assert.deepEqual(state.applied, [{ sequences: [1], cursor: 1_000 }]);
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
  assert.deepEqual([purse.available, state.readings], [9n, 2]);
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
  assert.equal(purse.available, 5n);
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
