/** Plans: the caller's terms, and what is wrong with a configuration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../../core/contract/contract.ts';
import { z } from '../../../core/contract/schema.ts';
import { caller } from '../../../plugins/common/domain/accounts.ts';
import { ledger } from '../../../plugins/common/domain/ledger.ts';
import { catalog } from '../../../plugins/common/domain/models.ts';
import { plan, plans, rateLimits, shop } from '../../../plugins/common/domain/plans.ts';
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
    saver: { price: 30, duration: '30d', multiplier: 1.6, models: ['one', 'two'] },
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

test('at the end of a plan the default plan applies by itself', async () => {
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
  const service = host.get(plans);
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

test('price and grant of a plan are read exactly and kept with the plan', async () => {
  const host = fakeHost();
  await setUp(plansPlugin, host, section);
  const pro = host.get(plans).offer('pro')!;
  assert.equal(pro.price, 20_000_000_000n);
  assert.deepEqual(pro.grant, { amount: 25_000_000_000n, every: 'month' });
  assert.deepEqual(pro.windows, { '5h': 5_000_000_000n, week: 15_000_000_000n });
  assert.equal(host.get(plans).offer('saver')!.durationMs, 30 * 86_400_000);
  assert.deepEqual([pro.renew, host.get(plans).offer('gone')], [false, undefined]);
});

/** A host of a gateway whose plugins see to all that plans say, but for the service `without`. */
function servingHost(without?: Service<unknown>) {
  const host = fakeHost({ mode: 'check' });
  for (const service of [shop, rateLimits, ledger, catalog] as Service<unknown>[])
    if (service !== without) host.provide(service, {});
  return host;
}

test('settings of plans that no plugin enforces are one warning for all of those plans', async () => {
  const said = async (without?: Service<unknown>) =>
    (await setUp(plansPlugin, servingHost(without), section)).checks!.notices!();
  assert.deepEqual(await said(), []);
  const expected: [Service<unknown>, string][] = [
    [shop, 'plans "pro" and "saver" have a price, but cannot be bought: add "shop" to the list'],
    [
      rateLimits,
      'plans "free" and "pro" have limits (rpm, tpm, concurrency), but they are not enforced: add "rate-limit" to the list',
    ],
    [ledger, 'plan "pro" has a grant, but no account gets it: add "billing" to the list'],
    [catalog, 'plan "saver" names models, but all models may be called: add "models" to the list'],
  ];
  for (const [service, text] of expected) assert.deepEqual(await said(service), [{ level: 'warning', text }]);
});

test('a default plan with a price is reported, since every account has it without paying', async () => {
  assert.deepEqual((await setUp(plansPlugin, servingHost(), { ...section, default: 'pro' })).checks!.notices!(), [
    { level: 'warning', text: 'plan "pro" has a price, but as the default plan every account is on it unpaid' },
  ]);
});

test('a request without a caller has no plan', async () => {
  const part = await setUp(plansPlugin, fakeHost(), section);
  const exchange = fakeExchange();
  assert.equal(await part.handle!(exchange, async () => okAnswer), okAnswer);
  assert.equal(exchange.find(plan), undefined);
});

test('a plan that a file takes away by null is not offered, and cannot be the default', async () => {
  const host = fakeHost();
  const { pro: _pro, ...others } = section.offers;
  await setUp(plansPlugin, host, { default: 'saver', offers: { ...others, pro: null, free: null } });
  assert.deepEqual(
    host
      .get(plans)
      .list()
      .map(({ name }) => name),
    ['saver'],
  );
  assert.equal(host.get(plans).terms('pro').name, 'saver');
  const without = { default: 'free', offers: { ...section.offers, free: null } };
  await assert.rejects(setUp(plansPlugin, fakeHost(), without), /not among the offers/);
});

test('an impossible configuration is refused at its place', async () => {
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
    [{ default: 'free', offers: { free: { price: 1, duration: '0s' } } }, /longer than nothing/],
    [{ default: 'free', offers: { free: { price: 1, renew: true } } }, /this one has none: add/],
    [
      { default: 'free', offers: { free: { renew: true, grant: { amount: 1, every: 'day' } } } },
      /this one has none: add/,
    ],
  ];
  for (const [value, words] of wrong) await assert.rejects(setUp(plansPlugin, fakeHost(), value), words);
});

test('the section has a JSON schema in which each field has a description', () => {
  const schema = z.toJSONSchema(plansPlugin.config as unknown as z.ZodType, { io: 'input' });
  const offers = schema.properties!['offers'] as { additionalProperties: z.core.JSONSchema.JSONSchema };
  const offer = offers.additionalProperties.anyOf![0] as z.core.JSONSchema.JSONSchema;
  for (const [name, field] of Object.entries(offer.properties!))
    assert.ok((field as { description?: string }).description, `${name} has no description`);
  assert.match((offer.properties!['grant'] as { description: string }).description, /for each period/);
});
