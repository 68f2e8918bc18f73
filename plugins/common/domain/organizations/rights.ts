/** What each role of a member may do in an account: the one table, which guards, the API's description, the docs and tests read. */
import { table } from '../../../../core/contract/table.ts';

/** From the most rights to the fewest. */
export const memberRoles = ['owner', 'admin', 'billing', 'developer', 'viewer'] as const;
export type MemberRole = (typeof memberRoles)[number];

interface Right {
  readonly what: string;
  readonly roles: readonly MemberRole[];
}

const rights = {
  member: { what: 'Choose the account, see its projects, leave it', roles: memberRoles },
  usage: { what: 'Read requests and their sums; developers: of their own keys', roles: memberRoles },
  allUsage: { what: 'Read those of all keys', roles: ['owner', 'admin', 'billing', 'viewer'] },
  work: { what: 'Tasks, files and batches', roles: ['owner', 'admin', 'developer'] },
  keys: { what: 'Make, change and revoke own keys', roles: ['owner', 'admin', 'developer'] },
  allKeys: { what: "Keys of other members and services, and the organization's", roles: ['owner', 'admin'] },
  projects: { what: 'Make, change and archive projects', roles: ['owner', 'admin'] },
  budgets: { what: 'Set budgets, add to them and end them', roles: ['owner', 'admin'] },
  members: {
    what: 'Invite, change and remove members; owners alone make and remove owners',
    roles: ['owner', 'admin'],
  },
  signIn: { what: "Set by which provider people of the company's domains sign in", roles: ['owner'] },
  account: { what: 'Rename the account', roles: ['owner'] },
  audit: { what: 'Read what members and operators have done in the account', roles: ['owner', 'admin'] },
  pages: { what: 'Pages that plugins add', roles: ['owner', 'admin'] },
  wallet: { what: 'Read balance, movements and statements', roles: ['owner', 'admin', 'billing'] },
  notices: { what: 'Choose notices, and get them by mail', roles: ['owner', 'admin', 'billing'] },
  payments: { what: 'Pay, redeem codes, choose the plan', roles: ['owner', 'billing'] },
} as const satisfies Record<string, Right>;
export type AccountRight = keyof typeof rights;

export const accountRights: Readonly<Record<AccountRight, Right>> = table(rights);

/** A role that there is not has no right. */
export const includes = (role: MemberRole, right: AccountRight): boolean => accountRights[right].roles.includes(role);

/** Whether somebody of this role may give, change or take away the other role: owners all, admins all but an owner's. */
export const mayManage = (role: MemberRole, other: MemberRole): boolean =>
  includes(role, 'members') && (role === 'owner' || other !== 'owner');
