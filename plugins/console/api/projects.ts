/** Projects: keys that carry one name. What they spend is summed up by their ids, as they are in it now. */
import { z } from '@hono/zod-openapi';
import { type KeySet, noProject } from '../../common/domain/admin/accounts.ts';
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
    .describe(`Of the keys that are in this project now; "${noProject}": of keys in none, and without a key.`),
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

/** Every project and, last, the calls without one. */
export async function keysByProject(
  services: ConsoleServices,
  accountId: string | undefined,
): Promise<ReadonlyMap<string, KeySet>> {
  const projects = await need(services, accountAdmin).projects(accountId);
  const sets = projects.map(({ project, keyIds }): [string, KeySet] => [project, { ids: keyIds }]);
  return new Map([...sets, [noProject, { ids: projects.flatMap(({ keyIds }) => keyIds), not: true }]]);
}

/** The keys of a project; undefined: it was not asked for. */
export async function keysOfProject(
  services: ConsoleServices,
  project: string | undefined,
  accountId: string | undefined,
): Promise<KeySet | undefined> {
  if (project === undefined) return undefined;
  return (await keysByProject(services, accountId)).get(project) ?? { ids: [] };
}

/** The most keys by which projects are compared. */
const mostKeys = 500;

/** Requests and cost of each project that has any, by the sums of its keys. Requests without a key are in no project. */
export async function projectSizes(
  services: ConsoleServices,
  filter: RequestFilter,
  projects: ReadonlyMap<string, KeySet>,
): Promise<ReadonlyMap<string, { readonly cost: bigint; readonly requests: number }>> {
  const projectOf = new Map(
    [...projects].flatMap(([project, { ids, not }]) => (not ? [] : ids.map((id) => [id, project]))),
  );
  const [all, { byNumber, byCost }] = await Promise.all([
    need(services, requestQueries).sums(countedOf(filter)),
    sizesOf(services, filter, 'key', mostKeys),
  ]);
  const sizes = new Map<string, { cost: bigint; requests: number }>();
  const add = (key: string, cost: bigint, requests: number) => {
    const project = projectOf.get(key) ?? noProject;
    const before = sizes.get(project) ?? { cost: 0n, requests: 0 };
    sizes.set(project, { cost: before.cost + cost, requests: before.requests + requests });
  };
  for (const { group, cost } of byCost) add(group, cost, 0);
  for (const { group, requests } of byNumber) add(group, 0n, requests);
  const withoutKey = all.requests - byNumber.reduce((sum, { requests }) => sum + requests, 0);
  if (withoutKey > 0 && byNumber.length < mostKeys) add('', 0n, withoutKey);
  return sizes;
}
