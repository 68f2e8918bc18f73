/** Calls that wait for the same news of an account's money. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { Entries } from '../../../plugins/billing/ledger/entries.ts';
import { enter, leaveWorlds, newCall, newWorld, usd } from './world.ts';

after(leaveWorlds);

test('overdraft by race: of calls that wait for the same reading of the balance, each sees what the others took', async () => {
  const world = await newWorld();
  await world.credit('0.001');
  // Memory knows the account, and the money that another process takes in is news to it.
  await assert.rejects(enter(world, newCall()));
  world.host.advance(2_000);
  const { orm, schema } = world.database;
  const grant = { kind: 'top-up', reason: 'test', reference: `${schema}-elsewhere` };
  await Entries.transact(orm, schema, 'alice', world.host.clock.now(), (entries) =>
    entries.credit(usd('0.004'), grant),
  );
  // A hold of 0.003 USD each, and 0.005 USD in all.
  const calls = [newCall(), newCall(), newCall()];
  const statuses = await Promise.all(
    calls.map((call) =>
      enter(world, call).then(
        () => 200,
        (error: GatewayError) => error.status,
      ),
    ),
  );
  assert.deepEqual(statuses.sort(), [200, 402, 402]);
  assert.equal(await world.balance(), usd('0.002'));
  for (const call of calls) await call.end();
  await world.stop();
});
