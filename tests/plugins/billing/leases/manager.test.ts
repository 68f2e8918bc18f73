/**
 * Several nodes lease one account: in any order of events and crashes they never spend more than the balance, and
 * can spend all of it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { LeasedBalance } from '../../../../plugins/billing/leases/leased-balance.ts';
import { LeaseManager, leaseTimes } from '../../../../plugins/billing/leases/manager.ts';
import type { Leased, LeaseRequest } from '../../../../plugins/billing/leases/store.ts';
import { BalanceCache } from '../../../../plugins/billing/ledger/balance-cache.ts';
import type { Flusher } from '../../../../plugins/billing/ledger/flusher.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { fakeHost } from '../../../helpers/fakes.ts';
import { runsOf } from '../../../helpers/histories.ts';
import { fc } from '../../../helpers/properties.ts';
import { FakeNode, type Fault, newTown, type Town } from './fake-node.ts';
import { LeaseModel, sliceOf } from './lease-model.ts';

const names = ['one', 'two', 'three', 'four'];

function openTown(balance: bigint, nodes: number, bridgeMs = 0): Town {
  const town = newTown(new LeaseModel(balance), bridgeMs);
  for (const name of names.slice(0, nodes)) new FakeNode(town, name);
  return town;
}

/** Lets every promise go as far as it gets without time. */
async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await Promise.resolve();
}

/** Time passes, in the steps in which nodes look after their leases. */
async function pass(town: Town, milliseconds: number): Promise<void> {
  town.gate.resolve();
  town.gate = Promise.withResolvers();
  if (town.fault.startsWith('late')) town.fault = 'none';
  await settleDown();
  for (let done = 0; done < milliseconds; done += 50) {
    town.host.advance(50);
    town.deliver();
    const isLookDue = town.host.clock.monotonic() - town.lookedAt >= 1_000;
    if (isLookDue) town.lookedAt = town.host.clock.monotonic();
    for (const node of town.nodes.values()) {
      await node.flusher.advance();
      node.leases.turn();
      if (isLookDue) node.leases.look();
    }
    await settleDown();
  }
}

/** Runs until it has ended, while time passes. */
async function ended<T>(town: Town, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  for (let step = 0; step < 400 && !isOver; step++) {
    await settleDown();
    if (!isOver) await pass(town, 50);
  }
  assert(isOver, 'it never ended');
  return over;
}

/** Jumps of the wall clock alone. */
const jumpsMs = [-40 * 86_400_000, -3_600_000, -30_000, 30_000, 3_600_000, 40 * 86_400_000];

const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('hold' as const),
      node: fc.nat(3),
      amount: fc.integer({ min: 1, max: 40 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      node: fc.nat(3),
      cost: fc.integer({ min: 0, max: 130 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('flush' as const), node: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('turn' as const), node: fc.nat(3) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(50, 300, 1_000, 20_000) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.constantFrom('refused', 'lost answer', 'late', 'late answer', 'late batch') as fc.Arbitrary<Fault>,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), node: fc.nat(3), back: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('jump' as const), ms: fc.constantFrom(...jumpsMs) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('credit' as const), amount: fc.integer({ min: 1, max: 60 }) }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

class History {
  readonly town: Town;
  readonly running: Promise<unknown>[] = [];
  readonly dead: FakeNode[] = [];

  constructor(town: Town) {
    this.town = town;
  }

  async run(step: Operation): Promise<void> {
    const { town } = this;
    const alive = [...town.nodes.values()];
    const node = 'node' in step ? alive[step.node % alive.length]! : undefined;
    if (step.kind === 'hold') this.running.push(node!.hold(money(BigInt(step.amount))));
    else if (step.kind === 'settle') node!.settle(BigInt(step.cost));
    else if (step.kind === 'flush') void node!.flush();
    else if (step.kind === 'turn') node!.leases.turn();
    else if (step.kind === 'pass') await pass(town, step.ms);
    else if (step.kind === 'jump') town.host.jump(step.ms);
    else if (step.kind === 'fault') town.fault = step.fault;
    else if (step.kind === 'credit') {
      town.model.balance += BigInt(step.amount);
      town.truth += BigInt(step.amount);
    } else if (alive.length > 1) {
      // What waits in a dead process waits for ever.
      node!.crash();
      if (step.back) this.#restart(node!);
      else this.dead.push(node!);
    }
    await settleDown();
  }

  #restart(node: FakeNode): void {
    node.recover();
    new FakeNode(this.town, node.name);
  }

  restartAll(): void {
    for (const node of this.dead.splice(0)) this.#restart(node);
  }

  check(): void {
    const { truth, overrun, lowest, model } = this.town;
    assert(lowest + overrun >= 0n, `a charge that the balance did not cover: ${lowest}`);
    assert(truth + overrun >= 0n, `more was set aside than there is: ${truth}`);
    assert(model.leased <= (model.balance > 0n ? model.balance : 0n), `${model.leased} are leased of ${model.balance}`);
    for (const { name, owed } of [...this.town.nodes.values(), ...this.dead]) {
      const lease = model.leases.get(name) ?? 0n;
      assert(owed <= lease + overrun, `the calls of ${name} hold and cost ${owed} of a lease of ${lease}`);
    }
  }
}

test('with any number of nodes, crashes, refused statements and lost answers, leases never exceed the money', async () => {
  const histories = fc.array(operation, { minLength: 5, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 200 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(0, 120_000),
      histories,
      async (balance, nodes, bridgeMs, steps) => {
        const history = new History(openTown(BigInt(balance), nodes, bridgeMs));
        for (const step of steps) {
          await history.run(step);
          history.check();
        }
        const { town } = history;
        town.fault = 'none';
        history.restartAll();
        await pass(town, 6_000);
        for (const node of town.nodes.values()) while (node.holds.length > 0) node.settle(50n);
        // A database that was down is asked again after a pause; unused money is returned.
        await pass(town, 25_000);
        history.check();
        assert.equal(town.model.balance, town.truth, 'the database and the truth differ in the end');
        // Eight holds of the dearest call, for an outage.
        const most = bridgeMs === 0 ? 0n : BigInt(nodes * 8 * 40);
        assert.ok(town.model.leased <= most, 'more is leased than an outage needs');
      },
    ),
    { numRuns: runsOf(15, 120) },
  );
});

test('the whole balance can be spent on any node, whichever node has leased it', async () => {
  const input = [
    fc.integer({ min: 40, max: 200 }),
    fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 9 })), { maxLength: 12 }),
    fc.nat(3),
    fc.constantFrom(0, 120_000),
  ] as const;
  await fc.assert(
    fc.asyncProperty(...input, async (balance, earlier, last, bridgeMs) => {
      const town = openTown(BigInt(balance), 4, bridgeMs);
      const nodes = [...town.nodes.values()];
      for (const [index, amount] of earlier) {
        const node = nodes[index]!;
        if (await ended(town, node.hold(money(BigInt(amount))))) node.settle(30n);
      }
      assert.equal(await ended(town, nodes[last]!.hold(money(town.truth))), true);
      assert.equal(town.truth, 0n);
      assert.equal(await ended(town, nodes[(last + 1) % 4]!.hold(money(1n))), false);
    }),
    { numRuns: runsOf(8, 60) },
  );
});

test('a rich account is served from memory: a hundred calls need a statement or two, and wait for none after the first', async () => {
  const town = openTown(1_000_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(10n)), true);
  let waited = 0;
  for (let call = 0; call < 100; call++) {
    const balance = node.balances.find('alice')!;
    if (!balance.admits(money(10n))) waited += 1;
    assert.equal(await node.hold(money(10n)), true);
    node.settle(100n);
    if (call % 5 === 4) await settleDown();
  }
  assert.equal(waited, 0);
  assert(town.statements <= 8, `${town.statements} statements`);
});

test('a node with long calls keeps its share while others arrive, and returns it when none does', async () => {
  const town = openTown(1_000_000n, 1);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(10n)), true);
  await pass(town, 2_000);
  const before = town.statements;
  for (let second = 0; second < 14; second++) {
    assert.equal(await node.hold(money(10n)), true);
    await pass(town, 1_000);
  }
  assert.ok(town.statements <= before + 1, 'one to renew it');
  await pass(town, 14_000);
  assert.equal(town.model.leased, 150n, 'what running calls hold');
});

test('near zero each call is one statement, exact to the last unit', async () => {
  const town = openTown(30n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  assert.equal(await one.hold(money(20n)), true);
  assert.equal(town.statements, 1);
  assert.equal(await two.hold(money(10n)), true);
  assert.equal(town.statements, 2);
  assert.equal(await ended(town, one.hold(money(1n))), false);
  assert.equal(town.truth, 0n);
});

for (const fault of ['late', 'late answer'] as const) {
  test(`money that a node spends while it requests more is not given to another: ${fault}`, async () => {
    const town = openTown(100n, 2);
    const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
    assert.equal(await one.hold(money(10n)), true);
    assert.equal(town.model.leases.get('one'), 50n);
    // It asks for more than it has; on the way, and while others ask too, it goes on spending what it has.
    town.fault = fault;
    const more = one.hold(money(45n));
    await settleDown();
    assert.equal(await one.hold(money(40n)), true);
    town.gate.resolve();
    const rest = ended(town, two.hold(money(55n)));
    assert.deepEqual([await rest, await ended(town, more)].toSorted(), [false, true]);
    assert(town.truth >= 0n);
    assert.equal(await ended(town, two.hold(money(town.truth + 1n))), false);
  });
}

test('money that an ended call released is returned once the ledger has its end, and not before the ends of others', async () => {
  const town = openTown(120n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  const letGo = () => {
    town.gate.resolve();
    town.gate = Promise.withResolvers();
    return settleDown();
  };
  assert.equal(await one.hold(money(70n)), true);
  await one.flush();
  assert.equal(await one.hold(money(10n)), true);
  town.fault = 'late batch';
  const flushed = one.flush();
  await settleDown();
  // While a batch is on its way there come a hold and, behind it, the end of the first; then another node wants all.
  assert.equal(await one.hold(money(15n)), true);
  one.settle(0n);
  one.leases.wanted('two alice');
  await letGo();
  town.fault = 'none';
  assert.equal(await two.hold(money(25n)), true, 'what is left beside it');
  const tooMuch = two.hold(money(15n));
  await settleDown();
  await two.flush();
  await letGo();
  await flushed;
  assert.ok(town.truth >= 0n, 'a hold that the balance did not cover');
  assert.equal(await ended(town, tooMuch), true, 'it comes with the next batch');
});

test('a reduced share is not taken from money that a node may be spending', async () => {
  const town = openTown(100n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  assert.equal(await one.hold(money(10n)), true);
  assert.equal(await two.hold(money(30n)), true);
  town.fault = 'late answer';
  one.leases.topUp(one.balances.find('alice')!);
  await settleDown();
  assert.equal(await one.hold(money(40n)), true, 'from memory, while the answer is on its way');
  const tooMuch = two.hold(money(21n));
  await settleDown();
  assert.equal(town.truth, 20n);
  assert.equal(await ended(town, tooMuch), false);
  assert.equal(await ended(town, two.hold(money(20n))), true);
  assert.equal(town.truth, 0n);
});

test('money that a dead node may owe stays leased until its journal is back; then the unspent part is free', async () => {
  const town = openTown(100n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  assert.equal(await one.hold(money(2n)), true);
  const leased = town.model.leases.get('one')!;
  assert(leased > 2n && leased <= 50n);
  one.crash();
  await pass(town, 60_000);
  assert.equal(await ended(town, two.hold(money(100n - leased + 1n))), false);
  assert.equal(await ended(town, two.hold(money(100n - leased))), true);
  one.recover();
  assert.equal(town.model.balance - town.model.leased, leased - 1n);
  assert.equal(await ended(town, two.hold(money(leased - 1n))), true);
});

test('a node that cannot reach the database stops when its lease ends, and continues when it can', async () => {
  const town = openTown(1_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(1n)), true);
  const balance = node.balances.find('alice')!;
  assert.equal(balance.admits(money(1n)), true);
  town.host.advance(29_999);
  assert.equal(balance.admits(money(1n)), true);
  town.host.advance(2);
  assert.equal(balance.admits(money(1n)), false);
  town.fault = 'refused';
  assert.equal(await node.hold(money(1n)), false);
  town.host.advance(5_000);
  assert.equal(await node.hold(money(1n)), true);
});

test('a drain returns all money that no call holds', async () => {
  const town = openTown(1_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(7n)), true);
  await node.flush();
  assert(town.model.leases.get('one')! > 0n);
  node.leases.drain();
  await settleDown();
  assert.equal(town.model.leased, 7n, 'what a call holds stays leased');
  node.settle(0n);
  await pass(town, 100);
  assert.deepEqual([town.model.leased, town.model.balance], [0n, 1_000n]);
});

test('with a slow database, calls that take money requested for others cause no refusal while there is money', async () => {
  const pauses = fc.array(fc.tuple(fc.nat(30), fc.boolean()), { minLength: 2, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(pauses, async (calls) => {
      const town = openTown(1_000_000n, 1);
      const node = town.nodes.get('one')!;
      const take = town.model.take.bind(town.model);
      town.model.take = (...requested) => {
        town.host.advance(3_000);
        return take(...requested);
      };
      const running: Promise<boolean>[] = [];
      for (const [turns, leaves] of calls) {
        if (leaves) node.leases.drain();
        running.push(node.hold(money(10n)));
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      }
      const held = await Promise.all(running.map((call) => ended(town, call)));
      assert.deepEqual(new Set(held), new Set([true]));
    }),
    { numRuns: runsOf(20, 500) },
  );
});

test('a share that is checked and not spent does not grow, however often and long', async () => {
  const town = openTown(1_000_000n, 1);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(10n)), true);
  for (let look = 0; look < 60; look++) {
    town.host.advance(100);
    await node.flusher.refresh('alice');
  }
  assert(town.model.leases.get('one')! - 10n <= 1_000_000n / 16n, `it has ${town.model.leases.get('one')}`);
});

test('money being returned while a call waits for it causes no refusal, whatever its share had grown to', async () => {
  const step = fc.record({
    does: fc.constantFrom('hold', 'hold', 'settle', 'recall', 'refresh', 'flush'),
    turns: fc.nat(30),
    ms: fc.nat(1_500),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 60 }), async (steps) => {
      const town = openTown(1_000n, 1);
      const node = town.nodes.get('one')!;
      const running: Promise<boolean>[] = [];
      for (const { does, turns, ms } of steps) {
        if (does === 'hold') running.push(node.hold(money(10n)));
        else if (does === 'settle') node.settle(50n);
        else if (does === 'recall') node.leases.wanted('other alice');
        else if (does === 'refresh') void node.flusher.refresh('alice');
        else void node.flush();
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        town.host.advance(ms);
      }
      const held = await Promise.all(running.map((call) => ended(town, call)));
      assert.deepEqual(
        held.filter((isHeld) => !isHeld),
        [],
      );
    }),
    { numRuns: runsOf(40, 2_000) },
  );
});

/** Two nodes of which one has leased much for a small call and hears late that it is wanted. */
async function leasedElsewhere(heardAfterMs: number): Promise<{ town: Town; two: FakeNode; one: FakeNode }> {
  const town = openTown(100n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  assert.equal(await ended(town, one.hold(money(2n))), true);
  assert.ok(town.model.leases.get('one')! > 20n);
  town.heardAfterMs = heardAfterMs;
  return { town, one, two };
}

test('a call waits for money that another node returns late, then gets retry-after, and never a 402', async () => {
  const late = await leasedElsewhere(2_500);
  assert.equal(await ended(late.town, late.two.hold(money(98n))), true);
  const never = await leasedElsewhere(60_000);
  const since = never.town.host.clock.monotonic();
  assert.equal(await ended(never.town, never.two.hold(money(98n))), false);
  assert.equal(never.two.refusal, 'unknown');
  const waitedMs = never.town.host.clock.monotonic() - since;
  assert.ok(waitedMs >= 5_000 && waitedMs < 6_000, `${waitedMs} ms`);
  assert.equal(await ended(never.town, never.two.hold(money(101n))), false);
  assert.equal(never.two.refusal, 'lacking');
  // What its calls hold the other tells when it returns the rest.
  const soon = await leasedElsewhere(300);
  assert.equal(await ended(soon.town, soon.two.hold(money(99n))), false);
  assert.equal(soon.two.refusal, 'lacking');
  assert.equal(await ended(soon.town, soon.two.hold(money(98n))), true);
});

test('however late nodes and the database answer, 402 is never returned for money that living nodes have', async () => {
  const before = fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 9 })), { maxLength: 8 });
  const late = fc.record({
    heardAfterMs: fc.nat(9_000),
    statementMs: fc.constantFrom(0, 300, 2_000),
    bridgeMs: fc.constantFrom(0, 120_000),
  });
  await fc.assert(
    fc.asyncProperty(
      before,
      late,
      fc.nat(3),
      fc.bigInt({ min: 1n, max: 130n }),
      async (earlier, slow, last, amount) => {
        const town = openTown(100n, 4, slow.bridgeMs);
        const nodes = [...town.nodes.values()];
        for (const [index, each] of earlier) await ended(town, nodes[index]!.hold(money(BigInt(each))));
        await pass(town, 100);
        town.heardAfterMs = slow.heardAfterMs;
        const take = town.model.take.bind(town.model);
        town.model.take = (...requested) => {
          town.host.advance(slow.statementMs);
          return take(...requested);
        };
        const node = nodes[last]!;
        const isThere = town.truth >= amount;
        if (await ended(town, node.hold(money(amount)))) assert.ok(isThere, 'taken, although it is not there');
        else if (node.refusal === 'lacking') assert.ok(!isThere, '402, although it is there');
      },
    ),
    { numRuns: runsOf(16, 400) },
  );
});

/** An account has called and then paused; at the end the database refuses every statement. */
async function pausedTown(pauseMs: number, bridgeMs = 120_000) {
  const town = openTown(100_000n, 2, bridgeMs);
  const node = town.nodes.get('one')!;
  assert.equal(await ended(town, node.hold(money(100n))), true);
  node.settle(5n);
  await pass(town, pauseMs);
  return { town, node, balance: () => node.balances.find('alice') };
}

/** Refuses every statement for so long, while a call comes every five seconds. Returns which were let in. */
async function outage(town: Town, node: FakeNode, forMs: number): Promise<boolean[]> {
  const admitted: boolean[] = [];
  town.isDown = true;
  for (let waited = 0; waited < forMs; waited += 5_000) {
    await pass(town, 5_000);
    admitted.push(await ended(town, node.hold(money(100n))));
    node.settle(5n);
  }
  town.isDown = false;
  return admitted;
}

test('an account that paused is served from a small lease through a bridged outage, and the rest is free for others', async () => {
  for (const pauseMs of [11_000, 44_000, 61_000]) {
    const { town, node } = await pausedTown(pauseMs);
    assert.equal(town.model.leased, 800n, 'eight calls of the last size');
    const admitted = await outage(town, node, 120_000);
    assert.ok(admitted.every(Boolean), `after a pause of ${pauseMs} ms: ${admitted}`);
    assert.ok(town.truth >= 0n);
  }
});

test('beyond the bridge calls are refused, as the lease is over; afterwards the account is served and charged', async () => {
  const { town, node } = await pausedTown(20_000);
  const admitted = await outage(town, node, 240_000);
  const refusedFrom = admitted.indexOf(false);
  // A lease lasts a minute longer than the bridge, and is renewed when a quarter of that is left of the minute.
  assert.ok(refusedFrom >= 120 / 5 && refusedFrom <= 180 / 5, `${refusedFrom}`);
  assert.ok(admitted.slice(refusedFrom).every((one) => !one));
  await pass(town, 6_000);
  assert.equal(await ended(town, node.hold(money(100n))), true);
  node.settle(5n);
  await pass(town, 1_000);
  assert.equal(town.model.balance, town.truth);
});

test('without a bridge all money is returned after ten seconds, as is money unused within an hour', async () => {
  const without = await pausedTown(12_000, 0);
  assert.equal(without.town.model.leased, 0n);
  const { town, node, balance } = await pausedTown(12_000);
  assert.equal(town.model.leased, 800n);
  for (let second = 0; second < 3_600; second++) node.leases.look();
  await pass(town, 1_000);
  assert.equal(town.model.leased, 0n);
  assert.equal(balance()!.available, 0n);
});

test('money kept for an outage is returned at once when another node needs it', async () => {
  const { town } = await pausedTown(12_000);
  const other = town.nodes.get('two')!;
  assert.equal(await ended(town, other.hold(money(town.truth))), true);
});

test('the money kept for a paused account covers its dear calls, whatever it called last', async () => {
  const town = openTown(100_000n, 2, 120_000);
  const node = town.nodes.get('one')!;
  for (const amount of [1n, 100n, 1n]) {
    assert.equal(await ended(town, node.hold(money(amount))), true);
    node.settle(0n);
    await pass(town, 1_000);
  }
  await pass(town, 11_000);
  assert.equal(town.model.leased, 800n);
  assert.equal(await ended(town, node.hold(money(1n))), true);
  node.settle(0n);
  await pass(town, 12_000);
  assert.equal(town.model.leased, 8n, 'of what it called for since');
});

test('an account near zero is served on each node through an outage while each can have a call of it, and nothing is blocked where not', async () => {
  for (const [balance, isServed] of [
    [700n, true],
    [150n, false],
  ] as const) {
    const town = openTown(balance, 2, 120_000);
    const nodes = [...town.nodes.values()];
    for (const node of nodes) {
      assert.equal(await ended(town, node.hold(money(100n))), true);
      node.settle(5n);
      await pass(town, 500);
    }
    await pass(town, 30_000);
    if (isServed) for (const node of nodes) assert.ok((await outage(town, node, 20_000)).every(Boolean), node.name);
    else assert.equal(town.model.leased, 0n);
    assert.ok(town.truth >= 0n);
    await pass(town, 6_000);
    assert.equal(await ended(town, nodes[0]!.hold(money(town.truth))), true, 'each has all of it in good times');
  }
});

test('money that another node recalled is kept again within a minute, so that the next outage is bridged too', async () => {
  const { town, node } = await pausedTown(12_000);
  const other = town.nodes.get('two')!;
  assert.equal(await ended(town, other.hold(money(town.truth))), true);
  assert.equal(town.model.leases.get('one'), undefined);
  other.settle(5n);
  await pass(town, 46_000);
  assert.equal(town.model.leases.get('one'), 800n);
  assert.ok((await outage(town, node, 120_000)).every(Boolean));
});

/** Accounts that have each called once, a second apart, on a node that keeps small shares of so many. */
async function manyPaused(accounts: number, mostResting: number) {
  const host = fakeHost();
  const leased = new Map<string, bigint>();
  const flusher = { refresh: async (id: string) => (await manager.exchange([id])).size > 0 } as unknown as Flusher;
  const balances: BalanceCache<LeasedBalance> = new BalanceCache({
    clock: host.clock,
    limit: accounts,
    idleMs: 60_000,
    kind: LeasedBalance,
    fundsOf: () => assert.fail('a whole balance was asked for'),
    lease: (balance, need) => manager.open(balance, need),
  });
  const takeShares = async (requests: readonly LeaseRequest[]) =>
    new Map(
      requests.map((request): [string, Leased] => {
        const own = leased.get(request.accountId) ?? 0n;
        const counter = { balance: 10_000n, own, others: 0n, elsewhere: 0n, held: 0n, nodes: 2 };
        const answer = sliceOf(counter, request);
        leased.set(request.accountId, answer.amount);
        return [request.accountId, { ...answer, pool: undefined, term: undefined, lastsMs: 180_000 }];
      }),
    );
  const manager: LeaseManager = new LeaseManager({
    ...{ node: 'one', balances, flusher, clock: host.clock, log: host.log, bridgeMs: 120_000, mostResting, takeShares },
    announce: async () => {},
  });
  const second = async () => {
    host.advance(1_000);
    manager.look();
    await settleDown();
  };
  for (let account = 0; account < accounts; account++) {
    (await balances.acquire(`account-${account}`, money(10n))).release();
    await second();
  }
  const kept = () => [...leased].filter(([, amount]) => amount > 0n);
  return { second, kept };
}

test('more paused accounts than a process keeps shares for: those that called last are served through an outage', async () => {
  const { second, kept } = await manyPaused(12, 5);
  for (let waited = 0; waited < 12; waited++) await second();
  const names = [7, 8, 9, 10, 11].map((account) => `account-${account}`);
  assert.deepEqual(
    kept(),
    names.map((name) => [name, 80n]),
  );
});

test('money returned from a reduced share is not spent before the answer arrives', async () => {
  const { town, node } = await pausedTown(8_000);
  const other = town.nodes.get('two')!;
  town.fault = 'late answer';
  for (let second = 0; second < 4; second++) {
    town.host.advance(1_000);
    node.leases.look();
    await settleDown();
  }
  assert.equal(town.model.leased, 800n, 'the statement has run, its answer is on the way');
  const [rest, tries] = [town.truth - 800n, Array.from({ length: 12 }, () => money(100n))];
  const holds = [other.hold(money(rest)), ...tries.map((amount) => node.hold(amount))];
  await settleDown();
  assert.deepEqual([other.holds.length, node.holds.length, town.truth], [1, 8, 0n]);
  await ended(town, Promise.allSettled(holds));
  assert.equal(town.truth, 0n);
});

test('the table of outages has the figures of the program', () => {
  const page = readFileSync('docker/SCALING.md', 'utf8');
  const { lastsMs, renewBelowMs } = leaseTimes(120_000);
  const span = `from ${renewBelowMs / 1_000} to ${lastsMs / 1_000} s on`;
  assert.equal(page.split(span).length - 1, 2, span);
  assert.match(page, /default `storage\.bridge: 120s`/);
  assert.match(page, /database away longer than 120 s/);
  assert.match(page, new RegExp(`renewed when less than ${renewBelowMs / 1_000} s of them are left`));
  assert.match(page, new RegExp(`a written row every ${(lastsMs - renewBelowMs) / 1_000} s`));
  assert.match(page, new RegExp(`\\\`storage.bridge: 0s\\\` leases last ${leaseTimes(0).lastsMs / 1_000} s`));
  const kept = (town: Town) => Number(town.model.leased / 100n);
  return pausedTown(12_000).then(({ town }) => {
    assert.match(page, new RegExp(`within ${kept(town)} holds of their dearest call`));
  });
});
