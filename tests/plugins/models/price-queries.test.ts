/** The catalogue and its prices as people look at them, and what a request would cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { priceQueries } from '../../../plugins/common/domain/admin/prices.ts';
import { catalog } from '../../../plugins/common/domain/models.ts';
import { cost, formatUsd, parseRatio, parseUsd, timesRatio } from '../../../plugins/common/domain/money.ts';
import { priceFor } from '../../../plugins/common/domain/prices.ts';
import { fc } from '../../helpers/properties.ts';
import { models, start } from './helpers.ts';

test('every model of the catalogue is listed with its prices, unpriced ones without, and prices without a model are not', async () => {
  const { host } = await start({
    ...models,
    seeing: { owned_by: 'acme', targets: [{ provider: 'acme', traits: { inputs: ['audio'] } }], price: 'free' },
    reading: {
      owned_by: 'acme',
      targets: ['acme', 'acme/other'],
      traits: { inputs: [] },
      price: 'free',
      multiplier: 1.25,
    },
  });
  const list = host.get(priceQueries).list();
  assert.deepEqual(
    list.map(({ id, kind, modalities, providers, source, multiplier, prices }) => [
      id,
      kind,
      modalities,
      providers,
      source,
      multiplier,
      prices !== undefined,
    ]),
    [
      ['acme/large:latest', 'chat', ['text', 'image', 'document'], ['acme'], undefined, undefined, true],
      ['small', 'chat', ['text', 'image', 'document'], ['acme'], undefined, undefined, true],
      ['unpriced', 'chat', ['text', 'image', 'document'], ['acme'], undefined, undefined, false],
      ['painter', 'image', ['text', 'image'], ['acme'], 'example', undefined, true],
      ['seeing', 'chat', ['text', 'audio'], ['acme'], undefined, undefined, true],
      ['reading', 'chat', ['text'], ['acme'], undefined, '1.25', true],
    ],
  );
  const large = list[0]!;
  assert.deepEqual(
    [large.displayName, large.ownedBy, large.contextTokens, large.maxOutputTokens, large.cost],
    ['Acme Large', 'acme', 1_000_000, 64_000, undefined],
  );
});

const priced = {
  m: {
    owned_by: 'acme',
    targets: ['idle', { provider: 'acme', cost: { input: 2, output: 8 } }],
    cost: { input: 1, output: 4 },
    price: { input: 3, output: 15, above: { '100k': { input: 6, output: 22.5 } }, request: 0.001 },
    multiplier: 1.1,
    aliases: ['best'],
  },
};

test('a quote is the price × both ratios, with its formula, and the own cost of the first target', async () => {
  const { host } = await start(priced);
  const queries = host.get(priceQueries);
  const quote = queries.quote('best', { input: 1_000, output: 300 }, '2');
  // ((1,000 × 3 + 300 × 15) / 1M + 0.001 for the request itself) × 2.2
  assert.equal(quote.cost, parseUsd('0.0187'));
  assert.equal(quote.ownCost, parseUsd('0.0044'));
  assert.match(quote.formula, /^\[\(1000 input × 3\.00 \+ 300 output × 15\.00\) \/ 1M \+ 1 request × 0\.001\] × /);
  assert.equal(queries.quote('m', { input: 100_001 }, '1').cost, parseUsd('0.6611066'));
});

test('a quote equals the settlement of its usage', async () => {
  const { host } = await start(priced);
  const queries = host.get(priceQueries);
  const entry = host.get(catalog).find('m')!;
  const count = fc.integer({ min: 0, max: 1_000_000 });
  const ratio = fc.constantFrom('1', '1.6', '2', '0.333333');
  fc.assert(
    fc.property(count, count, count, ratio, (input, cached, output, factor) => {
      const usage = { input, cache_read: cached, output };
      const { price } = priceFor(entry.prices!, host.clock.now(), usage)!;
      const expected = cost({ ...usage, request: 1 }, price, timesRatio(parseRatio(factor), entry.multiplier!));
      assert.equal(queries.quote('m', usage, factor).cost, expected);
    }),
  );
});

test('a usage that cannot be quoted is refused by name', async () => {
  const { host } = await start(models);
  const queries = host.get(priceQueries);
  assert.throws(() => queries.quote('missing', {}, '1'), { kind: 'not_found', field: 'model' });
  assert.throws(() => queries.quote('unpriced', {}, '1'), { kind: 'not_found', code: 'model_not_priced' });
  assert.throws(() => queries.quote('small', { inputs: 1 }, '1'), { kind: 'invalid_request', field: 'usage' });
  assert.throws(() => queries.quote('small', { input: -1 }, '1'), { field: 'usage' });
  assert.throws(() => queries.quote('small', { input: 1.5 }, '1'), { field: 'usage' });
  assert.throws(() => queries.quote('small', { __proto__: null, constructor: 1 } as never, '1'), { field: 'usage' });
  assert.throws(() => queries.quote('small', { input: 1 }, '0'), { field: 'ratio' });
});

const amount = fc.integer({ min: 0, max: 1_000_000_000 }).map((nano) => formatUsd(BigInt(nano) * 1_000n));
const writtenPrices = fc.record({
  input: amount,
  output: amount,
  above: fc.dictionary(fc.constantFrom('32k', '200k', '1m'), fc.record({ input: amount, output: amount }), {
    minKeys: 1,
  }),
  service: fc.record({ flex: fc.constantFrom('0.5', '2'), priority: fc.constant('2') }, { requiredKeys: [] }),
});

test('an example by unsaved prices equals the charge once they are configured', async () => {
  await fc.assert(
    fc.asyncProperty(
      writtenPrices,
      fc.record({ input: fc.nat(2_000_000), output: fc.nat(100_000) }),
      fc.constantFrom('1', '1.6'),
      fc.constantFrom(undefined, 'flex', 'priority'),
      async (price, usage, ratio, service) => {
        const { host } = await start({ m: { owned_by: 'acme', targets: ['acme'], price, multiplier: '1.5' } });
        const queries = host.get(priceQueries);
        const book = host.get(catalog).find('m')!.prices!;
        const requestOf = () => queries.example({ price, cost: undefined, multiplier: '1.5', ratio, usage, service });
        if (service !== undefined && !book[0]!.prices(service)) {
          assert.throws(requestOf, { kind: 'invalid_request', field: 'service' });
          return;
        }
        const priced = priceFor(book, 0, usage, service === undefined ? {} : { services: { tier: service } })!;
        const whole = timesRatio(parseRatio(ratio), parseRatio('1.5'));
        const answer = requestOf();
        assert.equal(answer.cost, cost(usage, priced.price, whole));
        assert.equal(answer.tier, priced.tier);
        if (service === undefined) assert.equal(answer.cost, queries.quote('m', usage, ratio).cost);
      },
    ),
    { numRuns: 40 },
  );
});

test('a list price is the own cost at the maker alone and where no cost is written, and refuses no sale below it', async () => {
  const amount = fc.integer({ min: 0, max: 5_000 }).map((thousandths) => String(thousandths / 1_000));
  const price = fc.record({ input: amount, output: amount });
  const maybe = fc.option(price, { nil: undefined });
  const provider = fc.constantFrom('acme', 'stand-in', 'elsewhere');
  const section = fc.record({ price, list: maybe, own: maybe, atTarget: maybe, provider, count: fc.nat(1_000_000) });
  await fc.assert(
    fc.asyncProperty(section, async ({ price, list, own, atTarget, provider, count }) => {
      const { host, part } = await start({
        m: {
          ...{
            owned_by: 'acme',
            price,
            targets: [{ provider, ...(atTarget && { cost: atTarget, below_cost: true }) }],
          },
          ...(list && { list_price: list }),
          ...(own && { cost: own, below_cost: true }),
        },
      });
      assert.deepEqual(part.checks?.problems?.(), []);
      const expected = atTarget ?? own ?? (provider === 'acme' ? list : undefined);
      const [row] = host.get(priceQueries).list();
      assert.equal(row!.costIsListPrice, expected !== undefined && expected === list);
      const quote = host.get(priceQueries).quote('m', { input: count, output: count }, '1');
      const nano = (text: string) => BigInt(Math.round(Number(text) * 1_000));
      const millionths = expected && BigInt(count) * (nano(expected.input) + nano(expected.output));
      assert.equal(quote.ownCost, millionths);
    }),
    { numRuns: 60 },
  );
});
