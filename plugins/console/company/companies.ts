/** The sign-in of companies, put together: their domains and providers, and how people join. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Log } from '../../../core/contract/host-tools.ts';
import { noticeSender } from '../../common/domain/admin/notices.ts';
import { hashSecret, makeSecret } from '../people/secrets.ts';
import { companyDomains } from './domains.ts';
import { type CompanyParts, companyProviders, guardedFetch } from './providers.ts';
import type { SamlParts } from './saml/parts.ts';
import { refreshMetadata } from './saml/refresh.ts';
import type { ScimStore } from './scim/store.ts';
import type { Company } from './types.ts';
import { checkDomains, isLapsed } from './watch.ts';

export type Companies = ReturnType<typeof openCompanies>;

interface Parts extends CompanyParts {
  readonly scimStore: ScimStore;
  readonly newId: () => string;
  readonly log: Log;
  readonly saml: SamlParts;
  /** Resolves with the id of a person who is new here. */
  readonly makePerson: (email: string, name: string) => Promise<string>;
}

export function openCompanies(parts: Parts) {
  const { store, settings, host } = parts;
  const providers = companyProviders(parts);
  const fetch: Host['fetch'] = guardedFetch(host.fetch, settings.companies.private_providers);
  return {
    ...providers,
    domains: companyDomains(parts),
    scim: scimOf(parts, providers),
    fetch,
    saml: parts.saml,
    async check() {
      await checkDomains({ ...parts, servers: settings.companies.dns, notices: () => host.find(noticeSender) });
      await refreshMetadata({ ...parts, reading: { fetch, isAnyAllowed: settings.companies.private_providers } });
    },
    /** Project that keys of a member are for; undefined: any. */
    async projectOf(accountId: string, personId: string): Promise<string | undefined> {
      return (await store.claimed(accountId, personId))?.project ?? undefined;
    },
    /** Whether owners may set up one. */
    isOffered: settings.companies.sign_in,
  };
}

/** The directory of a company: its token, and what its requests need. */
function scimOf(parts: Parts, providers: ReturnType<typeof companyProviders>) {
  const { store, scimStore, clock, random, newId, makePerson, settings } = parts;
  const now = () => new Date(clock.now());
  return {
    store: scimStore,
    claimed: store,
    newId,
    makePerson,
    /** Another one, which takes the place of the one before; it is returned only here. */
    async renew(accountId: string): Promise<string> {
      const token = makeSecret(random, 'scim-');
      await scimStore.setToken(accountId, hashSecret(token), now());
      return token;
    },
    remove: (accountId: string) => scimStore.removeToken(accountId),
    token: (accountId: string) => scimStore.tokenOf(accountId),
    accountOf: async (token: string) =>
      settings.companies.sign_in ? scimStore.used(hashSecret(token), now()) : undefined,
    async domains(accountId: string): Promise<readonly string[]> {
      const found = await store.domainsOf(accountId);
      const held = found.filter((one) => one.verifiedAt !== undefined && !isLapsed(one, clock.now()));
      return held.map(({ domain }) => domain);
    },
    async rules(accountId: string): Promise<Pick<Company, 'groups' | 'role'>> {
      const { groups = [], role = 'developer' } = (await providers.of(accountId)) ?? {};
      return { groups, role };
    },
  };
}
