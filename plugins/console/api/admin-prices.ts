/** The catalogue with own cost and sale price, and what a request would cost. */
import { createRoute, z } from '@hono/zod-openapi';
import type { PricedModel } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { one, parseRatio, type Ratio, timesRatio } from '../../../core/money.ts';
import { usageClasses } from '../../../core/usage.ts';
import { multipliers, plans, priceDesk } from '../desks.ts';
import { catalogueEntry, tellEntry } from './catalogue-entry.ts';
import { nextChange, priceSheet, priceVersion, ratioText, sheetOf, versionsOf } from './price-sheet.ts';
import { type Console, need, nothingHere, router } from './router.ts';
import { answers, instant, isoOrNull, takes, usd, usdOrNull, usdText } from './words.ts';

const priced = catalogueEntry
  .extend({
    prices: priceSheet
      .nullable()
      .describe('null: not sold. `yours`: with the ratios of the default plan and of the model.'),
    cost: priceSheet.nullable().describe('What the operator pays; null: not known.'),
    changesAt: instant.nullable().describe('When sale price or own cost change next; null: not as far as is written.'),
    multiplier: z.string().nullable(),
    source: z.string().nullable(),
    providers: z.array(z.string()),
  })
  .openapi('PricedModel');

const list = createRoute({
  method: 'get',
  path: '/admin/prices',
  summary: 'Every model with sale price and own cost',
  responses: answers(z.object({ rows: z.array(priced) })),
});
const versions = createRoute({
  method: 'get',
  path: '/admin/prices/versions',
  summary: "Every version of a model's sale price and own cost, the latest first",
  request: { query: z.object({ model: z.string().min(1).max(200) }) },
  responses: answers(z.object({ prices: z.array(priceVersion), cost: z.array(priceVersion) })),
});
const count = z.number().int().min(0).max(1_000_000_000);
const quote = createRoute({
  method: 'post',
  path: '/admin/prices/quote',
  summary: 'What a request would cost now',
  request: {
    body: takes(
      z.strictObject({
        model: z.string().min(1).max(200),
        usage: z.partialRecord(z.enum(usageClasses as [string, ...string[]]), count),
        ratio: z
          .string()
          .regex(/^\d{1,4}(\.\d{1,6})?$/, 'must be a ratio such as 1.6')
          .optional()
          .describe("On top of the model's own; by default that of the default plan."),
      }),
    ),
  },
  responses: answers(z.object({ cost: usd, ownCost: usd.nullable(), ratio: z.string(), formula: z.string() })),
});

export function priceRoutes(hall: Console) {
  return router()
    .openapi(list, (ask) => {
      const now = hall.clock.now();
      const rows = need(hall, priceDesk)
        .list()
        .map((row) => ({
          ...tellEntry(row, row.modalities),
          prices: sheetOf(row.prices, now, wholeRatio(hall, row)) ?? null,
          cost: sheetOf(row.cost, now, one) ?? null,
          changesAt: isoOrNull(nextChange([row.prices, row.cost], now)),
          multiplier: row.multiplier ?? null,
          source: row.source ?? null,
          providers: [...row.providers],
        }));
      return ask.json({ rows }, 200);
    })
    .openapi(versions, (ask) => {
      const row = knownModel(hall, ask.req.valid('query').model);
      const now = hall.clock.now();
      const prices = versionsOf(row.prices, now, wholeRatio(hall, row));
      return ask.json({ prices, cost: versionsOf(row.cost, now, one) }, 200);
    })
    .openapi(quote, (ask) => {
      const { model, usage, ratio } = ask.req.valid('json');
      const desk = need(hall, priceDesk);
      knownModel(hall, model);
      const counted = Object.fromEntries(Object.entries(usage).filter(([, units]) => units !== undefined)) as Record<
        string,
        number
      >;
      const used = checkedRatio(ratio) ?? ratioText(usualRatio(hall, model));
      const { cost, ownCost, formula } = desk.quote(model, counted, used);
      return ask.json({ cost: usdText(cost), ownCost: usdOrNull(ownCost), ratio: used, formula }, 200);
    });
}

function knownModel(hall: Console, id: string): PricedModel {
  const found = need(hall, priceDesk)
    .list()
    .find((row) => row.id === id);
  if (found === undefined) throw nothingHere('model', 'model');
  return found;
}

/** What accounts on the default plan pay, without the model's own ratio where a plugin knows better. */
function usualRatio(hall: Console, modelId: string) {
  const offers = hall.find(plans);
  if (offers === undefined) return one;
  const { default: name } = offers;
  return hall.find(multipliers)?.of?.(name, modelId) ?? offers.terms(name).multiplier ?? one;
}

/** What they are charged by: the model's own ratio counts too. */
function wholeRatio(hall: Console, { id, multiplier }: PricedModel): Ratio {
  return timesRatio(usualRatio(hall, id), multiplier === undefined ? one : parseRatio(multiplier));
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
