/** Traffic and money over time, stacked by model, key, account or vendor: the charts of clients and of operators. */
import { z } from '@hono/zod-openapi';
import type { SpendSums } from '../../common/domain/admin/ledger.ts';
import type { RequestFilter, RequestGroup, RequestSums } from '../../common/domain/admin/requests.ts';
import { totalTokens } from '../../common/domain/usage.ts';
import { ledgerQueries, requestQueries } from '../services.ts';
import {
  bucketQuery,
  bucketsOf,
  operations,
  operatorRequestsQuery,
  requestFilter,
  requestsQuery,
} from './request-rows.ts';
import { type ConsoleServices, need, ownAccount } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, countInput, dayMs, instant, iso, spanOf, usd, usdOrNull } from './schemas.ts';
import { chargeFilter } from './spend.ts';
import { spanOfDays } from './time-zone.ts';

const bucket = z.object({
  requests: z.number(),
  errors: z.number().describe('Refused and failed ones.'),
  tokens: z.number().nullable().describe('null: not known, as of operations.'),
  cost: usd.nullable(),
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
const own = route('get', '/usage/activity', 'Own requests over time by model, key or operation', answers(activity), {
  query: requestsQuery.extend({
    ...bucketQuery.shape,
    by: z.enum(['model', 'key', 'operation']),
    limit: countInput(1, mostGroups).optional(),
  }),
});
const everybodys = route(
  'get',
  '/admin/monitor/activity',
  'Traffic over time by model, upstream, account, key or operation',
  answers(activity),
  {
    query: operatorRequestsQuery.extend({
      ...bucketQuery.shape,
      by: z.enum(operations),
      limit: countInput(1, mostGroups).optional(),
    }),
  },
);

export function activityRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(own, async ({ query, c }) => {
      const span = spanOfDays(query, services.clock.now(), 30);
      return activityOf(services, requestFilter(query, span, await ownAccount(services, c)), query);
    })
    .read(everybodys, ({ query }) => {
      const filter = requestFilter(query, spanOf(query, services.clock.now(), dayMs), query.accountId);
      return activityOf(services, filter, query);
    });
}

type Asked = z.output<typeof bucketQuery> & {
  readonly by: RequestGroup;
  readonly limit?: number | undefined;
  readonly tz?: string | undefined;
};

async function activityOf(
  services: ConsoleServices,
  filter: RequestFilter,
  query: Asked,
): Promise<z.infer<typeof activity>> {
  const { tz, bucketMs, bounds } = bucketsOf(filter, query);
  const names = await largestOf(services, filter, query.by, query.limit ?? usualGroups);
  const queries = need(services, requestQueries);
  const ledger = services.find(ledgerQueries);
  const charges = ledger === undefined ? undefined : chargeFilter(filter);
  const byCharge = query.by === 'operation' ? undefined : query.by;
  const [all, ofGroups, spend, spendOfGroups] = await Promise.all([
    queries.seriesBetween(filter, bounds),
    names.length === 0 ? [] : queries.seriesOfGroups(filter, bounds, query.by, names),
    charges && ledger?.spendBetween(charges, bounds),
    charges && byCharge && ledger?.spendOfGroups(charges, bounds, byCharge, names),
  ]);
  const at = bounds.slice(0, -1);
  const counted = new Map(ofGroups.map((sums) => [keyOf(sums), sums]));
  const charged = spendOfGroups && new Map(spendOfGroups.map((sums) => [keyOf(sums), sums]));
  return {
    tz,
    bucketMs,
    at: at.map(iso),
    all: all.map((sums, index) => bucketOf(sums, spend?.[index])),
    groups: names.map((group) => ({
      group,
      series: at.map((start) => {
        const key = keyOf({ at: start, group });
        return bucketOf(counted.get(key), charged && (charged.get(key) ?? 'none'));
      }),
    })),
  };
}

const keyOf = ({ at, group }: { readonly at: number; readonly group: string }) => `${at} ${group}`;

/** What costs most comes first; calls that cost nothing, or have no ledger, by their number. */
async function largestOf(services: ConsoleServices, filter: RequestFilter, by: RequestGroup, limit: number) {
  const wanted = chargeFilter(filter);
  const ledger = services.find(ledgerQueries);
  const [byNumber, byCost = []] = await Promise.all([
    need(services, requestQueries).groups(filter, by, limit),
    by === 'operation' || wanted === undefined ? undefined : ledger?.spend(wanted, by, limit),
  ]);
  const names = [...byCost.filter(({ cost }) => cost > 0n), ...byNumber].map(({ group }) => group);
  return [...new Set(names)].filter((name) => name !== '').slice(0, limit);
}

/** `none`: charges are known, and there was none. */
function bucketOf(sums: RequestSums | undefined, spend: SpendSums | 'none' | undefined): Bucket {
  const { requests = 0, results, firstByte } = sums ?? {};
  const cost = spend === 'none' ? '0.00' : usdOrNull(spend?.cost);
  return {
    requests,
    errors: results === undefined ? 0 : results.client_error + results.upstream_error,
    tokens: spend === 'none' ? 0 : spend === undefined ? null : totalTokens(spend.usage),
    cost: cost ?? null,
    firstByteP50: firstByte?.p50 ?? null,
  };
}
