/** The queue: each task ends once and is charged or given back once, whatever vendors and nodes do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { runsOf, testHistory } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import {
  imagePrice,
  type Manner,
  openTestbed,
  orderOf,
  settleTurn,
  type Testbed,
  type VendorWorld,
  workOff,
} from './setup.ts';

const world = (manner: VendorWorld['manner'], more: Partial<VendorWorld> = {}): VendorWorld => ({
  accepted: new Map(),
  charged: 0,
  manner,
  ...more,
});

async function checkEnds(testbed: Testbed, vendor: VendorWorld): Promise<void> {
  let completed = 0n;
  for (const { id, state, settled, kinds } of await testbed.ends()) {
    const isCharged = state === 'completed';
    assert.deepEqual(settled, [isCharged], `${id} is ${state}`);
    assert.deepEqual(kinds ?? [], isCharged ? ['CHARGE'] : [], `${id} is ${state} with ${kinds}`);
    if (state === 'completed') completed += 1n;
  }
  assert.equal(await testbed.balance(), 1_000_000_000n - completed * imagePrice);
  for (const [prompt, times] of vendor.accepted) assert.equal(times, 1, `${prompt} was made ${times} times`);
  assert.deepEqual(await testbed.violations(), []);
}

const expected: [Manner, string][] = [
  ['at once', 'completed'],
  ['own task', 'completed'],
  ['refuses content', 'failed'],
  ['breaks off', 'failed'],
  ['fails later', 'failed'],
];
for (const [manner, state] of expected) {
  test(`a vendor that answers "${manner}": the task is ${state}, and the money with it`, async () => {
    const vendor = world(() => manner);
    const testbed = await openTestbed(vendor);
    await testbed.credit('1');
    const node = testbed.node();
    await node.order('task_1', orderOf('p'));
    await workOff(testbed, node);
    assert.deepEqual(await testbed.states(), { task_1: state });
    await checkEnds(testbed, vendor);
    await testbed.database.close();
  });
}

test('a busy or unreachable vendor is skipped; another is tried only where nothing was sent', async () => {
  const vendor = world((prompt, name) => (name === 'first' ? (prompt as Manner) : 'at once'));
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  const node = testbed.node();
  for (const manner of ['busy', 'unreachable', 'breaks off']) await node.order(`task_${manner}`, orderOf(manner));
  await workOff(testbed, node);
  assert.deepEqual(await testbed.states(), {
    task_busy: 'completed',
    task_unreachable: 'completed',
    'task_breaks off': 'failed',
  });
  await checkEnds(testbed, vendor);
  await testbed.database.close();
});

test('unreachable vendors are tried again until the deadline, and cost nothing', async () => {
  const vendor = world(() => 'unreachable');
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  const node = testbed.node();
  await node.order('task_1', orderOf('p'));
  await settleTurn(node);
  assert.deepEqual(await testbed.states(), { task_1: 'creating' });
  await testbed.deadlinesPass();
  await workOff(testbed, node);
  assert.deepEqual(await testbed.states(), { task_1: 'failed' });
  await checkEnds(testbed, vendor);
  await testbed.database.close();
});

test('a stuck vendor: the task expires, and its client pays nothing', async () => {
  const vendor = world(() => 'stuck');
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  const node = testbed.node();
  await node.order('task_1', orderOf('p'));
  await workOff(testbed, node, 5);
  assert.deepEqual(await testbed.states(), { task_1: 'running' });
  await testbed.deadlinesPass();
  await workOff(testbed, node);
  assert.equal((await testbed.rows.find('task_1'))!.error!.code, 'expired');
  await checkEnds(testbed, vendor);
  await testbed.database.close();
});

for (const jumpMs of [-40 * 86_400_000, -3_600_000, 3_600_000, 40 * 86_400_000])
  test(`a task whose node's clock jumps by ${jumpMs / 3_600_000} hours is polled to its end, and paid once`, async () => {
    let polls = 0;
    const vendor = world(() => 'own task', {
      async onPoll() {
        polls += 1;
        // The vendor does not know it yet.
        if (polls < 3)
          throw new UpstreamRefusal(new GatewayError('not_found', 'There is no such task.'), { status: 404 });
      },
    });
    const testbed = await openTestbed(vendor);
    await testbed.credit('1');
    const node = testbed.node();
    await node.order('task_1', orderOf('p'));
    while (polls === 0) {
      await settleTurn(node);
      await testbed.timePasses();
    }
    testbed.jump(jumpMs);
    await workOff(testbed, node);
    assert.deepEqual(await testbed.states(), { task_1: 'completed' });
    await checkEnds(testbed, vendor);
    await testbed.database.close();
  });

test('the late answer of a worker that was believed lost counts, and the order is not sent twice', async () => {
  let release = () => {};
  const vendor = world(() => 'own task', {
    onCreate: () => new Promise<void>((resolve) => (release = resolve)),
  });
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  const slow = testbed.node();
  await slow.order('task_1', orderOf('p'));
  await slow.engine.turn();
  while (vendor.accepted.size === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  await testbed.timePasses();
  const other = testbed.node({ reconcileMs: 60_000 });
  await settleTurn(other);
  assert.deepEqual(await testbed.states(), { task_1: 'reconciling' });
  release();
  while (slow.engine.active > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.notEqual((await testbed.states())['task_1'], 'reconciling');
  await workOff(testbed, other);
  assert.deepEqual(await testbed.states(), { task_1: 'completed' });
  await checkEnds(testbed, vendor);
  await testbed.database.close();
});

test('a vendor that answers twice, to a worker that was believed lost and to its successor: the task ends once', async () => {
  const releases: (() => void)[] = [];
  const vendor = world(() => 'own task', { onPoll: () => new Promise<void>((resolve) => void releases.push(resolve)) });
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  const [one, two] = [testbed.node(), testbed.node()];
  await one.order('task_1', orderOf('p'));
  while (releases.length === 0) {
    await one.engine.turn();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await testbed.timePasses();
  await two.engine.turn();
  while (releases.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  for (const release of releases) release();
  while (one.engine.active + two.engine.active > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await workOff(testbed, two);
  assert.deepEqual(await testbed.states(), { task_1: 'completed' });
  await checkEnds(testbed, vendor);
  await testbed.database.close();
});

test('an order that the balance does not cover leaves no task', async () => {
  const testbed = await openTestbed(world(() => 'at once'));
  const node = testbed.node();
  await assert.rejects(node.order('task_1', orderOf('p')), /does not cover/);
  assert.deepEqual(await testbed.states(), {});
  await testbed.database.close();
});

const manners: Manner[] = [
  'at once',
  'own task',
  'refuses content',
  'busy',
  'unreachable',
  'breaks off',
  'fails later',
];

testHistory(
  'when nodes die at any statement, before or after its effect, each task ends once, and is paid or released once',
  async () => {
    const run = fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...manners), fc.constantFrom(...manners)), { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(fc.integer({ min: 1, max: 14 }), fc.boolean()), { minLength: 1, maxLength: 8 }),
      async (plans, deaths) => {
        const vendor = world((prompt, name) => plans[Number(prompt)]![name === 'first' ? 0 : 1]);
        const testbed = await openTestbed(vendor);
        await testbed.credit('1');
        await testbed.node().order('task_0', orderOf('0'));
        const first = testbed.node({ workers: 2 });
        for (let index = 1; index < plans.length; index += 1)
          await first.order(`task_${index}`, orderOf(String(index)));
        for (const [statements, after] of deaths) {
          const node = testbed.node({ workers: 2 });
          Object.assign(node.fate, { statements, after });
          for (let turn = 0; turn < 4 && !node.fate.dead; turn += 1) await settleTurn(node);
          await testbed.timePasses();
        }
        // Vendors that were busy or away are back.
        const last = testbed.node();
        vendor.manner = (prompt, name) => {
          const manner = plans[Number(prompt)]![name === 'first' ? 0 : 1];
          return manner === 'busy' || manner === 'unreachable' ? 'at once' : manner;
        };
        await workOff(testbed, last);
        const open = Object.values(await testbed.states()).filter((state) => !['completed', 'failed'].includes(state));
        assert.deepEqual(open, []);
        await checkEnds(testbed, vendor);
        await testbed.database.close();
      },
    );
    await fc.assert(run, { numRuns: runsOf(4, 12), endOnFailure: true });
  },
);

testHistory('many tasks of eight workers on two nodes each end once', async () => {
  const vendor = world((prompt) => (Number(prompt) % 3 === 0 ? 'own task' : 'at once'));
  const testbed = await openTestbed(vendor);
  await testbed.credit('1');
  await testbed.credit('19');
  const count = runsOf(80, 1_000);
  const [one, two] = [testbed.node({ workers: 8, wakes: true }), testbed.node({ workers: 8, wakes: true })];
  for (let from = 0; from < count; from += 20) {
    const some = Array.from({ length: Math.min(20, count - from) }, (_, index) => from + index);
    await Promise.all(some.map((index) => one.order(`task_${index}`, orderOf(String(index)))));
  }
  const isOpen = async () => Object.values(await testbed.states()).some((state) => state !== 'completed');
  for (let round = 0; round < 6_000 && (await isOpen()); round += 1) {
    one.engine.wake();
    two.engine.wake();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(await testbed.balance(), 20_000_000_000n - BigInt(count) * imagePrice);
  assert.equal(vendor.accepted.size, count);
  assert.ok([...vendor.accepted.values()].every((times) => times === 1));
  assert.deepEqual(await testbed.violations(), []);
  await testbed.database.close();
});
