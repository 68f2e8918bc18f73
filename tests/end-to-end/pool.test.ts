/** Plans through a whole gateway: the grant pays, a window that is used up is 402 in every protocol, buying and codes open it again. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pool } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { shop } from '../../plugins/common/domain/plans.ts';
import { dialectNames, dialects } from './dialects.ts';
import { startTestbed, type Testbed, usdInNano } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    offers: {
      small: { price: 0, grant: { amount: 1, every: 'month' }, windows: { '5h': 0.0002, week: 0.9 } },
      big: { price: 5, grant: { amount: 8, every: 'month' }, multiplier: 2 },
    },
    more: { billing: { hold: { output_tokens: 50 } } },
  });
});
after(() => testbed.stop());

const question = { model: 'sandbox', prompt: 'Hello [[sandbox: tokens=20]]', more: { max_tokens: 50 } };

test('a plan without a purchase brings its grant with the first call, and its used-up window refuses in the form of each protocol', async () => {
  const customer = await testbed.customer({ nanoUsd: 0n, plan: 'small' });
  let admitted = 0;
  while ((await testbed.call(customer, 'chat', question)).status === 200) admitted += 1;
  assert.ok(admitted > 0 && admitted < 20, `${admitted}`);
  for (const name of dialectNames) {
    const reply = await testbed.call(customer, name, { model: 'sandbox', prompt: 'Hello '.repeat(100) });
    assert.equal(reply.status, 402, reply.text);
    assert.equal(reply.headers.get('x-should-retry'), 'false');
    assert.match(reply.text, /5-hour window of the plan is used up.*It frees at 20/);
    assert.ok(dialects[name].errorType(JSON.parse(reply.text)));
  }
  const records = await testbed.records(customer, admitted);
  assert.deepEqual(new Set(records.ends), new Set(['charged answered']));
  const { windows, grants } = await testbed.gateway.gateway.find(pool)!.view(customer.accountId);
  const spent = records.charges.reduce((sum, { cost }) => sum + cost, 0n);
  assert.deepEqual([windows[0]!.spent, grants[0]!.remaining], [money(spent), money(usdInNano - spent)]);
  assert.ok(windows[0]!.spent <= windows[0]!.limit);
  await testbed.audit();
});

test('a plan that is bought while calls run applies from the next call on: its price, its grant, its multiplier', async () => {
  const customer = await testbed.customer({ nanoUsd: 6n * usdInNano, plan: 'small' });
  await testbed.call(customer, 'chat', question);
  const counter = testbed.gateway.gateway.find(shop)!;
  await Promise.all([1, 2, 3].map(() => counter.buy(customer.accountId, 'big', `order of ${customer.accountId}`)));
  assert.equal((await testbed.call(customer, 'chat', question)).status, 200);
  const { charges } = await testbed.records(customer, 2);
  assert.equal(charges.length, 2);
  const costs = charges.map(({ cost }) => cost).sort((one, other) => (one < other ? -1 : 1));
  assert.equal(costs[1], costs[0]! * 2n);
  const purchases = (await testbed.rows<{ account_id: string; kind: string }>('ledger')).filter(
    ({ account_id, kind }) => account_id === customer.accountId && kind === 'PURCHASE',
  );
  assert.equal(purchases.length, 1);
  await testbed.audit();
});
