/** What operators look at first: traffic in sums, over time and in groups, with revenue and margin; every request. */
import { createRoute, z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../../core/desk.ts';
import { money } from '../../../core/money.ts';
import { moneyDesk, requestDesk } from '../desks.ts';
import { chargesOf } from './charges.ts';
import { csvAnswer } from './csv.ts';
import {
  bucketAsked,
  bucketMsOf,
  moneySums,
  noRequest,
  operations,
  operatorRequestRow,
  operatorRequestStory,
  operatorRequestsAsked,
  requestSums,
  tellCharge,
  tellOperatorAttempt,
  tellOperatorRequest,
  tellSums,
} from './request-rows.ts';
import { type Console, need, router } from './router.ts';
import { spendByBucket, spendSum } from './spend.ts';
import {
  answers,
  answersCsv,
  asked,
  countAsked,
  dayMs,
  id,
  instant,
  iso,
  pageAsked,
  pageOf,
  spanOf,
  usd,
  usdOrNull,
  usdText,
} from './words.ts';

const sums = createRoute({
  method: 'get',
  path: '/admin/monitor',
  summary: 'Sums of all traffic, by default of the last 24 hours',
  request: { query: operatorRequestsAsked },
  responses: answers(requestSums.extend({ ...moneySums, margin: usd.nullable(), from: instant, until: instant })),
});
const series = createRoute({
  method: 'get',
  path: '/admin/monitor/series',
  summary: 'Traffic over time',
  request: { query: operatorRequestsAsked.extend(bucketAsked.shape) },
  responses: answers(
    z.object({ bucketMs: z.number(), rows: z.array(requestSums.extend({ ...moneySums, at: instant })) }),
  ),
});
const groups = createRoute({
  method: 'get',
  path: '/admin/monitor/groups',
  summary: 'Traffic in groups, the largest first',
  request: {
    query: operatorRequestsAsked.extend({ by: z.enum(operations), limit: countAsked(1, 500).optional() }),
  },
  responses: answers(z.object({ rows: z.array(requestSums.extend({ ...moneySums, group: z.string() })) })),
});
const list = createRoute({
  method: 'get',
  path: '/admin/requests',
  summary: 'Requests, by default of the last 24 hours',
  request: { query: operatorRequestsAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(operatorRequestRow)),
});
const csv = createRoute({
  method: 'get',
  path: '/admin/requests.csv',
  summary: 'Requests as CSV',
  request: { query: operatorRequestsAsked },
  responses: answersCsv,
});
const one = createRoute({
  method: 'get',
  path: '/admin/requests/{id}',
  summary: 'One request from end to end',
  request: { params: z.object({ id }) },
  responses: answers(operatorRequestStory),
});

const columns = [
  'receivedAt',
  'id',
  'accountId',
  'keyId',
  'operation',
  'model',
  'provider',
  'upstreamModel',
  'status',
  'outcome',
  'errorKind',
  'errorCode',
  'attempts',
  'firstByteMs',
  'totalMs',
  'cost',
  'ownCost',
  'refunded',
  'usage',
] as const;

export function trafficRoutes(hall: Console) {
  return router()
    .openapi(sums, async (ask) => {
      const filter = filterOf(hall, ask.req.valid('query'));
      const [told, spend] = await Promise.all([need(hall, requestDesk).sums(filter), spendSum(hall, filter)]);
      return ask.json(
        {
          ...tellSums(told),
          cost: usdOrNull(spend?.cost),
          ownCost: usdOrNull(spend?.ownCost),
          margin: spend === undefined ? null : usdText(money(spend.cost - spend.ownCost)),
          from: iso(filter.from),
          until: iso(filter.until),
        },
        200,
      );
    })
    .openapi(series, async (ask) => {
      const query = ask.req.valid('query');
      const filter = filterOf(hall, query);
      const bucketMs = bucketMsOf(filter, query.bucketMinutes);
      const [buckets, spend] = await Promise.all([
        need(hall, requestDesk).series(filter, bucketMs),
        spendByBucket(hall, filter, bucketMs),
      ]);
      const rows = buckets.map((bucket) => ({
        ...tellSums(bucket),
        at: iso(bucket.at),
        cost: spend?.cost(bucket.at) ?? null,
        ownCost: spend?.ownCost(bucket.at) ?? null,
      }));
      return ask.json({ bucketMs, rows }, 200);
    })
    .openapi(groups, async (ask) => {
      const query = ask.req.valid('query');
      const rows = await groupsOf(hall, filterOf(hall, query), query.by, query.limit ?? 20);
      return ask.json({ rows }, 200);
    });
}

export function requestRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      return ask.json(await pageOfRequests(hall, filterOf(hall, query), asked(query)), 200);
    })
    .openapi(csv, (ask) => {
      const filter = filterOf(hall, ask.req.valid('query'));
      need(hall, requestDesk);
      return csvAnswer('requests', columns, (page) => pageOfRequests(hall, filter, page));
    })
    .openapi(one, async (ask) => {
      const requestId = ask.req.valid('param').id;
      const row = await need(hall, requestDesk).find(requestId, undefined);
      if (row === undefined) throw noRequest();
      const charge = await hall.find(moneyDesk)?.charge(requestId, undefined);
      return ask.json(
        {
          request: tellOperatorRequest(row, charge),
          dropped: [...row.dropped],
          story: row.story.map((line) => ({ ...line })),
          charge: charge === undefined ? null : { ...tellCharge(charge), ownCost: usdOrNull(charge.ownCost) },
          attempts: (charge?.attempts ?? []).map(tellOperatorAttempt),
        },
        200,
      );
    });
}

function filterOf(hall: Console, query: z.output<typeof operatorRequestsAsked>): RequestFilter {
  const { accountId, keyId, model, provider, operation, result } = query;
  return { ...spanOf(query, hall.clock.now(), dayMs), accountId, keyId, model, provider, operation, result };
}

export async function pageOfRequests(
  hall: Console,
  filter: RequestFilter,
  page: { limit: number; after?: string | undefined },
) {
  const { rows, next } = await need(hall, requestDesk).list(filter, page);
  const charges = await chargesOf(hall, rows, filter.accountId);
  return { rows: rows.map((row) => tellOperatorRequest(row, charges.get(row.id))), next: next ?? null };
}

async function groupsOf(hall: Console, filter: RequestFilter, by: (typeof operations)[number], limit: number) {
  const { from, until, accountId, keyId, model } = filter;
  const spendIn = by === 'operation' ? undefined : by;
  const [rows, spend] = await Promise.all([
    need(hall, requestDesk).groups(filter, by, limit),
    spendIn === undefined
      ? undefined
      : hall.find(moneyDesk)?.spend({ from, until, accountId, keyId, model }, spendIn, 500),
  ]);
  const costs = new Map(spend?.map((group) => [group.group, group]));
  return rows.map((row) => ({
    ...tellSums(row),
    group: row.group,
    cost: spend === undefined ? null : usdOrNull(costs.get(row.group)?.cost),
    ownCost: spend === undefined ? null : usdOrNull(costs.get(row.group)?.ownCost),
  }));
}
