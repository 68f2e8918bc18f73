/** Ratios that change while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { model } from '../../../plugins/common/domain/models.ts';
import { formatRatio } from '../../../plugins/common/domain/money.ts';
import { multipliers, priceRatio } from '../../../plugins/common/domain/price-ratio.ts';
import plugin from '../../../plugins/multiplier/index.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

test('a new ratio holds for who comes, in the charge and in what others are told', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, { default: 2 });
  const service = host.get(multipliers);
  const old = part.handle!;
  const commit = await prepare(plugin, part, { default: 3, models: { m: '1.5' }, minimum: 2 });
  assert.equal(formatRatio(service.lowest('m')), '2');
  commit();
  assert.equal(formatRatio(service.lowest('m')), '4.5');
  const ratios = [];
  for (const handle of [old, part.handle!]) {
    const exchange = fakeExchange({ facts: [[model, { id: 'm' }]] });
    await handle(exchange, async () => okAnswer);
    ratios.push(formatRatio(exchange.get(priceRatio)));
  }
  assert.deepEqual(ratios, ['2', '4.5']);
  assert.deepEqual(part.problems!(), []);
  (await prepare(plugin, part, { default: 2, models: { m: '0.4' } }))();
  assert.equal(part.problems!().length, 1);
});

test('a default below the minimum is refused and changes nothing', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, {});
  await assert.rejects(prepare(plugin, part, { default: 1, minimum: 2 }), /below the minimum/);
  assert.equal(formatRatio(host.get(multipliers).lowest('m')), '2');
});
