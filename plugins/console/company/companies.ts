/** The sign-in of companies, put together: their domains and providers, and how people join. */
import type { Host } from '../../../core/contract/contract.ts';
import { companyDomains } from './domains.ts';
import { type CompanyParts, companyProviders, guardedFetch } from './providers.ts';

export type Companies = ReturnType<typeof openCompanies>;

export function openCompanies(parts: CompanyParts) {
  const { store, settings, host } = parts;
  const fetch: Host['fetch'] = guardedFetch(host.fetch, settings.companies.private_providers);
  return {
    ...companyProviders(parts),
    domains: companyDomains(parts),
    fetch,
    /** Project that keys of a member are for; undefined: any. */
    async projectOf(accountId: string, personId: string): Promise<string | undefined> {
      return (await store.claimed(accountId, personId))?.project ?? undefined;
    },
    /** Whether owners may set up one. */
    isOffered: settings.companies.sign_in,
  };
}
