/** Projects in OpenAI's shapes: what requests ask for, and what they are answered. */
import type { ProjectAdmin, ProjectView } from '../common/domain/organizations/projects.ts';
import { cursorFor } from '../common/kit/paging.ts';
import { bodyOf, limitIn, listOf, secondsOf, secondsOrNull, textIn, unknown } from './shapes.ts';

const fields = new Set(['name']);

export async function listed(projects: ProjectAdmin, accountId: string, query: URLSearchParams) {
  const limit = limitIn(query);
  const after = query.get('after');
  const behind = after === null ? undefined : await known(projects, accountId, after);
  const filter = query.get('include_archived') === 'true' ? {} : { archived: false };
  const page = { limit, after: behind === undefined ? undefined : cursorFor([behind.name]) };
  const { rows, next } = await projects.list(accountId, filter, page);
  return listOf(rows.map(shown), next !== undefined);
}

export const found = async (projects: ProjectAdmin, accountId: string, id: string) =>
  shown(await known(projects, accountId, id));

export const created = async (projects: ProjectAdmin, accountId: string, body: Uint8Array) =>
  shown(await projects.create(accountId, { name: nameIn(body) }));

export async function changed(projects: ProjectAdmin, accountId: string, id: string, body: Uint8Array) {
  const name = nameIn(body);
  const { owner, models, regions } = await known(projects, accountId, id);
  return shown(await projects.change(accountId, id, { name, owner, models, regions }));
}

export async function archived(projects: ProjectAdmin, accountId: string, id: string) {
  await known(projects, accountId, id);
  return shown(await projects.setArchived(accountId, id, true));
}

async function known(projects: ProjectAdmin, accountId: string, id: string): Promise<ProjectView> {
  const project = await projects.find(accountId, id);
  if (project !== undefined) return project;
  throw unknown('project', 'project_id');
}

const nameIn = (bytes: Uint8Array) => textIn(bodyOf(bytes, fields, 'projects'), 'name');

const shown = ({ id, name, createdAt, archivedAt }: ProjectView) => ({
  ...{ id, object: 'organization.project', name, created_at: secondsOf(createdAt) },
  archived_at: secondsOrNull(archivedAt),
  status: archivedAt === undefined ? 'active' : 'archived',
});
