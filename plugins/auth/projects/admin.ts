/** Administration of projects: views, and changes with their checks. */

import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { isUuid } from '../../common/domain/database.ts';
import type { ProjectAdmin, ProjectTerms, ProjectView } from '../../common/domain/organizations/projects.ts';
import { cursorFor, pageOf, rowsFor, valuesIn } from '../../common/kit/paging.ts';
import { isDuplicateName } from '../account-queries.ts';
import { validModels, validName, validProject, validRegions } from '../key-terms.ts';
import type { ProjectRow, ProjectStore, ProjectTermsRow } from './store.ts';

export function openProjectAdmin(store: ProjectStore, clock: Clock): ProjectAdmin {
  const viewsOf = async (accountId: string, rows: readonly ProjectRow[]) => {
    const names = rows.map(({ name }) => name);
    const keys = await store.keysOf(accountId, names);
    return new Map(rows.map((row) => [row.id, viewOf(row, keys.get(row.name) ?? 0)]));
  };
  const shown = async (accountId: string, row: ProjectRow | undefined) =>
    row === undefined ? undefined : (await viewsOf(accountId, [row])).get(row.id)!;
  const changed = async (accountId: string, row: ProjectRow | undefined) => {
    const view = await shown(accountId, row);
    if (view === undefined) throw noProjectThere();
    return view;
  };
  const checked = (accountId: string, id: string) => {
    if (!isUuid(accountId) || !isUuid(id)) throw noProjectThere();
  };
  return {
    async list(accountId, { archived }, page) {
      const limit = rowsFor(page);
      const rows = await store.list(accountId, archived, valuesIn(page, 'name')?.name, limit);
      const views = await viewsOf(accountId, rows);
      return pageOf(
        rows,
        page,
        ({ name }) => cursorFor([name]),
        ({ id }) => views.get(id)!,
      );
    },
    find: async (accountId, id) => shown(accountId, await store.find(accountId, { id })),
    named: async (accountId, name) => shown(accountId, await store.find(accountId, { name })),
    async create(accountId, terms) {
      const row = rowOf(terms);
      const made = await store.insert(accountId, row);
      if (made === undefined) throw nameTaken(row.name);
      return viewOf(made, 0);
    },
    async change(accountId, id, terms) {
      checked(accountId, id);
      const row = rowOf(terms);
      const stored = await store.change(accountId, id, row).catch((error: unknown) => {
        throw isDuplicateName(error) ? nameTaken(row.name) : error;
      });
      return changed(accountId, stored);
    },
    async setArchived(accountId, id, archived) {
      checked(accountId, id);
      return changed(accountId, await store.setArchived(accountId, id, archived ? new Date(clock.now()) : null));
    },
    namesOf: (accountId, ids) => store.namesOf(accountId, ids),
  };
}

const longestOwner = 100;

function rowOf({ name, owner, models, regions }: ProjectTerms): ProjectTermsRow {
  if (owner !== undefined && (owner === '' || owner.length > longestOwner))
    throw invalid('The owner of a project is the id of a person.', 'owner');
  return {
    name: validProject(validName(name, 'name'))!,
    owner: owner ?? null,
    models: models === undefined ? null : validModels(models, 'project'),
    regions: validRegions(regions, 'project'),
  };
}

const nameTaken = (name: string) =>
  new GatewayError('conflict', `A project named "${name}" exists already.`, { field: 'name' });

export const noProjectThere = () => new GatewayError('not_found', 'There is no such project.', { field: 'project' });

function viewOf(row: ProjectRow, keys: number): ProjectView {
  const { id, accountId, name, owner, models, regions, createdAt, archivedAt } = row;
  return {
    ...{ id, accountId, name, keys },
    owner: owner ?? undefined,
    models: models ?? undefined,
    regions: regions ?? undefined,
    createdAt: createdAt.getTime(),
    archivedAt: archivedAt?.getTime(),
  };
}
