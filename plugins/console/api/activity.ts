/** Traffic and money over time, stacked by model, key, account or vendor: the charts of clients and of operators. */
import { z } from '@hono/zod-openapi';
import type { SpendSums } from '../../common/domain/admin/ledger.ts';
import type { RequestFilter, RequestGroup, RequestSums } from '../../common/domain/admin/requests.ts';
import { totalTokens } from '../../common/domain/usage.ts';
import { ledgerQueries, requestQueries } from '../services.ts';
import { scopeOf } from './organizations/scope.ts';
import { idsByProject, idsNamed, projectSizes } from './projects.ts';
import {
  bucketQuery,
  bucketsOf,
  operations,
  operatorRequestsQuery,
  requestFilterIn,
  requestsQuery,
} from './request-rows.ts';
import { type ConsoleServices, need } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, countInput, dayMs, instant, iso, spanOf } from './schemas.ts';
import { chargeFilter, countedOf, moneyJson, nothing, sizesOf, spentIn, spentSums } from './spend.ts';
import { spanOfDays } from './time-zone.ts';

const bucket = z.object({
  requests: z.number(),
  errors: z.number().describe('Refused and failed ones.'),
  tokens: z.number().nullable().describe('null: not known, as of operations.'),
  ...spentSums,
  firstByteP50: z.number().nullable(),
});
const activity = z
  .object({
    tz: z.string(),
    bucketMs: z.number(),
    at: z.array(instant).describe('Where the buckets begin.'),
    all: z.array(bucket),
    groups: z
      .array(z.object({ group: z.string(), series: z.array(bucket) }))
      .describe('The largest by cost, or by requests where there is none; with a bucket for each of `at`.'),
  })
  .openapi('Activity');
type Bucket = z.infer<typeof bucket>;

const mostGroups = 12;
const usualGroups = 6;
const own = route(
  'get',
  '/usage/activity',
  'Own requests over time by model, key, person, project or operation',
  answers(activity),
  {
    query: requestsQuery.extend({
      ...bucketQuery.shape,
      by: z.enum(['model', 'key', 'person', 'project', 'operation']),
      limit: countInput(1, mostGroups).optional(),
    }),
  },
);
const everybodys = route(
  'get',
  '/admin/monitor/activity',
  'Traffic over time by model, upstream, account, key, project or operation',
  answers(activity),
  {
    query: operatorRequestsQuery.extend({
      ...bucketQuery.shape,
      by: z.enum([...operations, 'project']),
      limit: countInput(1, mostGroups).optional(),
    }),
  },
);

export function activityRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(own, async ({ query, c }) => {
      const span = spanOfDays(query, services.clock.now(), 30);
      return activityOf(services, await requestFilterIn(services, query, span, await scopeOf(services, c)), query);
    })
    .read(everybodys, async ({ query }) => {
      const filter = await requestFilterIn(services, query, spanOf(query, services.clock.now(), dayMs), {
        accountId: query.accountId,
      });
      return activityOf(services, filter, query);
    });
}

type ActivityQuery = z.output<typeof bucketQuery> & {
  readonly by: RequestGroup | 'project';
  readonly limit?: number | undefined;
  readonly tz?: string | undefined;
};

interface Stacked {
  readonly group: string;
  readonly series: Bucket[];
}

async function activityOf(
  services: ConsoleServices,
  filter: RequestFilter,
  query: ActivityQuery,
): Promise<z.infer<typeof activity>> {
  const { tz, bucketMs, bounds } = bucketsOf(filter, query);
  const { by, limit = usualGroups } = query;
  const stacked =
    by === 'project'
      ? stackedByProject(services, filter, bounds, limit)
      : stackedBy(services, filter, bounds, by, limit);
  const [all, groups] = await Promise.all([seriesOf(services, filter, bounds), stacked]);
  return { tz, bucketMs, at: bounds.slice(0, -1).map(iso), all, groups };
}

async function seriesOf(services: ConsoleServices, filter: RequestFilter, bounds: readonly number[]) {
  const charges = chargeFilter(filter);
  const [all, spend] = await Promise.all([
    need(services, requestQueries).seriesBetween(countedOf(filter), bounds),
    charges && services.find(ledgerQueries)?.spendBetween(charges, bounds),
  ]);
  return all.map((sums, index) => bucketOf(sums, spend?.[index]));
}

async function stackedBy(
  services: ConsoleServices,
  filter: RequestFilter,
  bounds: readonly number[],
  by: RequestGroup,
  limit: number,
): Promise<Stacked[]> {
  const names = await largestOf(services, filter, by, limit);
  const charges = chargeFilter(filter);
  const byCharge = by === 'operation' ? undefined : by;
  const [ofGroups, spendOfGroups] = await Promise.all([
    names.length === 0 ? [] : need(services, requestQueries).seriesOfGroups(countedOf(filter), bounds, by, names),
    charges && byCharge && services.find(ledgerQueries)?.spendOfGroups(charges, bounds, byCharge, names),
  ]);
  const counted = new Map(ofGroups.map((sums) => [keyOf(sums), sums]));
  const charged = spendOfGroups && new Map(spendOfGroups.map((sums) => [keyOf(sums), sums]));
  return names.map((group) => ({
    group,
    series: bounds.slice(0, -1).map((start) => {
      const key = keyOf({ at: start, group });
      return bucketOf(counted.get(key), charged && (charged.get(key) ?? nothing));
    }),
  }));
}

/** Medians cannot be added, so each project has a series of its own. */
async function stackedByProject(
  services: ConsoleServices,
  filter: RequestFilter,
  bounds: readonly number[],
  limit: number,
): Promise<Stacked[]> {
  const projects = await idsByProject(services, filter.accountId);
  const names = [...(await projectSizes(services, filter, projects))]
    .sort(
      ([, one], [, other]) =>
        Number(other.cost > one.cost) - Number(other.cost < one.cost) || other.requests - one.requests,
    )
    .map(([project]) => project)
    .slice(0, limit);
  return Promise.all(
    names.map(async (group) => ({
      group,
      series: await seriesOf(services, { ...filter, projectIds: idsNamed(projects, group) }, bounds),
    })),
  );
}

const keyOf = ({ at, group }: { readonly at: number; readonly group: string }) => `${at} ${group}`;

/** What costs most comes first; calls that cost nothing, or have no ledger, by their number. */
async function largestOf(services: ConsoleServices, filter: RequestFilter, by: RequestGroup, limit: number) {
  const { byNumber, byCost } = await sizesOf(services, filter, by, limit);
  const names = [...byCost.filter(({ cost }) => cost > 0n), ...byNumber].map(({ group }) => group);
  return [...new Set(names)].filter((name) => name !== '').slice(0, limit);
}

function bucketOf(sums: RequestSums | undefined, spend: SpendSums | undefined): Bucket {
  const { requests = 0, results, firstByte } = sums ?? {};
  return {
    requests,
    errors: results === undefined ? 0 : results.client_error + results.upstream_error,
    tokens: spend === undefined ? null : totalTokens(spend.usage),
    ...spentIn(moneyJson(spend)),
    firstByteP50: firstByte?.p50 ?? null,
  };
}
