/** Projects in OpenAI's shapes: what requests ask for, and what they are answered. */
import { GatewayError } from '../../core/contract/errors.ts';
import { readBody } from '../../core/json/request-body.ts';
import type { ProjectAdmin, ProjectView } from '../common/domain/organizations/projects.ts';
import { cursorFor } from '../common/kit/paging.ts';

const mostListed = 100;
const usualListed = 20;
const fields = new Set(['name']);

export async function listed(projects: ProjectAdmin, accountId: string, query: URLSearchParams) {
  const limit = limitIn(query);
  const after = query.get('after');
  const behind = after === null ? undefined : await known(projects, accountId, after);
  const filter = query.get('include_archived') === 'true' ? {} : { archived: false };
  const page = { limit, after: behind === undefined ? undefined : cursorFor([behind.name]) };
  const { rows, next } = await projects.list(accountId, filter, page);
  const data = rows.map(shown);
  return {
    ...{ object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
    has_more: next !== undefined,
  };
}

export const found = async (projects: ProjectAdmin, accountId: string, id: string) =>
  shown(await known(projects, accountId, id));

export const created = async (projects: ProjectAdmin, accountId: string, body: Uint8Array) =>
  shown(await projects.create(accountId, { name: nameIn(body) }));

export async function changed(projects: ProjectAdmin, accountId: string, id: string, body: Uint8Array) {
  const name = nameIn(body);
  const { owner, models } = await known(projects, accountId, id);
  return shown(await projects.change(accountId, id, { name, owner, models }));
}

export async function archived(projects: ProjectAdmin, accountId: string, id: string) {
  await known(projects, accountId, id);
  return shown(await projects.setArchived(accountId, id, true));
}

async function known(projects: ProjectAdmin, accountId: string, id: string): Promise<ProjectView> {
  const project = await projects.find(accountId, id);
  if (project !== undefined) return project;
  throw new GatewayError('not_found', 'There is no such project.', { field: 'project_id', shouldRetry: false });
}

function limitIn(query: URLSearchParams): number {
  const text = query.get('limit') ?? String(usualListed);
  const limit = /^\d{1,4}$/.test(text) ? Number.parseInt(text, 10) : 0;
  if (limit >= 1 && limit <= mostListed) return limit;
  throw wrong('limit', `"limit" is a whole number from 1 to ${mostListed}.`);
}

/** Other members are refused: an answer that leaves them out would look as if they were taken. */
function nameIn(bytes: Uint8Array): string {
  const { json } = readBody(bytes, fields);
  const other = Object.keys(json).find((member) => !fields.has(member));
  if (other !== undefined) throw wrong(other, `The field "${other.slice(0, 100)}" is not known for projects.`);
  const { name } = json;
  if (typeof name !== 'string') throw wrong('name', 'The field "name" must be a text.');
  return name;
}

const wrong = (field: string, message: string) =>
  new GatewayError('invalid_request', message, { field, shouldRetry: false });

const secondsOf = (at: number) => Math.floor(at / 1000);

const shown = ({ id, name, createdAt, archivedAt }: ProjectView) => ({
  ...{ id, object: 'organization.project', name, created_at: secondsOf(createdAt) },
  archived_at: archivedAt === undefined ? null : secondsOf(archivedAt),
  status: archivedAt === undefined ? 'active' : 'archived',
});
