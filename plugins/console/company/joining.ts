/** Whom a company's provider has signed in becomes a member of its account, unless its directory says that they have left. */
import { APIError } from 'better-auth/api';
import type { Host } from '../../../core/contract/contract.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { type Claims, firstMatch } from '../people/providers/claims.ts';
import { domainOf } from '../people/providers/mail-domains.ts';
import { memberAdmin } from '../services.ts';
import { type ApplyParts, applyGiven, type Given, givenByNames } from './apply.ts';
import type { ScimStore } from './scim/store.ts';
import type { CompanyStore } from './store.ts';
import type { Company } from './types.ts';

interface Parts extends ApplyParts {
  readonly host: Pick<Host, 'find'>;
  readonly store: CompanyStore;
  readonly scim: Pick<ScimStore, 'userOf' | 'groupsOf'>;
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

export type JoinCompany = (arriving: Arriving) => Promise<void>;

export function joinsCompanies(parts: Parts): JoinCompany {
  return async (arriving) => {
    const members = parts.host.find(memberAdmin);
    if (members === undefined) throw refusal('no_account');
    const { personId, email, company, by: reason, address } = arriving;
    const { accountId } = company;
    if (company.lapsed.includes(domainOf(email)) && (await members.roleOf(accountId, personId)) === undefined)
      throw refusal('domain_lapsed');
    const given = await givenTo(parts, arriving);
    const actor = { kind: 'person', id: personId, label: email, role: 'client' } as const;
    try {
      await applyGiven(parts, members, { accountId, personId, email, actor, reason, address }, given);
    } catch (error) {
      throw toGatewayError(error).kind === 'conflict' ? refusal('account_full') : error;
    }
  };
}

/** Groups of the company's directory count before those that the provider names. */
async function givenTo({ scim, store }: Parts, { company, personId, claims }: Arriving): Promise<Given> {
  const { accountId } = company;
  const user = await scim.userOf(accountId, personId);
  if (user !== undefined && (!user.active || user.deletedAt !== null)) throw refusal('deprovisioned');
  if (user !== undefined) {
    const { any, names } = await scim.groupsOf(accountId, user.id);
    if (any) return givenByNames(company, names);
  }
  const match = firstMatch(company.groups, claims);
  if (match !== 'unknown') return { role: match?.role ?? company.role, project: match?.project ?? null };
  // Groups that the provider has left out, as they are too many, take nothing away and give nothing.
  const before = await store.claimed(accountId, personId);
  return { role: before?.role ?? company.role, project: before?.project ?? null };
}

const refusal = (code: string) =>
  new APIError('FORBIDDEN', { code, message: 'The account of this provider does not take this person.' });
