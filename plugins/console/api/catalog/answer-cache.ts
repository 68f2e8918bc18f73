/** What the cache of answers gave, by model: hits, and what they saved. */
import { z } from '@hono/zod-openapi';
import { money } from '../../../common/domain/money.ts';
import { cacheReport } from '../../services.ts';
import { type ConsoleServices, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, spanOf, spanQuery, usd, usdText } from '../schemas.ts';
import { spanOfDays, zoneQuery } from '../time-zone.ts';

const counts = {
  calls: z.number().describe('Calls that the cache was for.'),
  hits: z.number().describe('Those that it answered.'),
  similar: z.number().describe('Those of them that nearly the same question answered.'),
  saved: usd.describe('What the hits would have cost beyond their price.'),
};
const answer = z
  .object({ ...counts, rows: z.array(z.object({ model: z.string(), operation: z.string(), ...counts })) })
  .openapi('AnswerCache');
const asked = spanQuery.extend(zoneQuery.shape);
const own = route(
  'get',
  '/usage/answer-cache',
  'What the cache of answers saved, by model; whole days (UTC)',
  answers(answer),
  {
    query: asked,
  },
);
const everybodys = route(
  'get',
  '/admin/monitor/answer-cache',
  'What the cache of answers saved clients, by model; whole days (UTC)',
  answers(answer),
  { query: asked },
);

export function answerCacheRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(own, async ({ query, c }) =>
      answersIn(services, spanOfDays(query, services.clock.now(), 30), await ownAccount(services, c)),
    )
    .read(everybodys, ({ query }) => answersIn(services, spanOf(query, services.clock.now(), dayMs), undefined));
}

/** Empty where this gateway has no such cache. */
async function answersIn(
  services: ConsoleServices,
  span: { from: number; until: number },
  accountId: string | undefined,
) {
  const sums = (await services.find(cacheReport)?.sums({ ...span, accountId })) ?? [];
  const rows = sums.map(({ model, operation, hits, similar, misses, saved }) => ({
    ...{ model, operation, calls: hits + similar + misses, hits: hits + similar, similar, saved },
  }));
  const sum = (name: 'calls' | 'hits' | 'similar') => rows.reduce((total, row) => total + row[name], 0);
  return {
    ...{ calls: sum('calls'), hits: sum('hits'), similar: sum('similar') },
    saved: usdText(money(rows.reduce((total, { saved }) => total + saved, 0n))),
    rows: rows.map(({ saved, ...row }) => ({ ...row, saved: usdText(saved) })),
  };
}
