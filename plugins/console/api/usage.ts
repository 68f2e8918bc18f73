/** A client's own requests: rows, sums, series, one from end to end, CSV. */
import { createRoute, z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../../core/desk.ts';
import { moneyDesk, requestDesk } from '../desks.ts';
import { chargesOf } from './charges.ts';
import { csvAnswer } from './csv.ts';
import {
  bucketAsked,
  bucketMsOf,
  noRequest,
  requestRow,
  requestStory,
  requestSums,
  requestsAsked,
  tellAttempt,
  tellCharge,
  tellRequest,
  tellSums,
} from './request-rows.ts';
import { type Ask, type Console, need, ownAccount, router } from './router.ts';
import { costOf, spendByBucket } from './spend.ts';
import { answers, answersCsv, asked, dayMs, id, instant, iso, pageAsked, pageOf, spanOf, usd } from './words.ts';

const list = createRoute({
  method: 'get',
  path: '/usage',
  summary: 'Own requests',
  request: { query: requestsAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(requestRow)),
});
const sums = createRoute({
  method: 'get',
  path: '/usage/sums',
  summary: 'Sums of own requests',
  request: { query: requestsAsked },
  responses: answers(requestSums.extend({ cost: usd.nullable(), from: instant, until: instant })),
});
const series = createRoute({
  method: 'get',
  path: '/usage/series',
  summary: 'Own requests over time',
  request: { query: requestsAsked.extend(bucketAsked.shape) },
  responses: answers(
    z.object({
      bucketMs: z.number(),
      rows: z.array(requestSums.extend({ at: instant, cost: usd.nullable() })),
    }),
  ),
});
const csv = createRoute({
  method: 'get',
  path: '/usage.csv',
  summary: 'Own requests as CSV',
  request: { query: requestsAsked },
  responses: answersCsv,
});
const one = createRoute({
  method: 'get',
  path: '/usage/{id}',
  summary: 'One own request from end to end',
  request: { params: z.object({ id }) },
  responses: answers(requestStory),
});

const columns = [
  'receivedAt',
  'id',
  'operation',
  'model',
  'keyId',
  'status',
  'outcome',
  'firstByteMs',
  'totalMs',
  'cost',
  'refunded',
  'usage',
] as const;

export function usageRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      const filter = await ownFilter(hall, ask, query);
      return ask.json(await pageOfRequests(hall, filter, asked(query)), 200);
    })
    .openapi(sums, async (ask) => {
      const filter = await ownFilter(hall, ask, ask.req.valid('query'));
      const [told, cost] = await Promise.all([need(hall, requestDesk).sums(filter), costOf(hall, filter)]);
      return ask.json({ ...tellSums(told), cost, from: iso(filter.from), until: iso(filter.until) }, 200);
    })
    .openapi(series, async (ask) => {
      const query = ask.req.valid('query');
      const filter = await ownFilter(hall, ask, query);
      const bucketMs = bucketMsOf(filter, query.bucketMinutes);
      const buckets = await need(hall, requestDesk).series(filter, bucketMs);
      const spend = await spendByBucket(hall, filter, bucketMs);
      const rows = buckets.map((bucket) => ({
        ...tellSums(bucket),
        at: iso(bucket.at),
        cost: spend?.cost(bucket.at) ?? null,
      }));
      return ask.json({ bucketMs, rows }, 200);
    })
    .openapi(csv, async (ask) => {
      const filter = await ownFilter(hall, ask, ask.req.valid('query'));
      return csvAnswer('usage', columns, (page) => pageOfRequests(hall, filter, page));
    })
    .openapi(one, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const requestId = ask.req.valid('param').id;
      const row = await need(hall, requestDesk).find(requestId, accountId);
      if (row === undefined) throw noRequest();
      const charge = await hall.find(moneyDesk)?.charge(requestId, accountId);
      return ask.json(
        {
          request: tellRequest(row, charge),
          dropped: [...row.dropped],
          charge: charge === undefined ? null : tellCharge(charge),
          attempts: (charge?.attempts ?? []).map(tellAttempt),
        },
        200,
      );
    });
}

/** The account is always that of whoever asks, whatever the query says. */
async function ownFilter(hall: Console, ask: Ask, query: z.output<typeof requestsAsked>): Promise<RequestFilter> {
  const { keyId, model, operation, result } = query;
  const accountId = await ownAccount(hall, ask);
  return { ...spanOf(query, hall.clock.now(), 30 * dayMs), accountId, keyId, model, operation, result };
}

async function pageOfRequests(
  hall: Console,
  filter: RequestFilter,
  page: { limit: number; after?: string | undefined },
) {
  const { rows, next } = await need(hall, requestDesk).list(filter, page);
  const charges = await chargesOf(hall, rows, filter.accountId);
  return { rows: rows.map((row) => tellRequest(row, charges.get(row.id))), next: next ?? null };
}
