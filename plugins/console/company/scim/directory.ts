/** One account's directory, as its requests see it, and how its groups give roles. */
import type { Clock } from '../../../../core/contract/host-tools.ts';
import type { MemberAdmin } from '../../../common/domain/organizations/members.ts';
import { type ApplyParts, applyGiven, givenByNames, type Target } from '../apply.ts';
import type { Company } from '../types.ts';
import type { ScimStore } from './store.ts';
import type { UserRow } from './tables.ts';

export interface Directory extends Omit<ApplyParts, 'store'> {
  readonly accountId: string;
  /** Address of the directory, without a slash at its end. */
  readonly base: string;
  /** Where the request came from. */
  readonly address: string;
  readonly store: ScimStore;
  readonly claimed: ApplyParts['store'];
  readonly members: MemberAdmin;
  readonly clock: Clock;
  readonly now: () => Date;
  readonly newId: () => string;
  /** Verified ones of the account. */
  readonly domains: () => Promise<readonly string[]>;
  /** What groups give. */
  readonly rules: () => Promise<Pick<Company, 'groups' | 'role'>>;
  /** Resolves with the id. */
  readonly makePerson: (email: string, name: string) => Promise<string>;
}

const actor = { kind: 'token', id: 'scim', label: 'SCIM', role: 'client' } as const;

export const targetOf = ({ accountId, address }: Directory, personId: string, email: string): Target => ({
  ...{ accountId, personId, email, actor, address, reason: 'SCIM' },
});

/** Role and project by the groups that the user is in now. */
export async function follow(directory: Directory, { id, personId }: UserRow, email: string): Promise<void> {
  const { store, claimed, audit, members, accountId } = directory;
  const [{ names }, rules] = await Promise.all([store.groupsOf(accountId, id), directory.rules()]);
  const given = givenByNames(rules, names);
  await applyGiven({ store: claimed, audit }, members, targetOf(directory, personId, email), given);
}
