/** Batches of generateContent that a vendor makes itself. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Trouble } from './stand-in.ts';
import { contentLine as line, lineCost, orderContents as order, startTestbed, type Testbed } from './world.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed();
});
after(() => testbed.stop());

test('contents are executed in one vendor batch, each paid once by its own usage', async () => {
  const world = await testbed.open();
  const batch = await world.client.ended(await order(world, [line('one'), line('two', '[refused]'), line('three')]));
  assert.deepEqual(batch.request_counts, { total: 3, completed: 2, failed: 1 });
  assert.match(JSON.stringify(batch.lines.get('one')!.response!.body), /"answer b[0-9a-f]{24}-1"/);
  assert.equal(batch.lines.get('two')!.response!.status_code, 400);
  assert.equal(world.vendor.steps.filter((step) => step === 'order').length, 1);
  assert.equal(world.vendor.files.size, 0);
  await world.settled(2n * lineCost, 2);
});

test('a cancelled batch, and one that expires at the vendor, keep and pay their finished lines', async () => {
  const world = await testbed.open();
  world.vendor.pollsUntilEnd = Number.POSITIVE_INFINITY;
  const id = await order(world, [line('one'), line('two', '[late]')]);
  while (!world.vendor.steps.includes('get')) await pause(20);
  await world.client.cancel(id);
  const cancelled = await world.client.ended(id);
  assert.equal(cancelled.lines.get('two')!.error!.code, 'batch_cancelled');
  world.vendor.pollsUntilEnd = 1;
  world.vendor.endsAs = 'expired';
  const expired = await world.client.ended(await order(world, [line('one'), line('two', '[late]')]));
  assert.equal(expired.lines.get('two')!.error!.code, 'batch_expired');
  await world.settled(2n * lineCost, 2);
});

test('errors of the vendor at each call delay a batch, and repeat nothing', async () => {
  const world = await testbed.open();
  const kinds: Trouble[] = [{ status: 500 }, 'before', { status: 429, headers: { 'retry-after': '0' } }, 'after'];
  const seen = new Map<string, number>();
  world.vendor.trouble = (step) => {
    const times = seen.get(step) ?? 0;
    seen.set(step, times + 1);
    return step.startsWith('delete') ? undefined : kinds[times];
  };
  const batch = await world.client.ended(await order(world, [line('one'), line('two')]));
  assert.equal(batch.request_counts.completed, 2);
  for (const step of ['begin upload', 'upload', 'find file', 'order', 'list', 'get', 'results'])
    assert.ok((seen.get(step) ?? 0) > 1, `${step} was repeated`);
  assert.equal(world.vendor.batches.size, 1);
  await world.settled(2n * lineCost, 2);
});

test('a line with an impossible reported usage is charged by its estimate', async () => {
  const world = await testbed.open();
  await world.client.ended(await order(world, [line('one'), line('two', '[lies]')]));
  await world.checkLies();
});
