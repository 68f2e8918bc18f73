/** Plans: the caller's terms, and what is wrong with a configuration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from '../../../core/schema.ts';
import { caller, plan, plans, priceRatio, shop } from '../../../core/vocabulary.ts';
import plansPlugin from '../../../plugins/plans/index.ts';
import { fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

const section = {
  default: 'free',
  offers: {
    free: { price: 0, limits: { rpm: 20, tpm: '40k', concurrency: 2 } },
    pro: {
      price: 20,
      grant: { amount: 25, every: 'month' },
      windows: { '5h': 5, week: 15 },
      limits: { rpm: 600, tpm: '2M', concurrency: 50 },
    },
    saver: { price: 30, lasts: '30d', multiplier: 1.6, models: ['one', 'two'] },
  },
};

const from = (name: string, planEndsAt?: number) => {
  return { accountId: 'account', keyId: 'key', plan: name, planEndsAt, models: undefined };
};

test("the terms are those of the account's plan, and of the default plan when it is no longer offered", async () => {
  const part = await setUp(plansPlugin, fakeHost(), section);
  for (const [name, expected] of [
    ['pro', 'pro'],
    ['gone', 'free'],
    ['toString', 'free'],
  ] as const) {
    const exchange = fakeExchange({ facts: [[caller, from(name)]] });
    await part.handle!(exchange, async () => okAnswer);
    assert.equal(exchange.get(plan).name, expected);
  }
});

test('at the end of a plan the default plan holds, without anybody ending it', async () => {
  const host = fakeHost();
  const part = await setUp(plansPlugin, host, section);
  const endsAt = host.clock.now() + 1_000;
  const planNow = async () => {
    const exchange = fakeExchange({ facts: [[caller, from('pro', endsAt)]] });
    await part.handle!(exchange, async () => okAnswer);
    return exchange.get(plan).name;
  };
  host.advance(999);
  assert.equal(await planNow(), 'pro');
  host.advance(1);
  assert.equal(await planNow(), 'free');
});

test('limits, models and multiplier become terms', async () => {
  const host = fakeHost();
  await setUp(plansPlugin, host, section);
  const service = host.need(plans);
  assert.deepEqual(service.terms('free').limits, { rpm: 20, tpm: 40_000, concurrency: 2 });
  assert.equal(service.terms('free').models, undefined);
  assert.equal(service.terms('free').multiplier, undefined);
  assert.deepEqual(service.terms('saver').limits, {});
  assert.deepEqual(service.terms('saver').models, new Set(['one', 'two']));
  assert.deepEqual(service.terms('saver').multiplier, { numerator: 16n, denominator: 10n });
  assert.equal(service.default, 'free');
  assert.equal(service.has('pro'), true);
  assert.equal(service.has('gone'), false);
});

test('what a plan is sold for and brings is read exactly and kept with the plan', async () => {
  const host = fakeHost();
  await setUp(plansPlugin, host, section);
  const pro = host.need(plans).offer('pro')!;
  assert.equal(pro.price, 20_000_000_000n);
  assert.deepEqual(pro.grant, { amount: 25_000_000_000n, every: 'month' });
  assert.deepEqual(pro.windows, { '5h': 5_000_000_000n, week: 15_000_000_000n });
  assert.equal(host.need(plans).offer('saver')!.lastsMs, 30 * 86_400_000);
  assert.deepEqual([pro.renew, host.need(plans).offer('gone')], [false, undefined]);
});

test('plans with a price that nobody sells are told to whoever checks the file', async () => {
  const part = await setUp(plansPlugin, fakeHost({ mode: 'check' }), section);
  assert.deepEqual(part.notices!(), [
    { level: 'warning', text: 'plan "pro" has a price, but nobody can buy it: add "shop" to the list' },
    { level: 'warning', text: 'plan "saver" has a price, but nobody can buy it: add "shop" to the list' },
  ]);
  const host = fakeHost({ mode: 'check' });
  host.provide(shop, {} as never);
  assert.deepEqual((await setUp(plansPlugin, host, section)).notices!(), []);
});

test('a default plan with a price is told: every account is on it, and nobody pays', async () => {
  const host = fakeHost({ mode: 'check' });
  host.provide(shop, {} as never);
  assert.deepEqual((await setUp(plansPlugin, host, { ...section, default: 'pro' })).notices!(), [
    { level: 'warning', text: 'plan "pro" has a price, but as the default plan every account is on it unpaid' },
  ]);
});

test("a plan's multiplier is the price ratio unless somebody has stated one", async () => {
  const part = await setUp(plansPlugin, fakeHost(), section);
  const send = async (name: string, stated?: { numerator: bigint; denominator: bigint }) => {
    const exchange = fakeExchange({
      facts: [[caller, from(name)], ...(stated ? [[priceRatio, stated] as [never, unknown]] : [])],
    });
    await part.handle!(exchange, async () => okAnswer);
    return exchange.find(priceRatio);
  };
  assert.deepEqual(await send('saver'), { numerator: 16n, denominator: 10n });
  assert.equal(await send('free'), undefined);
  assert.deepEqual(await send('saver', { numerator: 3n, denominator: 1n }), { numerator: 3n, denominator: 1n });
});

test('a request without a caller has no plan', async () => {
  const part = await setUp(plansPlugin, fakeHost(), section);
  const exchange = fakeExchange();
  assert.equal(await part.handle!(exchange, async () => okAnswer), okAnswer);
  assert.equal(exchange.find(plan), undefined);
});

test('a configuration that cannot be right is refused where it is wrong', async () => {
  const wrong: [unknown, RegExp][] = [
    [{ ...section, default: 'other' }, /not among the offers/],
    [{ default: 'free', offers: { free: { limit: {} } } }, /unrecognized/i],
    [{ default: 'free', offers: { free: { limits: { rpm: 0 } } } }, /between 1 and/],
    [{ default: 'free', offers: { free: { limits: { rps: 5 } } } }, /unrecognized/i],
    [{ default: 'free', offers: { free: { grant: { amount: -1, every: 'month' } } } }, /not an amount|below zero/],
    [{ default: 'free', offers: { free: { grant: { amount: 1, every: 'year' } } } }, /every/],
    [{ default: 'free', offers: { free: { windows: { fortnight: 5 } } } }, /windows/],
    [{ default: 'free', offers: { free: { windows: { week: 5 } } } }, /this plan has none: add/],
    [{ default: 'free', offers: { free: { multiplier: 0 } } }, /ratio/],
    [{ default: 'free', offers: { free: { price: 1, lasts: '0s' } } }, /longer than nothing/],
    [{ default: 'free', offers: { free: { price: 1, renew: true } } }, /this one has none: add/],
    [
      { default: 'free', offers: { free: { renew: true, grant: { amount: 1, every: 'day' } } } },
      /this one has none: add/,
    ],
  ];
  for (const [value, words] of wrong) await assert.rejects(setUp(plansPlugin, fakeHost(), value), words);
});

test('the section has a JSON schema in which each field explains itself', () => {
  const schema = z.toJSONSchema(plansPlugin.config as unknown as z.ZodType, { io: 'input' });
  const offer = (schema.properties!['offers'] as { additionalProperties: z.core.JSONSchema.JSONSchema })
    .additionalProperties;
  for (const [name, field] of Object.entries(offer.properties!))
    assert.ok((field as { description?: string }).description, `${name} has no description`);
  assert.match((offer.properties!['grant'] as { description: string }).description, /for each period/);
});
