/** A price book as a person reads it: prices by class, conditions of other prices, and versions in time. */

import { z } from '@hono/zod-openapi';
import type { Ratio } from '../../common/domain/money.ts';
import { priceUnits, sheetOfVersion } from '../../common/domain/pages/price-sheet.ts';
import { changesFrom, type PriceBook, versionAt } from '../../common/domain/prices.ts';
import { instant, iso, usd } from './schemas.ts';

const line = z.object({
  class: z.string().describe('input, cache_read, output, image …'),
  per: z
    .enum(priceUnits)
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
export const priceVersion = z
  .object({
    validFrom: instant.nullable().describe('null: always.'),
    validUntil: instant.nullable().describe('null: without end; a later version takes its place all the same.'),
    state: z.enum(['past', 'now', 'later']).describe('Whether it has held, holds now, or will hold (again).'),
    sheet: priceSheet,
  })
  .openapi('PriceVersion');

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
