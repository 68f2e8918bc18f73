/** When an account's due grants are looked for again, under clocks that go on, back, and on during the check. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Balance } from '../../../plugins/billing/ledger/balance.ts';
import { DueTerms } from '../../../plugins/billing/reservations/due-terms.ts';
import { type PlanTerms, plan } from '../../../plugins/common/domain/plans.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { answer, entered, leaveWorlds, newWorld, usd, type World } from './world.ts';

after(leaveWorlds);

const dayMs = 24 * 3_600_000;
const daily: PlanTerms = {
  name: 'daily',
  limits: {},
  models: undefined,
  multiplier: undefined,
  grant: { amount: usd('0.004'), every: 'day' },
};

/** A call of 0.003 USD, of which a day's grant pays one. */
async function call(world: World): Promise<void> {
  const exchange = await entered(world, { facts: [[plan, daily]] });
  await answer(exchange, { input: 1_000, output: 100 });
  await world.tick('write the ledger');
}

async function finish(world: World): Promise<void> {
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
}

test('a clock that jumps ahead by days and back leaves each later day its grant', async () => {
  const world = await newWorld();
  await call(world);
  world.host.advance(30 * dayMs);
  await call(world);
  world.host.advance(-29 * dayMs);
  for (let day = 0; day < 3; day += 1) {
    await call(world);
    world.host.advance(dayMs);
  }
  await finish(world);
});

test('a period that ends during the check is checked again before the next hold', async () => {
  const host = fakeHost();
  let end = host.clock.now() + 1;
  const checks: number[] = [];
  const terms = new DueTerms({
    ...host,
    upkeep: async () => {
      checks.push(host.clock.now());
      if (checks.length === 1) host.advance(dayMs);
      const next = end;
      end += 2 * dayMs;
      return next;
    },
  });
  const balance = new Balance('alice', host.clock);
  balance.reconcile({ balance: usd('1'), term: 'a' });
  await terms.apply(balance, undefined);
  assert.equal(balance.isChecked(host.clock.now()), false);
  await Promise.all([terms.apply(balance, undefined), terms.apply(balance, undefined)]);
  assert.equal(balance.isChecked(host.clock.now()), true);
  assert.equal(checks.length, 2);
});
