/** Ratios that change while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { model, multipliers, priceRatio } from '../../../core/vocabulary.ts';
import plugin from '../../../plugins/multiplier/index.ts';
import { written } from '../../../plugins/multiplier/ratio.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

test('a new ratio holds for who comes, in the charge and in what others are told', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, { default: 2 });
  const service = host.need(multipliers);
  const old = part.handle!;
  const commit = await prepare(plugin, part, { default: 3, models: { m: '1.5' }, minimum: 2 });
  assert.equal(written(service.lowest('m')), '2');
  commit();
  assert.equal(written(service.lowest('m')), '4.5');
  const ratios = [];
  for (const handle of [old, part.handle!]) {
    const exchange = fakeExchange({ facts: [[model, { id: 'm' }]] });
    await handle(exchange, async () => okAnswer);
    ratios.push(written(exchange.get(priceRatio)));
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
  assert.equal(written(host.need(multipliers).lowest('m')), '2');
});
