/** Projects by name. What they spend is what calls cost that were for them, whatever becomes of the keys. */
import { z } from '@hono/zod-openapi';
import { noProject } from '../../common/domain/admin/accounts.ts';
import type { RequestFilter } from '../../common/domain/admin/requests.ts';
import { accountAdmin, requestQueries } from '../services.ts';
import { type ConsoleServices, need } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, id } from './schemas.ts';
import { countedOf, sizesOf } from './spend.ts';

export const projectInput = z.string().trim().min(1).max(100);
export const projectQuery = z.object({
  project: projectInput
    .optional()
    .describe(
      `What was for this project when it was called; "${noProject}": for none, or not known, as of calls before an upgrade.`,
    ),
});

const list = route(
  'get',
  '/admin/projects',
  'Projects by name, of one account or of all',
  answers(z.object({ rows: z.array(z.object({ project: z.string(), keys: z.number() })) })),
  { query: z.object({ accountId: id.optional() }) },
);

export function projectRoutes(services: ConsoleServices) {
  return new Routes(services).read(list, async ({ query }) => {
    const projects = await need(services, accountAdmin).projects(query.accountId);
    return { rows: projects.map(({ project, keyIds }) => ({ project, keys: keyIds.length })) };
  });
}

/** The ids of each project by its name and, last, what stands for calls without one. */
export async function idsByProject(
  services: ConsoleServices,
  accountId: string | undefined,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const projects = await need(services, accountAdmin).projects(accountId);
  const named = projects.map(({ project, ids }): [string, readonly string[]] => [project, ids]);
  return new Map([...named, [noProject, ['']]]);
}

/** The ids of a project; undefined: it was not asked for. */
export async function idsOfProject(
  services: ConsoleServices,
  project: string | undefined,
  accountId: string | undefined,
): Promise<readonly string[] | undefined> {
  if (project === undefined) return undefined;
  return idsNamed(await idsByProject(services, accountId), project);
}

/** A project that nothing is known of has its id as its name. */
export const idsNamed = (projects: ReadonlyMap<string, readonly string[]>, project: string): readonly string[] =>
  projects.get(project) ?? [project];

/** The most projects that are compared. */
const mostCompared = 500;

/** Requests and cost of each project that has any. */
export async function projectSizes(
  services: ConsoleServices,
  filter: RequestFilter,
  projects: ReadonlyMap<string, readonly string[]>,
): Promise<ReadonlyMap<string, { readonly cost: bigint; readonly requests: number }>> {
  const nameOf = new Map([...projects].flatMap(([project, ids]) => ids.map((id) => [id, project])));
  const [all, { byNumber, byCost }] = await Promise.all([
    need(services, requestQueries).sums(countedOf(filter)),
    sizesOf(services, filter, 'project', mostCompared),
  ]);
  const sizes = new Map<string, { cost: bigint; requests: number }>();
  const add = (id: string, cost: bigint, requests: number) => {
    const project = nameOf.get(id) ?? id;
    const before = sizes.get(project) ?? { cost: 0n, requests: 0 };
    sizes.set(project, { cost: before.cost + cost, requests: before.requests + requests });
  };
  for (const { group, cost } of byCost) add(group, cost, 0);
  const named = byNumber.filter(({ group }) => group !== '');
  for (const { group, requests } of named) add(group, 0n, requests);
  const without = all.requests - named.reduce((sum, { requests }) => sum + requests, 0);
  if (without > 0 && byNumber.length < mostCompared) add('', 0n, without);
  return sizes;
}
