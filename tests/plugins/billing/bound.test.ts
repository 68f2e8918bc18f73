/** The overdraft bound that `check` prints. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRatio } from '../../../core/money.ts';
import { flatBook } from '../../../core/prices.ts';
import type { Model, PlanTerms } from '../../../core/vocabulary.ts';
import { overdraftNotices } from '../../../plugins/billing/bound.ts';

const model = (id: string, maxOutputTokens: number | undefined, output: bigint): Model => ({
  id,
  ownedBy: 'x',
  created: 0,
  displayName: id,
  kind: 'chat',
  targets: [],
  contextTokens: 200_000,
  maxOutputTokens,
  prices: flatBook({ input: 0n, output }, '1'),
});
const plan = (name: string, concurrency?: number, multiplier?: string): PlanTerms => ({
  name,
  limits: concurrency === undefined ? {} : { concurrency },
  models: undefined,
  multiplier: multiplier === undefined ? undefined : parseRatio(multiplier),
});
const usdPerMillion = (usd: bigint) => usd * 1_000_000_000n;

test('the bound is what the dearest long answer costs beyond the hold, times the calls that may run at once', () => {
  const models = [model('cheap', 100_000, usdPerMillion(1n)), model('dear', 104_096, usdPerMillion(20n))];
  const [notice] = overdraftNotices({
    rules: { stepTokens: 4_096, wholeAnswers: 'step' },
    at: 0,
    models,
    plans: [plan('free', 5)],
  });
  assert.deepEqual(notice, {
    level: 'info',
    text: 'plan "free": an account can get at most 10.00 USD below zero (5 calls of dear)',
  });
});

test('a multiplier counts, a missing longest answer counts with the context, a missing limit is a warning', () => {
  const models = [model('open', undefined, usdPerMillion(10n))];
  const [twice, unlimited] = overdraftNotices({
    rules: { stepTokens: 0, wholeAnswers: 'step' },
    at: 0,
    models,
    plans: [plan('two', 1, '2'), plan('none')],
  });
  assert.match(twice!.text, /at most 4\.00 USD/);
  assert.equal(unlimited!.level, 'warning');
});

test('the dearest model is one that the plan allows, by whatever name, at the ratio that its accounts pay', () => {
  const models = [model('cheap', 1_000_000, usdPerMillion(1n)), model('dear', 1_000_000, usdPerMillion(20n))];
  const notices = overdraftNotices({
    rules: { stepTokens: 0, wholeAnswers: 'step' },
    at: 0,
    models,
    idOf: (name) => (name === 'best' ? 'dear' : name),
    plans: [
      { ...plan('small', 2), models: new Set(['cheap']) },
      { ...plan('by alias', 2), models: new Set(['best', 'cheap']) },
      { ...plan('nothing', 2), models: new Set(['gone']) },
      plan('sold', 1, '3'),
    ],
    multipliers: { of: (name) => parseRatio(name === 'sold' ? '2.5' : '1') },
  });
  assert.deepEqual(
    notices.map(({ text }) => text),
    [
      'plan "small": an account can get at most 2.00 USD below zero (2 calls of cheap)',
      'plan "by alias": an account can get at most 40.00 USD below zero (2 calls of dear)',
      'plan "sold": an account can get at most 50.00 USD below zero (1 calls of dear)',
    ],
  );
});

test('without a priced model there is nothing to bound', () => {
  assert.deepEqual(
    overdraftNotices({ rules: { stepTokens: 1, wholeAnswers: 'step' }, at: 0, models: [], plans: [plan('free', 5)] }),
    [],
  );
});

test('holds that cover whole answers leave nothing to bound', () => {
  const models = [model('dear', 104_096, usdPerMillion(20n))];
  const rules = { stepTokens: 4_096, wholeAnswers: 'bound' } as const;
  const notices = overdraftNotices({ rules, at: 0, models, plans: [plan('free', 5), plan('none')] });
  assert.deepEqual(
    notices.map(({ level }) => level),
    ['info'],
  );
});
