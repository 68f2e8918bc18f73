/** Gives somebody the role and the project that their groups say: they become a member, or change where the groups have. */
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import type { MemberAdmin } from '../../common/domain/organizations/members.ts';
import type { MemberRole } from '../../common/domain/organizations/rights.ts';
import type { Actor } from '../actor.ts';
import type { Audit, AuditChange } from '../people.ts';
import type { CompanyStore } from './store.ts';
import type { Company } from './types.ts';

export interface ApplyParts {
  readonly store: Pick<CompanyStore, 'claimed' | 'noteClaimed'>;
  readonly audit: Audit;
}

export interface Target {
  readonly accountId: string;
  readonly personId: string;
  readonly email: string;
  readonly actor: Actor;
  /** Provider or directory that says so. */
  readonly reason: string;
  readonly address: string;
}

export interface Given {
  readonly role: MemberRole;
  readonly project: string | null;
}

/** By names of groups; the first rule that holds counts. */
export function givenByNames({ groups, role }: Pick<Company, 'groups' | 'role'>, names: readonly string[]): Given {
  const rule = groups.find(({ value }) => names.includes(value));
  return { role: rule?.role ?? role, project: rule?.project ?? null };
}

/** Owners are changed by people alone. */
const by = { role: 'admin' } as const;

export async function applyGiven(
  parts: ApplyParts,
  members: MemberAdmin,
  target: Target,
  { role, project }: Given,
): Promise<void> {
  const { accountId, personId } = target;
  const [before, claimed] = await Promise.all([
    members.roleOf(accountId, personId),
    parts.store.claimed(accountId, personId),
  ]);
  if (before === undefined)
    await noted(parts, target, 'member.join', [{ field: 'role', before: null, after: role }], () =>
      members.join(accountId, personId, role),
    );
  else if (before !== 'owner' && claimed !== undefined && claimed.role !== role && before !== role)
    await noted(parts, target, 'member.change', [{ field: 'role', before, after: role }], () =>
      members.setRole(accountId, personId, role, by),
    );
  if (claimed === undefined || claimed.role !== role || claimed.project !== project)
    await parts.store.noteClaimed(accountId, personId, { role, project });
}

/** With its row in the audit log of the account. */
export async function noted(
  { audit }: Pick<ApplyParts, 'audit'>,
  { actor, email: subject, reason, address, accountId }: Target,
  action: string,
  changes: readonly AuditChange[],
  work: () => Promise<void>,
): Promise<void> {
  const end = await audit.begin({ actor, action, subject, reason, address, accountId, changes });
  try {
    await work();
    await end('done');
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    await end(code ?? kind);
    throw error;
  }
}
