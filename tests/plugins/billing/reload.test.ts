/** How much is set aside, changed while the gateway serves: what is held stays held, and the ledger stays right. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import billing from '../../../plugins/billing/index.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { prepare } from '../../helpers/fakes.ts';
import { entered, leaveWorlds, meterOf, newWorld, report, send, usd } from './world.ts';

after(leaveWorlds);

test('a new step applies to new calls, and to the next step of a running answer', async () => {
  const world = await newWorld({ credit: '1', section: { hold: { output_tokens: 100 } } });
  const running = await entered(world);
  const commit = await prepare(billing, world.part, { hold: { output_tokens: 300 } });
  assert.equal(await world.balance(), usd('0.997'));
  commit();
  assert.equal(await world.balance(), usd('0.997'), 'what is held is held');
  const later = await entered(world, { call: { maxOutputTokens: 1_000 } });
  assert.equal(await world.balance(), usd('0.992'));
  for (const exchange of [running, later]) (await send(exchange)).result = 'answered';
  assert.equal(meterOf(running).observe(101), true);
  assert.equal(await world.balance(), usd('0.98899'));
  for (const exchange of [running, later]) {
    exchange.set(usageReport, report({ input: 1_000, output: 110 }));
    await exchange.end();
  }
  await world.stop();
  assert.equal(await world.balance(), usd('0.9938'));
  assert.equal((await world.audit()).ok, true);
});

test('an impossible step is refused; settings that the journal depends on wait for a restart', async () => {
  await using world = await newWorld({});
  await assert.rejects(prepare(billing, world.part, { hold: { output_tokens: 'many' } }));
  assert.deepEqual(world.part.reload?.members, ['hold', 'budgets']);
});
