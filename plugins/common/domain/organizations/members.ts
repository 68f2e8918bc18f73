/** Members of accounts: people, each with a role in each account, and invitations by which they join. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { Page, PageRequest } from '../admin/pages.ts';
import type { MemberRole } from './rights.ts';

export interface MemberView {
  readonly person: string;
  readonly role: MemberRole;
  readonly since: number;
  /** Their keys in the account that are not revoked, and when one of them was used last. */
  readonly keys: number;
  readonly keysUsedAt: number | undefined;
}

interface OwnMembership {
  readonly accountId: string;
  readonly name: string;
  readonly role: MemberRole;
}

/** Who changes members: a person, a key of the organization, which may what an admin may, or a company's directory, which may what owners may. */
export type MembersChanger = { readonly person: string } | { readonly role: 'admin' | 'owner' };

/** What becomes of the keys of somebody who goes. */
export type LeftKeys = 'revoke' | { readonly handTo: string };

export interface InvitationView {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly role: MemberRole;
  /** Id of a person; undefined: a key of the organization. */
  readonly invitedBy: string | undefined;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly acceptedAt: number | undefined;
}

/** Changes throw `forbidden` where the changer's role does not include them, and `conflict` where the last owner would go. */
export interface MemberAdmin {
  /** undefined: they are no member. */
  roleOf(accountId: string, person: string): Promise<MemberRole | undefined>;
  /** In the account that was made for them: they own it from the first question on. undefined: they have left it. */
  roleAtHome(accountId: string, person: string): Promise<MemberRole | undefined>;
  /** By name, at most 100. */
  accountsOf(person: string): Promise<readonly OwnMembership[]>;
  /** The longest first, all of them: their number is bounded. */
  list(accountId: string): Promise<readonly MemberView[]>;
  /** Members with one of these roles, by account. */
  peopleOf(
    accountIds: readonly string[],
    roles: readonly MemberRole[],
  ): Promise<ReadonlyMap<string, readonly string[]>>;
  /** Without an invitation; a member stays what they are. `conflict`: the account has as many as there may be. */
  join(accountId: string, person: string, role: MemberRole): Promise<void>;
  setRole(accountId: string, person: string, role: MemberRole, by: MembersChanger): Promise<void>;
  /** Removes them at once, in all processes. Members may remove themselves. */
  remove(accountId: string, person: string, keys: LeftKeys, by: MembersChanger): Promise<void>;
  readonly invitations: InvitationAdmin;
}

export interface InvitationAdmin {
  /** `hash`: of the secret in the link. `conflict`: the address has one that waits, or there are as many as there may be. */
  create(
    accountId: string,
    wanted: { readonly email: string; readonly role: MemberRole; readonly hash: string },
    by: MembersChanger,
  ): Promise<InvitationView>;
  /** Newest first: those that wait, and those that ended in the last 30 days by being accepted or by time. */
  list(accountId: string): Promise<readonly InvitationView[]>;
  /** One that waits. */
  find(accountId: string, id: string): Promise<InvitationView | undefined>;
  /** With another secret and its whole time again; what an earlier link says is over. Resolves with the hash before. */
  renew(
    accountId: string,
    id: string,
    hash: string,
    by: MembersChanger,
  ): Promise<InvitationView & { readonly before: string }>;
  /** Resolves with the hash of its secret. */
  revoke(accountId: string, id: string, by: MembersChanger): Promise<{ readonly hash: string }>;
  /** One that waits, by its secret's hash, with the account's name. */
  byHash(hash: string): Promise<(InvitationView & { readonly account: string }) | undefined>;
  /** Once, for a person with the address of the invitation. undefined: it is over, or for another address. */
  accept(hash: string, who: { readonly person: string; readonly email: string }): Promise<OwnMembership | undefined>;
}

/** What was done in an account, for those who may read it. */
export interface MemberAct {
  readonly id: string;
  readonly at: number;
  /** Address of the person, or the name of the key. */
  readonly actor: string;
  /** Id of the person or the key. */
  readonly actorId: string | undefined;
  readonly actorKind: 'person' | 'token' | undefined;
  readonly action: string;
  readonly subject: string;
  readonly result: string;
  readonly changes: readonly {
    readonly field: string;
    readonly before: string | null;
    readonly after: string | null;
  }[];
}

interface MemberChange {
  readonly action: string;
  readonly subject: string;
  readonly changes?: MemberAct['changes'] | undefined;
}

/** A key of the organization, and where its request came from. */
export interface AdministratorKey {
  readonly accountId: string;
  readonly keyId: string;
  readonly address: string;
}

/** What members need beside their rows: who people are, mails, and the log of what was done. */
export interface MemberContacts {
  /** By id; people who are gone are absent. */
  named(people: readonly string[]): Promise<ReadonlyMap<string, { readonly name: string; readonly email: string }>>;
  /** `link`: to hand over, where this gateway sends no mails. */
  invite(
    key: AdministratorKey,
    wanted: { readonly email: string; readonly role: MemberRole },
  ): Promise<{ readonly id: string; readonly link: string | undefined }>;
  withdraw(key: AdministratorKey, invitationId: string): Promise<void>;
  /** Makes a change with its row in the log before and after it. */
  logged<T>(key: AdministratorKey, change: MemberChange, work: () => Promise<T>): Promise<T>;
  /** Newest first. */
  log(
    accountId: string,
    span: { readonly from?: number | undefined; readonly until?: number | undefined },
    page: PageRequest,
  ): Promise<Page<MemberAct>>;
}

/** Provided by the console. */
export const memberContacts = defineService<MemberContacts>('member contacts');

/** Provided by `auth`. */
export const memberAdmin = defineService<MemberAdmin>('member admin');
