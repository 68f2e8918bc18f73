/** What operators look at first: traffic in sums, over time and in groups, with revenue and margin; every request. */

import { z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../../common/domain/admin/requests.ts';
import { requestQueries } from '../../services.ts';
import { chargedRequest, chargedRequests, withVerdicts } from '../charges.ts';
import { csvAnswer } from '../csv/answer.ts';
import { idsByProject, idsNamed, projectSizes } from '../projects.ts';
import {
  bucketQuery,
  bucketsOf,
  chargeJson,
  csvRow,
  findingQuery,
  moneySums,
  operations,
  operatorAttemptJson,
  operatorRequestJson,
  operatorRequestRow,
  operatorRequestStory,
  operatorRequestsQuery,
  requestFilterIn,
  requestSums,
  sortedPage,
  sortOf,
  sortQuery,
  sumsJson,
  tagQuery,
} from '../request-rows.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  answersCsv,
  countInput,
  dayMs,
  id,
  instant,
  iso,
  listed,
  pageQuery,
  spanOf,
  usdOrNull,
} from '../schemas.ts';
import {
  countedOf,
  moneyJson,
  mostCauses,
  refusedCount,
  refusedIn,
  spendBetween,
  spendOf,
  spendOfGroups,
} from '../spend.ts';

const durationRow = z.object({
  fromMs: z.number(),
  untilMs: z.number().nullable().describe('null: and longer.'),
  firstByte: z.number(),
  total: z.number(),
});
const failureResult = z.enum(['client_error', 'upstream_error']);
const causeRow = z.object({
  result: failureResult,
  cause: z.string().describe('The code of the error, else its kind, else the status of the answer.'),
  requests: z.number(),
});
const sums = route(
  'get',
  '/admin/monitor',
  'Sums of all traffic, by default of the last 24 hours',
  answers(
    requestSums.extend({
      ...moneySums,
      refused: refusedCount,
      from: instant,
      until: instant,
    }),
  ),
  { query: operatorRequestsQuery },
);
const series = route(
  'get',
  '/admin/monitor/series',
  'Traffic over time',
  answers(
    z.object({
      tz: z.string(),
      bucketMs: z.number(),
      rows: z.array(requestSums.extend({ ...moneySums, at: instant })),
    }),
  ),
  { query: operatorRequestsQuery.extend(bucketQuery.shape) },
);
const groups = route(
  'get',
  '/admin/monitor/groups',
  'Traffic in groups, the largest first; of projects at most 50',
  answers(z.object({ rows: z.array(requestSums.extend({ ...moneySums, group: z.string() })) })),
  {
    query: operatorRequestsQuery.extend({
      by: z.enum([...operations, 'project']),
      limit: countInput(1, 500).optional(),
    }),
  },
);
const durations = route(
  'get',
  '/admin/monitor/durations',
  'How many requests took how long, to the first byte and to the end of the answer',
  answers(z.object({ rows: z.array(durationRow) })),
  { query: operatorRequestsQuery },
);
const causes = route(
  'get',
  '/admin/monitor/causes',
  'Failures by cause, the most frequent first',
  answers(z.object({ rows: z.array(causeRow) })),
  { query: operatorRequestsQuery },
);
const list = route(
  'get',
  '/admin/requests',
  'Requests, by default of the last 24 hours',
  answers(sortedPage(operatorRequestRow)),
  {
    query: operatorRequestsQuery.extend({
      ...tagQuery.shape,
      ...findingQuery.shape,
      ...sortQuery.shape,
      ...pageQuery.shape,
    }),
  },
);
const csv = route('get', '/admin/requests.csv', 'Requests as CSV', answersCsv, {
  query: operatorRequestsQuery.extend({ ...tagQuery.shape, ...findingQuery.shape }),
});
const one = route('get', '/admin/requests/{id}', 'One request from end to end', answers(operatorRequestStory), {
  params: z.object({ id }),
});

const mostProjects = 50;
const projectsAtOnce = 4;
const columns = [
  'receivedAt',
  'day',
  'time',
  'requestId',
  'accountId',
  'key',
  'keyId',
  'project',
  'tags',
  'operation',
  'model',
  'provider',
  'upstreamModel',
  'status',
  'outcome',
  'errorKind',
  'errorCode',
  'attempts',
  'servedBy',
  'guardrails',
  'firstByteMs',
  'totalMs',
  'cost',
  'ownCost',
  'refunded',
  'inputTokens',
  'outputTokens',
  'otherUsage',
] as const;

export function trafficRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(sums, async ({ query }) => {
      const filter = await filterOf(services, query);
      const [all, refused, spend] = await Promise.all([
        need(services, requestQueries).sums(countedOf(filter)),
        refusedIn(services, filter),
        spendOf(services, filter),
      ]);
      return { ...sumsJson(all), refused, ...spend, from: iso(filter.from), until: iso(filter.until) };
    })
    .read(series, async ({ query }) => {
      const filter = await filterOf(services, query);
      const { tz, bucketMs, bounds } = bucketsOf(filter, query);
      const [buckets, spend] = await Promise.all([
        need(services, requestQueries).seriesBetween(countedOf(filter), bounds),
        spendBetween(services, filter, bounds),
      ]);
      const rows = buckets.map((bucket, index) => ({ ...sumsJson(bucket), at: iso(bucket.at), ...spend[index]! }));
      return { tz, bucketMs, rows };
    })
    .read(groups, async ({ query }) => ({
      rows: await groupsOf(services, countedOf(await filterOf(services, query)), query.by, query.limit ?? 20),
    }))
    .read(durations, async ({ query }) => {
      const filter = countedOf(await filterOf(services, query));
      const { edges, firstByte, total } = await need(services, requestQueries).durations(filter);
      const rows = edges.map((fromMs, index) => ({
        fromMs,
        untilMs: edges[index + 1] ?? null,
        firstByte: firstByte[index]!,
        total: total[index]!,
      }));
      return { rows };
    })
    .read(causes, async ({ query }) => ({
      rows: [...(await need(services, requestQueries).causes(await filterOf(services, query), mostCauses))],
    }));
}

export function requestRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, operatorRequestJson, async ({ query }, page) => {
      const filter = { ...(await filterOf(services, query)), sort: sortOf(query) };
      return withVerdicts(services, await chargedRequests(services, filter, page));
    })
    .file(csv, async ({ query }) => {
      const filter = await filterOf(services, query);
      need(services, requestQueries);
      return csvAnswer('requests', columns, async (page) =>
        listed(await withVerdicts(services, await chargedRequests(services, filter, page)), (request) =>
          csvRow(operatorRequestJson(request), query.tz),
        ),
      );
    })
    .read(one, async ({ param: { id } }) => {
      const found = await chargedRequest(services, id, undefined);
      const { row, charge } = found;
      const { rows } = await withVerdicts(services, { rows: [found] });
      return {
        request: operatorRequestJson(rows[0]!),
        dropped: [...row.dropped],
        story: row.story.map(({ atMs, by, text, kind, values }) => ({ atMs, by, text, kind, values: [...values] })),
        charge: charge === undefined ? null : { ...chargeJson(charge), ownCost: usdOrNull(charge.ownCost) },
        attempts: (charge?.attempts ?? []).map((attempt) => operatorAttemptJson(attempt, row.vendorWords)),
      };
    });
}

function filterOf(
  services: ConsoleServices,
  query: z.output<typeof operatorRequestsQuery> & z.output<typeof tagQuery> & z.output<typeof findingQuery>,
): Promise<RequestFilter> {
  return requestFilterIn(services, query, spanOf(query, services.clock.now(), dayMs), {
    accountId: query.accountId,
  });
}

async function groupsOf(
  services: ConsoleServices,
  filter: RequestFilter,
  by: (typeof operations)[number] | 'project',
  limit: number,
) {
  if (by === 'project') return groupsByProject(services, filter, Math.min(limit, mostProjects));
  const queries = need(services, requestQueries);
  const rows = await queries.groupCounts(filter, by, limit);
  const names = rows.map(({ group }) => group);
  const [timesOf, spend] = await Promise.all([
    queries.groupTimes(filter, by, names),
    spendOfGroups(services, filter, by, names),
  ]);
  return rows.map(({ group, ...counts }) => ({
    ...sumsJson({ ...counts, ...timesOf(group) }),
    group,
    ...moneyJson(spend?.(group)),
  }));
}

/** Percentiles cannot be added, so each project is asked for by itself, a few at once. */
async function groupsByProject(services: ConsoleServices, filter: RequestFilter, limit: number) {
  const projects = await idsByProject(services, filter.accountId);
  const sizes = await projectSizes(services, filter, projects);
  const names = [...sizes]
    .sort(([, one], [, other]) => other.requests - one.requests)
    .map(([project]) => project)
    .slice(0, limit);
  const rows = [];
  for (let from = 0; from < names.length; from += projectsAtOnce) {
    const some = names.slice(from, from + projectsAtOnce).map(async (group) => {
      const own = { ...filter, projectIds: idsNamed(projects, group) };
      const [sums, spend] = await Promise.all([need(services, requestQueries).sums(own), spendOf(services, own)]);
      return { ...sumsJson(sums), group, ...spend };
    });
    rows.push(...(await Promise.all(some)));
  }
  return rows;
}
