/** The catalogue with own cost and sale price, and what a request would cost. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { PricedModel } from '../../../common/domain/admin/prices.ts';
import { formatRatio, one, parseRatio, type Ratio } from '../../../common/domain/money.ts';
import { sheetOf } from '../../../common/domain/pages/price-sheet.ts';
import { planRatio, ratioOf } from '../../../common/domain/price-ratio.ts';
import { usageClasses } from '../../../common/domain/usage.ts';
import { multipliers, plans, priceQueries } from '../../services.ts';
import { catalogueEntry, entryJson } from '../catalog/catalogue-entry.ts';
import { nextChange, priceSheet, priceVersion, versionsOf } from '../price-sheet.ts';
import { type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instant, isoOrNull, takes, usd, usdOrNull, usdText } from '../schemas.ts';

const priced = catalogueEntry
  .extend({
    prices: priceSheet
      .nullable()
      .describe('null: not sold. `yours`: with the ratios of the default plan and of the model.'),
    cost: priceSheet.nullable().describe('What the operator pays; null: not known.'),
    costIsListPrice: z
      .boolean()
      .describe("Whether `cost` is what the model's maker asks publicly, as no own cost is written."),
    changesAt: instant.nullable().describe('When sale price or own cost change next; null: not as far as is written.'),
    multiplier: z.string().nullable(),
    source: z.string().nullable(),
    providers: z.array(z.string()),
  })
  .openapi('PricedModel');

const list = route(
  'get',
  '/admin/prices',
  'Every model with sale price and own cost',
  answers(z.object({ rows: z.array(priced) })),
);
const versions = route(
  'get',
  '/admin/prices/versions',
  "Every version of a model's sale price and own cost, the latest first",
  answers(z.object({ prices: z.array(priceVersion), cost: z.array(priceVersion) })),
  { query: z.object({ model: z.string().min(1).max(200) }) },
);
const count = z.number().int().min(0).max(1_000_000_000);
const usageCounts = z.partialRecord(z.enum(usageClasses as [string, ...string[]]), count);
const quote = route(
  'post',
  '/admin/prices/quote',
  'What a request would cost now',
  answers(z.object({ cost: usd, ownCost: usd.nullable(), ratio: z.string(), formula: z.string() })),
  {
    body: takes(
      z.strictObject({
        model: z.string().min(1).max(200),
        usage: usageCounts,
        ratio: z
          .string()
          .regex(/^\d{1,4}(\.\d{1,6})?$/, 'must be a ratio such as 1.6')
          .optional()
          .describe("On top of the model's own; by default that of the default plan."),
      }),
    ),
  },
);

const written = z
  .union([z.string(), z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown())).max(100)])
  .describe('As the configuration writes a price; numbers may be texts.');
const example = route(
  'post',
  '/admin/prices/example',
  'What a request would cost now by prices that are not configured yet; nothing changes',
  answers(
    z.object({
      cost: usd,
      ownCost: usd.nullable(),
      ratio: z.string().describe('The whole ratio: that of the default plan × that of the model.'),
      tier: z.string().describe('The tiers that hold; empty: the list price.'),
      formula: z.string(),
    }),
  ),
  {
    body: takes(
      z.strictObject({
        price: written,
        cost: written.optional().describe('What the operator pays, written like a price.'),
        multiplier: z.string().max(20).optional().describe('Ratio of the model; default: 1.'),
        usage: usageCounts,
        service: z.string().min(1).max(50).optional().describe('A service beyond the standard one, such as flex.'),
      }),
    ),
  },
);

export function priceRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(list, () => {
      const now = services.clock.now();
      const rows = need(services, priceQueries)
        .list()
        .map((row) => ({
          ...entryJson(row, row.modalities),
          prices: sheetOf(row.prices, now, wholeRatio(services, row)) ?? null,
          cost: sheetOf(row.cost, now, one) ?? null,
          costIsListPrice: row.costIsListPrice,
          changesAt: isoOrNull(nextChange([row.prices, row.cost], now)),
          multiplier: row.multiplier ?? null,
          source: row.source ?? null,
          providers: [...row.providers],
        }));
      return { rows };
    })
    .read(versions, ({ query: { model } }) => {
      const row = knownModel(services, model);
      const now = services.clock.now();
      const prices = versionsOf(row.prices, now, wholeRatio(services, row));
      return { prices, cost: versionsOf(row.cost, now, one) };
    })
    .read(quote, ({ json: { model, usage, ratio } }) => {
      const prices = need(services, priceQueries);
      knownModel(services, model);
      const used = checkedRatio(ratio) ?? formatRatio(usualRatio(services) ?? one);
      const { cost, ownCost, formula } = prices.quote(model, countsOf(usage), used);
      return { cost: usdText(cost), ownCost: usdOrNull(ownCost), ratio: used, formula };
    })
    .read(example, ({ json: { price, cost: own, multiplier, usage, service } }) => {
      const ratio = formatRatio(usualRatio(services) ?? one);
      const question = { price, cost: own, multiplier, ratio, usage: countsOf(usage), service };
      const { cost, ownCost, ...rest } = need(services, priceQueries).example(question);
      return { cost: usdText(cost), ownCost: usdOrNull(ownCost), ...rest };
    });
}

function countsOf(usage: z.output<typeof usageCounts>): Record<string, number> {
  return Object.fromEntries(Object.entries(usage).filter((entry): entry is [string, number] => entry[1] !== undefined));
}

function knownModel(services: ConsoleServices, id: string): PricedModel {
  const found = need(services, priceQueries)
    .list()
    .find((row) => row.id === id);
  if (found === undefined) throw nothingHere('model', 'model');
  return found;
}

/** What accounts on the default plan pay, without the model's own ratio where a plugin knows better. */
function usualRatio(services: ConsoleServices): Ratio | undefined {
  const offers = services.find(plans);
  if (offers === undefined) return undefined;
  return planRatio({ multipliers: services.find(multipliers), plans: offers }, offers.default);
}

/** What they are charged by: the model's own ratio counts too. */
function wholeRatio(services: ConsoleServices, { multiplier }: PricedModel): Ratio {
  return ratioOf({
    plan: usualRatio(services),
    model: multiplier === undefined ? undefined : parseRatio(multiplier),
  });
}

function checkedRatio(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    parseRatio(text);
    return text;
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'ratio' });
  }
}
