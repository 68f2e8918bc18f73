/** The way of the journal's text to the database: order, batches, the cursor, pauses after failures, and balances read again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backlog, batchBytes } from '../../../plugins/billing/ledger/backlog.ts';
import { Balance } from '../../../plugins/billing/ledger/balance.ts';
import { BalanceCache } from '../../../plugins/billing/ledger/balance-cache.ts';
import { Flusher } from '../../../plugins/billing/ledger/flusher.ts';
import { type Money, money } from '../../../plugins/common/domain/money.ts';
import { lookMs } from '../../../plugins/common/kit/pace.ts';
import { fakeHost } from '../../helpers/fakes.ts';

function newFlusher() {
  const { clock, log, advance, lines } = fakeHost();
  const state = {
    balance: 0n,
    fails: false,
    tries: 0,
    applied: [] as { text: string; held: Record<string, Money>; cursor: number }[],
    balances: new Map<string, Money>(),
    readings: 0,
    duringReading: async () => {},
    duringBatch: async () => {},
  };
  const fundsOf = async () => ({ balance: money(state.balance) });
  const balances = new BalanceCache({ clock, limit: 10, idleMs: 1_000, kind: Balance, fundsOf });
  const slab = Buffer.alloc(1_000);
  const freed: Buffer[] = [];
  const backlog = new Backlog((free) => freed.push(free));
  const flusher = new Flusher({
    backlog,
    balances: balances,
    clock,
    log,
    applied: 0,
    apply: async (text, accounts, cursor) => {
      state.tries += 1;
      if (state.fails) throw new Error('the database is down');
      state.applied.push({ text, held: Object.fromEntries(accounts), cursor });
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
  /** As `Reservations` does: a hold moves the cached balance alone, an end is counted. */
  const hold = (balance: Balance, amount: bigint) => balance.hold(money(amount));
  const end = (balance: Balance, held: bigint, cost: bigint, sequence: number) =>
    backlog.end(balance, money(held), money(cost), sequence);
  let used = 0;
  /** One line of a single word. */
  const write = (word: string, last: number) => {
    const from = used;
    used += slab.write(`${word}\n`, used);
    backlog.written(slab, from, used, last);
  };
  /** One line with the end of a call in it. */
  const writeEnd = (word: string, last: number) => {
    backlog.endRecovered('carol', last);
    write(word, last);
  };
  return { flusher, backlog, freed, slab, write, writeEnd, hold, end, balances, state, advance, lines };
}

test('lines are applied in order, many at once, later ones next, and the slab is free when all are there', async () => {
  const { flusher, backlog, freed, slab, write, hold, end, balances, state } = newFlusher();
  const [alice, bob] = [await balances.acquire('alice'), await balances.acquire('bob')];
  hold(alice, 3n);
  hold(alice, 2n);
  end(alice, 3n, 1n, 1);
  write('one', 3);
  hold(bob, 1n);
  end(bob, 1n, 1n, 4);
  write('two', 5);
  state.duringBatch = async () => {
    state.duringBatch = async () => {};
    end(alice, 2n, 0n, 2);
    write('three', 6);
    assert.deepEqual([backlog.rows, backlog.oldestSequence, freed.length], [3, 1, 0]);
  };
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(state.applied, [
    { text: 'one\ntwo\n', held: { alice: 2n, bob: 0n }, cursor: 5 },
    { text: 'three\n', held: { alice: 0n }, cursor: 6 },
  ]);
  assert.deepEqual([backlog.rows, backlog.bytes, backlog.oldestSequence], [0, 0, Number.POSITIVE_INFINITY]);
  assert.deepEqual([flusher.appliedSequence, freed], [6, [slab]]);
});

test('after a quiet time a line is written at once; under load one batch each beat has all lines so far', async () => {
  const { flusher, writeEnd, state, advance } = newFlusher();
  assert.equal(flusher.advance(), undefined);
  let last = 0;
  const times: number[] = [];
  for (let at = 0; at < 1_000; at += 10) {
    writeEnd('one', ++last);
    if (at % lookMs === 0) {
      const before = state.applied.length;
      // What comes while a batch is written waits for the next one.
      state.duringBatch = async () => writeEnd('late', ++last);
      await flusher.advance();
      if (state.applied.length > before) times.push(at);
    }
    advance(10);
  }
  assert.deepEqual(times, [0, 250, 500, 750]);
  assert.deepEqual(
    state.applied.map(({ text }) => text.trim().split('\n').length),
    [1, 26, 26, 26],
  );
});

test('a hold moves no money: nothing is sent before the end of a call, or until a batch is full', async () => {
  const { flusher, backlog, write, writeEnd, hold, balances, state, advance } = newFlusher();
  const alice = await balances.acquire('alice');
  let last = 0;
  for (let at = 0; at < 5_000; at += lookMs) {
    if (at % 1_000 === 0) {
      hold(alice, 3n);
      write('hold', ++last);
    }
    assert.equal(flusher.advance(), undefined);
    advance(lookMs);
  }
  assert.equal(alice.available, -15n, 'what is held cannot be held again');
  writeEnd('end', ++last);
  await flusher.advance();
  assert.deepEqual(state.applied, [{ text: 'end\n', held: { carol: 0n }, cursor: last }]);
  const half = Buffer.alloc(batchBytes / 2, 'x');
  backlog.written(half, 0, half.length - 1, ++last);
  advance(1_000);
  assert.equal(flusher.advance(), undefined);
  backlog.written(half, half.length - 1, half.length, ++last);
  const other = Buffer.alloc(batchBytes / 2, 'y');
  backlog.written(other, 0, other.length, ++last);
  await flusher.advance();
  assert.deepEqual([flusher.appliedSequence, backlog.bytes, state.applied.length], [last, 0, 3]);
  // The one that wants to know a balance does not wait for the end of a call.
  write('hold', ++last);
  assert.equal(flusher.advance(), undefined);
  assert.equal(await flusher.refresh('alice'), true);
  assert.equal(flusher.appliedSequence, last);
});

test('a full or requested batch does not wait for its beat', async () => {
  const { flusher, backlog, writeEnd, state } = newFlusher();
  let last = 0;
  const applies = async () => {
    writeEnd('one', ++last);
    const before = state.applied.length;
    await flusher.advance();
    return state.applied.length - before;
  };
  assert.equal(await applies(), 1);
  assert.equal(await applies(), 0);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual([backlog.rows, flusher.appliedSequence], [0, last]);
  const large = Buffer.alloc(batchBytes, 'x');
  backlog.written(large, 0, large.length, ++last);
  assert.equal(await applies(), 2);
});

test('a request for all applies all, also during a batch that leaves some to the next', async () => {
  for (let turns = 0; turns < 20; turns += 1) {
    const { flusher, backlog, writeEnd, state } = newFlusher();
    writeEnd('one', 1);
    state.duringBatch = async () => {
      state.duringBatch = async () => {};
      writeEnd('two', 2);
    };
    void flusher.advance();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    if (turns > 10) assert.equal(backlog.empty, false);
    assert.equal(await flusher.drain(), true);
    assert.equal(backlog.empty, true, `after ${turns} turns`);
  }
});

test('a failed batch is tried again without waiting for its beat', async () => {
  const { flusher, writeEnd, state, advance } = newFlusher();
  writeEnd('one', 1);
  state.fails = true;
  assert.equal(await flusher.advance(), false);
  state.fails = false;
  advance(lookMs);
  assert.equal(await flusher.advance(), true);
  assert.equal(flusher.appliedSequence, 1);
});

test('appended records that are not written wait, and count', async () => {
  const { flusher, backlog, balances, state, write, hold, end } = newFlusher();
  const alice = await balances.acquire('alice');
  hold(alice, 3n);
  end(alice, 3n, 3n, 1);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual([state.applied, backlog.rows], [[], 1]);
  write('one', 1);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual([state.applied.length, backlog.rows], [1, 0]);
});

test('a returned balance is reduced by charges that the database lacks, and by holds of running calls', async () => {
  const { flusher, write, hold, end, balances, state } = newFlusher();
  const alice = await balances.acquire('alice');
  hold(alice, 5n);
  end(alice, 5n, 3n, 1);
  write('one', 2);
  state.balances = new Map([['alice', money(97n)]]);
  state.duringBatch = async () => {
    state.duringBatch = async () => {};
    hold(alice, 12n);
    end(alice, 12n, 10n, 3);
    write('two', 4);
    hold(alice, 100n);
    end(alice, 100n, 100n, 5);
    hold(alice, 7n);
  };
  assert.equal(await flusher.advance(), true);
  assert.equal(alice.available, -20n);
  state.balances = new Map([['alice', money(87n)]]);
  assert.equal(await flusher.drain(), true);
  assert.equal(alice.available, -20n);
  assert.deepEqual([alice.rows, alice.hasApplied(2), alice.hasApplied(3)], [3, true, false]);
  write('three', 7);
  state.balances = new Map([['alice', money(-13n)]]);
  await flusher.drain();
  assert.equal(alice.available, -20n);
  end(alice, 7n, 0n, 7);
  write('four', 8);
  await flusher.drain();
  assert.equal(alice.available, -13n);
  assert.deepEqual(
    state.applied.map(({ held }) => held),
    [{ alice: 0n }, { alice: 0n }, { alice: 7n }, { alice: 0n }],
  );
  alice.release();
  balances.sweep(0);
  assert.equal(balances.find('alice'), undefined);
});

test('a failed batch is repeated unchanged, whatever was written since', async () => {
  const { flusher, writeEnd, state, advance } = newFlusher();
  writeEnd('one', 1);
  state.fails = true;
  assert.equal(await flusher.drain(), false);
  writeEnd('two', 2);
  state.fails = false;
  advance(5_000);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(
    state.applied.map(({ text, held, cursor }) => [text, held, cursor]),
    [
      ['one\n', { carol: 0n }, 1],
      ['two\n', { carol: 0n }, 2],
    ],
  );
});

test('after a failure the flusher pauses, doubling up to five seconds, and loses nothing', async () => {
  const { flusher, writeEnd, state, advance, lines } = newFlusher();
  writeEnd('one', 1);
  state.fails = true;
  const pauses: number[] = [];
  for (let waited = 0; pauses.length < 9; waited += 10) {
    const before = state.tries;
    assert.equal(await flusher.drain(), false);
    if (state.tries > before) {
      pauses.push(waited);
      waited = 0;
    }
    advance(10);
  }
  assert.deepEqual(pauses, [0, 50, 100, 200, 400, 800, 1_600, 3_200, 5_000]);
  state.fails = false;
  advance(5_000);
  assert.equal(await flusher.drain(), true);
  assert.deepEqual(state.applied, [{ text: 'one\n', held: { carol: 0n }, cursor: 1 }]);
  assert.deepEqual(
    lines.map(({ message }) => message),
    ['the ledger could not be written', 'the ledger is written again'],
  );
});

test("an account's balance is read again once for all requests, and again for news that arrive during the read", async () => {
  const { flusher, balances, state } = newFlusher();
  const balance = await balances.acquire('alice');
  state.balance = 5n;
  let late: Promise<boolean> | undefined;
  state.duringReading = async () => {
    if (late !== undefined) return;
    state.balance = 9n;
    late = flusher.refresh('alice');
  };
  assert.deepEqual(await Promise.all([flusher.refresh('alice'), flusher.refresh('alice')]), [true, true]);
  assert.equal(await late, true);
  assert.deepEqual([balance.available, state.readings], [9n, 2]);
});

test('news of an account survive a failing database', async () => {
  const { flusher, balances, state, advance } = newFlusher();
  const balance = await balances.acquire('alice');
  state.balance = 5n;
  state.fails = true;
  assert.equal(await flusher.refresh('alice'), false);
  await flusher.drain();
  state.fails = false;
  advance(5_000);
  await flusher.drain();
  assert.equal(balance.available, 5n);
});

test('for refused calls the database is queried at most once a second', async () => {
  const { flusher, balances, state, advance } = newFlusher();
  const balance = await balances.acquire('alice');
  let late: Promise<boolean> | undefined;
  state.duringReading = async () => {
    late ??= flusher.freshen(balance);
  };
  const requestOf = async () => Promise.all([flusher.freshen(balance), flusher.freshen(balance)]);
  assert.deepEqual(await requestOf(), [true, true]);
  assert.equal(await late, true);
  assert.deepEqual(await requestOf(), [false, false]);
  advance(1_000);
  await requestOf();
  assert.equal(state.readings, 2);
});
