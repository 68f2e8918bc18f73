/** People of a company's directory: made members, changed, and put out at once with their keys and sessions. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject, textOf } from '../../../../core/json/json.ts';
import { isPlainAddress } from '../../people/providers/mail-domains.ts';
import { noted } from '../apply.ts';
import { type Directory, follow, targetOf } from './directory.ts';
import { changedUser, operationsOf } from './patch.ts';
import { filterOf, listBody, missing, pagingOf, ScimError, userSchema, wrong } from './shapes.ts';
import type { UserRow } from './tables.ts';

/** Deleted ones too. */
const mostUsers = 5_000;
const longestAttributes = 8_192;

export function userBody({ id, userName, externalId, active, attributes, ...row }: UserRow, base: string) {
  const shown = JSON.parse(attributes) as JsonObject;
  return {
    schemas: [userSchema],
    ...{ ...shown, id, userName: shown['userName'] ?? userName },
    ...(externalId === null ? {} : { externalId }),
    active,
    meta: {
      resourceType: 'User',
      created: row.createdAt.toISOString(),
      lastModified: row.updatedAt.toISOString(),
      location: `${base}/Users/${id}`,
    },
  };
}

export async function listUsers({ store, accountId, base }: Directory, query: URLSearchParams) {
  const paging = pagingOf(query);
  const filter = filterOf(query, ['userName', 'externalId', 'id']);
  const { rows, total } = await store.users(accountId, filter, paging);
  return listBody(
    rows.map((row) => userBody(row, base)),
    total,
    paging,
  );
}

export async function userOf({ store, accountId }: Directory, id: string): Promise<UserRow> {
  const row = await store.user(accountId, id);
  if (row === undefined) throw missing();
  return row;
}

export async function makeUser(directory: Directory, body: JsonObject): Promise<UserRow> {
  const { store, accountId, newId } = directory;
  const wanted = readUser(body);
  const before = await store.userNamed(accountId, wanted.userName);
  if (before !== undefined && before.deletedAt === null) throw taken();
  const email = await addressOf(directory, wanted);
  const personId = await personAt(directory, email, wanted.name);
  const other = await store.userOf(accountId, personId);
  if (other !== undefined && other.deletedAt === null) throw taken();
  if ((await store.countUsers(accountId)) >= mostUsers) await store.forgetDeleted(accountId, 100);
  if ((await store.countUsers(accountId)) >= mostUsers) throw new ScimError(403, 'The account has too many users.');
  const at = directory.now();
  const id = other?.id ?? before?.id ?? newId();
  const row = { ...rowOf(wanted), id, accountId, personId, createdAt: at, updatedAt: at, deletedAt: null };
  // Those of whom it says that they have left from the first are only remembered.
  await store.saveUser(row);
  if (row.active) await follow(directory, row, email);
  return row;
}

export async function replaceUser(directory: Directory, id: string, body: JsonObject): Promise<UserRow> {
  return saved(directory, await userOf(directory, id), body);
}

export async function patchUser(directory: Directory, id: string, body: JsonObject): Promise<UserRow> {
  const before = await userOf(directory, id);
  const { active, externalId } = before;
  const shown: JsonObject = {
    ...(JSON.parse(before.attributes) as JsonObject),
    active,
    externalId: externalId ?? undefined,
  };
  return saved(directory, before, operationsOf(body).reduce(changedUser, shown));
}

async function saved(directory: Directory, before: UserRow, body: JsonObject): Promise<UserRow> {
  const { store, accountId } = directory;
  const wanted = readUser(body);
  const other = await store.userNamed(accountId, wanted.userName);
  if (other !== undefined && other.id !== before.id) throw taken();
  const row = { ...before, ...rowOf(wanted), updatedAt: directory.now() };
  if (before.active && !row.active) await putOut(directory, before, 'scim.deactivate');
  await store.saveUser(row);
  if (row.active) await follow(directory, row, row.userName);
  return row;
}

export async function removeUser(directory: Directory, id: string): Promise<void> {
  const row = await userOf(directory, id);
  const at = directory.now();
  if (row.active) await putOut(directory, row, 'scim.delete');
  await directory.store.saveUser({ ...row, active: false, updatedAt: at, deletedAt: at });
}

/** Their keys are revoked in all processes; sessions of the company end, and others see nothing of the account with their next request. */
async function putOut(directory: Directory, { personId, userName }: UserRow, action: string): Promise<void> {
  const { members, accountId, store } = directory;
  const work = async () => {
    if ((await members.roleOf(accountId, personId)) !== undefined)
      await members.remove(accountId, personId, 'revoke', { role: 'owner' });
    await store.endSessions(accountId, personId);
  };
  try {
    await noted(directory, targetOf(directory, personId, userName), action, [], work);
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'last_owner')
      throw new ScimError(409, 'The last owner of an account stays: make somebody else one first.', 'mutability');
    throw error;
  }
}

interface WantedUser {
  readonly userName: string;
  readonly externalId: string | null;
  readonly active: boolean;
  readonly mails: readonly string[];
  readonly name: string;
  readonly attributes: string;
}

function readUser(body: JsonObject): WantedUser {
  const userName = textOf(body['userName'])?.trim() ?? '';
  if (userName === '' || userName.length > 200) throw wrong('userName must be a text of at most 200 characters.');
  const externalId = textOf(body['externalId']) ?? null;
  if ((externalId?.length ?? 0) > 200) throw wrong('externalId has at most 200 characters.');
  const { displayName, name, emails } = body;
  const attributes = JSON.stringify({ userName, displayName, name, emails });
  if (attributes.length > longestAttributes) throw wrong('The attributes are too long.');
  const mails = (Array.isArray(emails) ? emails : []).filter(isObject);
  const first = mails.toSorted((one, other) => Number(other['primary'] === true) - Number(one['primary'] === true));
  return {
    ...{ userName: userName.toLowerCase(), externalId, active: isActive(body['active']), attributes },
    mails: [...first.map(({ value }) => textOf(value) ?? ''), userName],
    name: nameOf(displayName, name) || userName.split('@')[0]!,
  };
}

/** Entra sends texts. */
function isActive(given: unknown): boolean {
  if (given === undefined || given === null) return true;
  const text = String(given).toLowerCase();
  if (text === 'true' || text === 'false') return text === 'true';
  throw wrong('active must be true or false.');
}

function nameOf(displayName: unknown, name: unknown): string {
  const { formatted, givenName, familyName } = isObject(name) ? name : ({} as JsonObject);
  const parts = [givenName, familyName].map((part) => textOf(part) ?? '').join(' ');
  const found = [displayName, formatted, parts].map((one) => (textOf(one) ?? '').replace(/\p{Cc}+/gu, ' ').trim());
  return (found.find((one) => one !== '') ?? '').slice(0, 100);
}

const rowOf = ({ userName, externalId, active, attributes }: WantedUser) => ({
  ...{ userName, externalId, active, attributes },
});

/** The first of their addresses in a domain of the account. */
async function addressOf({ domains }: Directory, { mails }: WantedUser): Promise<string> {
  const verified = await domains();
  const own = mails.find((mail) => isPlainAddress(mail) && verified.includes(mail.split('@')[1]!.toLowerCase()));
  if (own !== undefined) return own.toLowerCase();
  throw wrong('No address of this user is in a verified domain of the account.');
}

/** Somebody who has this address without having confirmed it may be anybody, and people with rights here are no company's to name. */
async function personAt({ store, makePerson }: Directory, email: string, name: string): Promise<string> {
  const known = await store.personAt(email);
  if (known === undefined) return makePerson(email, name);
  if (known.verified && known.role === 'client') return known.id;
  throw new ScimError(409, 'Somebody has this address here: the operator must confirm it first.', 'uniqueness');
}

const taken = () => new ScimError(409, 'There is a user of this name or address.', 'uniqueness');
