/** A price book as a person reads it: prices by class, conditions of other prices, and versions in time. */

import { z } from '@hono/zod-openapi';
import { cost, formatRatio, one, type Ratio } from '../../common/domain/money.ts';
import { changesFrom, type PriceBook, type PriceVersion, versionAt } from '../../common/domain/prices.ts';
import { type Price, tokenClasses, type UsageClass, usageClasses } from '../../common/domain/usage.ts';
import { instant, iso, usd, usdText } from './schemas.ts';

const line = z.object({
  class: z.string().describe('input, cache_read, output, image …'),
  per: z
    .enum(['million', 'image', 'second', 'request', 'call', 'search', 'characters', 'hour'])
    .describe('million: a million tokens; characters: a million characters; hour: an hour of audio.'),
  official: usd,
  yours: usd.describe('After the ratio.'),
  range: z
    .object({ least: usd, most: usd })
    .nullable()
    .describe('After the ratio, over all sizes, qualities and resolutions; null: they do not matter.'),
});
export const priceSheet = z
  .object({
    version: z.string(),
    ratio: z.string().describe('Decimal text.'),
    lines: z.array(line),
    tiers: z
      .array(z.object({ name: z.string(), lines: z.array(line) }))
      .describe('Other prices under conditions: long prompts, services, hours, sizes.'),
  })
  .openapi('PriceSheet');
export type PriceSheet = z.infer<typeof priceSheet>;
export const priceVersion = z
  .object({
    validFrom: instant.nullable().describe('null: always.'),
    validUntil: instant.nullable().describe('null: without end; a later version takes its place all the same.'),
    state: z.enum(['past', 'now', 'later']).describe('Whether it has held, holds now, or will hold (again).'),
    sheet: priceSheet,
  })
  .openapi('PriceVersion');

const mostTiers = 24;
const perMillion = 1_000_000;
const secondsPerHour = 3_600;

/** undefined: it is not sold now. */
export function sheetOf(book: PriceBook | undefined, at: number, ratio: Ratio): PriceSheet | undefined {
  const version = book === undefined ? undefined : versionAt(book, at);
  return version === undefined ? undefined : sheetOfVersion(version, ratio);
}

/** Every version of a book, the one that begins last first. */
export function versionsOf(book: PriceBook | undefined, at: number, ratio: Ratio): z.infer<typeof priceVersion>[] {
  if (book === undefined) return [];
  const inForce = versionAt(book, at);
  const coming = new Set(changesFrom(book, at).map((moment) => versionAt(book, moment)));
  return book
    .toSorted((left, right) => (left.from < right.from ? 1 : -1))
    .map((version) => ({
      validFrom: finiteIso(version.from),
      validUntil: finiteIso(version.until),
      state: version === inForce ? 'now' : coming.has(version) ? 'later' : 'past',
      sheet: sheetOfVersion(version, ratio),
    }));
}

/** The first time after `at` at which another version of one of these price lists comes into force, or none. */
export function nextChange(prices: readonly (PriceBook | undefined)[], at: number): number | undefined {
  const moments = prices.flatMap((book = []) => {
    const inForce = versionAt(book, at);
    return changesFrom(book, at).find((moment) => versionAt(book, moment) !== inForce) ?? [];
  });
  return moments.length === 0 ? undefined : Math.min(...moments);
}

const finiteIso = (at: number) => (Number.isFinite(at) ? iso(at) : null);

function sheetOfVersion(version: PriceVersion, ratio: Ratio): PriceSheet {
  const { standard } = version;
  const tiers = version
    .all()
    .filter((priced) => priced !== standard)
    .slice(0, mostTiers)
    .map(({ tier, price }) => ({ name: tier, lines: linesOf(price, ratio) }));
  const lines = linesOf(standard.price, ratio).map((one) => ({ ...one, range: rangeOf(version, one.class, ratio) }));
  return { version: version.name, ratio: formatRatio(ratio), lines, tiers };
}

/** What a million tokens or characters, an hour, or one piece cost by themselves. */
function linesOf(price: Price, ratio: Ratio): PriceSheet['lines'] {
  return usageClasses
    .filter((name) => price[name] !== undefined)
    .map((name) => {
      const { per, count } = unitOf(name);
      const unit = { [name]: count };
      return {
        class: name,
        per,
        official: usdText(cost(unit, price, one)),
        yours: usdText(cost(unit, price, ratio)),
        range: null,
      };
    });
}

function unitOf(name: UsageClass): { per: PriceSheet['lines'][number]['per']; count: number } {
  if ((tokenClasses as readonly UsageClass[]).includes(name)) return { per: 'million', count: perMillion };
  if (name === 'character') return { per: 'characters', count: perMillion };
  if (name === 'audio') return { per: 'hour', count: secondsPerHour };
  const isOwn = name === 'image' || name === 'second' || name === 'request' || name === 'search';
  return { per: isOwn ? name : 'call', count: 1 };
}

/** The lowest and highest price of an image or a second. */
function rangeOf(version: PriceVersion, name: string, ratio: Ratio): PriceSheet['lines'][number]['range'] {
  if (name !== 'image' && name !== 'second') return null;
  const amounts = (version[name]?.entries ?? []).map(({ amount }) => amount);
  const otherwise = version.standard.price[name]!;
  const [least, most] = [otherwise, ...amounts].reduce(
    ([low, high], amount) => [amount < low ? amount : low, amount > high ? amount : high],
    [otherwise, otherwise],
  );
  if (least === most) return null;
  const text = (amount: bigint) => usdText(cost({ [name]: 1 }, { [name]: amount }, ratio));
  return { least: text(least), most: text(most) };
}
