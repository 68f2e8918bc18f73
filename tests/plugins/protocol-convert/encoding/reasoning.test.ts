/** Reasoning: efforts and budgets, each in terms of the other, within what a model takes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Effort, efforts } from '../../../../plugins/common/domain/traits.ts';
import { budgetOf, effortOf, nearestEffort } from '../../../../plugins/common/encoding/reasoning.ts';
import { fc } from '../../../helpers/properties.ts';

test('a budget counts as the effort that would have asked for it', () => {
  const pairs: [number, Effort][] = [
    [0, 'none'],
    [1, 'minimal'],
    [512, 'minimal'],
    [513, 'low'],
    [1024, 'low'],
    [8192, 'medium'],
    [8193, 'high'],
    [24_576, 'high'],
    [24_577, 'xhigh'],
  ];
  for (const [budgetTokens, effort] of pairs) assert.equal(effortOf({ budgetTokens }), effort, String(budgetTokens));
});

test('a budget of -1, and none, set neither effort nor budget', () => {
  assert.equal(effortOf({ budgetTokens: -1 }), undefined);
  assert.equal(effortOf({}), undefined);
  assert.equal(budgetOf({ budgetTokens: -1 }, {}), undefined);
  assert.equal(budgetOf({}, {}), undefined);
});

test('an effort becomes its budget where there is room for it', () => {
  const budgets = efforts.map((effort) => budgetOf({ effort }, { maxBudget: 200_000 }));
  assert.deepEqual(budgets, [0, 1024, 1024, 8192, 24_576, 32_768, 128_000]);
  assert.equal(budgetOf({ effort: 'max' }, { maxBudget: 24_576 }), 24_576);
  assert.equal(budgetOf({ effort: 'minimal' }, { minBudget: 1 }), 512);
});

test('pitfall 131: a budget stays below the bound on the answer, and an effort leaves room for the answer itself', () => {
  assert.equal(budgetOf({ budgetTokens: 8192 }, { maxOutputTokens: 8192 }), 8191);
  assert.equal(budgetOf({ budgetTokens: 100 }, { maxOutputTokens: 8192 }), 1024);
  assert.equal(budgetOf({ effort: 'high' }, { maxOutputTokens: 10_000 }), 6000);
  assert.equal(budgetOf({ effort: 'high' }, { maxOutputTokens: 1024 }), undefined);
  assert.equal(budgetOf({ effort: 'none' }, { maxOutputTokens: 1024 }), 0);
});

test('pitfall 134: of an effort and a budget one result comes, whichever is asked for', () => {
  const wish = { effort: 'low', budgetTokens: 5000 } as const;
  assert.equal(effortOf(wish), 'low');
  assert.equal(budgetOf(wish, {}), 5000);
});

test('pitfall 133: an effort that a model does not know becomes the nearest', () => {
  const usual: Effort[] = ['low', 'medium', 'high'];
  assert.equal(nearestEffort('minimal', usual), 'low');
  assert.equal(nearestEffort('none', usual), 'low');
  assert.equal(nearestEffort('xhigh', usual), 'high');
  assert.equal(nearestEffort('max', [...usual, 'xhigh']), 'xhigh');
  assert.equal(nearestEffort('medium', ['low', 'high']), 'high');
  assert.equal(nearestEffort('minimal', ['none', 'medium']), 'medium');
  assert.equal(nearestEffort('high', ['none']), 'none');
  assert.equal(nearestEffort('high', []), 'high');
});

test('an effort is always one that is known, and a budget within its limits', () => {
  fc.assert(
    fc.property(fc.constantFrom(...efforts), fc.subarray([...efforts], { minLength: 1 }), (effort, known) => {
      assert.ok(known.includes(nearestEffort(effort, known)));
    }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...efforts), fc.integer({ min: 1, max: 200_000 }), (effort, maxOutputTokens) => {
      const budget = budgetOf({ effort }, { maxOutputTokens });
      assert.ok(budget === undefined ? maxOutputTokens <= 1024 : budget === 0 || budget >= 1024);
      assert.ok((budget ?? 0) < maxOutputTokens);
    }),
  );
});
