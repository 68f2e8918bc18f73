/** One call with everything at once: plan, ratios, tiers, a retry, a key, a grant with a window, a refund. The sum is done by hand. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { pool } from '../../plugins/common/domain/ledger.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { shop } from '../../plugins/common/domain/plans.ts';
import { dialects } from './dialects.ts';
import { type Customer, modelAt, speaks, startTestbed, type Testbed, usdInNano } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ replay }) => ({ first: { keys: 'one', speaks: speaks(replay) } }),
    offers: {
      plus: {
        price: 5,
        grant: { amount: 3, every: 'month' },
        windows: { '5h': 1 },
        duration: '30d',
        multiplier: '1.5',
      },
    },
    models: {
      pair: {
        ...modelAt('first', { provider: 'sandbox', model: 'pair', cost: { input: 0.4, output: 0.8 } } as never),
        price: { input: 1, output: 2, request: 0.001, above: { 200: { input: 10, output: 20 } } },
        multiplier: '1.2',
      },
    },
    more: { route: { retry_ambiguous: 'always', attempts: 2 }, billing: { hold: { output_tokens: 50 } } },
  });
});
after(() => testbed.stop());

const question = { model: 'pair', prompt: `[[sandbox: tokens=20]] ${'word '.repeat(300)}` };

/** On the plan that it bought, with a ratio of its own; 1 USD is left that does not expire. */
async function subscriber(): Promise<Customer> {
  const customer = await testbed.customer({ nanoUsd: 6n * usdInNano });
  const { commands } = testbed.gateway.gateway;
  const command = commands.find(({ name }) => name === 'accounts multiplier')!;
  await command.run({ name: customer.accountId, ratio: '0.9' });
  await testbed.gateway.gateway.find(shop)!.buy(customer.accountId, 'plus', `order of ${customer.accountId}`);
  return customer;
}

/** Half up, by the book: (tokens per million + the request) × 1.5 × 1.2 × 0.9. */
function chargeOf(input: number, output: number): bigint {
  const millionths = BigInt(input) * 10_000_000_000n + BigInt(output) * 20_000_000_000n + 1_000_000n * 1_000_000n;
  const [numerator, denominator] = [millionths * 162n, 100n * 1_000_000n];
  return (2n * numerator + denominator) / (2n * denominator);
}

test('a retried call with an idempotency key on a bought plan is charged once, by every ratio and tier, to the grant, and refunded once', async () => {
  const customer = await subscriber();
  const poolService = testbed.gateway.gateway.find(pool)!;
  const headers = { 'idempotency-key': 'everything at once' };
  testbed.replay.play({ status: 500, body: '{"error":{"message":"oops"}}' });
  const first = await testbed.call(customer, 'chat', question, { headers });
  const again = await testbed.call(customer, 'chat', question, { headers });
  assert.equal(first.status, 200, first.text);
  assert.deepEqual([again.status, again.text, again.headers.get('idempotent-replayed')], [200, first.text, 'true']);

  const { charges, ends, attempts } = await testbed.records(customer);
  assert.deepEqual(ends, ['charged answered']);
  const [{ cost, classes, id, plan, tier, ratio, own_cost: ownCost }] = charges as [(typeof charges)[0]];
  assert.deepEqual([classes.output, classes.request], [20, 1]);
  assert.ok(classes.input! > 200);
  assert.equal(cost, chargeOf(classes.input!, 20));
  assert.deepEqual([plan, tier, ratio], ['plus', '>200', '81/50']);
  assert.equal(ownCost, BigInt(classes.input! * 400 + 20 * 800));

  assert.deepEqual(
    attempts.map(({ provider, result }) => `${provider} ${result}`),
    ['first unknown', 'sandbox answered'],
  );
  assert.deepEqual(
    attempts.map(({ bearer }) => bearer),
    ['operator', 'client'],
  );
  // The official price of the estimate, in its own tier: no ratio.
  assert.equal(attempts[0]!.absorbed, BigInt(attempts[0]!.usage!.input!) * 10_000n + 1_000_000n);

  const spent = await poolService.view(customer.accountId);
  assert.deepEqual(
    spent.grants.map(({ kind, remaining }) => [kind, remaining]),
    [
      ['plan', money(3n * usdInNano - cost)],
      ['top-up', money(usdInNano)],
    ],
  );
  assert.deepEqual([spent.windows[0]!.name, spent.windows[0]!.spent, spent.held], ['5h', money(cost), 0n]);

  const refund = (reference: string) =>
    poolService.refundRequest(customer.accountId, id, money(cost), { reason: 'test', reference });
  const balance = await refund('one');
  assert.deepEqual([await refund('one'), balance], [balance, money(4n * usdInNano)]);
  await assert.rejects(refund('two'), { kind: 'conflict' });
  await testbed.audit();
});

test("money that does not expire pays what the plan's window does not cover; a call that neither covers is a 402 and leaves nothing", async () => {
  const customer = await subscriber();
  const poolService = testbed.gateway.gateway.find(pool)!;
  // The window lets 1 USD of the grant be spent, and 1 USD does not expire.
  await poolService.debit(customer.accountId, money(1_990_000_000n), { reason: 'test', reference: customer.accountId });
  const reply = await testbed.call(customer, 'chat', { ...question, more: { max_tokens: 2_000 } });
  assert.equal(reply.status, 402, reply.text);
  assert.ok(dialects.chat.errorType(JSON.parse(reply.text)));
  const { balance, held, windows } = await poolService.view(customer.accountId);
  assert.deepEqual([balance, held], [money(4n * usdInNano - 1_990_000_000n), 0n]);
  assert.equal(windows[0]!.spent, windows[0]!.limit);
  assert.equal((await testbed.calls(customer)).length, 0);
  await testbed.audit();
});
