/** A client's first page: balance and what fills it, what was spent, what went wrong last. */
import { createRoute, z } from '@hono/zod-openapi';
import type { PoolView } from '../../../core/pool.ts';
import { moneyDesk, pool, requestDesk } from '../desks.ts';
import { requestRow, tellRequest } from './request-rows.ts';
import { type Console, ownAccount, router } from './router.ts';
import { spendByBucket, spendSum } from './spend.ts';
import { answers, dayMs, instant, iso, isoOrNull, usd, usdOrNull, usdText } from './words.ts';

export const poolAnswer = z
  .object({
    balance: usd,
    spendable: usd.describe('What a call may spend now.'),
    held: usd.describe('Set aside for running calls.'),
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

export function tellPool(view: PoolView): z.infer<typeof poolAnswer> {
  const { term } = view;
  return {
    balance: usdText(view.balance),
    spendable: usdText(view.spendable),
    held: usdText(view.held),
    grants: view.grants.map(({ id, kind, reason, amount, remaining, createdAt, expiresAt }) => ({
      id,
      kind,
      reason,
      amount: usdText(amount),
      remaining: usdText(remaining),
      createdAt: iso(createdAt),
      expiresAt: isoOrNull(expiresAt),
    })),
    windows: view.windows.map(({ name, limit, spent, startsAt, endsAt }) => ({
      name,
      limit: usdText(limit),
      spent: usdText(spent),
      startsAt: iso(startsAt),
      endsAt: iso(endsAt),
    })),
    term: term === undefined ? null : { plan: term.plan, startsAt: iso(term.startsAt), endsAt: isoOrNull(term.endsAt) },
  };
}

const period = z.object({ requests: z.number(), cost: usd.nullable() });
const home = z
  .object({
    pool: poolAnswer.nullable(),
    today: period.describe('The last 24 hours.'),
    month: period.describe('The last 30 days.'),
    byDay: z.array(z.object({ at: instant, requests: z.number(), cost: usd.nullable() })),
    byModel: z.array(z.object({ model: z.string(), requests: z.number(), cost: usd.nullable() })),
    errors: z.array(requestRow).describe('The last ones.'),
  })
  .openapi('Home');

const getHome = createRoute({ method: 'get', path: '/home', summary: 'The first page', responses: answers(home) });

export function homeRoutes(hall: Console) {
  return router().openapi(getHome, async (ask) => {
    const accountId = await ownAccount(hall, ask);
    const [view, today, month, byDay, byModel, errors] = await Promise.all([
      hall.find(pool)?.view(accountId),
      periodOf(hall, accountId, dayMs),
      periodOf(hall, accountId, 30 * dayMs),
      daysOf(hall, accountId),
      modelsOf(hall, accountId),
      errorsOf(hall, accountId),
    ]);
    return ask.json({ pool: view === undefined ? null : tellPool(view), today, month, byDay, byModel, errors }, 200);
  });
}

async function periodOf(hall: Console, accountId: string, lastMs: number) {
  const until = hall.clock.now() + 1;
  const filter = { from: until - lastMs, until, accountId };
  const [sums, spend] = await Promise.all([hall.find(requestDesk)?.sums(filter), spendSum(hall, filter)]);
  return { requests: sums?.requests ?? 0, cost: usdOrNull(spend?.cost) };
}

/** Days in UTC, the last 30 of them. */
async function daysOf(hall: Console, accountId: string) {
  const now = hall.clock.now();
  const filter = { from: Math.floor(now / dayMs) * dayMs - 29 * dayMs, until: now + 1, accountId };
  const days = (await hall.find(requestDesk)?.series(filter, dayMs)) ?? [];
  const spend = await spendByBucket(hall, filter, dayMs);
  return days.map(({ at, requests }) => ({ at: iso(at), requests, cost: spend?.cost(at) ?? null }));
}

async function modelsOf(hall: Console, accountId: string) {
  const until = hall.clock.now() + 1;
  const groups = await hall.find(moneyDesk)?.spend({ from: until - 30 * dayMs, until, accountId }, 'model', 10);
  return (groups ?? []).map(({ group, requests, cost }) => ({ model: group, requests, cost: usdText(cost) }));
}

async function errorsOf(hall: Console, accountId: string) {
  const desk = hall.find(requestDesk);
  if (desk === undefined) return [];
  const until = hall.clock.now() + 1;
  const filter = { from: until - 7 * dayMs, until, accountId };
  const pages = await Promise.all(
    (['client_error', 'upstream_error'] as const).map((result) => desk.list({ ...filter, result }, { limit: 5 })),
  );
  const rows = pages.flatMap((page) => page.rows).sort((left, right) => right.receivedAt - left.receivedAt);
  return rows.slice(0, 5).map((row) => tellRequest(row, undefined));
}
