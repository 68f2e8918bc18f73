/** A client's first page: balance and its sources, spend, latest errors. */

import { z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../common/domain/admin/requests.ts';
import type { PoolView } from '../../common/domain/ledger.ts';
import { money } from '../../common/domain/money.ts';
import { ledgerQueries, pool, requestQueries } from '../services.ts';
import { keyNamesOf, projectNamesOf } from './charges.ts';
import { scopeOf } from './organizations/scope.ts';
import { bucketsOf, requestFilter, requestJson, requestRow } from './request-rows.ts';
import { type ConsoleServices, has, need } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, instant, iso, usd, usdText, writerOf } from './schemas.ts';
import { countedOf, moneyJson, spendBetween, spentIn, spentOf, spentSums } from './spend.ts';
import { daysEarlier, spanOfDays, usualZone, zoneQuery } from './time-zone.ts';

export const poolAnswer = z
  .object({
    balance: usd.describe('What the movements of the ledger come to.'),
    spendable: usd.describe('What a call may spend now.'),
    held: usd.describe('The part of the balance that is set aside for running calls.'),
    blocked: usd.describe(
      'The part that a process without a sign of life has leased: it cannot be spent before that process is back.',
    ),
    grants: z.array(
      z.object({
        id: z.string(),
        kind: z.string(),
        reason: z.string(),
        amount: usd,
        remaining: usd,
        createdAt: instant,
        expiresAt: instant.nullable(),
      }),
    ),
    windows: z.array(
      z.object({
        name: z.enum(['5h', 'day', 'week', 'month']),
        limit: usd,
        spent: usd,
        startsAt: instant,
        endsAt: instant,
      }),
    ),
    term: z.object({ plan: z.string(), startsAt: instant, endsAt: instant.nullable() }).nullable(),
  })
  .openapi('Pool');

/** An account's money, with holds of running calls. */
export async function balanceOf(services: ConsoleServices, accountId: string): Promise<string> {
  const { balance, held } = await need(services, pool).view(accountId);
  return usdText(money(balance + held));
}

const writePool = writerOf(poolAnswer);
export const poolJson = (view: PoolView) => writePool({ ...view, balance: money(view.balance + view.held) });

const period = z.object({
  requests: z.number(),
  ...spentSums,
  before: z
    .object({ requests: z.number(), spent: usd.nullable() })
    .describe('As far into the time before: yesterday until this time of day, the 30 days before.'),
});
const home = z
  .object({
    pool: poolAnswer.nullable().describe('null: the role in the account does not include it.'),
    today: period.describe('Since midnight in the time zone.'),
    month: period.describe('The last 30 days, today among them.'),
    tz: z.string(),
    byDay: z.array(z.object({ at: instant, requests: z.number(), ...spentSums })),
    byModel: z.array(z.object({ model: z.string(), requests: z.number(), ...spentSums })),
    errors: z.array(requestRow).describe('The last ones.'),
  })
  .openapi('Home');

const getHome = route('get', '/home', 'The first page', answers(home), { query: zoneQuery });

export function homeRoutes(services: ConsoleServices) {
  return new Routes(services).read(getHome, async ({ query: { tz = usualZone }, c }) => {
    const { accountId, keys } = await scopeOf(services, c);
    const seesMoney = await has(services, c, 'wallet');
    const filter = (days: number) => ({
      ...requestFilter({}, spanOfDays({ tz }, services.clock.now(), days), accountId),
      keys,
    });
    const [view, today, month, byDay, byModel, errors] = await Promise.all([
      seesMoney ? services.find(pool)?.view(accountId) : undefined,
      periodOf(services, filter(1), tz, 1),
      periodOf(services, filter(30), tz, 30),
      daysOf(services, filter(30), tz),
      modelsOf(services, filter(30)),
      errorsOf(services, filter(7)),
    ]);
    return { pool: view === undefined ? null : poolJson(view), today, month, tz, byDay, byModel, errors };
  });
}

async function periodOf(services: ConsoleServices, filter: RequestFilter, tz: string, days: number) {
  const [now, { requests, spent }] = await Promise.all([
    countedIn(services, filter),
    countedIn(services, { ...filter, ...daysEarlier(filter, tz, days) }),
  ]);
  return { ...now, before: { requests, spent } };
}

async function countedIn(services: ConsoleServices, filter: RequestFilter) {
  const [sums, { cost, refunded, spent }] = await Promise.all([
    services.find(requestQueries)?.sums(countedOf(filter)),
    spentOf(services, filter),
  ]);
  return { requests: sums?.requests ?? 0, cost, refunded, spent };
}

async function daysOf(services: ConsoleServices, filter: RequestFilter, tz: string) {
  const { bounds } = bucketsOf(filter, { bucketMinutes: 1_440, tz });
  const [days = [], spend] = await Promise.all([
    services.find(requestQueries)?.seriesBetween(countedOf(filter), bounds),
    spendBetween(services, filter, bounds),
  ]);
  return days.map(({ at, requests }, index) => ({ at: iso(at), requests, ...spentIn(spend[index]!) }));
}

async function modelsOf(services: ConsoleServices, { from, until, accountId, keys }: RequestFilter) {
  const groups = await services.find(ledgerQueries)?.spend({ from, until, accountId, keys }, 'model', 10);
  return (groups ?? []).map((sums) => ({ model: sums.group, requests: sums.requests, ...spentIn(moneyJson(sums)) }));
}

async function errorsOf(services: ConsoleServices, filter: RequestFilter) {
  const requests = services.find(requestQueries);
  if (requests === undefined) return [];
  const pages = await Promise.all(
    (['client_error', 'upstream_error'] as const).map((result) => requests.list({ ...filter, result }, { limit: 5 })),
  );
  const found = pages.flatMap((page) => page.rows).sort((left, right) => right.receivedAt - left.receivedAt);
  const rows = found.slice(0, 5);
  const [names, projects] = await Promise.all([keyNamesOf(services, rows), projectNamesOf(services, rows)]);
  return rows.map((row) => {
    const [key, project] = [names.get(row.keyId ?? ''), projects(row)];
    return requestJson({ row, key, project, charge: undefined, task: undefined });
  });
}
