/** Groups of a company's directory: who is in them decides role and project. */
import { isObject, type JsonObject, textOf } from '../../../../core/json/json.ts';
import { noted } from '../apply.ts';
import { type Directory, follow, targetOf } from './directory.ts';
import { changedMembers, idsIn, isOfMembers, type Operation, operationsOf } from './patch.ts';
import { filterOf, groupSchema, listBody, missing, pagingOf, ScimError, wrong } from './shapes.ts';
import type { GroupRow } from './tables.ts';

const mostGroups = 500;
const mostInGroup = 5_000;

export async function listGroups(directory: Directory, query: URLSearchParams) {
  const { store, accountId } = directory;
  const paging = pagingOf(query);
  const { rows, total } = await store.groups(accountId, filterOf(query, ['displayName', 'externalId', 'id']), paging);
  const isShort = /\bmembers\b/i.test(query.get('excludedAttributes') ?? '');
  const members = isShort ? undefined : await store.membersIn(rows.map(({ id }) => id));
  const shown = rows.map((row) => bodyOf(directory, row, members && (members.get(row.id) ?? [])));
  return listBody(shown, total, paging);
}

export async function groupBody(directory: Directory, row: GroupRow) {
  return bodyOf(directory, row, await membersOf(directory, row.id));
}

function bodyOf({ base }: Directory, row: GroupRow, members: readonly string[] | undefined) {
  const { id, displayName, externalId } = row;
  return {
    schemas: [groupSchema],
    ...{ id, displayName, ...(externalId === null ? {} : { externalId }) },
    ...(members === undefined ? {} : { members: members.map((value) => ({ value, $ref: `${base}/Users/${value}` })) }),
    meta: {
      resourceType: 'Group',
      created: row.createdAt.toISOString(),
      lastModified: row.updatedAt.toISOString(),
      location: `${base}/Groups/${id}`,
    },
  };
}

export async function groupOf({ store, accountId }: Directory, id: string): Promise<GroupRow> {
  const row = await store.group(accountId, id);
  if (row === undefined) throw missing();
  return row;
}

const membersOf = async ({ store }: Directory, id: string) => (await store.membersIn([id])).get(id) ?? [];

export async function makeGroup(directory: Directory, body: JsonObject): Promise<GroupRow> {
  const { store, accountId } = directory;
  if ((await store.countGroups(accountId)) >= mostGroups) throw new ScimError(403, 'The account has too many groups.');
  const at = directory.now();
  const row = { ...readGroup(body), id: directory.newId(), accountId, createdAt: at, updatedAt: at };
  await save(directory, row, 'scim.group', { before: [], after: idsIn(body['members'] ?? []) });
  return row;
}

export async function replaceGroup(directory: Directory, id: string, body: JsonObject): Promise<GroupRow> {
  const before = await groupOf(directory, id);
  const row = { ...before, ...readGroup(body), updatedAt: directory.now() };
  const members = { before: await membersOf(directory, id), after: idsIn(body['members'] ?? []) };
  await save(directory, row, 'scim.group', members);
  return row;
}

export async function patchGroup(directory: Directory, id: string, body: JsonObject): Promise<GroupRow> {
  const row = await groupOf(directory, id);
  const before = await membersOf(directory, id);
  const changed = operationsOf(body).reduce(changedGroup, { body: groupOnly(row), members: new Set(before) });
  const next = { ...row, ...readGroup(changed.body), updatedAt: directory.now() };
  await save(directory, next, 'scim.group', { before, after: [...changed.members] });
  return next;
}

export async function removeGroup(directory: Directory, id: string): Promise<void> {
  const row = await groupOf(directory, id);
  const before = await membersOf(directory, id);
  const target = targetOf(directory, '', row.displayName);
  await noted(directory, target, 'scim.group-off', [], async () => {
    await directory.store.removeGroup(directory.accountId, id);
    await followAll(directory, before);
  });
}

const groupOnly = ({ displayName, externalId }: GroupRow): JsonObject => ({ displayName, externalId });

interface Changed {
  readonly body: JsonObject;
  readonly members: ReadonlySet<string>;
}

function changedGroup({ body, members }: Changed, operation: Operation): Changed {
  const { op, path, value } = operation;
  if (isOfMembers(operation)) return { body, members: changedMembers(members, operation) };
  if (path !== undefined) return { body: { ...body, [path]: op === 'remove' ? undefined : value }, members };
  if (!isObject(value)) throw wrong('Without a path, value must be an object.');
  const { members: named, ...others } = value;
  const after = named === undefined ? members : changedMembers(members, { op, path: 'members', value: named });
  return { body: { ...body, ...others }, members: after };
}

function readGroup(body: JsonObject): Pick<GroupRow, 'displayName' | 'externalId'> {
  const displayName = textOf(body['displayName'])?.trim() ?? '';
  if (displayName === '' || displayName.length > 200)
    throw wrong('displayName must be a text of at most 200 characters.');
  const externalId = textOf(body['externalId']) ?? null;
  if ((externalId?.length ?? 0) > 200) throw wrong('externalId has at most 200 characters.');
  return { displayName, externalId };
}

interface Members {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Users of other accounts, and unknown ones, are refused. */
async function save(directory: Directory, row: GroupRow, action: string, { before, after }: Members): Promise<void> {
  const { store, accountId } = directory;
  const wanted = [...new Set(after)];
  if (wanted.length > mostInGroup) throw new ScimError(403, 'The group has too many members.');
  const known = await store.usersAmong(accountId, wanted);
  if (known.length < wanted.length) throw wrong('A member of the group is no user of this account.');
  const other = await store.groupNamed(accountId, row.displayName);
  if (other !== undefined && other.id !== row.id)
    throw new ScimError(409, 'There is a group of this name.', 'uniqueness');
  const changes = [{ field: 'members', before: String(before.length), after: String(wanted.length) }];
  await noted(directory, targetOf(directory, '', row.displayName), action, changes, async () => {
    await store.saveGroup(row);
    await store.setMembers(row.id, wanted);
    await followAll(directory, [...new Set([...before, ...wanted])]);
  });
}

async function followAll(directory: Directory, ids: readonly string[]): Promise<void> {
  for (const user of await directory.store.usersAmong(directory.accountId, ids))
    if (user.active) await follow(directory, user, user.userName);
}
