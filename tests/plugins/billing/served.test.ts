/** Answers without an attempt: any mix with calls of vendors adds up to the balance, and nothing is charged twice. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import { type ServedPrice, serveWithoutAttempt } from '../../../plugins/common/domain/ledger.ts';
import { cost, type Money, money, one, parseRatio, timesRatio } from '../../../plugins/common/domain/money.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import type { FakeExchange } from '../../helpers/fakes.ts';
import { runsOf } from '../../helpers/histories.ts';
import { fc } from '../../helpers/properties.ts';
import { answer, entered, leaveWorlds, newCall, newWorld, price, report, send, type World } from './world.ts';

after(leaveWorlds);

// No more than the call's 100 tokens of answer make possible.
const count = fc.integer({ min: 0, max: 350 });
const rule: fc.Arbitrary<ServedPrice> = fc.oneof(
  fc.constant('free' as const),
  fc.record({ fixed: fc.bigInt({ min: 0n, max: 5_000_000n }).map(money) }),
  fc.record({
    ratio: fc.record({ numerator: fc.bigInt({ min: 0n, max: 30n }), denominator: fc.bigInt({ min: 1n, max: 10n }) }),
  }),
);
const ratio = fc.constantFrom(one, parseRatio('0.9'), parseRatio('1.37'));
const step = fc.record({
  usage: fc.record({ input: count, output: count }),
  served: fc.option(rule, { nil: undefined }),
  /** Attempts that failed before the answer. */
  failed: fc.array(fc.constantFrom('refused' as const, 'unknown' as const, 'answered' as const), { maxLength: 2 }),
  /** The status of its head; undefined: it never began. */
  status: fc.constantFrom(200, 200, 206, 400, 500, undefined),
  hasBody: fc.boolean(),
  /** Multipliers of plan and account, and of the model. */
  multipliers: fc.record({ account: ratio, model: ratio }),
  end: fc.constantFrom('complete' as const, 'client_left' as const, 'failed' as const),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Made {
  readonly id: string;
  /** What it has to cost. */
  readonly cost: bigint;
  readonly isServed: boolean;
}

async function run(world: World, { usage, served, failed, status, hasBody, multipliers, end }: Step): Promise<Made> {
  const { account, model } = multipliers;
  const sold = timesRatio(account, model);
  const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, multiplier: account };
  const exchange = await entered(world, { model: { multiplier: model }, facts: [[caller, who]] });
  if (served === undefined) {
    await answer(exchange, usage);
    return { id: exchange.id, cost: cost(usage, price, sold), isServed: false };
  }
  for (const result of failed) Object.assign(await send(exchange), { result });
  serveWithoutAttempt(exchange, { name: 'cache', usage, price: served });
  exchange.set(usageReport, report(reported, { estimated: true }));
  deliver(exchange, status, hasBody);
  await exchange.end({ kind: end, status: status ?? 499 });
  const isServed = status !== undefined && status < 400 && (end === 'complete' || (end === 'client_left' && hasBody));
  const due =
    served === 'free' ? 0n : 'fixed' in served ? served.fixed : cost(usage, price, timesRatio(sold, served.ratio));
  return { id: exchange.id, cost: isServed ? due : 0n, isServed };
}

/** The client gets the answer's head, and its body. */
function deliver(exchange: FakeExchange, status: number | undefined, hasBody: boolean): void {
  if (status === undefined) return;
  exchange.watcher?.head(status, {});
  if (hasBody) exchange.watcher?.chunk(Buffer.from('x'));
}

interface Row {
  readonly cost: string;
  readonly reason: string;
  readonly own: string | null;
  readonly absorbed: string;
  readonly provider: string | null;
  readonly target: string | null;
  readonly settled: boolean;
  readonly charges: string;
}

/** What the last attempt is seen to have made, if it was answered. */
const reported: Usage = { input: 9_999, output: 9_999 };

/** No attempt before an answer without one is the client's: the operator bears what came of them, else the estimate of their prompts. */
function checkAttempts({ served, failed }: Step, { isServed }: Made, row: Row): void {
  if (served === undefined) return;
  assert.equal(row.settled, isServed);
  const lost = failed.map((result, index) => {
    if (result === 'refused') return 0n;
    return cost(result === 'answered' && index === failed.length - 1 ? reported : { input: 1_000 }, price);
  });
  assert.equal(
    BigInt(row.absorbed),
    lost.reduce<bigint>((sum, one) => sum + one, 0n),
  );
  if (!isServed) return;
  assert.equal(row.reason, 'served by cache');
  assert.equal(row.own, '0');
  assert.deepEqual([row.provider, row.target], [null, null]);
}

test('own answers: money adds up, each call has one row with one charge, and the audit agrees', async () => {
  await using world = await newWorld();
  const credited = await world.credit('1000');
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
    const before = await world.balance();
    let spent = 0n;
    for (const one of steps) {
      const made = await run(world, one);
      spent += made.cost;
      await world.tick('write the ledger');
      const rows = await world.rows<Row>(
        sql`select cost::text as cost, reason, own_cost::text as own, absorbed::text as absorbed, provider, target_model as target, settled,
              (select coalesce(sum(-amount), 0)::text from ${world.table('movements')} where request_id = calls.id and kind = 'CHARGE') as charges
            from ${world.table('calls')} as calls where id = ${made.id}::uuid`,
      );
      assert.equal(rows.length, 1);
      assert.equal(BigInt(rows[0]!.cost ?? '0'), made.cost);
      assert.equal(BigInt(rows[0]!.charges), made.cost);
      checkAttempts(one, made, rows[0]!);
    }
    assert.equal(before - (await world.balance()), spent);
  });
  await fc.assert(property, { numRuns: runsOf(25, 400) });
  const audit = await world.audit();
  assert.deepEqual(audit.violations, []);
  assert.ok(credited > (await world.balance()));
});

test("an own answer's charge names what served it, has no attempt, and a formula of its own", async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  serveWithoutAttempt(exchange, {
    name: 'cache',
    usage: { input: 100, output: 10 },
    price: { fixed: 250_000n as Money },
  });
  deliver(exchange, 200, true);
  await exchange.end();
  await world.tick('write the ledger');
  const charge = await world.host.get(ledgerQueries).charge(exchange.id, undefined);
  assert.equal(charge?.servedBy, 'cache');
  assert.equal(charge?.cost, 250_000n);
  assert.equal(charge?.ownCost, 0n);
  assert.equal(charge?.provider, undefined);
  assert.deepEqual(charge?.attempts, []);
  assert.match(charge?.formula ?? '', /1 request × 0\.00025/);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test("an own answer after failed attempts has no provider; they are listed with theirs, as the operator's cost", async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  for (const result of ['refused', 'unknown'] as const) Object.assign(await send(exchange), { result });
  serveWithoutAttempt(exchange, { name: 'fallback', usage: {}, price: 'free' });
  deliver(exchange, 200, true);
  await exchange.end();
  await world.tick('write the ledger');
  const charge = await world.host.get(ledgerQueries).charge(exchange.id, undefined);
  assert.equal(charge?.servedBy, 'fallback');
  assert.equal(charge?.provider, undefined);
  const listed = charge?.attempts.map(({ provider, model, borneBy, absorbed }) => [provider, model, borneBy, absorbed]);
  const prompt = cost({ input: 1_000 }, price);
  assert.deepEqual(listed, [
    ['vendor', 'vendor-model', undefined, 0n],
    ['vendor', 'vendor-model', 'operator', prompt],
  ]);
  await world.stop();
  assert.deepEqual((await world.audit()).violations, []);
});

test('an own answer that a crash interrupts is not charged', async () => {
  const world = await newWorld({ credit: '1' });
  const exchange = await entered(world);
  serveWithoutAttempt(exchange, { name: 'cache', usage: { input: 100 }, price: { fixed: money(1n) } });
  await world.tick('sync the journal');
  await using next = await world.crash();
  await next.tick('write the ledger');
  assert.equal(await next.balance(), 1_000_000_000n);
});

test('invalid names and prices of own answers are refused before the answer', () => {
  const bad = [
    { name: 'A cache', usage: {}, price: 'free' as const },
    { name: 'cache', usage: {}, price: { fixed: money(-1n) } },
    { name: 'cache', usage: {}, price: { ratio: { numerator: 1n, denominator: 0n } } },
  ];
  for (const served of bad) assert.throws(() => serveWithoutAttempt(newCall(), served), RangeError);
});
