/** The multiplier: the plan's or the default, never below the minimum, fixed before the money is held. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalog, type Model } from '../../../plugins/common/domain/models.ts';
import { cost, formatRatio, parseRatio, type Ratio } from '../../../plugins/common/domain/money.ts';
import { type PlanTerms, plan, plans } from '../../../plugins/common/domain/plans.ts';
import { multipliers, priceRatio, ratioOf } from '../../../plugins/common/domain/price-ratio.ts';
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

async function ratioFor(section: object, offer: PlanTerms | undefined): Promise<Ratio> {
  const part = await setUp(plugin, hostWith(...(offer === undefined ? [] : [offer])), section);
  const exchange = fakeExchange();
  if (offer !== undefined) exchange.set(plan, offer);
  await part.handle!(exchange, async () => okAnswer);
  return exchange.get(priceRatio);
}

const equal = (one: Ratio, other: string) => {
  const { numerator, denominator } = parseRatio(other);
  assert.equal(one.numerator * denominator, numerator * one.denominator, `${formatRatio(one)} is not ${other}`);
};

test("the ratio is the plan's, or the default's 2 where the plan sets none", async () => {
  equal(await ratioFor({}, undefined), '2');
  equal(await ratioFor({}, terms('payg')), '2');
  equal(await ratioFor({}, terms('saver', '1.6')), '1.6');
  equal(await ratioFor({ default: 3 }, terms('payg')), '3');
});

test('a plan, or a model with a plan, below the minimum is a fault that names both', async () => {
  const faults = async (section: object, offers: PlanTerms[], ...models: Partial<Model>[]) => {
    const host = hostWith(...offers);
    host.provide(catalog, { find: () => undefined, list: () => models as Model[] });
    return (await setUp(plugin, host, section)).checks!.problems!();
  };
  const below = (what: string) => ({
    path: ['minimum'],
    message: `${what}, below the minimum of 1: raise it, or lower the minimum`,
  });
  const saver = terms('saver', '1.6');
  assert.deepEqual(await faults({}, [terms('loss', '0.999999')]), [below('plan "loss" comes to 0.999999')]);
  const cheap = { id: 'cheap', multiplier: parseRatio('0.6') };
  const inBatches = { id: 'lines', batch: parseRatio('0.5') };
  const both = { id: 'both', multiplier: parseRatio('1.25'), batch: parseRatio('0.4') };
  assert.deepEqual(await faults({}, [terms('fair', '2'), saver], cheap, inBatches, both, { id: 'plain' }), [
    below('plan "saver" with the model "cheap" comes to 0.96'),
    below('plan "saver" with the model "lines" comes to 0.8'),
    below('plan "saver" with the model "both" comes to 0.8'),
  ]);
  await assert.rejects(faults({ default: 1, minimum: '1.5' }, []));
  assert.deepEqual(await faults({}, [saver], { id: 'm', multiplier: parseRatio('0.625') }), []);
});

test('the service has the lowest factor of all plans and the factor of each', async () => {
  const host = hostWith(terms('payg'), terms('saver', '1.6'));
  await setUp(plugin, host, {});
  const service = host.get(multipliers);
  equal(service.lowest(), '1.6');
  equal(service.of!('payg'), '2');
  equal(service.of!('saver'), '1.6');
});

test('plans without a multiplier are named in a notice', async () => {
  const part = await setUp(plugin, hostWith(terms('payg'), terms('saver', '1.6')), {});
  assert.deepEqual(
    part.checks!.notices!().map(({ text }) => text),
    ['plans that state no multiplier are sold at 2: payg'],
  );
});

test('a charge is the official sum times the ratio, rounded once, for any counts and ratios', async () => {
  const decimal = fc.tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 999_999 }));
  const text = ([whole, rest]: [number, number]) => `${whole}.${String(rest).padStart(6, '0')}`;
  await fc.assert(
    fc.asyncProperty(
      decimal.map(text),
      decimal.map(text),
      fc.record({ input: fc.nat(10_000_000), output: fc.nat(1_000_000) }),
      fc.record({ input: fc.bigInt(0n, 10n ** 12n), output: fc.bigInt(0n, 10n ** 12n) }),
      async (ofPlan, ofModel, usage, price) => {
        const ratio = ratioOf({ plan: await ratioFor({}, terms('p', ofPlan)), model: parseRatio(ofModel) });
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
