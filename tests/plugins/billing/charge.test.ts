/** Tiers, services, surcharges, own cost and account ratios through a whole hold and settlement, and rows that anybody can add up. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sql } from 'drizzle-orm';
import { boundOf, chargeFor } from '../../../plugins/billing/reservations/charge.ts';
import { HoldGuard } from '../../../plugins/billing/reservations/settle.ts';
import type { Terms } from '../../../plugins/billing/reservations/terms.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { usageReport } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { one, parseRatio, parseUsd, timesRatio } from '../../../plugins/common/domain/money.ts';
import { flatBook, PriceVersion } from '../../../plugins/common/domain/prices.ts';
import { tokenClasses, type Usage } from '../../../plugins/common/domain/usage.ts';
import { fc } from '../../helpers/properties.ts';
import {
  answer,
  attemptOf,
  enter,
  entered,
  leaveWorlds,
  modelOf,
  newCall,
  newWorld,
  report,
  send,
  usd,
  type World,
} from './world.ts';

after(leaveWorlds);

const list = {
  input: parseUsd('2'),
  cache_read: parseUsd('0.2'),
  output: parseUsd('10'),
  web_search: parseUsd('0.01'),
};
const version = new PriceVersion({
  name: 'list',
  base: list,
  tiers: [
    { name: '>1k', above: 1_000, price: { input: parseUsd('4'), output: parseUsd('15') } },
    { name: 'flex', service: 'flex', times: parseRatio('0.5') },
    { name: 'fast', service: 'fast', times: parseRatio('2') },
  ],
});
const tiered: Partial<Model> = { prices: [version] };

interface Row {
  readonly cost: string;
  readonly tier: string | null;
  readonly own_cost: string | null;
  readonly price_version: string;
}

function usageRows(world: World): Promise<Row[]> {
  return world.rows<Row>(sql`select cost::text, tier, own_cost::text, price_version from ${world.table('calls')}`);
}

test('the tier is the estimated prompt’s at the hold and the true prompt’s at the settlement', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world, { model: tiered, call: { inputTokens: 1_200 } });
  assert.equal(await world.balance(), usd('0.9837'), '1200 × 4 + 100 × 15 per million, and one search');
  await answer(exchange, { input: 400, cache_read: 500, output: 50 });
  assert.equal(await world.balance(), usd('0.9986'), '400 × 2 + 500 × 0.2 + 50 × 10 per million');
  const long = await entered(world, { model: tiered, call: { inputTokens: 1_200 } });
  await answer(long, { input: 1_001, output: 50 });
  await world.tick('write the ledger');
  assert.deepEqual(await usageRows(world), [
    { cost: '1400000', tier: null, own_cost: null, price_version: 'list' },
    { cost: '4754000', tier: '>1k', own_cost: null, price_version: 'list' },
  ]);
  assert.deepEqual((await world.audit()).violations, []);
});

test('a client pays for the requested service where it was granted, and for the standard one otherwise', async () => {
  await using world = await newWorld({ credit: '1' });
  const request = { inputTokens: 500, toolCalls: 0, services: { tier: 'fast' } };
  for (const services of [{ tier: 'fast' }, { tier: 'default' }, {}, { tier: 'flex' }]) {
    const exchange = newCall({ model: tiered, call: request });
    const before = await world.balance();
    await enter(world, exchange);
    assert.equal(before - (await world.balance()), usd('0.004'), 'held as fast');
    Object.assign(await send(exchange), { result: 'answered', status: 200 });
    exchange.set(usageReport, report({ input: 500 }, { services }));
    await exchange.end();
  }
  const unrequested = await entered(world, { model: tiered, call: { inputTokens: 500 } });
  Object.assign(await send(unrequested), { result: 'answered', status: 200 });
  unrequested.set(usageReport, report({ input: 500 }, { services: { tier: 'fast' } }));
  await unrequested.end();
  await world.tick('write the ledger');
  const rows = await usageRows(world);
  assert.deepEqual(
    rows.map(({ cost, tier }) => [cost, tier]),
    [
      ['2000000', 'fast'],
      ['1000000', null],
      ['2000000', 'fast'],
      ['1000000', null],
      ['1000000', null],
    ],
  );
});

test('allowed tool calls are held, and executed ones are charged', async () => {
  await using world = await newWorld({ credit: '1' });
  const exchange = await entered(world, { model: tiered, call: { inputTokens: 500, toolCalls: 7 } });
  assert.equal(await world.balance(), usd('0.928'));
  await answer(exchange, { input: 500, output: 0, web_search: 2 });
  assert.equal(await world.balance(), usd('0.979'));
});

test('the request itself can have a price, and images are held by number and size', async () => {
  await using world = await newWorld({ credit: '1' });
  const image = { entries: [{ words: ['4k'], amount: parseUsd('0.2') }], otherwise: parseUsd('0.05') };
  const prices = [new PriceVersion({ name: 'v', base: { request: parseUsd('0.01') }, image })];
  const drawing = { inputTokens: 0, maxOutputTokens: 0, images: 3 };
  const unknown = await entered(world, { model: { prices }, call: drawing });
  assert.equal(await world.balance(), usd('0.39'), 'as the dearest');
  Object.assign(await send(unknown), { result: 'answered', status: 200 });
  unknown.set(usageReport, report({ image: 2 }, { media: ['1k'] }));
  await unknown.end();
  assert.equal(await world.balance(), usd('0.89'));
  const known = await entered(world, { model: { prices }, call: { ...drawing, images: 1, media: ['4k'] } });
  assert.equal(await world.balance(), usd('0.68'));
  await answer(known, { image: 1 });
  assert.equal(await world.balance(), usd('0.68'));
});

test('a client pays for the media that it ordered, whatever the vendor made; where the order left that open, for the made ones', async () => {
  await using world = await newWorld({ credit: '1' });
  const image = { entries: [{ words: ['4k'], amount: parseUsd('0.2') }], otherwise: parseUsd('0.05') };
  const prices = [new PriceVersion({ name: 'v', base: {}, image })];
  const charges: bigint[] = [];
  for (const media of [['4k'], ['1k'], undefined]) {
    for (const made of [['4k'], ['1k']]) {
      const drawing = { inputTokens: 0, maxOutputTokens: 0, images: 1, ...(media !== undefined && { media }) };
      const exchange = newCall({ model: { prices }, call: drawing });
      const before = await world.balance();
      await enter(world, exchange);
      Object.assign(await send(exchange), { result: 'answered', status: 200 });
      exchange.set(usageReport, report({ image: 1 }, { media: made }));
      await exchange.end();
      charges.push(before - (await world.balance()));
    }
  }
  const [large, small] = [usd('0.2'), usd('0.05')];
  assert.deepEqual(charges, [large, large, small, small, large, small]);
});

test("the row of a call has the operator's cost: at the target that served it, else the model's", async () => {
  await using world = await newWorld({ credit: '1' });
  const half = flatBook({ input: parseUsd('1'), output: parseUsd('5') }, 'half');
  const third = flatBook({ input: parseUsd('3'), output: parseUsd('3') }, 'third');
  const target = { provider: 'vendor', model: 'vendor-model', weight: 0 };
  const served: Partial<Model>[] = [
    { cost: half },
    { cost: half, targets: [{ ...target, cost: third }] },
    { cost: half, targets: [{ ...target, model: 'other', cost: third }] },
    {},
  ];
  for (const model of served) {
    const exchange = await entered(world, { model });
    await answer(exchange, { input: 1_000, output: 100 });
  }
  await world.tick('write the ledger');
  const rows = await usageRows(world);
  assert.deepEqual(
    rows.map(({ cost, own_cost }) => [cost, own_cost]),
    [
      ['3000000', '1500000'],
      ['3000000', '3300000'],
      ['3000000', '1500000'],
      ['3000000', null],
    ],
  );
});

test('plan, model and account multiply exactly, with one rounding', async () => {
  await using world = await newWorld({ credit: '1' });
  const who = { accountId: 'alice', keyId: 'key-1', plan: 'free', models: undefined, multiplier: parseRatio('0.9') };
  const exchange = await entered(world, { model: { multiplier: parseRatio('1.1') }, facts: [[caller, who]] });
  await answer(exchange, { input: 1, output: 0 });
  assert.equal(await world.balance(), usd('0.99999802'), '2000 nano-dollars × 99/100');
  assert.deepEqual(timesRatio(parseRatio('1.1'), parseRatio('0.9')), { numerator: 99n, denominator: 100n });
  assert.equal(timesRatio(one, one), one);
});

test('a call that a crash cut off is charged by the tier and version of its hold', async () => {
  const cost = flatBook({ input: parseUsd('1'), output: parseUsd('5') }, 'own');
  const world = await newWorld({ credit: '1', entries: [modelOf({ ...tiered, cost })] });
  const exchange = await entered(world, { model: tiered, call: { inputTokens: 1_500, services: { tier: 'fast' } } });
  await send(exchange);
  await world.tick('sync the journal');
  await using next = await world.crash();
  const [row] = await usageRows(next);
  assert.deepEqual(row, { cost: '12000000', tier: '>1k + fast', own_cost: '1500000', price_version: 'list' });
  assert.deepEqual((await next.audit()).violations, []);
});

test('every charge in the ledger can be calculated again from the row of its call', async () => {
  await using world = await newWorld({ credit: '1' });
  const usages: Usage[] = [
    { input: 300, cache_read: 90, output: 7, web_search: 1 },
    { input: 1_999, reasoning: 13 },
    {},
  ];
  for (const usage of usages) {
    const facts = [
      [caller, { accountId: 'alice', keyId: 'k', plan: 'p', models: undefined, multiplier: parseRatio('1.3') }],
    ];
    const exchange = await entered(world, {
      model: tiered,
      call: { services: { tier: 'flex' } },
      facts: facts as never,
    });
    await answer(exchange, usage);
  }
  await world.tick('write the ledger');
  const rows = await world.rows<{ charged: string } & Formula>(
    sql`select coalesce(revenue, 0)::text as charged, classes, price, ratio from ${world.table('calls')} as calls
        left join ${world.table('movements')} as ledger on kind = 'CHARGE' and request_id = id`,
  );
  assert.equal(rows.length, 3);
  for (const { charged, ...formula } of rows) assert.equal(recomputed(formula), BigInt(charged));
});

interface Formula {
  readonly classes: Record<string, number>;
  readonly price: Record<string, string>;
  readonly ratio: string;
}

/** Without any of the gateway's own code. */
function recomputed({ classes, price, ratio }: Formula): bigint {
  const standIns: Record<string, string> = { cache_read: 'input', reasoning: 'output', web_search: 'call' };
  let millionths = 0n;
  for (const [name, count] of Object.entries(classes)) {
    const unit = BigInt(price[name] ?? price[standIns[name] ?? ''] ?? '0');
    millionths += BigInt(count) * unit * (tokenClasses.some((token) => token === name) ? 1n : 1_000_000n);
  }
  const [numerator, denominator] = ratio.split('/').map(BigInt) as [bigint, bigint];
  const divisor = 1_000_000n * denominator;
  return (2n * millionths * numerator + divisor) / (2n * divisor);
}

test('M7: the hold covers the charge for any usage within the estimate', () => {
  const counts = fc.nat(2_000);
  const usages = fc.record({
    input: counts,
    cache_read: counts,
    output: counts,
    reasoning: counts,
    web_search: fc.nat(5),
  });
  const reported = fc.option(fc.record({ tier: fc.constantFrom('fast', 'flex', 'default') }), { nil: undefined });
  const requested = fc.option(fc.record({ tier: fc.constantFrom('fast', 'flex') }), { nil: undefined });
  const ratios = fc.constantFrom(one, parseRatio('1.6'), parseRatio('0.000001'));
  fc.assert(
    fc.property(usages, fc.nat(500), reported, requested, ratios, (usage, slack, services, wanted, ratio) => {
      const terms: Terms = {
        ...{ id: 'x', accountId: 'a', keyId: 'k', model: 'm', entry: undefined, at: 0, prices: version, ratio },
        context: wanted === undefined ? {} : { services: wanted },
        inputTokens: usage.input + usage.cache_read + slack,
        outputTokens: usage.output + usage.reasoning + slack,
        allowance: { tools: usage.web_search, images: 0, seconds: 0 },
      };
      const { cost } = chargeFor(terms, usage, { services }, [attemptOf('answered') as never]);
      assert.ok(boundOf(terms, terms.outputTokens) >= cost);
    }),
    { numRuns: 1_000 },
  );
});

test('an answer without an attempt costs its share of the whole price, rounded once half up, and saves the rest of it', () => {
  const counts = fc.nat(5_000_000);
  const usages = fc.record({ input: counts, cache_read: counts, output: counts, web_search: fc.nat(5) });
  const shares = fc
    .tuple(fc.bigInt(0n, 10n ** 9n), fc.constantFrom(1n, 3n, 10n, 10n ** 9n))
    .map(([numerator, denominator]) => ({ numerator: numerator > denominator ? denominator : numerator, denominator }));
  const ratios = fc.constantFrom(one, parseRatio('1.6'), parseRatio('0.000001'));
  fc.assert(
    fc.property(usages, shares, ratios, (usage, share, ratio) => {
      const terms = { entry: undefined, at: 0, prices: version, ratio, context: {} } as unknown as Terms;
      const served = { name: 'cache', usage, price: share.numerator === 0n ? ('free' as const) : { ratio: share } };
      const { cost, own } = chargeFor(terms, usage, { served }, []);
      const { input, cache_read: read, output, web_search: searches } = usage;
      const { price } = version.priced(0, usage);
      const millionths =
        BigInt(input) * price.input! +
        BigInt(read) * price.cache_read! +
        BigInt(output) * price.output! +
        BigInt(searches) * price.web_search! * 1_000_000n;
      assert.equal(cost, halfUp(millionths * share.numerator * ratio.numerator, share.denominator * ratio.denominator));
      assert.equal(own, 0n);
      const saved = new HoldGuard(undefined as never, { terms } as never).saving(usage, share);
      assert.equal(saved, halfUp(millionths * ratio.numerator, ratio.denominator) - cost);
      assert.ok(saved >= 0n);
    }),
    { numRuns: 1_000 },
  );
});

/** So many millionths of a nano-dollar over `divisor`. */
function halfUp(millionths: bigint, divisor: bigint): bigint {
  const whole = divisor * 1_000_000n;
  return (2n * millionths + whole) / (2n * whole);
}
