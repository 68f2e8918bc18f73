/** Whom a company's provider has signed in becomes a member of its account; role and project follow a change of their groups. */
import { APIError } from 'better-auth/api';
import type { Host } from '../../../core/contract/contract.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import type { MemberAdmin } from '../../common/domain/organizations/members.ts';
import type { MemberRole } from '../../common/domain/organizations/rights.ts';
import { type Claims, firstMatch } from '../people/providers/claims.ts';
import type { Audit, AuditChange } from '../people.ts';
import { memberAdmin } from '../services.ts';
import type { CompanyStore } from './store.ts';
import type { Company } from './types.ts';

interface Parts {
  readonly host: Pick<Host, 'find'>;
  readonly store: CompanyStore;
  readonly audit: Audit;
}

interface Arriving {
  readonly personId: string;
  readonly email: string;
  readonly company: Company;
  /** Id of the provider. */
  readonly by: string;
  readonly claims: Claims;
  readonly address: string;
}

/** Owners are changed by people alone. */
const by = { role: 'admin' } as const;

export type JoinCompany = (arriving: Arriving) => Promise<void>;

export function joinsCompanies(parts: Parts): JoinCompany {
  return async (arriving) => {
    const members = parts.host.find(memberAdmin);
    if (members === undefined) throw refusal('no_account');
    const { personId, company, claims } = arriving;
    const { accountId } = company;
    const [before, claimed] = await Promise.all([
      members.roleOf(accountId, personId),
      parts.store.claimed(accountId, personId),
    ]);
    const { role, project } = givenBy(company, claims, claimed);
    if (before === undefined) await join(parts, members, arriving, role);
    else if (before !== 'owner' && claimed !== undefined && claimed.role !== role && before !== role)
      await noted(parts, arriving, 'member.change', [{ field: 'role', before, after: role }], () =>
        members.setRole(accountId, personId, role, by),
      );
    if (claimed === undefined || claimed.role !== role || claimed.project !== project)
      await parts.store.noteClaimed(accountId, personId, { role, project });
  };
}

type Claimed = Awaited<ReturnType<CompanyStore['claimed']>>;
interface Given {
  readonly role: MemberRole;
  readonly project: string | null;
}

/** Groups that the provider has left out, as they are too many, take nothing away and give nothing. */
function givenBy({ groups, role }: Company, claims: Claims, before: Claimed): Given {
  const match = firstMatch(groups, claims);
  if (match === 'unknown') return { role: before?.role ?? role, project: before?.project ?? null };
  return { role: match?.role ?? role, project: match?.project ?? null };
}

function join(parts: Parts, members: MemberAdmin, arriving: Arriving, role: MemberRole): Promise<void> {
  const { personId, company } = arriving;
  return noted(parts, arriving, 'member.join', [{ field: 'role', before: null, after: role }], () =>
    members.join(company.accountId, personId, role),
  );
}

async function noted(
  { audit }: Parts,
  { personId, email, company, by: provider, address }: Arriving,
  action: string,
  changes: readonly AuditChange[],
  work: () => Promise<void>,
): Promise<void> {
  const actor = { kind: 'person', id: personId, label: email, role: 'client' } as const;
  const row = { actor, action, subject: email, reason: provider, address, accountId: company.accountId, changes };
  const end = await audit.begin(row);
  try {
    await work();
    await end('done');
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    await end(code ?? kind);
    throw kind === 'conflict' ? refusal('account_full') : error;
  }
}

const refusal = (code: string) =>
  new APIError('FORBIDDEN', { code, message: 'The account of this provider takes no more people.' });
