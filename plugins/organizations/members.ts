/** Members and invitations in OpenAI's shapes, with the roles of this gateway. */
import { GatewayError } from '../../core/contract/errors.ts';
import type {
  AdministratorKey,
  InvitationView,
  MemberAdmin,
  MemberContacts,
  MemberView,
} from '../common/domain/organizations/members.ts';
import { bodyOf, pageIn, roleIn, secondsOf, secondsOrNull, textIn, unknown, wrong } from './shapes.ts';

export interface Members {
  readonly admin: MemberAdmin;
  readonly contacts: MemberContacts;
  readonly now: () => number;
}

/** A key of the organization may what an admin may. */
const by = { role: 'admin' } as const;
const userFields = new Set(['role']);
const inviteFields = new Set(['email', 'role']);
const longestEmail = 200;

export async function users({ admin, contacts }: Members, { accountId }: AdministratorKey, query: URLSearchParams) {
  const rows = await admin.list(accountId);
  const page = pageIn(
    rows.map((row) => ({ ...row, id: row.person })),
    query,
    'user',
  );
  const named = await contacts.named(page.data.map(({ person }) => person));
  return { ...page, data: page.data.map((row) => userShown(row, named)) };
}

export async function user({ admin, contacts }: Members, { accountId }: AdministratorKey, id: string) {
  const row = (await admin.list(accountId)).find(({ person }) => person === id);
  if (row === undefined) throw unknown('user', 'user_id');
  return userShown(row, await contacts.named([id]));
}

export async function changedUser(members: Members, key: AdministratorKey, id: string, body: Uint8Array) {
  const before = await user(members, key, id);
  const role = roleIn(bodyOf(body, userFields, 'users'));
  const changes = [{ field: 'role', before: before.role, after: role }];
  const change = { action: 'member.change', subject: before.email || id, changes };
  await members.contacts.logged(key, change, () => members.admin.setRole(key.accountId, id, role, by));
  return user(members, key, id);
}

/** Their keys are revoked. */
export async function removedUser(members: Members, key: AdministratorKey, id: string) {
  const { email } = await user(members, key, id);
  const changes = [{ field: 'keys', before: null, after: 'revoke' }];
  const change = { action: 'member.remove', subject: email || id, changes };
  await members.contacts.logged(key, change, () => members.admin.remove(key.accountId, id, 'revoke', by));
  return { object: 'organization.user.deleted', id, deleted: true };
}

type Named = Awaited<ReturnType<MemberContacts['named']>>;

function userShown({ person: id, role, since }: MemberView, named: Named) {
  const { name = '', email = '' } = named.get(id) ?? {};
  return { object: 'organization.user', id, name, email, role, added_at: secondsOf(since) };
}

export async function invites({ admin, now }: Members, { accountId }: AdministratorKey, query: URLSearchParams) {
  const page = pageIn(await admin.invitations.list(accountId), query, 'invite');
  return { ...page, data: page.data.map((row) => inviteShown(row, now())) };
}

export async function invite({ admin, now }: Members, { accountId }: AdministratorKey, id: string) {
  const row = (await admin.invitations.list(accountId)).find((one) => one.id === id);
  if (row === undefined) throw unknown('invite', 'invite_id');
  return inviteShown(row, now());
}

/** `link`: to hand over, where this gateway sends no mails; null: it went out by mail. */
export async function createdInvite(members: Members, key: AdministratorKey, body: Uint8Array) {
  const json = bodyOf(body, inviteFields, 'invites');
  const email = textIn(json, 'email').trim();
  if (!/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email) || email.length > longestEmail)
    throw wrong('email', 'The field "email" must be an address.');
  const { id, link = null } = await members.contacts.invite(key, { email, role: roleIn(json) });
  return { ...(await invite(members, key, id)), link };
}

export async function deletedInvite(members: Members, key: AdministratorKey, id: string) {
  const { status } = await invite(members, key, id);
  if (status !== 'pending')
    throw new GatewayError('conflict', 'This invite does not wait any more.', {
      field: 'invite_id',
      shouldRetry: false,
    });
  await members.contacts.withdraw(key, id);
  return { object: 'organization.invite.deleted', id, deleted: true };
}

function inviteShown({ id, email, role, createdAt, expiresAt, acceptedAt }: InvitationView, now: number) {
  const status = acceptedAt !== undefined ? 'accepted' : expiresAt > now ? 'pending' : 'expired';
  return {
    ...{ object: 'organization.invite', id, email, role, status },
    ...{ created_at: secondsOf(createdAt), invited_at: secondsOf(createdAt), expires_at: secondsOf(expiresAt) },
    accepted_at: secondsOrNull(acceptedAt),
  };
}
