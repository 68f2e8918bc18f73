/** Calls that wait for the same news of an account's money. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { GatewayError } from '../../../core/contract/errors.ts';
import { Entries } from '../../../plugins/billing/ledger/entries.ts';
import { pool } from '../../../plugins/common/domain/ledger.ts';
import { enter, entered, leaveWorlds, newCall, newWorld, usd } from './world.ts';

after(leaveWorlds);

test('overdraft by race: of calls that wait for one read of the balance, each sees the holds of the others', async () => {
  await using world = await newWorld({ credit: '0.001' });
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
});

test('during debits, 402 is returned only for missing money, to debits and to calls', async () => {
  const world = await newWorld({ credit: '0.030' });
  // Memory knows the account.
  await (await entered(world)).end();
  const { announce } = world.database;
  // From its commit until all processes know of it, memory counts a debit twice.
  Object.assign(world.database, {
    announce: async (topic: string, subject: string) => {
      await pause(30);
      await announce(topic, subject);
    },
  });
  const poolService = world.host.get(pool);
  const debits = Array.from({ length: 7 }, async (_, index) => {
    await pause(index * 15);
    await poolService.debit('alice', usd('0.003'), { reason: 'test', reference: `debit-${index}` });
  });
  const calls = [40, 80, 120].map(async (ms) => {
    await pause(ms);
    return entered(world);
  });
  const [, ...held] = await Promise.all([Promise.all(debits), ...calls]);
  assert.equal(await world.balance(), 0n);
  await assert.rejects(poolService.debit('alice', usd('0.003'), { reason: 'test', reference: 'one more' }), {
    status: 402,
  });
  await assert.rejects(entered(world), { status: 402 });
  for (const call of held) await call.end();
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});
