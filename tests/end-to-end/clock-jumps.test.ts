/** A gateway whose wall clock jumps by hours and days, in both directions, between calls and while they run. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { callSums } from '../../plugins/billing/ledger/call-sums.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { foldSums } from '../../plugins/common/rollups/fold.ts';
import { fc } from '../helpers/properties.ts';
import { dialectNames } from './dialects.ts';
import { type Customer, modelAt, startTestbed, type Testbed } from './testbed.ts';

const hour = 3_600_000;
const day = 24 * hour;
let offset = 0;
let testbed: Testbed;

before(async () => {
  testbed = await startTestbed({
    clock: { now: () => Date.now() + offset, monotonic: () => performance.now() },
    offers: {
      minutes: { price: 0, limits: { rpm: 2 } },
      days: { price: 0, limits: { rpd: 2 } },
      grown: { price: 0, grant: { amount: 1, every: 'day' }, windows: { '5h': 1 } },
    },
    models: { sandbox: modelAt('sandbox') },
  });
});
after(() => testbed.stop());

const jump = fc.oneof(
  fc.integer({ min: -40 * day, max: 40 * day }),
  fc.constantFrom(-30 * day, -day, -hour, -61_000, -1_000, -1, 0, 1, 1_000, 61_000, hour, day, 30 * day),
);
const turns = fc.array(
  fc.record({ jump, during: jump, stream: fc.boolean(), dialect: fc.constantFrom(...dialectNames) }),
  {
    minLength: 3,
    maxLength: 8,
  },
);

test('each call is answered and charged once, however the wall clock moves between and during calls', async () => {
  await fc.assert(
    fc.asyncProperty(turns, fc.constantFrom('open', 'grown'), async (list, plan) => {
      const customer: Customer = await testbed.customer({ plan, ...(plan === 'grown' ? { nanoUsd: 0n } : {}) });
      const start = await testbed.balance(customer);
      for (const { jump: by, during, stream, dialect } of list) {
        offset += by;
        const prompt = '[[sandbox: tokens=4 chunk_delay=3ms]]';
        const running = testbed.call(customer, dialect, { model: 'sandbox', prompt, stream });
        await new Promise((resolve) => setTimeout(resolve, 4));
        offset += during;
        const { status, broken, text } = await running;
        assert.deepEqual([status, broken], [200, false], text);
      }
      const { charges, calls, ledger } = await testbed.records(customer, list.length);
      assert.equal(charges.length, list.length);
      assert.ok(charges.every(({ estimated, cost }) => !estimated && cost > 0n));
      assert.equal(new Set(calls.map(({ id }) => id)).size, list.length);
      const charged = charges.reduce((sum, { cost }) => sum + cost, 0n);
      // A plan's grants change the balance as well.
      if (plan === 'grown') return;
      assert.equal(start - (await testbed.balance(customer)), charged);
      assert.equal(ledger.at(-1)!.balance_after, start - charged);
      for (const { story: timeline, total_ms } of await testbed.rows<{ story: unknown; total_ms: number | null }>(
        'requests',
      ))
        assert.ok(timeline !== undefined && (total_ms ?? 0) >= 0 && (total_ms ?? 0) < hour, String(total_ms));
    }),
    { numRuns: 6 },
  );
  await testbed.audit();
});

for (const [plan, seconds] of [
  ['minutes', 60],
  ['days', 86_400],
] as const)
  test(`a used-up limit of ${plan} lasts no longer than its window, however the wall clock jumps`, async () => {
    for (const by of [-40 * day, -day, -hour, -61_000, 61_000, hour, 40 * day]) {
      const customer = await testbed.customer({ plan });
      const send = async () => {
        const { status, headers } = await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'hi' });
        const wait = Number(headers.get('retry-after') ?? 0);
        assert.ok(wait >= 0 && wait <= seconds, `${by}: ${wait}`);
        return status;
      };
      assert.deepEqual([await send(), await send(), await send()], [200, 200, 429], String(by));
      offset += by;
      assert.match(String(await send()), /^(200|429)$/);
      await testbed.records(customer, 2);
    }
    await testbed.audit();
  });

test('sums of calls equal the calls, wherever the clock stood at the calls and at the folding', async () => {
  const store = testbed.gateway.gateway.find(database)!;
  const customer = await testbed.customer();
  const had = await testbed.balance(customer);
  const jumps = [40 * day, -80 * day, hour, -61_000, 39 * day, day, -day];
  for (const [index, by] of jumps.entries()) {
    offset += by;
    const { status } = await testbed.call(customer, 'chat', { model: 'sandbox', prompt: '[[sandbox: tokens=4]]' });
    assert.equal(status, 200);
    await testbed.records(customer, index + 1);
    for (const ahead of [0, 2 * day, -2 * day])
      await foldSums(store.orm, store.schema, callSums, Date.now() + offset + ahead);
    // The audit compares them.
    await testbed.audit();
  }
  const { charges } = await testbed.records(customer, jumps.length);
  const charged = charges.reduce((sum, { cost }) => sum + cost, 0n);
  assert.equal(had - (await testbed.balance(customer)), charged);
});
