/** Money's arithmetic: golden vectors, a naive oracle, and the properties that charges rest on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  billionthsOf,
  cacheSavings,
  cost,
  costBound,
  formatUsd,
  isLess,
  mean,
  money,
  one,
  parseDecimal,
  parseRatio,
  parseUsd,
  type Ratio,
  timesExactly,
  timesRatio,
  unitPrice,
} from '../../plugins/common/domain/money.ts';
import {
  maxCount,
  type Price,
  pictureTokens,
  pieceClasses,
  readCount,
  toolClasses,
  type Usage,
  type UsageClass,
  usageClasses,
} from '../../plugins/common/domain/usage.ts';
import { fc } from '../helpers/properties.ts';

/** The sum by the book: every class at its own or its stand-in's price, times ratio, rounded once, half up. */
function oracle(usage: Usage, price: Price, ratio: Ratio): bigint {
  const standIns: Record<string, string[]> = {
    cache_read: ['input'],
    cache_write_5m: ['input'],
    cache_write_1h: ['cache_write_5m', 'input'],
    input_audio: ['input'],
    input_image: ['input'],
    cache_read_audio: ['input_audio', 'input'],
    cache_read_image: ['input_image', 'input'],
    reasoning: ['output'],
    output_audio: ['output'],
    output_image: ['output'],
    web_search: ['call'],
    web_fetch: ['call'],
    code_execution: ['call'],
    file_search: ['call'],
  };
  let numerator = 0n;
  for (const [name, count] of Object.entries(usage)) {
    const prices = price as Record<string, bigint | undefined>;
    const named = [name, ...(standIns[name] ?? [])].map((one) => prices[one]).find((amount) => amount !== undefined);
    const perPiece = /^(image|second|request|call|web_search|web_fetch|code_execution|file_search|search)$/.test(name);
    // Over one denominator: tokens and characters per million, seconds of audio per hour.
    const share = perPiece ? 3_600n * 1_000_000n : name === 'audio' ? 1_000_000n : 3_600n;
    numerator += BigInt(count) * (named ?? 0n) * share;
  }
  numerator *= ratio.numerator;
  const denominator = 3_600n * 1_000_000n * ratio.denominator;
  const whole = numerator / denominator;
  const rest = numerator % denominator;
  return rest * 2n >= denominator ? whole + 1n : whole;
}

const counts = fc.oneof(fc.nat(100), fc.nat(2_000_000), fc.integer({ min: 0, max: maxCount }));
const amounts = fc.oneof(fc.bigInt(0n, 100n), fc.bigInt(0n, 100_000_000_000n));
const record = <T>(value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(usageClasses.map((name) => [name, value])), { requiredKeys: [] });
const usages = record(counts) as fc.Arbitrary<Usage>;
const prices = record(amounts) as fc.Arbitrary<Price>;
const ratios = fc.record({
  numerator: fc.bigInt(1n, 1_000_000n),
  denominator: fc.constantFrom(1n, 10n, 100n, 1_000_000n),
});

test('the golden vectors give their costs', () => {
  const price = {
    input: parseUsd('2.50'),
    cache_read: parseUsd('0.25'),
    output: parseUsd('10'),
    call: parseUsd('0.01'),
  };
  const vectors: [Usage, Price, string, string][] = [
    [{ input: 1_000_000 }, price, '1', '2.50'],
    [{ input: 1_200, cache_read: 800, output: 340, reasoning: 60 }, price, '1', '0.0072'],
    [{ input: 1_200, cache_read: 800, output: 340, reasoning: 60 }, price, '1.6', '0.01152'],
    [{ cache_write_1h: 1_000 }, price, '1', '0.0025'],
    [{ input: 1_000, call: 3 }, price, '2', '0.065'],
    [{ image: 5, second: 9 }, price, '1', '0.00'],
    [{ input: 0, output: 0 }, price, '1', '0.00'],
    [{}, price, '1', '0.00'],
    [{ input: 1 }, { input: 500_000n }, '1', '0.000000001'],
    [{ input: 1 }, { input: 499_999n }, '1', '0.00'],
    [{ input: 1, output: 1 }, { input: 250_000n, output: 250_000n }, '1', '0.000000001'],
    [{ input: 1 }, { input: 1n }, '0.000001', '0.00'],
    [{ input: maxCount, output: maxCount }, { input: parseUsd('150'), output: parseUsd('600') }, '1', '750000000.00'],
  ];
  for (const [usage, by, ratio, expected] of vectors) {
    assert.equal(formatUsd(cost(usage, by, parseRatio(ratio))), expected, JSON.stringify(usage));
  }
});

test('cost equals a naive sum of fractions', () => {
  fc.assert(
    fc.property(usages, prices, ratios, (usage, price, ratio) => {
      assert.equal(cost(usage, price, ratio), oracle(usage, price, ratio));
    }),
    { numRuns: 2_000 },
  );
});

test('cost is additive except for the rounding of each row, and exactly so for whole prices', () => {
  const add = (left: Usage, right: Usage): Usage =>
    Object.fromEntries(usageClasses.map((name) => [name, (left[name] ?? 0) + (right[name] ?? 0)]));
  fc.assert(
    fc.property(usages, usages, prices, ratios, (left, right, price, ratio) => {
      const parts = cost(left, price, ratio) + cost(right, price, ratio);
      const difference = cost(add(left, right), price, ratio) - parts;
      assert.ok(difference >= -1n && difference <= 1n, `${difference}`);
      const whole: Price = Object.fromEntries(Object.entries(price).map(([name, nano]) => [name, nano * 9_000_000n]));
      assert.equal(cost(add(left, right), whole), cost(left, whole) + cost(right, whole));
    }),
  );
});

test('prices by the hour, by the million characters and by the search are exact', () => {
  const of = (usage: Usage, price: Price, ratio = '1') => formatUsd(cost(usage, price, parseRatio(ratio)));
  // 0.04 USD per hour is 0.0000111… per second: only the sum is rounded.
  assert.equal(of({ audio: 3_600 }, { audio: parseUsd('0.04') }), '0.04');
  assert.equal(of({ audio: 9 }, { audio: parseUsd('0.04') }), '0.0001');
  assert.equal(of({ audio: 1 }, { audio: parseUsd('0.04') }), '0.000011111');
  assert.equal(of({ audio: 60 }, { audio: parseUsd('0.36') }, '2'), '0.012');
  assert.equal(of({ character: 43 }, { character: parseUsd('15') }), '0.000645');
  assert.equal(of({ search: 3 }, { search: parseUsd('0.002') }), '0.006');
  const others: Usage = { audio: 61, character: 5, search: 2 };
  const price: Price = { audio: 7n, character: 11n, search: 13n };
  assert.equal(costBound(0, 0, price, one, { tools: 0, images: 0, seconds: 0, others }), cost(others, price));
});

test('cost rounds half up, once', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 15n), fc.bigInt(0n, 999_999n), (whole, millionths) => {
      const price = { input: whole * 1_000_000n + millionths };
      assert.equal(cost({ input: 1 }, price), millionths >= 500_000n ? whole + 1n : whole);
    }),
  );
});

test('means and shares are rounded half up to the nearest whole number', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 15n), fc.integer({ min: 1, max: 1_000 }), (sum, count) => {
      // Twice the error lies above -count and is at most count.
      const error = 2n * (mean(money(sum), count) * BigInt(count) - sum);
      assert.ok(-BigInt(count) < error && error <= BigInt(count));
    }),
  );
  assert.deepEqual(
    [1n, 3n, 5n].map((sum) => mean(money(sum), 2)),
    [1n, 2n, 3n],
  );
  assert.equal(billionthsOf(money(2_000_000_000n), money(1n)), 1n);
  assert.equal(billionthsOf(money(2_000_000_001n), money(1n)), 0n);
});

test('cost never falls when a count, a price or the ratio grows, and is never negative', () => {
  fc.assert(
    fc.property(usages, prices, ratios, fc.constantFrom(...usageClasses), counts, (usage, price, ratio, name, more) => {
      const base = cost(usage, price, ratio);
      assert.ok(base >= 0n);
      assert.ok(cost({ ...usage, [name]: (usage[name] ?? 0) + more }, price, ratio) >= base);
      // A price that was not named before may replace a dearer stand-in, so only named ones are raised.
      const dearer = price[name] === undefined ? price : { ...price, [name]: price[name] + BigInt(more) };
      assert.ok(cost(usage, dearer, ratio) >= base);
      assert.ok(cost(usage, price, { ...ratio, numerator: ratio.numerator + 1n }) >= base);
    }),
  );
});

test('the bound covers every split of the tokens into classes', () => {
  const inputs = [
    ...['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'],
    ...['cache_read_audio', 'cache_read_image'],
  ] as const;
  const outputs = ['output', 'reasoning', 'output_audio', 'output_image'] as const;
  const split = (names: readonly string[]) => fc.tuple(...names.map(() => fc.nat(100_000)));
  fc.assert(
    fc.property(split(inputs), split(outputs), prices, ratios, (input, output, price, ratio) => {
      const usage: Usage = Object.fromEntries([
        ...inputs.map((name, index) => [name, input[index]!]),
        ...outputs.map((name, index) => [name, output[index]!]),
      ]);
      const sum = (list: number[]) => list.reduce((total, each) => total + each, 0);
      for (const tool of toolClasses)
        assert.ok(costBound(sum(input), sum(output), price, ratio) >= cost({ ...usage, [tool]: 1 }, price, ratio));
    }),
  );
});

test("the bound for a text answer covers text and a tool's pictures, priced by piece or by tokens", () => {
  fc.assert(
    fc.property(
      fc.tuple(counts, counts, counts),
      fc.nat(4),
      prices,
      ratios,
      ([input, output, reasoning], images, price, ratio) => {
        const usage: Usage = { input, output, reasoning };
        const drawn: Usage = price.image === undefined ? { output_image: images * pictureTokens } : { image: images };
        const pieces = { tools: 0, images, seconds: 0, textOnly: true };
        const bound = costBound(input, output + reasoning, price, ratio, pieces);
        assert.ok(bound >= cost({ ...usage, ...drawn }, price, ratio));
        // Without pictures, their price is none of the answer's.
        const plain = { ...pieces, images: 0 };
        const dearer = { ...price, output_image: 10n ** 12n, output_audio: 10n ** 12n };
        const text = costBound(input, output + reasoning, price, ratio, plain);
        assert.equal(costBound(input, output + reasoning, dearer, ratio, plain), text);
      },
    ),
  );
});

test('invalid counts never reach arithmetic', () => {
  for (const bad of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    assert.throws(() => cost({ input: bad }, { input: 1n }), RangeError);
    assert.throws(() => cost({ image: bad }, { image: 1n }), RangeError);
    assert.throws(() => costBound(bad, 0, {}), RangeError);
    assert.equal(readCount(bad), undefined);
  }
  for (const bad of ['-1', '1e3', '', ' 1', '0x10', null, undefined, {}, true, maxCount + 1]) {
    assert.equal(readCount(bad), undefined);
  }
  assert.deepEqual([readCount(0), readCount('12'), readCount(maxCount)], [0, 12, maxCount]);
});

test('amounts of USD are unchanged after formatting and parsing', () => {
  fc.assert(
    fc.property(fc.bigInt(-(10n ** 24n) + 1n, 10n ** 24n - 1n), (nano) => {
      assert.equal(parseUsd(formatUsd(nano)), nano);
    }),
  );
  const texts = { '12.5': '12.50', '0': '0.00', '-0.000000001': '-0.000000001', ' 7.10 ': '7.10', '-3': '-3.00' };
  for (const [text, shown] of Object.entries(texts)) assert.equal(formatUsd(parseUsd(text)), shown);
  for (const bad of ['', '.5', '1.', '1e3', '1,5', '0.0000000001', '+1', '--1', '1 2', 'NaN', '0x1', '1'.repeat(16)]) {
    assert.throws(() => parseUsd(bad), RangeError, bad);
  }
});

test('float drift: ten thousand charges of a tenth of a cent are ten dollars', () => {
  let sum = 0n;
  for (let index = 0; index < 10_000; index += 1) sum += cost({ input: 1_000 }, { input: parseUsd('1') });
  assert.equal(formatUsd(sum), '10.00');
});

test('ratios are exact and positive, and a price times a ratio is rounded once', () => {
  assert.deepEqual(parseRatio('1.6'), { numerator: 16n, denominator: 10n });
  assert.deepEqual(parseRatio('1.60'), parseRatio('1.6'));
  assert.deepEqual(parseRatio('2.0'), { numerator: 2n, denominator: 1n });
  for (const bad of ['0', '0.0', '-1', '1e1', '', '1.1234567', 'a'])
    assert.throws(() => parseRatio(bad), RangeError, bad);
  fc.assert(
    fc.property(usages, prices, ratios, (usage, price, ratio) => {
      assert.equal(cost(usage, price, ratio), oracle(usage, price, ratio));
      assert.equal(cost(usage, price, one), cost(usage, price));
    }),
  );
});

test('a class without a price costs as its stand-in, and pieces without a price cost nothing', () => {
  const price = { input: 3n, cache_write_5m: 5n, output: 7n };
  const expected = [3n, 3n, 5n, 5n, 3n, 3n, 3n, 3n, 7n, 7n, 7n, 7n, 0n, 0n];
  const tokens = usageClasses.filter((name) => !pieceClasses.some((piece) => piece === name));
  assert.deepEqual(
    tokens.map((name) => unitPrice(price, name)),
    expected,
  );
  assert.deepEqual(
    pieceClasses.map((name) => unitPrice(price, name)),
    pieceClasses.map(() => 0n),
  );
});

test('decimal literals, as JSON writes numbers, are exact fractions', () => {
  const same = (left: Ratio, right: Ratio) => left.numerator * right.denominator === right.numerator * left.denominator;
  assert.deepEqual(parseDecimal('1.5e-07'), { numerator: 15n, denominator: 100_000_000n });
  assert.deepEqual(parseDecimal('2E3'), { numerator: 2_000n, denominator: 1n });
  assert.deepEqual(parseDecimal('0.0'), { numerator: 0n, denominator: 10n });
  for (const bad of ['', '-1', '1e', '.5', '1.', '1e-100', 'NaN', '0x1', '1_0'])
    assert.throws(() => parseDecimal(bad), RangeError, bad);
  fc.assert(
    fc.property(
      fc.bigInt(0n, 10n ** 15n),
      fc.integer({ min: 0, max: 15 }),
      fc.integer({ min: -20, max: 20 }),
      (digits, decimals, power) => {
        const text = digits.toString().padStart(decimals + 1, '0');
        const literal = decimals === 0 ? text : `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
        const scale = power - decimals;
        const expected =
          scale >= 0
            ? { numerator: digits * 10n ** BigInt(scale), denominator: 1n }
            : { numerator: digits, denominator: 10n ** BigInt(-scale) };
        assert.ok(same(parseDecimal(`${literal}e${power}`), expected));
      },
    ),
  );
});

test('ratios multiply and compare exactly, and a product that is not whole is undefined', () => {
  fc.assert(
    fc.property(ratios, ratios, fc.bigInt(0n, 10n ** 12n), (left, right, amount) => {
      const product = timesRatio(left, right);
      assert.equal(
        product.numerator * left.denominator * right.denominator,
        left.numerator * right.numerator * product.denominator,
      );
      assert.equal(isLess(left, right), left.numerator * right.denominator < right.numerator * left.denominator);
      const exact = timesExactly(amount, left);
      if (exact === undefined) assert.notEqual((amount * left.numerator) % left.denominator, 0n);
      else assert.equal(exact * left.denominator, amount * left.numerator);
    }),
  );
});

test('a cache saves what its tokens would have cost without it less what they cost, for any counts, prices and ratios', () => {
  const cached = ['cache_read', 'cache_write_5m', 'cache_write_1h', 'cache_read_audio', 'cache_read_image'] as const;
  const count = fc.integer({ min: 0, max: 1_000_000_000 });
  const unit = fc.option(fc.bigInt(0n, 100_000_000_000n), { nil: undefined });
  const usages = fc.record(Object.fromEntries([...cached, 'input', 'output'].map((name) => [name, count])));
  const prices = fc.record(
    Object.fromEntries([...cached, 'input', 'input_audio', 'output'].map((name) => [name, unit])),
  );
  const ratios = fc.record({ numerator: fc.bigInt(1n, 1_000n), denominator: fc.bigInt(1n, 1_000n) });
  fc.assert(
    fc.property(usages, prices, ratios, (usage, given, ratio) => {
      const price = Object.fromEntries(Object.entries(given).filter(([, amount]) => amount !== undefined)) as Price;
      const unitOf = (name: UsageClass) => unitPrice(price, name);
      // In millionths of a nano-dollar, times the ratio: two roundings, so less than one nano-dollar away from the truth.
      const exact = cached.reduce((sum, name) => {
        const without =
          name === 'cache_read_audio' ? 'input_audio' : name === 'cache_read_image' ? 'input_image' : 'input';
        return sum + BigInt(usage[name]!) * (unitOf(without) - unitOf(name));
      }, 0n);
      const scaled = cacheSavings(usage as Usage, price, ratio) * 1_000_000n * ratio.denominator;
      const away = scaled - exact * ratio.numerator;
      assert.ok((away < 0n ? -away : away) <= 1_000_000n * ratio.denominator);
      assert.equal(cacheSavings({ input: usage['input']!, output: usage['output']! }, price, ratio), 0n);
    }),
  );
  const price = { input: 3_000_000_000n, cache_read: 300_000_000n, cache_write_5m: 3_750_000_000n };
  assert.equal(cacheSavings({ cache_read: 1_000_000 }, price), 2_700_000_000n);
  assert.equal(cacheSavings({ cache_write_5m: 1_000_000 }, price), -750_000_000n);
});
