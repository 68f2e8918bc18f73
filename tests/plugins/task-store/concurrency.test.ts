/** Orders take places at vendors that bound their requests at once, ask circuits and feed them; nothing is lost for want of either. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Gate, type GateRules } from '../../../plugins/providers/gate.ts';
import { beginBackgroundCall } from '../../../plugins/route/background-calls.ts';
import { HealthRegistry } from '../../../plugins/route/health.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { type Manner, type Node, openTestbed, orderOf, settleTurn, workOff } from './setup.ts';

const clock = { now: () => Date.now(), monotonic: () => performance.now() };

function gateOf(rules: Partial<GateRules>): Gate {
  return new Gate({ limit: 1, queue: 100, waitMs: 5_000, ...rules }, clock, (afterMs, work) => {
    const timer = setTimeout(work, afterMs);
    return () => clearTimeout(timer);
  });
}

function guard(node: Node, gates: Record<string, Gate>): void {
  for (const [name, gate] of Object.entries(gates)) Object.assign(node.tools.providers.find(name)!, { gate });
}

/** A vendor that notes how many orders it had at once. */
async function testbed(manner: (vendor: string) => Manner = () => 'at once') {
  const reported = { now: 0, most: 0, at: [] as string[] };
  const vendor = {
    accepted: new Map<string, number>(),
    charged: 0,
    manner: (_prompt: string, name: string) => {
      reported.at.push(name);
      return manner(name);
    },
    onCreate: async () => {
      reported.now += 1;
      reported.most = Math.max(reported.most, reported.now);
      await pause(5);
      reported.now -= 1;
    },
  };
  const opened = await openTestbed(vendor);
  await opened.credit('10');
  return { testbed: opened, vendor, reported };
}

test("concurrent orders of several workers never exceed a vendor's bound, and wait for their turn", async () => {
  const { testbed: open, vendor, reported } = await testbed();
  const node = open.node({ workers: 8 });
  const gate = gateOf({ limit: 2 });
  guard(node, { first: gate });
  for (let index = 0; index < 8; index++) await node.order(`task_${index}`, orderOf(`p${index}`));
  await workOff(open, node);
  // On a busy machine two orders need not meet at the vendor.
  assert.ok(reported.most <= 2, `${reported.most} at once`);
  assert.deepEqual([vendor.accepted.size, gate.inFlight, gate.waiting], [8, 0, 0]);
  assert.deepEqual(new Set(reported.at), new Set(['first']));
  assert.deepEqual(new Set(Object.values(await open.states())), new Set(['completed']));
  await open.database.close();
});

test('an order of several calls keeps to the bound too, with the free slots that there are', async () => {
  for (const [limit, most] of [
    [1, 1],
    [2, 2],
    [9, 3],
  ] as const) {
    const { testbed: open, vendor, reported } = await testbed();
    const node = open.node();
    const gate = gateOf({ limit });
    guard(node, { first: gate });
    await node.order('task_1', orderOf('p', 30));
    await workOff(open, node);
    assert.deepEqual([reported.most, vendor.accepted.get('p'), vendor.charged, gate.inFlight], [most, 3, 30, 0]);
    assert.deepEqual(await open.states(), { task_1: 'completed' });
    await open.database.close();
  }
});

test('where a vendor is full for too long the next one is tried', async () => {
  const { testbed: open, reported } = await testbed();
  const node = open.node();
  const gate = gateOf({ queue: 0 });
  assert.equal(gate.tryAcquire(), true);
  guard(node, { first: gate });
  await node.order('task_1', orderOf('p'));
  await workOff(open, node);
  assert.deepEqual([await open.states(), reported.at, gate.inFlight], [{ task_1: 'completed' }, ['second'], 1]);
  await open.database.close();
});

test('while all vendors are full an order waits, and is executed when a slot is free', async () => {
  const { testbed: open, reported } = await testbed();
  const node = open.node();
  const gates = { first: gateOf({ queue: 0 }), second: gateOf({ waitMs: 5 }) };
  for (const gate of Object.values(gates)) assert.equal(gate.tryAcquire(), true);
  guard(node, gates);
  await node.order('task_1', orderOf('p'));
  await node.engine.turn();
  await settleTurn(node);
  assert.deepEqual([await open.states(), reported.at], [{ task_1: 'queued' }, []]);
  gates.second.release();
  await workOff(open, node);
  assert.deepEqual([await open.states(), reported.at], [{ task_1: 'completed' }, ['second']]);
  await open.database.close();
});

test('a slot is released whatever the vendor does', async () => {
  for (const manner of ['busy', 'unreachable', 'refuses content', 'breaks off', 'own task'] as const) {
    const { testbed: open } = await testbed((name) => (name === 'first' ? manner : 'at once'));
    const node = open.node();
    const gates = { first: gateOf({}), second: gateOf({}) };
    guard(node, gates);
    await node.order('task_1', orderOf('p'));
    await workOff(open, node);
    assert.deepEqual([gates.first.inFlight, gates.second.inFlight], [0, 0], manner);
    await open.database.close();
  }
});

/** Circuits as `route` keeps them. */
function watch(node: Node): HealthRegistry {
  const book = new HealthRegistry(clock);
  const rules = { failures: 3, share: 0.5, open: 60_000, max_open: 60_000, all_open: 'try' } as const;
  const begin = (provider: string, model: string, forced: boolean) =>
    beginBackgroundCall(book.of({ provider, model, weight: 0 }), { ...fakeHost(), clock }, rules, forced);
  const health = { targets: book.targets.bind(book), reset: book.reset.bind(book), beginBackgroundCall: begin };
  Object.assign(node.tools, { health: () => health });
  return book;
}

test('orders open the circuit of a failing vendor, and later ones skip it until it is closed', async () => {
  let isDown = true;
  const { testbed: open, reported } = await testbed((name) => (name === 'first' && isDown ? 'unreachable' : 'at once'));
  const node = open.node({ workers: 1 });
  const book = watch(node);
  for (let index = 0; index < 5; index++) {
    await node.order(`task_${index}`, orderOf(`p${index}`));
    await workOff(open, node);
  }
  assert.deepEqual(reported.at.filter((name) => name === 'first').length, 3);
  const [first] = book.targets('first');
  assert.deepEqual([first!.circuit, first!.failed, first!.inFlight], ['open', 3, 0]);
  const [second] = book.targets('second');
  assert.deepEqual([second!.circuit, second!.recent, second!.failed, second!.inFlight], ['closed', 5, 0, 0]);
  assert.ok(second!.wholeMs! > 0);
  isDown = false;
  book.reset('first');
  await node.order('task_5', orderOf('p5'));
  await workOff(open, node);
  assert.equal(reported.at.at(-1), 'first');
  assert.deepEqual(new Set(Object.values(await open.states())), new Set(['completed']));
  await open.database.close();
});

test('where all circuits are open an order is executed all the same, and its answer closes one', async () => {
  const { testbed: open, reported } = await testbed();
  const node = open.node();
  const book = watch(node);
  const rules = { failures: 1, share: 0, openMs: 60_000, maxOpenMs: 60_000 };
  for (const [provider, model] of [
    ['first', 'p1'],
    ['second', 'p2'],
  ] as const)
    book.of({ provider, model, weight: 0 }).breaker.failed('plain', clock.monotonic(), rules, fakeHost().random);
  await node.order('task_1', orderOf('p'));
  await workOff(open, node);
  assert.deepEqual([await open.states(), reported.at], [{ task_1: 'completed' }, ['first']]);
  assert.deepEqual([book.targets('first')[0]!.circuit, book.targets('second')[0]!.circuit], ['closed', 'open']);
  await open.database.close();
});
