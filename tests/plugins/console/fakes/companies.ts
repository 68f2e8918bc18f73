/** The sign-in of a company in memory: one domain is verified when it is asked for the second time. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Companies } from '../../../../plugins/console/company/companies.ts';
import type { DomainView, ProviderOfAccount } from '../../../../plugins/console/company/types.ts';

export function fakeCompanies(now: () => number): Companies {
  const domains = new Map<string, DomainView>();
  let provider: ProviderOfAccount | undefined;
  let required = false;
  let token: Awaited<ReturnType<Companies['scim']['token']>>;
  const asked = new Set<string>();
  return {
    isOffered: true,
    saml: {} as Companies['saml'],
    fetch: () => Promise.reject(new Error('no network')),
    domains: {
      list: async () => [...domains.values()],
      async add(_accountId, domain) {
        domains.set(domain, { domain, token: 'a-token-of-this-test', verifiedAt: undefined, missingSince: undefined });
      },
      async verify(_accountId, domain) {
        if (!asked.has(domain)) {
          asked.add(domain);
          throw new GatewayError('conflict', 'The record is not there.', { code: 'domain_not_verified' });
        }
        domains.set(domain, { ...domains.get(domain)!, verifiedAt: now() });
      },
      async remove(_accountId, domain) {
        domains.delete(domain);
      },
    },
    scim: {
      token: async () => token,
      async renew() {
        token = { accountId: '', hash: '', createdAt: new Date(now()), lastUsedAt: null };
        return 'scim-a-token-of-this-test';
      },
      async remove() {
        token = undefined;
      },
    } as Partial<Companies['scim']> as Companies['scim'],
    of: async () => provider,
    async save(_accountId, wanted) {
      provider = { ...wanted, id: 'company-0123456789abcdef' };
    },
    async saveSaml(_accountId, { metadata, emailAttribute, ...wanted }) {
      const entityId = 'https://login.acme.example/saml';
      const saml = { entityId, entry: `${entityId}/sso`, certificates: [], emailAttribute, metadataUrl: metadata };
      const client = { issuer: entityId, clientId: '', scopes: [], verifiedClaim: 'email_verified' };
      provider = { ...wanted, ...client, saml, id: 'company-0123456789abcdef' };
    },
    async remove() {
      provider = undefined;
    },
    isRequired: async () => required,
    async require(_accountId, wanted) {
      required = wanted;
    },
    requiredFor: async () => undefined,
    check: async () => undefined,
    problem: async () => undefined,
    named: async () => provider && { id: provider.id, name: provider.name },
    exist: async () => provider !== undefined,
    found: async () => undefined,
    placed: async (given) => given,
    projectOf: async () => undefined,
  };
}
