/** Plans through a whole gateway: the grant pays, a window that is used up is 402 in every protocol, buying and codes open it again. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pool } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { shop } from '../../plugins/common/domain/plans.ts';
import { dialectNames, dialects } from './dialects.ts';
import { type House, startHouse, usdInNano } from './house.ts';

let house: House;
before(async () => {
  house = await startHouse({
    offers: {
      small: { price: 0, grant: { amount: 1, every: 'month' }, windows: { '5h': 0.0002, week: 0.9 } },
      big: { price: 5, grant: { amount: 8, every: 'month' }, multiplier: 2 },
    },
    more: { billing: { hold: { output_tokens: 50 } } },
  });
});
after(() => house.stop());

const question = { model: 'sandbox', prompt: 'Hello [[sandbox: tokens=20]]', more: { max_tokens: 50 } };

test('a plan that nobody bought brings its grant with the first call, and its window refuses in the words of each protocol', async () => {
  const customer = await house.customer({ nanoUsd: 0n, plan: 'small' });
  let admitted = 0;
  while ((await house.call(customer, 'chat', question)).status === 200) admitted += 1;
  assert.ok(admitted > 0 && admitted < 20, `${admitted}`);
  for (const name of dialectNames) {
    const told = await house.call(customer, name, { model: 'sandbox', prompt: 'Hello '.repeat(100) });
    assert.equal(told.status, 402, told.text);
    assert.equal(told.headers.get('x-should-retry'), 'false');
    assert.match(told.text, /5-hour window of the plan is used up.*It frees at 20/);
    assert.ok(dialects[name].errorType(JSON.parse(told.text)));
  }
  const books = await house.books(customer, admitted);
  assert.deepEqual(new Set(books.ends), new Set(['charged answered']));
  const { windows, grants } = await house.gateway.gateway.find(pool)!.view(customer.accountId);
  const spent = books.charges.reduce((sum, { cost }) => sum + cost, 0n);
  assert.deepEqual([windows[0]!.spent, grants[0]!.remaining], [money(spent), money(usdInNano - spent)]);
  assert.ok(windows[0]!.spent <= windows[0]!.limit);
  await house.audit();
});

test('a plan that is bought while calls run holds from the next call on: its price, its grant, its multiplier', async () => {
  const customer = await house.customer({ nanoUsd: 6n * usdInNano, plan: 'small' });
  await house.call(customer, 'chat', question);
  const counter = house.gateway.gateway.find(shop)!;
  await Promise.all([1, 2, 3].map(() => counter.buy(customer.accountId, 'big', `order of ${customer.accountId}`)));
  assert.equal((await house.call(customer, 'chat', question)).status, 200);
  const { charges } = await house.books(customer, 2);
  assert.equal(charges.length, 2);
  const costs = charges.map(({ cost }) => cost).sort((one, other) => (one < other ? -1 : 1));
  assert.equal(costs[1], costs[0]! * 2n);
  const purchases = (await house.rows<{ account_id: string; kind: string }>('ledger')).filter(
    ({ account_id, kind }) => account_id === customer.accountId && kind === 'PURCHASE',
  );
  assert.equal(purchases.length, 1);
  await house.audit();
});
