/**
 * `npm run simulate:slices`: how often nodes ask for slices of an account, and what they refuse that was
 * there, by their number and by what the account has. Real balances, flushers and lease managers on a model of the database, in
 * virtual time: a minute of 20 calls a second that come to any node. docker/SCALING.md quotes the table.
 */
import { setImmediate } from 'node:timers/promises';
import { money } from '../../plugins/common/domain/money.ts';
import { FakeNode, newTown } from '../plugins/billing/leases/fake-node.ts';
import { LeaseModel } from '../plugins/billing/leases/lease-model.ts';

const callsASecond = 20;
const seconds = 60;
/** A call takes this long, and costs this part of what is set aside for it. */
const callMs = 500;
const costInHundredths = 20n;
const stepMs = 50;
const hold = money(1_000n);

interface Outcome {
  readonly statements: number;
  readonly calls: number;
  readonly refused: number;
  /** What all nodes together have leased on the average, in hundredths of the balance. */
  readonly leased: number;
}

async function live(count: number, holds: bigint): Promise<Outcome> {
  const town = newTown(new LeaseModel(hold * holds));
  const nodes = Array.from({ length: count }, (_, index) => new FakeNode(town, `node-${index}`));
  const random = town.host.random.fraction;
  const ends: { at: number; node: FakeNode }[] = [];
  const begun: Promise<void>[] = [];
  let [calls, refused, leased, looks] = [0, 0, 0, 0];
  const begin = async (node: FakeNode, at: number) => {
    if (await node.hold(hold)) ends.push({ at: at + callMs, node });
    else refused += 1;
  };
  for (let at = 0; at < seconds * 1_000; at += stepMs) {
    while (ends[0] !== undefined && ends[0].at <= at) ends.shift()!.node.settle(costInHundredths);
    for (let due = (callsASecond * stepMs) / 1_000; due > random(); due -= 1) {
      calls += 1;
      begun.push(begin(nodes[Math.floor(random() * count)]!, at));
    }
    for (const node of nodes) {
      node.leases.turn();
      if (at % 1_000 === 0) node.leases.look();
      void node.flush();
    }
    await setImmediate();
    town.host.advance(stepMs);
    leased += Number((town.model.leased * 10_000n) / (town.model.balance > 0n ? town.model.balance : 1n)) / 100;
    looks += 1;
  }
  town.host.advance(10_000);
  for (const node of nodes) node.leases.turn();
  await Promise.all(begun);
  return { statements: town.statements, calls, refused, leased: leased / looks };
}

console.log(
  '| nodes | balance, in holds | statements on leases for each call | refused although there was enough | leased on the average |',
);
console.log('|---|---|---|---|---|');
for (const count of [1, 10, 100, 1_000])
  for (const holds of [1_000_000n, 10_000n, 1_000n]) {
    const { statements, calls, refused, leased } = await live(count, holds);
    const share = (100 * refused) / calls;
    console.log(
      `| ${count} | ${holds} | ${(statements / calls).toFixed(3)} | ${share.toFixed(1)} % | ${leased.toFixed(1)} % |`,
    );
  }
