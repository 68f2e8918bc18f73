/** The models that can be called: what they take, what they cost this client, how they have performed lately. */

import { z } from '@hono/zod-openapi';
import { ownCauses, type RequestSums } from '../../../common/domain/admin/requests.ts';
import type { Model } from '../../../common/domain/models.ts';
import { one, parseRatio, type Ratio } from '../../../common/domain/money.ts';
import { sheetOf } from '../../../common/domain/pages/price-sheet.ts';
import { planRatio, ratioOf } from '../../../common/domain/price-ratio.ts';
import { accountAdmin, catalog, multipliers, plans, priceQueries, requestQueries } from '../../services.ts';
import { priceSheet } from '../price-sheet.ts';
import {
  actorOf,
  type ConsoleServices,
  need,
  nothingHere,
  ownAccount,
  type RequestContext,
} from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, hourMs } from '../schemas.ts';
import { catalogueEntry, entryJson } from './catalogue-entry.ts';
import { orderQuery, orderQuote, quoteOf } from './quote.ts';

const model = catalogueEntry
  .extend({
    allowed: z.boolean().describe('Whether the plan of the account includes it.'),
    prices: priceSheet.nullable().describe('null: not sold at the moment.'),
    lastHour: z
      .object({
        requests: z.number(),
        succeeded: z.number(),
        upstreamErrors: z.number(),
        firstByteP50Ms: z.number().nullable(),
      })
      .nullable()
      .describe('Of all traffic; null: there was none.'),
  })
  .openapi('Model');

const list = route('get', '/models', 'Models with prices and their state', answers(z.object({ rows: z.array(model) })));
const quote = route('get', '/models/quote', 'What an order would cost the account now', answers(orderQuote), {
  query: orderQuery,
});

export function modelRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(list, async ({ c }) => {
      const [traffic, buyer] = await Promise.all([trafficOf(services), buyerOf(services, c)]);
      const priced = services.find(priceQueries)?.list() ?? [];
      const modalities = new Map(priced.map((row) => [row.id, row.modalities]));
      const now = services.clock.now();
      const rows = need(services, catalog)
        .list()
        .map((entry) => ({
          ...entryJson(entry, modalities.get(entry.id) ?? []),
          allowed: buyer.models === undefined || buyer.models.has(entry.id),
          prices: sheetOf(entry.prices, now, ratioFor(services, buyer, entry)) ?? null,
          lastHour: trafficJson(traffic.get(entry.id)),
        }));
      return { rows };
    })
    .read(quote, async ({ c, query }) => {
      const entry = need(services, catalog).find(query.model);
      if (entry === undefined) throw nothingHere('model', 'model');
      return quoteOf(entry, services.clock.now(), ratioFor(services, await buyerOf(services, c), entry), query);
    });
}

interface Buyer {
  readonly plan: string | undefined;
  readonly multiplier: Ratio;
  /** Models of the plan; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
}

/** Without an account: the default plan. */
export function defaultBuyer(services: ConsoleServices): Buyer {
  const offers = services.find(plans);
  const plan = offers?.default;
  return { plan, multiplier: one, models: plan === undefined ? undefined : offers?.terms(plan).models };
}

/** The plan and ratio of the actor's account; without an account those of the default plan. */
export async function buyerOf(services: ConsoleServices, c: RequestContext): Promise<Buyer> {
  const actor = actorOf(c);
  const hasAccount = actor.kind === 'person' && actor.role !== 'auditor';
  const account = hasAccount ? await services.find(accountAdmin)?.find(await ownAccount(services, c)) : undefined;
  const offers = services.find(plans);
  const plan = account?.plan ?? offers?.default;
  return {
    plan,
    multiplier: account?.multiplier === undefined ? one : parseRatio(account.multiplier),
    models: plan === undefined ? undefined : offers?.terms(plan).models,
  };
}

/** As billing multiplies. */
export function ratioFor(
  services: ConsoleServices,
  { plan, multiplier }: Buyer,
  entry: Pick<Model, 'multiplier'>,
): Ratio {
  const sources = { multipliers: services.find(multipliers), plans: services.find(plans) };
  const ofPlan = plan === undefined ? undefined : planRatio(sources, plan);
  return ratioOf({ plan: ofPlan, model: entry.multiplier, account: multiplier });
}

async function trafficOf(services: ConsoleServices): Promise<Map<string, RequestSums>> {
  const until = services.clock.now() + 1;
  const groups = await services
    .find(requestQueries)
    ?.groups({ from: until - hourMs, until, withoutCauses: ownCauses }, 'model', 500);
  return new Map((groups ?? []).map((sums) => [sums.group, sums]));
}

function trafficJson(sums: RequestSums | undefined) {
  if (sums === undefined || sums.requests === 0) return null;
  const { requests, results, firstByte } = sums;
  return {
    requests,
    succeeded: results.ok,
    upstreamErrors: results.upstream_error,
    firstByteP50Ms: firstByte.p50 ?? null,
  };
}
