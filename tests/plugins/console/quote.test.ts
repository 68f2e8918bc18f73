/** What an order would cost: exact where all is known, else from the lowest to the highest, and never below what is charged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cost, formatUsd, one, parseRatio, parseUsd } from '../../../plugins/common/domain/money.ts';
import { type MediaTable, PriceVersion, priceFor } from '../../../plugins/common/domain/prices.ts';
import type { Price } from '../../../plugins/common/domain/usage.ts';
import { type OrderQuery, quoteOf } from '../../../plugins/console/api/catalog/quote.ts';
import { fc } from '../../helpers/properties.ts';
import { caller } from './caller.ts';
import { fakeConsole } from './fake-console.ts';

const table = (entries: Record<string, string>, otherwise?: string): MediaTable => ({
  entries: Object.entries(entries).map(([words, amount]) => ({ words: words.split(' '), amount: parseUsd(amount) })),
  otherwise: otherwise === undefined ? undefined : parseUsd(otherwise),
});
const book = (base: Price, tables: { image?: MediaTable; second?: MediaTable } = {}) => ({
  prices: [new PriceVersion({ name: 'list', base, ...tables })],
});
const painter = book(
  {},
  {
    image: table({ 'low 1024x1024': '0.006', 'low 1536x1024': '0.005', low: '0.02', high: '0.712' }, '0.211'),
  },
);
const quote = (model: Parameters<typeof quoteOf>[0], order: Omit<OrderQuery, 'model'>, ratio = one) => {
  const { least, most } = quoteOf(model, 0, ratio, { model: 'm', ...order });
  return least === most ? least : `${least} to ${most}`;
};

test('each detail of the request narrows the price, until it is exact', () => {
  assert.equal(quote(painter, { image: 1 }), '0.005 to 0.712');
  assert.equal(quote(painter, { image: 2, media: 'low' }), '0.01 to 0.04');
  assert.equal(quote(painter, { image: 2, media: 'low,1024x1024' }), '0.012');
  assert.equal(quote(painter, { image: 1, media: 'high,1536x1024' }), '0.712');
  assert.equal(quote(painter, { image: 1, media: 'high,1536x1024' }, parseRatio('1.5')), '1.068');
});

test('videos are priced by the second, with the price of the request and its image', () => {
  const video = book({ request: parseUsd('0.002') }, { second: table({ '480p': '0.05', '720p': '0.07' }, '0.05') });
  assert.equal(quote(video, { second: 5, media: '720p' }), '0.352');
  assert.equal(quote(video, { second: 5 }), '0.252 to 0.352');
});

test('a price by tokens is not known before the call', () => {
  assert.equal(quote(book({ input: parseUsd('5'), output_image: parseUsd('30') }), { image: 1 }), null);
  assert.equal(quote(book({ character: parseUsd('15') }), {}), null, 'nothing is counted yet');
  assert.equal(quote(book({ character: parseUsd('15') }), { character: 100 }), '0.0015');
  assert.equal(quote(book({ image: 1n, web_search: 14n }), { image: 1 }), '0.000000001', 'a tool is not used');
  assert.equal(quote({ prices: undefined }, { image: 1 }), null);
});

test('no charge of an order that succeeds as ordered lies outside its quote', () => {
  const qualities = ['low', 'high'];
  const sizes = ['1024x1024', '1536x1024', '2048x2048'];
  const nano = fc.integer({ min: 0, max: 900_000_000 }).map((amount) => formatUsd(BigInt(amount)));
  const word = fc.constantFrom(
    ...qualities,
    ...sizes,
    ...qualities.flatMap((one) => sizes.map((two) => `${one} ${two}`)),
  );
  fc.assert(
    fc.property(
      fc.dictionary(word, nano, { maxKeys: 8 }),
      nano,
      fc.subarray(['quality', 'size']),
      fc.constantFrom(...qualities),
      fc.constantFrom(...sizes),
      fc.integer({ min: 1, max: 10 }),
      fc.constantFrom('1', '1.2', '0.35'),
      (entries, otherwise, stated, quality, size, image, text) => {
        const ratio = parseRatio(text);
        const model = book({}, { image: table(entries, otherwise) });
        const requested = [
          ...(stated.includes('quality') ? [quality] : []),
          ...(stated.includes('size') ? [size] : []),
        ];
        const { least, most } = quoteOf(model, 0, ratio, { model: 'm', image, media: requested.join() });
        const usage = { image };
        const charge = cost(usage, priceFor(model.prices, 0, usage, { media: [quality, size] })!.price, ratio);
        assert.ok(parseUsd(least!) <= charge && charge <= parseUsd(most!), `${least} ${formatUsd(charge)} ${most}`);
        if (requested.length === 2) assert.equal(most, formatUsd(charge));
      },
    ),
  );
});

test('clients get the price of their plan; an unknown model is named', async () => {
  const send = caller(fakeConsole(), 'client');
  const { json } = await send('GET /models/quote?model=gpt-image-2&image=3');
  assert.equal(json.least, json.most);
  const { rows } = (await send('GET /models')).json;
  const { lines } = rows.find(({ id }: { id: string }) => id === 'gpt-image-2').prices;
  assert.equal(
    parseUsd(json.least),
    3n * parseUsd(lines.find((line: { class: string }) => line.class === 'image').yours),
  );
  const unknown = await send('GET /models/quote?model=none&image=1');
  assert.deepEqual([unknown.status, unknown.json.error.field], [404, 'model']);
  assert.equal((await send('GET /models/quote?model=gpt-image-2&image=-1')).status, 400);
});
