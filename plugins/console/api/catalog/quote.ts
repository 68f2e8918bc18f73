/** What an order would cost, before it is made: exact, or from its lowest to its highest price where something is left open. */
import { z } from '@hono/zod-openapi';
import type { Model } from '../../../common/domain/models.ts';
import { cost, type Money, type Ratio } from '../../../common/domain/money.ts';
import { type PriceVersion, versionAt } from '../../../common/domain/prices.ts';
import { type Price, tokenClasses, type Usage } from '../../../common/domain/usage.ts';
import { usd, usdText } from '../schemas.ts';

const count = z.coerce.number().int().min(0).max(1_000_000).optional();
/** The pieces that can be counted before a call. */
export const orderQuery = z.object({
  model: z.string().min(1).max(200),
  image: count,
  second: count.describe('Of video.'),
  character: count.describe('Of a text that is spoken.'),
  audio: count.describe('Seconds of sound.'),
  search: count,
  media: z.string().max(100).optional().describe('Size, quality and resolution with commas between: low,1024x1024.'),
});
export type OrderQuery = z.output<typeof orderQuery>;

export const orderQuote = z
  .object({
    least: usd.nullable().describe('null: it depends on counts that are known only afterwards, such as tokens.'),
    most: usd.nullable().describe('The same as `least`: the price is exact.'),
  })
  .openapi('OrderQuote');

const unknown = { least: null, most: null };

/** By the prices that hold now. */
export function quoteOf(
  { prices }: Pick<Model, 'prices'>,
  now: number,
  ratio: Ratio,
  { model: _, media = '', ...counts }: OrderQuery,
): z.infer<typeof orderQuote> {
  const version = prices === undefined ? undefined : versionAt(prices, now);
  if (version === undefined) return unknown;
  const usage: Usage = Object.fromEntries(Object.entries(counts).filter(([, number]) => number !== undefined));
  const words = media.toLowerCase().split(',').filter(Boolean);
  const costs: Money[] = [];
  for (const known of wordsOfOrders(version, words)) {
    const { price } = version.priced(now, usage, { media: known });
    if (!covers(price, usage)) return unknown;
    costs.push(cost(price.request === undefined ? usage : { request: 1, ...usage }, price, ratio));
  }
  const [first, ...others] = costs;
  const [least, most] = others.reduce(
    ([low, high], one) => [one < low ? one : low, one > high ? one : high],
    [first!, first!],
  );
  return { least: usdText(least), most: usdText(most) };
}

/** Whether nothing is charged that is not counted. Tools are charged only where they are used. */
function covers(price: Price, usage: Usage): boolean {
  const pieces = ['image', 'second', 'character', 'audio', 'search'] as const;
  return [...tokenClasses, ...pieces].every((name) => (price[name] ?? 0n) === 0n || usage[name] !== undefined);
}

const kindsOfWords = [/^\d+x\d+$/, /^\d+[kp]$/];
/** Size, resolution or quality. */
const kindOf = (word: string): number => kindsOfWords.findIndex((pattern) => pattern.test(word));

/** Properties that the order may turn out to have: the requested ones, and each entry of the price that does not contradict it. */
function wordsOfOrders({ image, second }: PriceVersion, requested: readonly string[]): (readonly string[])[] {
  const kinds = new Set(requested.map(kindOf));
  const entries = [...(image?.entries ?? []), ...(second?.entries ?? [])];
  const open = entries.filter(({ words }) =>
    words.every((word) => requested.includes(word) || !kinds.has(kindOf(word))),
  );
  return [requested, ...open.map(({ words }) => [...new Set([...requested, ...words])])];
}
