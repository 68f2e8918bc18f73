/** Projects in memory: each name that a key has, and those that were made. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type {
  ProjectAdmin,
  ProjectTerms,
  ProjectView,
} from '../../../../plugins/common/domain/organizations/projects.ts';
import { paged } from './lists.ts';
import type { World } from './world.ts';

export function fakeProjects(world: World): ProjectAdmin {
  const made: ProjectView[] = [];
  const keysOf = (accountId: string, name: string) =>
    world.keys.filter((key) => key.accountId === accountId && key.project === name && key.revokedAt === undefined);
  const add = (accountId: string, terms: ProjectTerms) => {
    const row = {
      ...terms,
      id: world.nextId('project'),
      accountId,
      createdAt: world.now(),
      archivedAt: undefined,
      keys: 0,
    };
    made.push(row);
    return row;
  };
  const rowsOf = (accountId: string) => {
    for (const { accountId: of, project } of world.keys)
      if (
        of === accountId &&
        project !== undefined &&
        !made.some((row) => row.accountId === of && row.name === project)
      )
        add(of, { name: project });
    return made
      .filter((row) => row.accountId === accountId)
      .map((row) => ({ ...row, keys: keysOf(accountId, row.name).length }))
      .sort((one, other) => one.name.localeCompare(other.name));
  };
  const change = (accountId: string, id: string, more: Partial<ProjectView>) => {
    const row = rowsOf(accountId).find((one) => one.id === id);
    if (row === undefined) throw new GatewayError('not_found', 'There is no such project.', { field: 'project' });
    const changed = { ...row, ...more };
    for (const [index, key] of world.keys.entries())
      if (key.accountId === accountId && key.project === row.name)
        world.keys[index] = { ...key, project: changed.name };
    made[made.findIndex((one) => one.id === id)] = changed;
    return changed;
  };
  return {
    list: async (accountId, { archived }, page) =>
      paged(
        rowsOf(accountId).filter((row) => archived === undefined || archived === (row.archivedAt !== undefined)),
        page,
      ),
    find: async (accountId, id) => rowsOf(accountId).find((row) => row.id === id),
    named: async (accountId, name) => rowsOf(accountId).find((row) => row.name === name),
    create: async (accountId, terms) => add(accountId, terms),
    change: async (accountId, id, terms) => change(accountId, id, { models: undefined, owner: undefined, ...terms }),
    setArchived: async (accountId, id, archived) =>
      change(accountId, id, { archivedAt: archived ? world.now() : undefined }),
    namesOf: async (accountId, ids) =>
      new Map(rowsOf(accountId).flatMap(({ id, name }) => (ids.includes(id) ? [[id, name] as const] : []))),
  };
}
