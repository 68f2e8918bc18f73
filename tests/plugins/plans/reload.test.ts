/** Plans that change while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { plan, plans } from '../../../plugins/common/domain/plans.ts';
import plugin from '../../../plugins/plans/index.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

const section = { default: 'free', offers: { free: { limits: { rpm: 20 } }, pro: { multiplier: 2 } } };

test('new terms apply from the reload on; a running chain has the old ones', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, section);
  const service = host.get(plans);
  const old = part.handle!;
  const commit = await prepare(plugin, part, { default: 'basic', offers: { basic: {}, pro: { multiplier: 3 } } });
  assert.deepEqual([service.default, service.has('basic')], ['free', false]);
  commit();
  assert.equal(host.get(plans), service);
  assert.deepEqual([service.default, service.has('free'), service.terms('free').name], ['basic', false, 'basic']);
  for (const [handle, multiplier] of [
    [old, 2n],
    [part.handle!, 3n],
  ] as const) {
    const who = { accountId: 'a', keyId: 'k', plan: 'pro', planEndsAt: undefined, models: undefined };
    const exchange = fakeExchange({ facts: [[caller, who]] });
    await handle(exchange, async () => okAnswer);
    assert.equal(exchange.get(plan).multiplier?.numerator, multiplier * exchange.get(plan).multiplier!.denominator);
  }
});

test('a default that is not offered is refused and changes nothing', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, section);
  await assert.rejects(prepare(plugin, part, { default: 'gone', offers: { free: {} } }), /not among the offers/);
  assert.deepEqual(
    host
      .get(plans)
      .list()
      .map(({ name }) => name),
    ['free', 'pro'],
  );
});
