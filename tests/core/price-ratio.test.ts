/** The ratio on a price: plan × model × account, exact, and the lowest that any plan comes to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatRatio, isLess, parseRatio, type Ratio } from '../../plugins/common/domain/money.ts';
import type { PlanTerms } from '../../plugins/common/domain/plans.ts';
import { lowestRatio, planRatio, ratioOf } from '../../plugins/common/domain/price-ratio.ts';
import { fc } from '../helpers/properties.ts';

const ratio = fc.integer({ min: 1, max: 20_000_000 }).map((millionths) => parseRatio((millionths / 1e6).toFixed(6)));
const factor = fc.option(ratio, { nil: undefined });
const terms = (name: string, multiplier: Ratio | undefined, models?: readonly string[]): PlanTerms => ({
  name,
  limits: {},
  models: models && new Set(models),
  multiplier,
});

test('a ratio is the exact product of its factors in any order; an absent factor is 1', () => {
  fc.assert(
    fc.property(factor, factor, factor, (plan, model, account) => {
      const whole = ratioOf({ plan, model, account });
      const factors = [plan, model, account].filter((one) => one !== undefined);
      const numerator = factors.reduce((product, one) => product * one.numerator, 1n);
      const denominator = factors.reduce((product, one) => product * one.denominator, 1n);
      assert.equal(whole.numerator * denominator, numerator * whole.denominator);
      assert.deepEqual(ratioOf({ plan: account, model: plan, account: model }), whole);
    }),
  );
});

test('the multiplier plugin sets the factor of a plan; without it the plan does', () => {
  const offered = { terms: (name: string) => terms(name, name === 'saver' ? parseRatio('1.6') : undefined) };
  const stated = { of: (plan: string) => parseRatio(plan === 'saver' ? '3' : '2') };
  const of = (multipliers: typeof stated | undefined, plans: typeof offered | undefined, name: string) => {
    const found = planRatio({ multipliers, plans }, name);
    return found && formatRatio(found);
  };
  assert.deepEqual(
    [of(stated, offered, 'saver'), of(stated, undefined, 'x'), of(undefined, offered, 'saver')],
    ['3', '2', '1.6'],
  );
  assert.deepEqual([of(undefined, offered, 'free'), of(undefined, undefined, 'x')], [undefined, undefined]);
});

test('the lowest ratio is reached by a plan that allows the model, and no plan is below it', () => {
  const plan = fc.tuple(factor, fc.option(fc.subarray(['m', 'alias', 'other']), { nil: undefined }));
  fc.assert(
    fc.property(fc.array(plan, { maxLength: 6 }), factor, (offers, multiplier) => {
      const list = offers.map(([own, models], index) => terms(`p${index}`, own, models));
      const model = { id: 'm', aliases: ['alias'], multiplier };
      const lowest = lowestRatio({ multipliers: undefined, plans: { list: () => list } }, model);
      const allowed = list.filter(({ models }) => models === undefined || models.has('m') || models.has('alias'));
      const ratios = allowed.map((offer) => ratioOf({ plan: offer.multiplier, model: multiplier }));
      assert.ok(ratios.every((one) => !isLess(one, lowest)));
      const reached = ratios.length === 0 ? [ratioOf({ plan: undefined, model: multiplier })] : ratios;
      assert.ok(reached.some((one) => !isLess(lowest, one)));
    }),
  );
});

test('a ratio is written as decimals that read back as the same ratio', () => {
  fc.assert(
    fc.property(ratio, (one) => {
      const read = parseRatio(formatRatio(one));
      assert.equal(read.numerator * one.denominator, one.numerator * read.denominator);
    }),
  );
  assert.deepEqual(
    ['1', '10', '1.60', '0.000001'].map((text) => formatRatio(parseRatio(text))),
    ['1', '10', '1.6', '0.000001'],
  );
  assert.equal(formatRatio({ numerator: 1n, denominator: 3n }), '1/3');
});
