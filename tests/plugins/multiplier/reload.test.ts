/** Ratios that change while the gateway serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatRatio } from '../../../plugins/common/domain/money.ts';
import { multipliers, priceRatio } from '../../../plugins/common/domain/price-ratio.ts';
import plugin from '../../../plugins/multiplier/index.ts';
import { fakeExchange, fakeHost, okAnswer, prepare, setUp } from '../../helpers/fakes.ts';

test('a changed default applies to new calls and in the service; running calls keep the former one', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, { default: 2 });
  const service = host.get(multipliers);
  const old = part.handle!;
  const commit = await prepare(plugin, part, { default: 3, minimum: 2 });
  assert.equal(formatRatio(service.lowest()), '2');
  commit();
  assert.equal(formatRatio(service.lowest()), '3');
  const ratios = [];
  for (const handle of [old, part.handle!]) {
    const exchange = fakeExchange();
    await handle(exchange, async () => okAnswer);
    ratios.push(formatRatio(exchange.get(priceRatio)));
  }
  assert.deepEqual(ratios, ['2', '3']);
  assert.deepEqual(part.checks!.problems!(), []);
});

test('a default below the minimum is refused and changes nothing', async () => {
  const host = fakeHost();
  const part = await setUp(plugin, host, {});
  await assert.rejects(prepare(plugin, part, { default: 1, minimum: 2 }), /below the minimum/);
  assert.equal(formatRatio(host.get(multipliers).lowest()), '2');
});
