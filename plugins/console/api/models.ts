/** The models that can be called: what they take, what they cost whoever asks, how they have done lately. */
import { createRoute, z } from '@hono/zod-openapi';
import type { RequestSums } from '../../../core/desk.ts';
import { one, parseRatio, type Ratio, timesRatio } from '../../../core/money.ts';
import type { Model } from '../../../core/vocabulary.ts';
import { accountDesk, catalog, multipliers, plans, priceDesk, requestDesk } from '../desks.ts';
import { catalogueEntry, tellEntry } from './catalogue-entry.ts';
import { priceSheet, sheetOf } from './price-sheet.ts';
import { type Ask, actorOf, type Console, need, router } from './router.ts';
import { answers, hourMs } from './words.ts';

const model = catalogueEntry
  .extend({
    allowed: z.boolean().describe('Whether the plan of whoever asks includes it.'),
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

const list = createRoute({
  method: 'get',
  path: '/models',
  summary: 'Models with prices and their state',
  responses: answers(z.object({ rows: z.array(model) })),
});

export function modelRoutes(hall: Console) {
  return router().openapi(list, async (ask) => {
    const [traffic, buyer] = await Promise.all([trafficOf(hall), buyerOf(hall, ask)]);
    const modalities = new Map(
      hall
        .find(priceDesk)
        ?.list()
        .map((row) => [row.id, row.modalities]),
    );
    const now = hall.clock.now();
    const rows = need(hall, catalog)
      .list()
      .map((entry) => ({
        ...tellEntry(entry, modalities.get(entry.id) ?? []),
        allowed: buyer.models === undefined || buyer.models.has(entry.id),
        prices: sheetOf(entry.prices, now, ratioFor(hall, buyer, entry)) ?? null,
        lastHour: tellTraffic(traffic.get(entry.id)),
      }));
    return ask.json({ rows }, 200);
  });
}

export interface Buyer {
  readonly plan: string | undefined;
  readonly multiplier: Ratio;
  /** Models of the plan; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
}

/** The plan and ratio of whoever asks; without an account the default plan's. */
async function buyerOf(hall: Console, ask: Ask): Promise<Buyer> {
  const actor = actorOf(ask);
  const hasAccount = actor.kind === 'person' && actor.role !== 'auditor';
  const account = hasAccount ? await hall.find(accountDesk)?.find(await hall.people.accountOf(actor.id)) : undefined;
  const offers = hall.find(plans);
  const plan = account?.plan ?? offers?.default;
  return {
    plan,
    multiplier: account?.multiplier === undefined ? one : parseRatio(account.multiplier),
    models: plan === undefined ? undefined : offers?.terms(plan).models,
  };
}

/** Plan × model × account, as billing multiplies. */
export function ratioFor(hall: Console, { plan, multiplier }: Buyer, entry: Pick<Model, 'id' | 'multiplier'>): Ratio {
  const ofPlan = plan === undefined ? undefined : hall.find(plans)?.terms(plan).multiplier;
  const stated = (plan === undefined ? undefined : hall.find(multipliers)?.of?.(plan, entry.id)) ?? ofPlan ?? one;
  return timesRatio(timesRatio(stated, entry.multiplier ?? one), multiplier);
}

async function trafficOf(hall: Console): Promise<Map<string, RequestSums>> {
  const until = hall.clock.now() + 1;
  const groups = await hall.find(requestDesk)?.groups({ from: until - hourMs, until }, 'model', 500);
  return new Map((groups ?? []).map((sums) => [sums.group, sums]));
}

function tellTraffic(sums: RequestSums | undefined) {
  if (sums === undefined || sums.requests === 0) return null;
  const { requests, results, firstByte } = sums;
  return {
    requests,
    succeeded: results.ok,
    upstreamErrors: results.upstream_error,
    firstByteP50Ms: firstByte.p50 ?? null,
  };
}
