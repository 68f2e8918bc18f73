/** The multiplier: plan × model, exact, never below the minimum, fixed before the money is held. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalog, type Model, model } from '../../../plugins/common/domain/models.ts';
import { cost, formatRatio, parseRatio, type Ratio } from '../../../plugins/common/domain/money.ts';
import { type PlanTerms, plan, plans } from '../../../plugins/common/domain/plans.ts';
import { multipliers, priceRatio } from '../../../plugins/common/domain/price-ratio.ts';
import plugin from '../../../plugins/multiplier/index.ts';
import { fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

const terms = (name: string, multiplier?: string): PlanTerms => ({
  name,
  limits: {},
  models: undefined,
  multiplier: multiplier === undefined ? undefined : parseRatio(multiplier),
});

function hostWith(...offers: PlanTerms[]) {
  const host = fakeHost();
  if (offers.length > 0)
    host.provide(plans, {
      default: offers[0]!.name,
      terms: (name) => offers.find((offer) => offer.name === name) ?? offers[0]!,
      has: (name) => offers.some((offer) => offer.name === name),
      list: () => offers,
      offer: () => undefined,
    });
  return host;
}

async function ratioFor(section: object, offer: PlanTerms | undefined, id = 'm'): Promise<Ratio> {
  const part = await setUp(plugin, hostWith(...(offer === undefined ? [] : [offer])), section);
  const exchange = fakeExchange({ facts: [[model, { id }]] });
  if (offer !== undefined) exchange.set(plan, offer);
  await part.handle!(exchange, async () => okAnswer);
  return exchange.get(priceRatio);
}

const equal = (one: Ratio, other: string) => {
  const { numerator, denominator } = parseRatio(other);
  assert.equal(one.numerator * denominator, numerator * one.denominator, `${formatRatio(one)} is not ${other}`);
};

test("the plan's ratio, or the default's 2 where the plan states none", async () => {
  equal(await ratioFor({}, undefined), '2');
  equal(await ratioFor({}, terms('payg')), '2');
  equal(await ratioFor({}, terms('saver', '1.6')), '1.6');
  equal(await ratioFor({ default: 3 }, terms('payg')), '3');
});

test("a model's ratio multiplies the plan's, exactly", async () => {
  const section = { models: { dear: '1.25', 'half-price': 0.5 }, minimum: '0.5' };
  equal(await ratioFor(section, terms('saver', '1.6'), 'dear'), '2');
  equal(await ratioFor(section, terms('saver', '1.6'), 'half-price'), '0.8');
  equal(await ratioFor(section, terms('saver', '1.6'), 'other'), '1.6');
  const fine = await ratioFor({ models: { m: '0.333333' }, minimum: '0.1' }, terms('p', '1.000001'));
  assert.equal(formatRatio(fine), '0.333333333333');
});

test('whoever would be sold to below the minimum is named, and the gateway does not start', async () => {
  const faults = async (section: object, ...offers: PlanTerms[]) =>
    (await setUp(plugin, hostWith(...offers), section)).problems!();
  const fix = 'raise it, or lower the minimum';
  assert.deepEqual(await faults({}, terms('loss', '0.999999')), [
    { path: ['minimum'], message: `plan "loss" comes to 0.999999, below the minimum of 1: ${fix}` },
  ]);
  assert.deepEqual(await faults({ models: { m: '0.6' } }, terms('fair', '2'), terms('saver', '1.6')), [
    { path: ['models', 'm'], message: `plan "saver" with the model "m" comes to 0.96, below the minimum of 1: ${fix}` },
  ]);
  await assert.rejects(async () => faults({ default: 1, minimum: '1.5' }));
  assert.deepEqual(await faults({ models: { m: '0.625' } }, terms('saver', '1.6')), []);
});

test("a model's own ratio counts for the minimum, and stands in one place", async () => {
  const host = hostWith(terms('saver', '1.6'));
  const listed = ['cheap', 'dear', 'plain'].map((id) => ({ id }) as Model);
  const ratios = [parseRatio('0.5'), parseRatio('1.25'), undefined];
  const models = listed.map((entry, index) => ({ ...entry, ...(ratios[index] && { multiplier: ratios[index] }) }));
  host.provide(catalog, { find: (id) => models.find((entry) => entry.id === id), list: () => models });
  const part = await setUp(plugin, host, { models: { dear: '2', plain: '3' } });
  assert.deepEqual(part.problems!(), [
    {
      path: ['models', 'dear'],
      message: 'the model has a multiplier of its own, 1.25: write 2.5, their product, there and remove this one',
    },
    {
      path: ['minimum'],
      message:
        'plan "saver" with the model "cheap" comes to 0.8, below the minimum of 1: raise it, or lower the minimum',
    },
  ]);
});

test('others are told how low the price of a model goes', async () => {
  const host = hostWith(terms('payg'), terms('saver', '1.6'));
  await setUp(plugin, host, { models: { m: '1.5' } });
  equal(host.get(multipliers).lowest('m'), '2.4');
  equal(host.get(multipliers).lowest('other'), '1.6');
});

test('plans without a multiplier and models that are not there are told of', async () => {
  const part = await setUp(plugin, hostWith(terms('payg'), terms('saver', '1.6')), { models: { gone: 2 } });
  const texts = part.notices!().map(({ text }) => text);
  assert.deepEqual(texts, [
    'plans that state no multiplier are sold at 2: payg',
    "multiplier.models is the former place of a model's ratio: write it as models.NAME.multiplier (gone)",
    'multiplier.models names what is no model here: gone',
  ]);
});

test('what is paid is the official sum times the ratio, rounded once, whatever the counts and ratios are', async () => {
  const decimal = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 999_999 }));
  const text = ([whole, rest]: [number, number]) => `${whole}.${String(rest).padStart(6, '0')}`;
  await fc.assert(
    fc.asyncProperty(
      decimal.map(text),
      decimal.map(text),
      fc.record({ input: fc.nat(10_000_000), output: fc.nat(1_000_000) }),
      fc.record({ input: fc.bigInt(0n, 10n ** 12n), output: fc.bigInt(0n, 10n ** 12n) }),
      async (ofPlan, ofModel, usage, price) => {
        const ratio = await ratioFor({ models: { m: ofModel } }, terms('p', ofPlan));
        const [first, second] = [parseRatio(ofPlan), parseRatio(ofModel)];
        const exact = BigInt(usage.input) * price.input + BigInt(usage.output) * price.output;
        const numerator = exact * first.numerator * second.numerator;
        const divisor = 1_000_000n * first.denominator * second.denominator;
        assert.equal(cost(usage, price, ratio), (2n * numerator + divisor) / (2n * divisor));
      },
    ),
    { numRuns: 200 },
  );
});

test('twice the official price is twice the official sum to the nano-dollar, where that is whole', () => {
  fc.assert(
    fc.property(fc.nat(10_000_000), fc.nat(1_000_000), (input, output) => {
      const price = { input: 750_000_000n, output: 4_500_000_000n };
      assert.equal(cost({ input, output }, price, parseRatio('2')), 2n * cost({ input, output }, price));
    }),
  );
});
