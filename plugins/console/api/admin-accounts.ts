/** Accounts as operators see them: found, looked into. */
import { createRoute, z } from '@hono/zod-openapi';
import type { AccountView } from '../../../core/desk.ts';
import { accountDesk, moneyDesk, plans, pool, taskDesk } from '../desks.ts';
import { pageOfRequests } from './admin-traffic.ts';
import { poolAnswer, tellPool } from './home.ts';
import { keyRow, tellKey } from './keys.ts';
import { ledgerAsked, ledgerRow, pageOfLedger } from './ledger-rows.ts';
import { planCard, tellPlan } from './plan-cards.ts';
import { operatorRequestRow, operatorRequestsAsked } from './request-rows.ts';
import { type Console, need, nothingHere, router } from './router.ts';
import { hostOf, operatorTaskRow, taskFilter, tasksAsked, tellOperatorTask } from './tasks.ts';
import {
  answers,
  asked,
  dayMs,
  id,
  instant,
  iso,
  isoOrNull,
  pageAsked,
  pageOf,
  spanOf,
  usd,
  usdOrNull,
} from './words.ts';

const account = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.string(),
    planEndsAt: instant.nullable(),
    multiplier: z.string().nullable(),
    disabled: z.boolean(),
    createdAt: instant,
  })
  .openapi('Account');

export function tellAccount(view: AccountView): z.infer<typeof account> {
  const { id, name, plan, multiplier, disabled } = view;
  return {
    id,
    name,
    plan,
    planEndsAt: isoOrNull(view.planEndsAt),
    multiplier: multiplier ?? null,
    disabled,
    createdAt: iso(view.createdAt),
  };
}

const one = z.object({ id });
const list = createRoute({
  method: 'get',
  path: '/admin/accounts',
  summary: 'Accounts by name, with balances',
  request: {
    query: pageAsked.extend({
      text: z.string().max(200).optional().describe('Part of a name, or an id.'),
      plan: z.string().max(100).optional(),
      disabled: z.enum(['true', 'false']).optional(),
    }),
  },
  responses: answers(pageOf(account.extend({ balance: usd.nullable() }))),
});
const look = createRoute({
  method: 'get',
  path: '/admin/accounts/{id}',
  summary: 'One account: money, plan, limits',
  request: { params: one },
  responses: answers(
    z.object({ account, pool: poolAnswer.nullable(), plan: planCard.nullable() }).openapi('AccountDetail'),
  ),
});
const ledger = createRoute({
  method: 'get',
  path: '/admin/accounts/{id}/ledger',
  summary: "An account's ledger",
  request: { params: one, query: ledgerAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(ledgerRow)),
});
const keys = createRoute({
  method: 'get',
  path: '/admin/accounts/{id}/keys',
  summary: "An account's keys",
  request: { params: one, query: pageAsked },
  responses: answers(pageOf(keyRow)),
});
const requests = createRoute({
  method: 'get',
  path: '/admin/accounts/{id}/requests',
  summary: "An account's requests, by default of the last 30 days",
  request: { params: one, query: operatorRequestsAsked.omit({ accountId: true }).extend(pageAsked.shape) },
  responses: answers(pageOf(operatorRequestRow)),
});
const tasks = createRoute({
  method: 'get',
  path: '/admin/accounts/{id}/tasks',
  summary: "An account's tasks",
  request: { params: one, query: tasksAsked },
  responses: answers(pageOf(operatorTaskRow)),
});

export function accountRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      const { text, plan, disabled } = query;
      const filter = { text, plan, disabled: disabled === undefined ? undefined : disabled === 'true' };
      const { rows, next } = await need(hall, accountDesk).search(filter, asked(query));
      const balances = await hall.find(moneyDesk)?.balances(rows.map((row) => row.id));
      const told = rows.map((row) => ({ ...tellAccount(row), balance: usdOrNull(balances?.get(row.id)) }));
      return ask.json({ rows: told, next: next ?? null }, 200);
    })
    .openapi(look, async (ask) => {
      const view = await knownAccount(hall, ask.req.valid('param').id);
      const money = await hall.find(pool)?.view(view.id);
      const terms = hall.find(plans)?.terms(view.plan);
      return ask.json(
        {
          account: tellAccount(view),
          pool: money === undefined ? null : tellPool(money),
          plan: terms === undefined ? null : tellPlan(hall.find(plans)?.offer(view.plan) ?? terms),
        },
        200,
      );
    })
    .openapi(ledger, async (ask) => {
      const view = await knownAccount(hall, ask.req.valid('param').id);
      const query = ask.req.valid('query');
      return ask.json(await pageOfLedger(hall, view.id, query, asked(query)), 200);
    })
    .openapi(keys, async (ask) => {
      const view = await knownAccount(hall, ask.req.valid('param').id);
      const { rows, next } = await need(hall, accountDesk).keys(view.id, asked(ask.req.valid('query')));
      return ask.json({ rows: rows.map(tellKey), next: next ?? null }, 200);
    })
    .openapi(requests, async (ask) => {
      const view = await knownAccount(hall, ask.req.valid('param').id);
      const query = ask.req.valid('query');
      const { keyId, model, provider, operation, result } = query;
      const filter = {
        ...spanOf(query, hall.clock.now(), 30 * dayMs),
        accountId: view.id,
        keyId,
        model,
        provider,
        operation,
        result,
      };
      return ask.json(await pageOfRequests(hall, filter, asked(query)), 200);
    })
    .openapi(tasks, async (ask) => {
      const view = await knownAccount(hall, ask.req.valid('param').id);
      const query = ask.req.valid('query');
      const { rows, next } = await need(hall, taskDesk).list(taskFilter(query, view.id), asked(query), hostOf(ask));
      return ask.json({ rows: rows.map(tellOperatorTask), next: next ?? null }, 200);
    });
}

export async function knownAccount(hall: Console, accountId: string): Promise<AccountView> {
  const view = await need(hall, accountDesk).find(accountId);
  if (view === undefined) throw nothingHere('account');
  return view;
}
