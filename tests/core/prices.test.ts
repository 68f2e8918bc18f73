/** The price book: golden vectors, an oracle in fractions that knows nothing of how tiers are laid over one another, and properties. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cost, costBound, formatUsd, parseRatio, parseUsd, type Ratio } from '../../plugins/common/domain/money.ts';
import {
  changesFrom,
  flatBook,
  type PriceContext,
  type PriceTier,
  PriceVersion,
  priceFor,
  versionAt,
} from '../../plugins/common/domain/prices.ts';
import { type Price, promptTokens, tokenClasses, type Usage, usageClasses } from '../../plugins/common/domain/usage.ts';
import { fc } from '../helpers/properties.ts';

const usd = (classes: Record<string, string>): Price =>
  Object.fromEntries(Object.entries(classes).map(([name, text]) => [name, parseUsd(text)]));

const hour = 3_600_000;
/** A Monday, midnight in UTC. */
const monday = Date.parse('2026-11-16');
const peak = { days: 0b011_1110, from: 60, until: 240 };

const version = new PriceVersion({
  name: 'v',
  base: usd({ input: '2.5', cache_read: '0.25', output: '15', web_search: '0.01', call: '0.005', request: '0.001' }),
  tiers: [
    { name: '>200k', above: 200_000, price: usd({ input: '5', cache_read: '0.5', output: '22.5' }) },
    { name: 'peak', hours: [peak], times: parseRatio('2') },
    { name: 'flex', service: 'flex', times: parseRatio('0.5') },
    { name: 'priority', service: 'priority', price: usd({ input: '4', output: '30' }) },
    { name: '>200k', service: 'priority', above: 200_000, price: usd({ input: '9', output: '50' }) },
  ],
  image: {
    entries: [
      { words: ['4k'], amount: parseUsd('0.24') },
      { words: ['high', '1024x1024'], amount: parseUsd('0.2') },
      { words: ['high'], amount: parseUsd('0.3') },
    ],
    otherwise: parseUsd('0.05'),
  },
  second: {
    entries: [
      { words: ['480p'], amount: parseUsd('0.05') },
      { words: ['720p'], amount: parseUsd('0.07') },
    ],
  },
});

test('golden vectors of tiers, services, hours and media give their costs', () => {
  const flex = { services: { tier: 'flex' } };
  const priority = { services: { tier: 'priority' } };
  const media = (...words: string[]) => ({ media: words });
  const vectors: [string, number, Usage, PriceContext, string, string][] = [
    ['at the threshold', 0, { input: 200_000, output: 100 }, {}, '0.5015', ''],
    ['one beyond it', 0, { input: 200_001, output: 100 }, {}, '1.002255', '>200k'],
    ['cached tokens count for the length', 0, { input: 1, cache_read: 200_000 }, {}, '0.100005', '>200k'],
    ['the answer does not', 0, { input: 1, output: 200_000 }, {}, '3.0000025', ''],
    ['a class without a tier price keeps its stand-in', 0, { input: 200_001, reasoning: 10 }, {}, '1.00023', '>200k'],
    ['flex', 0, { input: 1_000_000, output: 0 }, flex, '2.50', '>200k + flex'],
    ['priority has prices of its own', 0, { input: 1_000, output: 1_000 }, priority, '0.034', 'priority'],
    ['and for long prompts too', 0, { input: 300_000 }, priority, '2.70', '>200k + priority'],
    ['a service that was not requested', 0, { input: 1_000 }, { services: { tier: 'fast' } }, '0.0025', ''],
    ['before the peak', hour - 1, { input: 1_000_000, output: 0 }, flex, '2.50', '>200k + flex'],
    ['in it', hour, { input: 1_000 }, {}, '0.005', 'peak'],
    ['at its last moment', 4 * hour - 1, { input: 1_000 }, flex, '0.0025', 'peak + flex'],
    ['after it', 4 * hour, { input: 1_000 }, {}, '0.0025', ''],
    ['on a Sunday', hour - 24 * hour, { input: 1_000 }, {}, '0.0025', ''],
    ['pieces are not multiplied', hour, { web_search: 3, code_execution: 2, request: 1 }, flex, '0.041', 'peak + flex'],
    ['an image by one word', 0, { image: 2 }, media('4k', 'low'), '0.48', '4k'],
    ['by the most words', 0, { image: 1 }, media('1024x1024', 'high'), '0.20', 'high 1024x1024'],
    ['by one of them', 0, { image: 1 }, media('1536x1024', 'high'), '0.30', 'high'],
    ['by none', 0, { image: 1 }, media('1536x1024'), '0.05', ''],
    ['video by its resolution', 0, { second: 8 }, media('480p'), '0.40', '480p'],
    ['video of which nothing is known costs the most', 0, { second: 8 }, {}, '0.56', ''],
  ];
  for (const [what, at, usage, context, expected, tier] of vectors) {
    const priced = version.priced(monday + at, usage, context);
    assert.equal(formatUsd(cost(usage, priced.price)), expected, what);
    assert.deepEqual([priced.tier, priced.version], [tier, 'v'], what);
  }
});

test('the version that began last is in force, and there may be none', () => {
  const price = usd({ input: '1', output: '1' });
  const list = new PriceVersion({ name: 'list', from: 100, base: price });
  const promotion = new PriceVersion({ name: 'promotion', from: 200, until: 300, base: price });
  const last = new PriceVersion({ name: 'last', from: 400, until: 500, base: price });
  const names = (book: PriceVersion[]) =>
    [99, 100, 199, 200, 299, 300, 399, 400, 499, 500].map((at) => versionAt(book, at)?.name);
  const expected = [undefined, 'list', 'list', 'promotion', 'promotion', 'list', 'list', 'last', 'last', 'list'];
  assert.deepEqual(names([list, promotion, last]), expected);
  assert.deepEqual(names([last, promotion, list]), expected);
  assert.deepEqual(changesFrom([list, promotion, last], 150), [150, 200, 300, 400, 500]);
  assert.equal(priceFor([promotion], 100, {}), undefined);
  assert.equal(priceFor(flatBook(price, 'x'), -1, {})?.price, price);
});

test('an inexact price, or one with absurdly many tiers, is refused', () => {
  const base = { input: 1n, output: 2n };
  const tier = (name: string, times: string): PriceTier => ({ name, service: name, times: parseRatio(times) });
  assert.throws(() => new PriceVersion({ name: 'v', base, tiers: [tier('flex', '0.5')] }), /input.*not exact/);
  assert.equal(new PriceVersion({ name: 'v', base: { input: 2n }, tiers: [tier('flex', '0.5')] }).all().length, 2);
  const many = Array.from({ length: 13 }, (_, index) => tier(`s${index}`, '2'));
  assert.throws(() => new PriceVersion({ name: 'v', base, tiers: many }), /too many/);
  assert.throws(() => new PriceVersion({ name: 'v', base, tiers: [...many, ...many] }), /at most 24/);
  const entries = Array.from({ length: 63 }, (_, index) => ({ words: [`w${index}`], amount: 1n }));
  assert.throws(() => new PriceVersion({ name: 'v', base, image: { entries } }), /at most 62/);
});

// -------------------------------------------------------------------------------------------------------------- oracle

const chains: Record<string, string[]> = {
  cache_read: ['cache_read', 'input'],
  cache_write_5m: ['cache_write_5m', 'input'],
  cache_write_1h: ['cache_write_1h', 'cache_write_5m', 'input'],
  input_audio: ['input_audio', 'input'],
  input_image: ['input_image', 'input'],
  cache_read_audio: ['cache_read_audio', 'input_audio', 'input'],
  cache_read_image: ['cache_read_image', 'input_image', 'input'],
  reasoning: ['reasoning', 'output'],
  output_audio: ['output_audio', 'output'],
  output_image: ['output_image', 'output'],
  web_search: ['web_search', 'call'],
  web_fetch: ['web_fetch', 'call'],
  code_execution: ['code_execution', 'call'],
  file_search: ['file_search', 'call'],
};

interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}
const plus = (left: Fraction, right: Fraction): Fraction => ({
  n: left.n * right.d + right.n * left.d,
  d: left.d * right.d,
});
const times = (left: Fraction, right: Fraction): Fraction => ({ n: left.n * right.n, d: left.d * right.d });

/** Half up. */
const roundedUp = ({ n, d }: Fraction): bigint => (2n * n + d) / (2n * d);

interface Written {
  readonly base: Price;
  readonly tiers: readonly PriceTier[];
}

/** Walks back from the last tier that holds to the one that priced the class, and multiplies by the factors met on the way. */
function oracle({ base, tiers }: Written, usage: Usage, services: readonly string[], ratio: Ratio): bigint {
  const prompt = BigInt(promptTokens(usage));
  const holding = tiers.filter(
    ({ above, service }) =>
      (above === undefined || prompt > BigInt(above)) && (service === undefined || services.includes(service)),
  );
  let sum: Fraction = { n: 0n, d: 1n };
  for (const [name, count] of Object.entries(usage)) {
    const unit = (chains[name] ?? [name]).map((one) => unitOf(one, base, holding)).find((found) => found !== undefined);
    const isToken = tokenClasses.some((token) => token === name);
    const scale = isToken || name === 'character' ? 1_000_000n : name === 'audio' ? 3_600n : 1n;
    sum = plus(sum, times(unit ?? { n: 0n, d: 1n }, { n: BigInt(count), d: scale }));
  }
  return roundedUp(times(sum, { n: ratio.numerator, d: ratio.denominator }));
}

function unitOf(name: string, base: Price, holding: readonly PriceTier[]): Fraction | undefined {
  const isToken = tokenClasses.some((token) => token === name);
  let factor: Fraction = { n: 1n, d: 1n };
  for (const tier of holding.toReversed()) {
    if (isToken && tier.times !== undefined) {
      factor = times(factor, { n: tier.times.numerator, d: tier.times.denominator });
    }
    const priced = (tier.price as Record<string, bigint> | undefined)?.[name];
    if (priced !== undefined) return times(factor, { n: priced, d: 1n });
  }
  const priced = (base as Record<string, bigint>)[name];
  return priced === undefined ? undefined : times(factor, { n: priced, d: 1n });
}

// ---------------------------------------------------------------------------------------------------------- properties

const record = <T>(value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(usageClasses.map((name) => [name, value])), { requiredKeys: [] });
/** Multiples that stay whole under three of the factors below. */
const amounts = fc.oneof(fc.bigInt(0n, 50n), fc.bigInt(0n, 60_000_000n)).map((amount) => amount * 8_000n);
const prices = record(amounts) as fc.Arbitrary<Price>;
const counts = fc.oneof(fc.nat(100), fc.nat(2_000_000));
const usages = record(counts) as fc.Arbitrary<Usage>;
const factors = fc.constantFrom('0.5', '2', '2.5', '1.1', '6').map(parseRatio);
const ratios = fc.record({
  numerator: fc.bigInt(1n, 1_000_000n),
  denominator: fc.constantFrom(1n, 10n, 100n, 1_000_000n),
});
const serviceNames = ['flex', 'priority', 'us'] as const;
const levels = fc.constantFrom(0, 1, 100, 200_000, 1_000_000);
const tiers: fc.Arbitrary<PriceTier[]> = fc
  .array(
    fc.oneof(
      fc.record({ name: fc.constant('>'), above: levels, price: prices }),
      fc.record({ name: fc.constant('f'), service: fc.constantFrom(...serviceNames), times: factors }),
      fc.record({ name: fc.constant('s'), service: fc.constantFrom(...serviceNames), price: prices }),
      fc.record({ name: fc.constant('b'), service: fc.constantFrom(...serviceNames), above: levels, price: prices }),
    ),
    { maxLength: 6 },
  )
  .filter((list) => list.filter((tier) => 'times' in tier).length <= 3);
const records = fc.record({ base: prices, tiers });
const requested = fc.subarray([...serviceNames]);
const servicesOf = (names: readonly string[]) => Object.fromEntries(names.map((name, index) => [`kind${index}`, name]));

test('a charge equals one with unreduced fractions', () => {
  fc.assert(
    fc.property(records, usages, requested, ratios, (written, usage, names, ratio) => {
      const { price } = new PriceVersion({ name: 'v', ...written }).priced(0, usage, { services: servicesOf(names) });
      assert.equal(cost(usage, price, ratio), oracle(written, usage, names, ratio));
    }),
    { numRuns: 2_000 },
  );
});

test('the bound covers every usage within it, whichever of the requested services are granted', () => {
  const within = fc.record({ usage: usages, slack: fc.nat(300_000), output: fc.nat(1_000) });
  fc.assert(
    fc.property(
      records,
      within,
      requested,
      fc.nat(7),
      ratios,
      (written, { usage, slack, output }, names, choice, ratio) => {
        const version = new PriceVersion({ name: 'v', ...written });
        const granted = names.filter((_name, index) => (choice & (1 << index)) !== 0);
        const charged = cost(usage, version.priced(0, usage, { services: servicesOf(granted) }).price, ratio);
        const inputTokens = promptTokens(usage) + slack;
        const bound = version.bound(0, inputTokens, { services: servicesOf(names) });
        const { output: text = 0, reasoning = 0, output_audio: audio = 0, output_image: picture = 0 } = usage;
        const {
          call = 0,
          web_search: search = 0,
          web_fetch: fetch = 0,
          code_execution: code = 0,
          file_search: files = 0,
        } = usage;
        const pieces = {
          tools: call + search + fetch + code + files,
          images: usage.image ?? 0,
          seconds: usage.second ?? 0,
          others: Object.fromEntries((['character', 'audio', 'search'] as const).map((one) => [one, usage[one] ?? 0])),
        };
        const requests = BigInt(Math.max(0, (usage.request ?? 0) - 1));
        const held =
          costBound(inputTokens, text + reasoning + audio + picture + output, bound, ratio, pieces) +
          cost({ request: Number(requests) }, bound, ratio) +
          1n; // two roundings
        assert.ok(held >= charged, `${held} < ${charged}`);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('unknown media are held at the dearest price, known ones at their own', () => {
  const words = ['low', 'high', '1k', '4k'];
  const entry = fc.record({ words: fc.subarray(words, { minLength: 1 }), amount: fc.bigInt(0n, 1_000n) });
  const table = fc.record({
    entries: fc.array(entry, { minLength: 1, maxLength: 6 }),
    otherwise: fc.option(fc.bigInt(0n, 1_000n), { nil: undefined }),
  });
  fc.assert(
    fc.property(table, fc.subarray(words), (image, media) => {
      const version = new PriceVersion({ name: 'v', base: {}, image });
      const own = version.priced(0, { image: 1 }, { media }).price.image!;
      assert.equal(version.bound(0, 0, { media }).image, own);
      assert.ok(version.bound(0, 0, {}).image! >= own);
      const fitting = image.entries.filter((one) => one.words.every((word) => media.includes(word)));
      const most = Math.max(0, ...fitting.map((one) => one.words.length));
      const best = fitting.find((one) => one.words.length === most);
      const dearest = image.entries.reduce((high, one) => (one.amount > high ? one.amount : high), 0n);
      assert.equal(own, best?.amount ?? image.otherwise ?? dearest);
    }),
  );
});

test('a combination of tiers is always the same object, and every charged price is listed', () => {
  fc.assert(
    fc.property(records, usages, requested, (written, usage, names) => {
      const version = new PriceVersion({ name: 'v', ...written });
      const context = { services: servicesOf(names) };
      const priced = version.priced(0, usage, context);
      assert.equal(version.priced(9, { ...usage }, { ...context }), priced);
      assert.ok(version.all().includes(priced));
    }),
  );
});

test('prices of every size of an image and every resolution of a video are listed', () => {
  const listed = version.all();
  for (const media of [undefined, ['4k'], ['high'], ['high', '1024x1024'], ['480p'], ['720p']])
    for (const services of [undefined, { tier: 'flex' }]) {
      const context: PriceContext = { ...(services && { services }), ...(media && { media }) };
      const requested = version.priced(monday, { image: 1, second: 1 }, context);
      assert.ok(listed.includes(requested), JSON.stringify(context));
    }
});

test('a charge never falls when more is used within a tier, and is the sum of its classes', () => {
  fc.assert(
    fc.property(
      records,
      usages,
      requested,
      fc.constantFrom(...usageClasses),
      counts,
      (written, usage, names, name, more) => {
        const version = new PriceVersion({ name: 'v', ...written });
        const context = { services: servicesOf(names) };
        const { price } = version.priced(0, usage, context);
        const larger = { ...usage, [name]: (usage[name] ?? 0) + more };
        assert.ok(cost(larger, price) >= cost(usage, price));
        const whole: Price = Object.fromEntries(Object.entries(price).map(([one, nano]) => [one, nano * 9_000_000n]));
        const parts = Object.entries(usage).map(([one, count]) => cost({ [one]: count }, whole));
        assert.equal(
          parts.reduce((left, right) => left + right, 0n),
          cost(usage, whole),
        );
      },
    ),
  );
});

test('where longer prompts have a higher price, a longer prompt never costs less', () => {
  const dearer = fc.tuple(prices, prices, fc.nat(500_000), fc.nat(500_000)).map(([base, extra, first, second]) => {
    const raised = Object.fromEntries(usageClasses.map((name) => [name, (base[name] ?? 0n) + (extra[name] ?? 0n)]));
    const full = Object.fromEntries(usageClasses.map((name) => [name, base[name] ?? 0n]));
    return {
      base: full,
      tiers: [{ name: '>', above: first, price: raised }],
      prompts: [first, second].toSorted((a, b) => a - b),
    };
  });
  fc.assert(
    fc.property(dearer, counts, ({ base, tiers: levels, prompts }, output) => {
      const version = new PriceVersion({ name: 'v', base, tiers: levels });
      const [shorter, longer] = prompts.map((input) =>
        cost({ input, output }, version.priced(0, { input, output }).price),
      );
      assert.ok(longer! >= shorter!);
    }),
  );
});
