/** What prompt caches gave, by model: tokens that were read from them, and what that saved. */
import { z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../../common/domain/admin/requests.ts';
import type { Model } from '../../../common/domain/models.ts';
import { cacheSavings, money, one, type Ratio } from '../../../common/domain/money.ts';
import { versionAt } from '../../../common/domain/prices.ts';
import { promptTokens, type Usage } from '../../../common/domain/usage.ts';
import { catalog, ledgerQueries } from '../../services.ts';
import { scopeOf } from '../organizations/scope.ts';
import { operatorRequestsQuery, requestFilterIn, requestsQuery } from '../request-rows.ts';
import type { ConsoleServices } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, spanOf, usd, usdText } from '../schemas.ts';
import { chargeFilter } from '../spend.ts';
import { spanOfDays } from '../time-zone.ts';
import { buyerOf, ratioFor } from './models.ts';

const counts = {
  prompt: z.number().describe('Tokens of prompts, from a cache or not.'),
  cached: z.number().describe('Those that were read from a cache.'),
};
const answer = z
  .object({
    ...counts,
    saved: usd.describe('The sum of the models with a price.'),
    rows: z.array(
      z.object({
        model: z.string(),
        ...counts,
        saved: usd
          .nullable()
          .describe(
            "At the model's list price of today, times the own ratio: what tokens read from and written to a cache would have cost without it, less what they cost. null: it has no price now.",
          ),
      }),
    ),
  })
  .openapi('CachedTokens');
const own = route('get', '/usage/cached', 'What prompt caches saved, by model', answers(answer), {
  query: requestsQuery,
});
const everybodys = route(
  'get',
  '/admin/monitor/cached',
  'What prompt caches saved clients, by model',
  answers(answer),
  {
    query: operatorRequestsQuery,
  },
);
const mostModels = 100;

export function cachedRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(own, async ({ query, c }) => {
      const span = spanOfDays(query, services.clock.now(), 30);
      const filter = await requestFilterIn(services, query, span, await scopeOf(services, c));
      const buyer = await buyerOf(services, c);
      return cachedIn(services, filter, (model) => ratioFor(services, buyer, model));
    })
    .read(everybodys, async ({ query }) => {
      const span = spanOf(query, services.clock.now(), dayMs);
      const filter = await requestFilterIn(services, query, span, { accountId: query.accountId });
      return cachedIn(services, filter, () => one);
    });
}

async function cachedIn(services: ConsoleServices, filter: RequestFilter, ratio: (model: Model) => Ratio) {
  const wanted = chargeFilter(filter);
  const groups = wanted && (await services.find(ledgerQueries)?.spend(wanted, 'model', mostModels));
  const models = services.find(catalog);
  const now = services.clock.now();
  const rows = (groups ?? []).map(({ group, usage }) => {
    const entry = models?.find(group);
    const price = entry?.prices && versionAt(entry.prices, now)?.base;
    const saved = price === undefined ? undefined : cacheSavings(usage as Usage, price, ratio(entry!));
    return { model: group, prompt: promptTokens(usage as Usage), cached: cachedTokens(usage as Usage), saved };
  });
  const sum = (name: 'prompt' | 'cached') => rows.reduce((total, row) => total + row[name], 0);
  return {
    prompt: sum('prompt'),
    cached: sum('cached'),
    saved: usdText(money(rows.reduce((total, { saved = 0n }) => total + saved, 0n))),
    rows: rows
      .filter(({ cached, saved = 0n }) => cached > 0 || saved !== 0n)
      .map(({ saved, ...row }) => ({ ...row, saved: saved === undefined ? null : usdText(saved) })),
  };
}

const cachedTokens = ({ cache_read: text = 0, cache_read_audio: audio = 0, cache_read_image: images = 0 }: Usage) =>
  text + audio + images;
