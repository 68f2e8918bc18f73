/** Several nodes lease one account: whatever they do and whoever dies, they never spend more than there is, and can spend it all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { money } from '../../../../core/money.ts';
import { FakeNode, type Fault, newTown, type Town } from './fake-node.ts';
import { LeaseModel } from './lease-model.ts';

const names = ['one', 'two', 'three', 'four'];

function openTown(balance: bigint, nodes: number): Town {
  const town = newTown(new LeaseModel(balance));
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
    for (const node of town.nodes.values()) {
      await node.flush();
      node.lessor.turn();
      if (done % 1_000 === 0) node.lessor.look();
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
  for (let step = 0; step < 100 && !isOver; step++) {
    await settleDown();
    if (!isOver) await pass(town, 50);
  }
  assert(isOver, 'it never ended');
  return over;
}

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
    else if (step.kind === 'turn') node!.lessor.turn();
    else if (step.kind === 'pass') await pass(town, step.ms);
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
    assert(lowest + overrun >= 0n, `a hold that the balance did not cover: ${lowest}`);
    assert(truth + overrun >= 0n, `more was set aside than there is: ${truth}`);
    assert(model.leased <= (model.balance > 0n ? model.balance : 0n), `${model.leased} are leased of ${model.balance}`);
  }
}

test('any number of nodes, crashes, refused statements and lost answers: never more is set aside than there is', async () => {
  const histories = fc.array(operation, { minLength: 5, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 200 }),
      fc.integer({ min: 1, max: 4 }),
      histories,
      async (balance, nodes, steps) => {
        const history = new History(openTown(BigInt(balance), nodes));
        for (const step of steps) {
          await history.run(step);
          history.check();
        }
        const { town } = history;
        town.fault = 'none';
        history.restartAll();
        await pass(town, 6_000);
        for (const node of town.nodes.values()) while (node.holds.length > 0) node.settle(50n);
        // A database that was down is asked again after a pause; what nobody uses goes back.
        await pass(town, 25_000);
        history.check();
        assert.equal(town.model.balance, town.truth, 'the database and the truth differ in the end');
        assert.equal(town.model.leased, 0n, 'something is still leased');
      },
    ),
    { numRuns: 120 },
  );
});

test('all of an account can be spent on any node, whoever has it leased', async () => {
  const input = [
    fc.integer({ min: 40, max: 200 }),
    fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 9 })), { maxLength: 12 }),
    fc.nat(3),
  ] as const;
  await fc.assert(
    fc.asyncProperty(...input, async (balance, earlier, last) => {
      const town = openTown(BigInt(balance), 4);
      const nodes = [...town.nodes.values()];
      for (const [index, amount] of earlier) {
        const node = nodes[index]!;
        if (await ended(town, node.hold(money(BigInt(amount))))) node.settle(30n);
      }
      assert.equal(await ended(town, nodes[last]!.hold(money(town.truth))), true);
      assert.equal(town.truth, 0n);
      assert.equal(await ended(town, nodes[(last + 1) % 4]!.hold(money(1n))), false);
    }),
    { numRuns: 60 },
  );
});

test('a rich account is served from memory: a hundred calls need a statement or two, and wait for none after the first', async () => {
  const town = openTown(1_000_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(10n)), true);
  let waited = 0;
  for (let call = 0; call < 100; call++) {
    const purse = node.purses.find('alice')!;
    if (!node.purses.admits(purse, money(10n))) waited += 1;
    assert.equal(await node.hold(money(10n)), true);
    node.settle(100n);
    if (call % 5 === 4) await settleDown();
  }
  assert.equal(waited, 0);
  assert(town.statements <= 8, `${town.statements} statements`);
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
  test(`what a node spends while it asks for more is not given to another: ${fault}`, async () => {
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

test('what the ledger is still to take for a hold is not given back for a settlement that stands behind it', async () => {
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
  one.lessor.wanted('two alice');
  await letGo();
  town.fault = 'none';
  assert.equal(await two.hold(money(25n)), true, 'what is left beside it');
  const tooMuch = two.hold(money(15n));
  await settleDown();
  await two.flush();
  await letGo();
  await flushed;
  assert.equal(town.lowest, 0n, 'a hold that the balance did not cover');
  assert.equal(await ended(town, tooMuch), true, 'it comes with the next batch');
});

test('a share that has become smaller is not taken from what a node may be spending', async () => {
  const town = openTown(100n, 2);
  const [one, two] = [town.nodes.get('one')!, town.nodes.get('two')!];
  assert.equal(await one.hold(money(10n)), true);
  assert.equal(await two.hold(money(30n)), true);
  town.fault = 'late answer';
  one.lessor.topUp(one.purses.find('alice')!);
  await settleDown();
  assert.equal(await one.hold(money(40n)), true, 'from memory, while the answer is on its way');
  const tooMuch = two.hold(money(21n));
  await settleDown();
  assert.equal(town.truth, 20n);
  assert.equal(await ended(town, tooMuch), false);
  assert.equal(await ended(town, two.hold(money(20n))), true);
  assert.equal(town.truth, 0n);
});

test('what a dead node may owe is given to nobody until its journal is back, and then all of it that it did not spend', async () => {
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

test('a node that cannot reach the database stops when its lease ends, and goes on when it can', async () => {
  const town = openTown(1_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(1n)), true);
  const purse = node.purses.find('alice')!;
  assert.equal(node.purses.admits(purse, money(1n)), true);
  town.host.advance(29_999);
  assert.equal(node.purses.admits(purse, money(1n)), true);
  town.host.advance(2);
  assert.equal(node.purses.admits(purse, money(1n)), false);
  town.fault = 'refused';
  assert.equal(await node.hold(money(1n)), false);
  town.host.advance(5_000);
  assert.equal(await node.hold(money(1n)), true);
});

test('a drain gives back all that no call has spoken for', async () => {
  const town = openTown(1_000n, 2);
  const node = town.nodes.get('one')!;
  assert.equal(await node.hold(money(7n)), true);
  await node.flush();
  assert(town.model.leases.get('one')! > 0n);
  node.lessor.drain();
  await settleDown();
  assert.equal(town.model.leased, 0n);
  node.settle(0n);
  await pass(town, 100);
  assert.deepEqual([town.model.leased, town.model.balance], [0n, 1_000n]);
});
