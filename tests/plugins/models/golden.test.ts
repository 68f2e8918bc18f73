/** Golden vectors: what usages of the shipped models cost, each sum written out by hand and done with whole numbers alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { priceQueries } from '../../../plugins/common/domain/admin/prices.ts';
import { catalog, modelKinds } from '../../../plugins/common/domain/models.ts';
import { cost, parseRatio } from '../../../plugins/common/domain/money.ts';
import { type PriceContext, priceFor } from '../../../plugins/common/domain/prices.ts';
import { providers as providersService } from '../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { fakeHost, orderEndpoints, setUp } from '../../helpers/fakes.ts';

/** Tokens at USD per million, then pieces at USD each. */
type Sum = { readonly tokens?: readonly [number, string][]; readonly pieces?: readonly [number, string][] };

interface Vector {
  readonly what: string;
  readonly model: string;
  readonly usage: Usage;
  readonly context?: PriceContext;
  /** 2026-12-09, a Wednesday, at noon UTC, if not said otherwise. */
  readonly at?: string;
  readonly ratio?: string;
  readonly sum: Sum;
}

const tier = (name: string): PriceContext => ({ services: { tier: name } });
const media = (...words: string[]): PriceContext => ({ media: words });

const vectors: Vector[] = [
  {
    what: 'cached tokens are one class of their own',
    model: 'gpt-5.4',
    usage: { input: 1_000, cache_read: 9_000, output: 500, reasoning: 250 },
    sum: {
      tokens: [
        [1_000, '2.5'],
        [9_000, '0.25'],
        [750, '15'],
      ],
    },
  },
  {
    what: 'the last prompt of the lower tier',
    model: 'gpt-5.4',
    usage: { input: 200_000, cache_read: 72_000, output: 10 },
    sum: {
      tokens: [
        [200_000, '2.5'],
        [72_000, '0.25'],
        [10, '15'],
      ],
    },
  },
  {
    what: 'one token more puts all of it into the upper one',
    model: 'gpt-5.4',
    usage: { input: 200_001, cache_read: 72_000, output: 10, web_search: 3 },
    sum: {
      tokens: [
        [200_001, '5'],
        [72_000, '0.5'],
        [10, '22.5'],
      ],
      pieces: [[3, '0.01']],
    },
  },
  {
    what: 'a tier "from 200k on"',
    model: 'grok-4.20-heavy',
    usage: { input: 200_000, output: 1_000, code_execution: 2 },
    sum: {
      tokens: [
        [200_000, '2.5'],
        [1_000, '5'],
      ],
      pieces: [[2, '0.005']],
    },
  },
  {
    what: 'a service multiplies tokens, and pieces not',
    model: 'gpt-5.5',
    usage: { input: 2_000, output: 100, file_search: 4 },
    context: tier('priority'),
    sum: {
      tokens: [
        [2_000, '12.5'],
        [100, '75'],
      ],
      pieces: [[4, '0.0025']],
    },
  },
  {
    what: 'a service on a long prompt',
    model: 'gpt-5.5',
    usage: { input: 272_001, output: 1 },
    context: tier('flex'),
    sum: {
      tokens: [
        [272_001, '5'],
        [1, '22.5'],
      ],
    },
  },
  {
    what: 'a promotion while it lasts',
    model: 'gpt-5.6-sol',
    usage: { input: 10, cache_write_5m: 100, output: 10 },
    at: '2026-11-21T23:59:59Z',
    sum: {
      tokens: [
        [10, '4'],
        [100, '5'],
        [10, '20'],
      ],
    },
  },
  {
    what: 'and the list price after it',
    model: 'gpt-5.6-sol',
    usage: { input: 10, cache_write_5m: 100, output: 10 },
    at: '2026-11-22T00:00:00Z',
    sum: {
      tokens: [
        [10, '5'],
        [100, '6.25'],
        [10, '30'],
      ],
    },
  },
  {
    what: 'caches of minutes and hours',
    model: 'claude-opus-5',
    usage: {
      input: 3,
      cache_read: 50_000,
      cache_write_5m: 700,
      cache_write_1h: 900,
      output: 40,
      web_search: 1,
      web_fetch: 9,
    },
    sum: {
      tokens: [
        [3, '5'],
        [50_000, '0.5'],
        [700, '6.25'],
        [900, '10'],
        [40, '25'],
      ],
      pieces: [[1, '0.01']],
    },
  },
  {
    what: 'two services at once',
    model: 'claude-opus-5',
    usage: { input: 1_000, output: 100 },
    context: { services: { tier: 'fast', region: 'us' } },
    sum: {
      tokens: [
        [1_000, '11'],
        [100, '55'],
      ],
    },
  },
  {
    what: 'the last minute of the dear hours',
    model: 'deepseek-v4-pro',
    usage: { input: 1_000, cache_read: 1_000, output: 1_000 },
    at: '2026-12-09T09:59:59Z',
    sum: {
      tokens: [
        [1_000, '1.32'],
        [1_000, '0.044'],
        [1_000, '3.96'],
      ],
    },
  },
  {
    what: 'the first of the cheap ones',
    model: 'deepseek-v4-pro',
    usage: { input: 1_000, cache_read: 1_000, output: 1_000 },
    at: '2026-12-09T10:00:00Z',
    sum: {
      tokens: [
        [1_000, '0.66'],
        [1_000, '0.022'],
        [1_000, '1.98'],
      ],
    },
  },
  {
    what: 'no dear hours at the weekend',
    model: 'deepseek-v4-pro',
    usage: { input: 1_000 },
    at: '2026-12-12T07:00:00Z',
    sum: { tokens: [[1_000, '0.66']] },
  },
  {
    what: 'a ratio, rounded once for the row: 0.666 nano-USD are one',
    model: 'deepseek-v4-flash',
    usage: { cache_read: 1 },
    ratio: '0.222',
    sum: { tokens: [[1, '0.003']] },
  },
  {
    what: 'an image by quality and size',
    model: 'gpt-image-2',
    usage: { image: 3 },
    context: media('high', '1024x1536'),
    sum: { pieces: [[3, '0.165']] },
  },
  {
    what: 'a size that is not in the list, by its quality',
    model: 'gpt-image-2',
    usage: { image: 1 },
    context: media('medium', '3840x2160'),
    sum: { pieces: [[1, '0.178']] },
  },
  {
    what: 'an image of which nothing is said',
    model: 'gpt-image-2',
    usage: { image: 1 },
    context: media(),
    sum: { pieces: [[1, '0.211']] },
  },
  {
    what: 'an image by resolution, and a search',
    model: 'gemini-3-pro-image-preview',
    usage: { image: 2, web_search: 1 },
    context: media('4k'),
    ratio: '2',
    sum: {
      pieces: [
        [2, '0.24'],
        [1, '0.014'],
      ],
    },
  },
  {
    what: 'seconds of video by resolution, and the request',
    model: 'grok-imagine-video',
    usage: { second: 8, request: 1 },
    context: media('720p'),
    sum: {
      pieces: [
        [8, '0.07'],
        [1, '0.002'],
      ],
    },
  },
];

/** `"0.25"` → 250,000,000. */
function nano(usd: string): bigint {
  const [whole, decimals = ''] = usd.split('.') as [string, string?];
  return BigInt(whole + decimals.padEnd(9, '0'));
}

/** Whole numbers alone: everything over one denominator, half up. */
function oracle({ tokens = [], pieces = [] }: Sum, ratio: string): bigint {
  let millionths = 0n;
  for (const [count, usd] of tokens) millionths += BigInt(count) * nano(usd);
  for (const [count, usd] of pieces) millionths += BigInt(count) * nano(usd) * 1_000_000n;
  const numerator = millionths * nano(ratio);
  const denominator = 1_000_000n * 1_000_000_000n;
  return (2n * numerator + denominator) / (2n * denominator);
}

/** Variables have their defaults. */
const read = (name: string) =>
  parse(readFileSync(new URL(`../../../config/${name}`, import.meta.url), 'utf8').replace(/\$\{\w+:-([^}]*)\}/g, '$1'));
const host = fakeHost({ endpoints: () => orderEndpoints });
const { providers } = read('shared.yaml') as { providers: Record<string, object> };
await setUp(
  providersPlugin,
  host,
  Object.fromEntries(Object.entries(providers).map(([name, section]) => [name, { ...section, keys: 'test' }])),
);
await setUp(modelsPlugin, host, read('models.yaml').models);

for (const { what, model, usage, context, at = '2026-12-09T12:00:00Z', ratio = '1', sum } of vectors) {
  test(`${model}: ${what}`, () => {
    const priced = priceFor(host.get(catalog).find(model)!.prices!, Date.parse(at), usage, context);
    assert.equal(cost(usage, priced!.price, parseRatio(ratio)), oracle(sum, ratio));
  });
}

test('the oracle rounds half up, once, and is exact', () => {
  assert.equal(oracle({ tokens: [[1, '0.0005']] }, '1'), 1n);
  assert.equal(oracle({ tokens: [[1, '0.000499999']] }, '1'), 0n);
  assert.equal(
    oracle(
      {
        tokens: [
          [3, '0.0003'],
          [2, '0.0003'],
        ],
      },
      '1',
    ),
    2n,
  );
  assert.equal(oracle({ tokens: [[1_000_000, '2.5']], pieces: [[1, '0.01']] }, '1.6'), 4_016_000_000n);
});

test('the own cost of each shipped model at its maker is the list price, unless its price is an example', async () => {
  const every = fakeHost({ endpoints: () => modelKinds.map((modelKind) => ({ ...orderEndpoints[0]!, modelKind })) });
  every.provide(providersService, host.get(providersService));
  await setUp(modelsPlugin, every, read('models.yaml').models);
  const listed = every.get(priceQueries).list();
  assert.ok(listed.length > 50);
  for (const { id, source, prices, cost: own, costIsListPrice } of listed)
    assert.deepEqual([id, own, costIsListPrice], [id, source === 'example' ? undefined : prices, source !== 'example']);
});
