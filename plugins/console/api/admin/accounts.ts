/** Accounts as operators see them: search, details, ledger, keys, requests, tasks. */

import { z } from '@hono/zod-openapi';
import type { AccountView } from '../../../common/domain/admin/accounts.ts';
import type { Money } from '../../../common/domain/money.ts';
import type { Owner } from '../../people.ts';
import { accountAdmin, ledgerQueries, plans, pool, taskAdmin } from '../../services.ts';
import { chargedRequests } from '../charges.ts';
import { poolAnswer, poolJson } from '../home.ts';
import { keyJson, keyRow } from '../keys.ts';
import { ledgerPage, ledgerQuery, ledgerRow, ledgerRowJson } from '../ledger-rows.ts';
import { planCard, planJson } from '../plan-cards.ts';
import {
  operatorRequestJson,
  operatorRequestRow,
  operatorRequestsQuery,
  requestFilterIn,
  sortedPage,
  sortOf,
  sortQuery,
} from '../request-rows.ts';
import { type ConsoleServices, need, nothingHere } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, id, instant, pageOf, pageQuery, usd, usdOrNull, writerOf } from '../schemas.ts';
import { spendOfGroups } from '../spend.ts';
import { hostOf, operatorTaskJson, operatorTaskRow, taskFilter, tasksQuery } from '../tasks.ts';
import { spanOfDays } from '../time-zone.ts';

const account = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.string(),
    planEndsAt: instant.nullable(),
    multiplier: z.string().nullable(),
    disabled: z.boolean(),
    retention: z.enum(['none']).nullable().describe('none: nothing of its calls is kept; null: what the settings say.'),
    createdAt: instant,
  })
  .openapi('Account');

const accountJson = writerOf(account);

const owner = z.object({ id: z.string(), name: z.string(), email: z.string() });

interface AccountRow extends AccountView {
  readonly balance: Money | undefined;
  readonly spent: Money | undefined;
  readonly person: Owner | undefined;
}
const accountRowJson = (row: AccountRow) => ({
  ...accountJson(row),
  person: row.person ?? null,
  balance: usdOrNull(row.balance),
  spent30d: usdOrNull(row.spent),
});
const spentDays = 30;

/** Where more people have a name, the newest are taken. */
const mostOwners = 500;

const one = z.object({ id });
const list = route(
  'get',
  '/admin/accounts',
  'Accounts by name, with balances',
  answers(
    pageOf(
      account.extend({
        balance: usd.nullable(),
        spent30d: usd.nullable().describe('Charges of calls in the last 30 days.'),
        person: owner.nullable().describe('Whom it belongs to; null: no person who signs in here.'),
      }),
    ),
  ),
  {
    query: pageQuery.extend({
      text: z
        .string()
        .max(200)
        .optional()
        .describe('Part of its name, or of the name or mail address of its person; or an id.'),
      plan: z.string().max(100).optional(),
      disabled: z.enum(['true', 'false']).optional(),
    }),
  },
);
const look = route(
  'get',
  '/admin/accounts/{id}',
  'One account: money, plan, limits',
  answers(
    z
      .object({ account, person: owner.nullable(), pool: poolAnswer.nullable(), plan: planCard.nullable() })
      .openapi('AccountDetail'),
  ),
  { params: one },
);
const ledger = route('get', '/admin/accounts/{id}/ledger', "An account's ledger", answers(pageOf(ledgerRow)), {
  params: one,
  query: ledgerQuery.extend(pageQuery.shape),
});
const keys = route('get', '/admin/accounts/{id}/keys', "An account's keys", answers(pageOf(keyRow)), {
  params: one,
  query: pageQuery,
});
const requests = route(
  'get',
  '/admin/accounts/{id}/requests',
  "An account's requests, by default of the last 30 days",
  answers(sortedPage(operatorRequestRow)),
  {
    params: one,
    query: operatorRequestsQuery.omit({ accountId: true }).extend({ ...sortQuery.shape, ...pageQuery.shape }),
  },
);
const tasks = route('get', '/admin/accounts/{id}/tasks', "An account's tasks", answers(pageOf(operatorTaskRow)), {
  params: one,
  query: tasksQuery,
});

export function accountRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(list, accountRowJson, async ({ query: { text, plan, disabled } }, page) => {
      const ids = text === undefined ? [] : await accountsOfPeople(services, text);
      const filter = { text, ids, plan, disabled: disabled === undefined ? undefined : disabled === 'true' };
      const { rows, next } = await need(services, accountAdmin).search(filter, page);
      const found = rows.map((row) => row.id);
      const balances = await services.find(ledgerQueries)?.balances(found);
      const owners = await services.people.ownersOf(found);
      const until = services.clock.now() + 1;
      const spent = await spendOfGroups(services, { from: until - spentDays * dayMs, until }, 'account', found);
      return {
        rows: rows.map((row) => ({
          ...row,
          balance: balances?.get(row.id),
          spent: spent?.(row.id).cost,
          person: owners.get(row.id),
        })),
        next,
      };
    })
    .read(look, async ({ param }) => {
      const view = await knownAccount(services, param.id);
      const money = await services.find(pool)?.view(view.id);
      const terms = services.find(plans)?.terms(view.plan);
      return {
        account: accountJson(view),
        person: (await services.people.ownersOf([view.id])).get(view.id) ?? null,
        pool: money === undefined ? null : poolJson(money),
        plan: terms === undefined ? null : planJson(services.find(plans)?.offer(view.plan) ?? terms),
      };
    })
    .list(ledger, ledgerRowJson, async ({ param, query }, page) =>
      ledgerPage(services, (await knownAccount(services, param.id)).id, query, page),
    )
    .list(keys, keyJson, async ({ param }, page) =>
      need(services, accountAdmin).keys((await knownAccount(services, param.id)).id, page),
    )
    .list(requests, operatorRequestJson, async ({ param, query }, page) => {
      const { id: accountId } = await knownAccount(services, param.id);
      const span = spanOfDays(query, services.clock.now(), 30);
      return chargedRequests(
        services,
        { ...(await requestFilterIn(services, query, span, { accountId })), sort: sortOf(query) },
        page,
      );
    })
    .list(tasks, operatorTaskJson, async ({ param, query, c }, page) => {
      const { id } = await knownAccount(services, param.id);
      return need(services, taskAdmin).list(taskFilter(query, id), page, hostOf(c));
    });
}

/** Accounts of the newest people whose name or mail address has this part. */
async function accountsOfPeople({ people }: ConsoleServices, text: string): Promise<string[]> {
  const { rows } = await people.search({ text }, { limit: mostOwners, after: undefined });
  return rows.flatMap(({ accountId }) => accountId ?? []);
}

export async function knownAccount(services: ConsoleServices, accountId: string): Promise<AccountView> {
  const view = await need(services, accountAdmin).find(accountId);
  if (view === undefined) throw nothingHere('account');
  return view;
}
