/** A client's own requests: rows, sums, series, one from end to end, CSV. */

import { z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../common/domain/admin/requests.ts';
import { recordedBodies, requestQueries } from '../services.ts';
import { keptBody } from './admin/bodies.ts';
import { chargedRequest, chargedRequests, withVerdicts } from './charges.ts';
import { csvAnswer } from './csv/answer.ts';
import { isIn, scopeOf } from './organizations/scope.ts';
import {
  attemptJson,
  bucketQuery,
  bucketsOf,
  chargeJson,
  csvRow,
  findingQuery,
  noRequest,
  requestFilterIn,
  requestJson,
  requestRow,
  requestStory,
  requestSums,
  requestsQuery,
  sortedPage,
  sortOf,
  sortQuery,
  sumsJson,
  tagQuery,
} from './request-rows.ts';
import { type ConsoleServices, need, type RequestContext } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, answersCsv, id, instant, iso, listed, pageQuery, writerOf } from './schemas.ts';
import { countedOf, refusedCount, refusedIn, spendBetween, spentIn, spentOf, spentSums } from './spend.ts';
import { spanOfDays } from './time-zone.ts';

const list = route('get', '/usage', 'Own requests, by default of the last 30 days', answers(sortedPage(requestRow)), {
  query: requestsQuery.extend({ ...tagQuery.shape, ...findingQuery.shape, ...sortQuery.shape, ...pageQuery.shape }),
});
const sums = route(
  'get',
  '/usage/sums',
  'Sums of own requests',
  answers(
    requestSums.extend({
      refused: refusedCount,
      ...spentSums,
      tokens: z.number().nullable(),
      from: instant,
      until: instant,
    }),
  ),
  { query: requestsQuery },
);
const series = route(
  'get',
  '/usage/series',
  'Own requests over time',
  answers(
    z.object({
      tz: z.string(),
      bucketMs: z.number(),
      rows: z.array(requestSums.extend({ at: instant, ...spentSums })),
    }),
  ),
  { query: requestsQuery.extend(bucketQuery.shape) },
);
const csv = route('get', '/usage.csv', 'Own requests as CSV', answersCsv, {
  query: requestsQuery.extend({ ...tagQuery.shape, ...findingQuery.shape }),
});
const one = route('get', '/usage/{id}', 'One own request from end to end', answers(requestStory), {
  params: z.object({ id }),
});

const body = route(
  'get',
  '/usage/{id}/body',
  'The recorded body of one own request, to make the call again',
  answers(z.object({ request: keptBody.describe('null: it was not recorded, or is not kept any more.') })),
  { params: z.object({ id }) },
);

const columns = [
  'receivedAt',
  'day',
  'time',
  'requestId',
  'operation',
  'model',
  'key',
  'keyId',
  'project',
  'tags',
  'status',
  'outcome',
  'guardrails',
  'firstByteMs',
  'totalMs',
  'cost',
  'refunded',
  'inputTokens',
  'outputTokens',
  'otherUsage',
] as const;

export function usageRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, requestJson, async ({ query, c }, page) =>
      withVerdicts(
        services,
        await chargedRequests(services, { ...(await ownFilter(services, c, query)), sort: sortOf(query) }, page),
      ),
    )
    .read(sums, async ({ query, c }) => {
      const filter = await ownFilter(services, c, query);
      const [all, refused, { tokens, ...spend }] = await Promise.all([
        need(services, requestQueries).sums(countedOf(filter)),
        refusedIn(services, filter),
        spentOf(services, filter),
      ]);
      return { ...sumsJson(all), refused, ...spend, tokens, from: iso(filter.from), until: iso(filter.until) };
    })
    .read(series, async ({ query, c }) => {
      const filter = await ownFilter(services, c, query);
      const { tz, bucketMs, bounds } = bucketsOf(filter, query);
      const [buckets, spend] = await Promise.all([
        need(services, requestQueries).seriesBetween(countedOf(filter), bounds),
        spendBetween(services, filter, bounds),
      ]);
      const rows = buckets.map((bucket, index) => ({
        ...sumsJson(bucket),
        at: iso(bucket.at),
        ...spentIn(spend[index]!),
      }));
      return { tz, bucketMs, rows };
    })
    .file(csv, async ({ query, c }) => {
      const filter = await ownFilter(services, c, query);
      return csvAnswer('usage', columns, async (page) =>
        listed(await withVerdicts(services, await chargedRequests(services, filter, page)), (request) =>
          csvRow(requestJson(request), query.tz),
        ),
      );
    })
    .read(one, async ({ param: { id }, c }) => {
      const found = await ownRequest(services, c, id);
      const { row, charge } = found;
      const { rows } = await withVerdicts(services, { rows: [found] });
      return {
        request: requestJson(rows[0]!),
        dropped: [...row.dropped],
        charge: charge === undefined ? null : chargeJson(charge),
        attempts: (charge?.attempts ?? []).map(attemptJson),
        bodyKept: (await ownBody(services, id)) !== undefined,
      };
    })
    .read(body, async ({ param: { id }, c }) => {
      await ownRequest(services, c, id);
      return { request: keptBodyJson(await ownBody(services, id)) ?? null };
    });
}

const keptBodyJson = writerOf(keptBody);

async function ownRequest(services: ConsoleServices, c: RequestContext, id: string) {
  const scope = await scopeOf(services, c);
  const found = await chargedRequest(services, id, scope.accountId);
  if (!isIn(scope, found.row.keyId)) throw noRequest();
  return found;
}

/** What was recorded of a request that is known to be the actor's own. */
async function ownBody(services: ConsoleServices, id: string) {
  const bodies = services.find(recordedBodies);
  return bodies?.isEnabled === true ? (await bodies.find(id))?.request : undefined;
}

/** The account is always the one that the actor has chosen, whatever the query says. */
async function ownFilter(
  services: ConsoleServices,
  c: RequestContext,
  query: z.output<typeof requestsQuery> & z.output<typeof tagQuery>,
): Promise<RequestFilter> {
  const span = spanOfDays(query, services.clock.now(), 30);
  return requestFilterIn(services, query, span, await scopeOf(services, c));
}
