/** A short simulation with every run of the tests; the long one is `npm run simulate`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from './world.ts';

test('seven worlds of clients, vendors, crashes and faults break no rule of money', async () => {
  let operations = 0;
  let requests = 0;
  let tasks = 0;
  let crashes = 0;
  let bridged = 0;
  let archived = 0;
  for (let seed = 10; seed <= 16; seed += 1) {
    const result = await simulate(seed, 10_000);
    assert.deepEqual(result.violations, [], `npm run simulate -- --first ${seed} --seeds 1 --operations 10000`);
    operations += result.operations;
    requests += result.requests;
    tasks += result.tasks;
    crashes += result.crashes;
    bridged += result.bridged;
    archived += result.counts.get('archive put') ?? 0;
  }
  // Worlds in which nothing happens would prove nothing.
  const seen = `${operations} ${requests} ${tasks} ${crashes} ${bridged} ${archived}`;
  assert.ok(operations > 70_000 && requests > 5_000 && tasks > 130 && crashes > 30, seen);
  assert.ok(bridged > 10 && archived > 30, seen);
});

test('the same seed gives the same run twice, and another seed another one', async () => {
  const [once, again, other] = [await simulate(7, 5_000), await simulate(7, 5_000), await simulate(8, 5_000)];
  assert.equal(once.fingerprint, again.fingerprint);
  assert.deepEqual({ ...once }, { ...again });
  assert.notEqual(once.fingerprint, other.fingerprint);
});
