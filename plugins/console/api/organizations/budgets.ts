/** Budgets of an account: its own for clients, and any for operators. */
import { z } from '@hono/zod-openapi';
import type { Money } from '../../../common/domain/money.ts';
import {
  type BudgetAuthority,
  type BudgetRule,
  type BudgetView,
  budgetKinds,
  budgetPeriods,
  warnsOf,
} from '../../../common/domain/organizations/budgets.ts';
import { accountAdmin, budgetAdmin, projectAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, need, nothingHere, ownAccount } from '../routing/router.ts';
import { type Change, Routes, route } from '../routing/routes.ts';
import { answers, done, id, instant, reasonInput, takes, usd, usdInput, usdText, writerOf } from '../schemas.ts';

const budgetState = z.object({
  scope: z.string().describe('Names it, for additions.'),
  subject: z.string().nullable().describe('Id of the project, person or key; null: the account.'),
  name: z.string().nullable().describe('What the subject is called, if that is known.'),
  ceiling: usd.describe('With what was added for this period.'),
  spent: usd.describe('Charged, and held for orders that are not finished.'),
  from: instant,
  until: instant.nullable().describe('When all of it is there again; null: never.'),
});
const terms = {
  of: z.enum(budgetKinds),
  models: z.array(z.string().min(1).max(200)).min(1).max(100).nullable().describe('Of models: their ids, with *.'),
  tag: z.string().nullable().describe('Of tag: NAME=VALUE.'),
  by: z.enum(['account', 'person']).nullable().describe('Of models: who has such a budget.'),
  every: z.enum(budgetPeriods),
  first: z.string().nullable().describe('The first day of some period; null: calendar periods.'),
  instead: z.string().nullable().describe('The model that takes calls which do not fit in it.'),
  warn: z.array(z.number()).describe('Shares of it at which a notice is sent.'),
};
const budgetRow = z
  .object({
    id: z.string().nullable().describe('null: it is one of the settings.'),
    setBy: z.enum(['settings', 'operator', 'owner']),
    ...terms,
    subject: z.string().nullable().describe('Id of the one that it is for; null: each, or the account.'),
    amount: usd,
    zone: z.string().nullable().describe("null: the account's."),
    hard: z.boolean().describe('false: calls go on when it is passed.'),
    changedAt: instant.nullable(),
    states: z.array(budgetState).describe('Of a budget for each those who have spent most.'),
  })
  .openapi('Budget');
const budgetInput = z
  .strictObject({
    of: terms.of,
    subject: z.string().min(1).max(100).nullish(),
    models: terms.models.optional(),
    tag: z.string().max(100).nullish(),
    by: terms.by.optional(),
    amount: usdInput,
    every: terms.every,
    zone: z.string().max(100).nullish(),
    first: terms.first.optional(),
    hard: z.boolean().nullish(),
    instead: z.string().min(1).max(200).nullish(),
    warn: z.array(z.number()).max(10).nullish(),
  })
  .openapi('BudgetTerms');
const additionInput = z.strictObject({ scope: z.string().min(1).max(500), amount: usdInput, reason: reasonInput });

const rowJson = writerOf(budgetRow);
const zoneOfAccount = z
  .string()
  .nullable()
  .describe('The time zone of the account; null: UTC, as it has none of its own.');
const rows = answers(z.object({ rows: z.array(budgetRow), zone: zoneOfAccount }));
const zoneInput = z.strictObject({ zone: z.string().max(100).nullable() });
const one = z.object({ id });
const ofAccount = z.object({ id, budgetId: id });
const operatorInput = takes(budgetInput.extend({ reason: reasonInput }));
const withReason = takes(z.strictObject({ reason: reasonInput }));

const list = route('get', '/budgets', 'Own budgets, with what is spent of them', rows);
const set = route(
  'post',
  '/budgets',
  'Set a budget; one that counts the same calls for the same periods is changed',
  answers(budgetRow),
  { body: takes(budgetInput) },
);
const add = route('post', '/budgets/additions', 'Let more be spent in the present period', answers(budgetRow), {
  body: takes(additionInput),
});
const end = route('delete', '/budgets/{id}', 'End a budget', answers(done), { params: one });
const listOfAccount = route('get', '/admin/accounts/{id}/budgets', "An account's budgets", rows, { params: one });
const setForAccount = route(
  'post',
  '/admin/accounts/{id}/budgets',
  'Set a budget of an account, before one of the settings that counts the same',
  answers(budgetRow),
  { params: one, body: operatorInput },
);
const addForAccount = route(
  'post',
  '/admin/accounts/{id}/budgets/additions',
  'Let an account spend more in the present period of a budget',
  answers(budgetRow),
  { params: one, body: takes(additionInput) },
);
const endForAccount = route(
  'delete',
  '/admin/accounts/{id}/budgets/{budgetId}',
  'End a budget that an operator has set',
  answers(done),
  { params: ofAccount, body: withReason },
);

const setZone = route(
  'post',
  '/budgets/zone',
  'Set the time zone in which periods of budgets and caps begin',
  answers(done),
  {
    body: takes(zoneInput),
  },
);
const setZoneOfAccount = route(
  'post',
  '/admin/accounts/{id}/zone',
  'Set the time zone in which periods of budgets and caps of an account begin',
  answers(done),
  { params: one, body: takes(zoneInput.extend({ reason: reasonInput })) },
);

type Input = z.output<typeof budgetInput>;
type Row = z.output<typeof budgetRow>;

export function budgetRoutes(services: ConsoleServices) {
  const known = async (accountId: string) => (await knownAccount(services, accountId)).id;
  return new Routes(services)
    .read(list, async ({ c }) => listed(services, await ownAccount(services, c)))
    .action(set, async ({ c, json }) => setting(services, await ownAccount(services, c), 'owner', json))
    .action(add, async ({ c, json }) => adding(services, await ownAccount(services, c), 'owner', json))
    .action(setZone, async ({ c, json }) => settingZone(services, await ownAccount(services, c), json.zone))
    .action(setZoneOfAccount, async ({ param, json: { zone, reason } }) =>
      settingZone(services, await known(param.id), zone, reason),
    )
    .action(end, async ({ c, param }) => ending(services, await ownAccount(services, c), 'owner', param.id))
    .read(listOfAccount, async ({ param }) => listed(services, await known(param.id)))
    .action(setForAccount, async ({ param, json: { reason, ...given } }) =>
      setting(services, await known(param.id), 'operator', given, reason),
    )
    .action(addForAccount, async ({ param, json }) => adding(services, await known(param.id), 'operator', json))
    .action(endForAccount, async ({ param, json: { reason } }) =>
      ending(services, await known(param.id), 'operator', param.budgetId, reason),
    );
}

async function listed(services: ConsoleServices, accountId: string) {
  const admin = need(services, budgetAdmin);
  const [views, zone = null] = await Promise.all([admin.list(accountId), admin.zone(accountId)]);
  return { rows: await named(services, accountId, views), zone };
}

async function settingZone(
  services: ConsoleServices,
  accountId: string,
  zone: string | null,
  reason?: string,
): Promise<Change<z.output<typeof done>>> {
  const admin = need(services, budgetAdmin);
  const before = await admin.zone(accountId);
  const run = async () => {
    await admin.setZone(accountId, zone ?? undefined);
    return { ok: true as const };
  };
  return {
    action: 'account.zone',
    subject: accountId,
    reason,
    changes: changesBetween({ zone: before }, { zone }),
    run,
  };
}

async function setting(
  services: ConsoleServices,
  accountId: string,
  authority: BudgetAuthority,
  { subject, models, tag, by, zone, first, hard, instead, warn, ...given }: Input,
  reason?: string,
): Promise<Change<Row>> {
  const terms = {
    ...given,
    subject: subject ?? undefined,
    models: models ?? undefined,
    tag: tag ?? undefined,
    by: by ?? undefined,
    zone: zone ?? undefined,
    first: first ?? undefined,
    hard: hard === false ? false : undefined,
    instead: instead ?? undefined,
    warn: warn ?? undefined,
  };
  const run = async () => {
    const view = await need(services, budgetAdmin).set(accountId, authority, terms);
    return (await named(services, accountId, [view]))[0]!;
  };
  return { action: 'budget.set', subject: accountId, reason, changes: changesOf(audited(terms)), run };
}

function adding(
  services: ConsoleServices,
  accountId: string,
  authority: BudgetAuthority,
  addition: z.output<typeof additionInput>,
): Change<Row> {
  const { reason, scope, amount } = addition;
  const run = async () => {
    const view = await need(services, budgetAdmin).add(accountId, authority, addition);
    return (await named(services, accountId, [view]))[0]!;
  };
  const changes = changesOf({ scope, amount: usdText(amount) });
  return { action: 'budget.add', subject: accountId, reason, changes, run };
}

async function ending(
  services: ConsoleServices,
  accountId: string,
  authority: BudgetAuthority,
  budgetId: string,
  reason?: string,
): Promise<Change<z.output<typeof done>>> {
  const admin = need(services, budgetAdmin);
  const found = (await admin.list(accountId)).find(({ id, authority: by }) => id === budgetId && by === authority);
  if (found === undefined) throw nothingHere('budget');
  const run = async () => {
    await admin.end(accountId, authority, budgetId);
    return { ok: true as const };
  };
  return { action: 'budget.end', subject: accountId, reason, changes: changesOf(audited(found)), run };
}

/** What a row of the audit log says of a budget. */
function audited({
  of,
  subject,
  models,
  tag,
  by,
  amount,
  every,
  hard,
  instead,
}: BudgetRule | (Input & { amount: Money })) {
  const all = { of, subject, models: models?.join(', '), tag, by, amount: usdText(amount), every, hard, instead };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== null));
}

/** With the names of projects and keys. */
async function named(services: ConsoleServices, accountId: string, views: readonly BudgetView[]): Promise<Row[]> {
  const subjects = (kind: BudgetRule['of']) => {
    const all = views.filter((view) => kindOf(view) === kind);
    return [...new Set(all.flatMap(({ states }) => states.flatMap(({ subject }) => subject ?? [])))].slice(
      0,
      mostNames,
    );
  };
  const [projects, keys, people] = await Promise.all([
    services.find(projectAdmin)?.namesOf(accountId, subjects('project')),
    services.find(accountAdmin)?.namesOf(subjects('key')),
    Promise.all(subjects('person').map(async (id) => [id, (await services.people.find(id))?.name] as const)),
  ]);
  const names = new Map([...(projects ?? []), ...people]);
  const nameOf = (subject: string | undefined) =>
    subject === undefined ? undefined : (names.get(subject) ?? keys?.get(subject)?.name);
  return views.map((view) =>
    rowJson({
      ...view,
      setBy: view.authority ?? 'settings',
      warn: [...warnsOf(view)],
      hard: view.hard !== false,
      zone: view.zone ?? null,
      states: view.states.map((state) => ({ ...state, name: nameOf(state.subject) })),
    }),
  );
}

const mostNames = 100;

/** Who has one of it. */
const kindOf = ({ of, by }: BudgetRule): BudgetRule['of'] => (by === 'person' ? 'person' : of);
