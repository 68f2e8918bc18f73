/** The limiter of one process: slots, room and memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Demand } from '../../../plugins/rate-limit/limiter.ts';
import { MemoryLimiter } from '../../../plugins/rate-limit/memory.ts';
import { fakeHost } from '../../helpers/fakes.ts';

/** Slots need none. */
const noReceipt = { charged: 0, sinceMs: 0 };

const perMinute = (subject: string, limit: number, units = 1): Demand => ({
  subject,
  group: subject,
  dimension: 'rpm',
  limit,
  periodMs: 60_000,
  units,
});
const slot = (subject: string, limit: number): Demand => ({
  subject,
  group: subject,
  dimension: 'concurrency',
  limit,
  periodMs: 0,
  units: 1,
  slotLifetimeMs: 660_000,
});

test('1,000 parallel takes on a concurrency of 50: exactly 50 are granted', async () => {
  const limiter = new MemoryLimiter(fakeHost().clock);
  const verdicts = await Promise.all(
    Array.from({ length: 1_000 }, async (_, id) => limiter.take(`${id}`, [slot('a', 50)])),
  );
  assert.equal(verdicts.filter(({ granted }) => granted).length, 50);
  for (let id = 0; id < 1_000; id++)
    limiter.giveBack(`${id}`, [{ demand: slot('a', 50), receipt: noReceipt, usedUnits: 0 }]);
  const again = Array.from({ length: 1_000 }, (_, id) => limiter.take(`again ${id}`, [slot('a', 50)]));
  assert.equal(again.filter(({ granted }) => granted).length, 50);
});

test('a slot that is released twice is one slot', () => {
  const limiter = new MemoryLimiter(fakeHost().clock);
  assert.equal(limiter.take('one', [slot('a', 2)]).granted, true);
  assert.equal(limiter.take('two', [slot('a', 2)]).granted, true);
  limiter.giveBack('one', [{ demand: slot('a', 2), receipt: noReceipt, usedUnits: 0 }]);
  limiter.giveBack('one', [{ demand: slot('a', 2), receipt: noReceipt, usedUnits: 0 }]);
  assert.equal(limiter.take('three', [slot('a', 2)]).granted, true);
  assert.equal(limiter.take('four', [slot('a', 2)]).granted, false);
});

test('a slot that is not released expires', () => {
  const host = fakeHost();
  const limiter = new MemoryLimiter(host.clock);
  limiter.take('lost', [slot('a', 1)]);
  host.advance(659_999);
  assert.equal(limiter.take('next', [slot('a', 1)]).granted, false);
  host.advance(1);
  assert.equal(limiter.take('next', [slot('a', 1)]).granted, true);
});

test('a refusal takes neither slot nor request', () => {
  const limiter = new MemoryLimiter(fakeHost().clock);
  const both = [perMinute('a', 3), slot('a', 1)];
  assert.equal(limiter.take('one', both).granted, true);
  for (let id = 0; id < 10; id++) {
    const verdict = limiter.take(`refused ${id}`, both);
    assert.equal(verdict.refusedBy?.dimension, 'concurrency');
    assert.equal(verdict.statuses[0]!.remaining, 2);
  }
  limiter.giveBack('one', [{ demand: slot('a', 1), receipt: noReceipt, usedUnits: 0 }]);
  assert.equal(limiter.take('two', both).granted, true);
  assert.equal(limiter.take('three', [perMinute('a', 3)]).granted, true);
  assert.equal(limiter.take('four', [perMinute('a', 3), slot('a', 5)]).refusedBy?.dimension, 'rpm');
  limiter.giveBack('two', [{ demand: slot('a', 1), receipt: noReceipt, usedUnits: 0 }]);
  assert.equal(limiter.take('five', [slot('a', 1)]).granted, true, 'the refused request holds no slot');
});

test('accounts do not share buckets', () => {
  const limiter = new MemoryLimiter(fakeHost().clock);
  assert.equal(limiter.take('one', [perMinute('a', 1)]).granted, true);
  assert.equal(limiter.take('two', [perMinute('a', 1)]).granted, false);
  assert.equal(limiter.take('three', [perMinute('b', 1)]).granted, true);
});

test('more than eight buckets at once is a mistake', () => {
  const limiter = new MemoryLimiter(fakeHost().clock);
  assert.throws(
    () =>
      limiter.take(
        'one',
        Array.from({ length: 9 }, () => perMinute('a', 1)),
      ),
    RangeError,
  );
});

test('idle accounts are dropped, and those with debt or a running call are not', () => {
  const host = fakeHost();
  const limiter = new MemoryLimiter(host.clock);
  limiter.take('one', [perMinute('brief', 60)]);
  limiter.take('two', [perMinute('heavy', 60, 60)]);
  limiter.take('three', [slot('running', 1)]);
  host.advance(1_000);
  limiter.sweep();
  assert.equal(limiter.size, 2);
  assert.equal(limiter.take('four', [perMinute('heavy', 60, 2)]).granted, false);
  assert.equal(limiter.take('five', [slot('running', 1)]).granted, false);
  host.advance(660_000);
  limiter.sweep();
  assert.equal(limiter.size, 0);
});

test('memory is bounded, and the accounts idle longest are dropped first', () => {
  const host = fakeHost();
  const limiter = new MemoryLimiter(host.clock, 10);
  limiter.take('heavy', [perMinute('heavy', 60, 60)]);
  limiter.take('running', [slot('running', 1)]);
  for (let id = 0; id < 1_000; id++) {
    limiter.take(`${id}`, [perMinute(`account ${id}`, 60)]);
    assert.ok(limiter.size <= 10);
    host.advance(10);
    if (id % 100 === 0) host.advance(100);
    assert.equal(limiter.take('again', [slot('running', 1)]).granted, false, 'a running call was forgotten');
  }
});

test('an account is dropped for another even when none is idle', () => {
  const limiter = new MemoryLimiter(fakeHost().clock, 4);
  limiter.take('running', [slot('running', 1)]);
  for (let id = 0; id < 100; id++) limiter.take(`${id}`, [perMinute(`account ${id}`, 1)]);
  assert.equal(limiter.size, 4);
  assert.equal(limiter.take('again', [slot('running', 1)]).granted, false);
  const slots = new MemoryLimiter(fakeHost().clock, 4);
  for (let id = 0; id < 100; id++) slots.take(`${id}`, [slot(`account ${id}`, 1)]);
  assert.equal(slots.size, 4);
});

test('a dropped account accepts late returns', () => {
  const host = fakeHost();
  const limiter = new MemoryLimiter(host.clock);
  const { receipts } = limiter.take('one', [perMinute('a', 60), slot('a', 1)]);
  host.advance(3_600_000);
  limiter.sweep();
  limiter.giveBack('one', [{ demand: slot('a', 1), receipt: noReceipt, usedUnits: 0 }]);
  limiter.giveBack('one', [{ demand: perMinute('a', 60), receipt: receipts[0]!, usedUnits: 5 }]);
  assert.equal(limiter.size, 0);
});

test('a late call of a dropped account returns nothing to the new bucket', () => {
  const host = fakeHost();
  const limiter = new MemoryLimiter(host.clock);
  const { receipts } = limiter.take('one', [perMinute('a', 60, 50)]);
  host.advance(50_000);
  limiter.sweep();
  assert.equal(limiter.size, 0);
  assert.equal(limiter.take('two', [perMinute('a', 60, 60)]).granted, true);
  limiter.giveBack('one', [{ demand: perMinute('a', 60, 50), receipt: receipts[0]!, usedUnits: 0 }]);
  const refused = limiter.take('three', [perMinute('a', 60)]);
  assert.equal(refused.granted, false);
  assert.deepEqual(refused.receipts, []);
});
