/** An account's projects: its own for clients, and any for operators. */
import { z } from '@hono/zod-openapi';
import { invalid } from '../../../../core/json/request-body.ts';
import type { PageRequest } from '../../../common/domain/admin/pages.ts';
import { type Money, money, zero } from '../../../common/domain/money.ts';
import type { ProjectTerms } from '../../../common/domain/organizations/projects.ts';
import { ledgerQueries, memberAdmin, projectAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, has, need, nothingHere, ownAccount, type RequestContext } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, id, instant, pageOf, pageQuery, takes, usd, writerOf } from '../schemas.ts';

const projectRow = z
  .object({
    id: z.string(),
    name: z.string(),
    owner: z.string().nullable().describe('Id of the person in charge.'),
    models: z.array(z.string()).nullable().describe('Models that its keys may call; null: all that they may.'),
    regions: z
      .array(z.string())
      .nullable()
      .describe('Regions in which calls of its keys may be processed; null: anywhere.'),
    keys: z.number().describe('Keys that are not revoked.'),
    createdAt: instant,
    archivedAt: instant.nullable().describe('Its keys are refused since then; null: they are not.'),
  })
  .openapi('Project');
const projectTerms = z
  .strictObject({
    name: z.string().trim().min(1).max(100),
    owner: id.nullish(),
    models: z.array(z.string().min(1).max(200)).min(1).max(1_000).nullish(),
    regions: z
      .array(z.string().min(1).max(32))
      .min(1)
      .max(20)
      .nullish()
      .describe('null: anywhere; absent in a change: as before.'),
  })
  .openapi('ProjectTerms');

const spentRow = projectRow.extend({
  ownerName: z.string().nullable().describe('null: it has no owner, or one who is not known any more.'),
  cost30d: usd
    .nullable()
    .describe(
      'Charges of calls that were made in it, whatever became of their keys, less what was given back of them.',
    ),
});

/** As many groups as sums have. */
const mostProjects = 1_500;

const projectJson = writerOf(projectRow);
const spentJson = writerOf(spentRow);
const termsJson = writerOf(projectRow.pick({ name: true, owner: true, models: true, regions: true }));
const termsOf = ({ name, owner, models, regions }: z.output<typeof projectTerms>): ProjectTerms => ({
  name,
  owner: owner ?? undefined,
  models: models ?? undefined,
  regions: regions ?? undefined,
});

const params = z.object({ id });
const query = pageQuery.extend({ archived: z.enum(['true', 'false']).optional() });
const list = route('get', '/projects', 'Own projects, by name', answers(pageOf(spentRow)), { query });
const create = route('post', '/projects', 'Make a project', answers(projectRow), { body: takes(projectTerms) });
const change = route(
  'patch',
  '/projects/{id}',
  'Change a project; all of its terms are replaced, and its keys get its name',
  answers(projectRow),
  { params, body: takes(projectTerms) },
);
const archive = route('post', '/projects/{id}/archive', 'Refuse the keys of a project', answers(projectRow), {
  params,
});
const restore = route('post', '/projects/{id}/restore', 'Let its keys in again', answers(projectRow), { params });
const ofAccount = route(
  'get',
  '/admin/accounts/{id}/projects',
  "An account's projects, by name",
  answers(pageOf(spentRow)),
  { params, query },
);

export function ownProjectRoutes(services: ConsoleServices) {
  const admin = () => need(services, projectAdmin);
  /** The project, if it is one of the actor's account. */
  const own = async (c: RequestContext, projectId: string) => {
    const accountId = await ownAccount(services, c);
    const found = await admin().find(accountId, projectId);
    if (found === undefined) throw nothingHere('project');
    return found;
  };
  const archiving = async (c: RequestContext, projectId: string, archived: boolean) => {
    const { accountId, name } = await own(c, projectId);
    return {
      action: archived ? 'project.archive' : 'project.restore',
      subject: name,
      run: async () => projectJson(await admin().setArchived(accountId, projectId, archived)),
    };
  };
  return new Routes(services)
    .list(list, spentJson, async ({ c, query }, page) =>
      (await has(services, c, 'allUsage'))
        ? costed(services, await ownAccount(services, c), query, page)
        : listed(services, await ownAccount(services, c), query, page),
    )
    .action(create, async ({ c, json }) => {
      const accountId = await ownAccount(services, c);
      const terms = termsOf(json);
      await checkOwner(services, accountId, terms);
      const run = async () => projectJson(await admin().create(accountId, terms));
      return { action: 'project.create', subject: terms.name, changes: changesOf(termsJson(terms)), run };
    })
    .action(change, async ({ c, param, json }) => {
      const before = await own(c, param.id);
      const terms = { ...termsOf(json), ...(json.regions === undefined ? { regions: before.regions } : {}) };
      // One who has left the account stays until another is named.
      if (terms.owner !== before.owner) await checkOwner(services, before.accountId, terms);
      const changes = changesBetween(termsJson(before), termsJson(terms));
      const run = async () => projectJson(await admin().change(before.accountId, param.id, terms));
      return { action: 'project.change', subject: before.name, changes, run };
    })
    .action(archive, ({ c, param }) => archiving(c, param.id, true))
    .action(restore, ({ c, param }) => archiving(c, param.id, false))
    .list(ofAccount, spentJson, async ({ param, query }, page) =>
      costed(services, (await knownAccount(services, param.id)).id, query, page),
    );
}

async function checkOwner(services: ConsoleServices, accountId: string, { owner }: ProjectTerms): Promise<void> {
  if (owner === undefined) return;
  if ((await need(services, memberAdmin).roleOf(accountId, owner)) === undefined)
    throw invalid('The owner of a project is a member of its account.', 'owner');
}

/** Names of owners by their ids. */
async function ownersOf(services: ConsoleServices, rows: readonly ProjectTerms[]) {
  const owners = await services.invitations.named(rows.flatMap(({ owner }) => owner ?? []));
  return (id: string | undefined) => (id === undefined ? undefined : owners.get(id)?.name);
}

/** Without what they cost. */
async function listed(
  services: ConsoleServices,
  accountId: string,
  { archived }: z.output<typeof query>,
  page: PageRequest,
) {
  const filter = { archived: archived === undefined ? undefined : archived === 'true' };
  const { rows, next } = await need(services, projectAdmin).list(accountId, filter, page);
  const nameOf = await ownersOf(services, rows);
  const without = { cost30d: undefined as Money | undefined };
  return { rows: rows.map((row) => ({ ...row, ...without, ownerName: nameOf(row.owner) })), next };
}

/** By the calls themselves, so that keys that were moved or revoked change nothing. */
async function costed(
  services: ConsoleServices,
  accountId: string,
  { archived }: z.output<typeof query>,
  page: PageRequest,
) {
  const { rows, next } = await listed(services, accountId, { archived }, page);
  const now = services.clock.now();
  const span = { from: now - 30 * dayMs, until: now + 1 };
  const groups = await services.find(ledgerQueries)?.spend({ accountId, ...span }, 'project', mostProjects);
  const costs = groups && new Map(groups.map(({ group, cost, refunded = zero }) => [group, money(cost - refunded)]));
  return { rows: rows.map((row) => ({ ...row, cost30d: costs && (costs.get(row.id) ?? zero) })), next };
}
