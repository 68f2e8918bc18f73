/** The keys of an organization in OpenAI's shape, without their secrets. */
import type { AccountAdmin, KeyView } from '../common/domain/admin/accounts.ts';
import type { AdministratorKey, MemberView } from '../common/domain/organizations/members.ts';
import type { Members } from './members.ts';
import { pageIn, secondsOf, secondsOrNull, unknown, wrong } from './shapes.ts';

export interface AdminKeys {
  readonly keys: AccountAdmin['keys'];
  readonly now: () => number;
  /** undefined: without a console there are no people. */
  readonly members: Members | undefined;
}

const pageRows = 500;
/** At most 1,000 keys work; the others have been revoked. */
const mostPages = 40;

export async function adminKeys(from: AdminKeys, { accountId }: AdministratorKey, query: URLSearchParams) {
  const order = query.get('order') ?? 'asc';
  if (order !== 'asc' && order !== 'desc') throw wrong('order', '"order" is asc or desc.');
  const newest = await working(from, accountId);
  const page = pageIn(order === 'asc' ? newest.toReversed() : newest, query, 'key');
  const owners = await ownersOf(from, accountId, page.data);
  return { ...page, data: page.data.map((key) => shown(key, owners)) };
}

export async function adminKey(from: AdminKeys, { accountId }: AdministratorKey, id: string) {
  const key = (await working(from, accountId)).find((one) => one.id === id);
  if (key === undefined) throw unknown('key', 'key_id');
  return shown(key, await ownersOf(from, accountId, [key]));
}

/** Newest first. */
async function working({ keys, now }: AdminKeys, accountId: string): Promise<KeyView[]> {
  const found: KeyView[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < mostPages; pages += 1) {
    const { rows, next } = await keys(accountId, { limit: pageRows, after });
    for (const key of rows)
      if (key.access === 'organization' && key.revokedAt === undefined && (key.expiresAt ?? Infinity) > now())
        found.push(key);
    if (next === undefined) break;
    after = next;
  }
  return found;
}

type Owners = ReadonlyMap<string, MemberView & { readonly name: string }>;

/** The members to whom these keys belong. */
async function ownersOf({ members }: AdminKeys, accountId: string, keys: readonly KeyView[]): Promise<Owners> {
  const people = new Set(keys.flatMap(({ person }) => person ?? []));
  if (members === undefined || people.size === 0) return new Map();
  const [rows, named] = await Promise.all([members.admin.list(accountId), members.contacts.named([...people])]);
  return new Map(
    rows.flatMap((row) =>
      people.has(row.person) ? [[row.person, { ...row, name: named.get(row.person)?.name ?? '' }] as const] : [],
    ),
  );
}

function shown({ id, name, prefix, createdAt, lastUsedAt, expiresAt, person }: KeyView, owners: Owners) {
  const owner = owners.get(person ?? '');
  return {
    ...{ object: 'organization.admin_api_key', id, name, redacted_value: `${prefix}...` },
    ...{ created_at: secondsOf(createdAt), last_used_at: secondsOrNull(lastUsedAt) },
    expires_at: secondsOrNull(expiresAt),
    owner:
      owner === undefined
        ? { ...service, id, name, created_at: secondsOf(createdAt) }
        : { ...user, id: owner.person, name: owner.name, created_at: secondsOf(owner.since), role: owner.role },
  };
}

const user = { type: 'user', object: 'organization.user' };
/** It may what an admin may. */
const service = { type: 'service_account', object: 'organization.service_account', role: 'admin' };
