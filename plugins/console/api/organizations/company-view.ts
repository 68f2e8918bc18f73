/** What owners see of their company's sign-in, and how often it may be changed. */

import { X509Certificate } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { grantedRoles } from '../../company/config.ts';
import { providerIdOf } from '../../company/providers.ts';
import { recordOf } from '../../company/records.ts';
import { samlAddresses } from '../../company/saml/parts.ts';
import type { DomainView, ProviderOfAccount } from '../../company/types.ts';
import { lapseMs } from '../../company/watch.ts';
import { authPath } from '../../people/auth-names.ts';
import { type ConsoleServices, ownAccount, type RequestContext } from '../routing/router.ts';
import { instant, isoOrNull } from '../schemas.ts';

export const text = (most: number) => z.string().trim().min(1).max(most);
const role = z.enum(grantedRoles);
export const group = z.strictObject({
  claim: z
    .union([text(200), z.array(text(200)).min(1).max(10)])
    .describe('Name of a claim, or the path to a member of one: `groups`, `realm_access.roles`.'),
  value: text(500).describe('Text that the claim is, or that is in its list.'),
  role,
  project: text(100).nullish().describe('Project that keys of these people are for; null: any.'),
});
export const providerInput = z
  .strictObject({
    name: text(60).describe('How people know it.'),
    issuer: z.url({ protocol: /^https?$/ }).max(500),
    clientId: text(500),
    clientSecret: text(2_000).optional().describe('Absent: the one before stays, where the issuer does.'),
    scopes: z.array(text(100)).min(1).max(20).default(['openid', 'email', 'profile']),
    verifiedClaim: text(200)
      .default('email_verified')
      .describe('Claim by which it says that it has verified the address; `xms_edov` for Microsoft Entra ID.'),
    role: role.default('developer').describe('Of people whom no group names.'),
    groups: z.array(group).max(50).default([]).describe('The first that holds counts, at each sign-in.'),
  })
  .openapi('CompanyProviderInput');
const domainView = z
  .object({
    domain: z.string(),
    record: z.object({ name: z.string(), value: z.string() }).describe('TXT record by which DNS says so.'),
    verifiedAt: instant.nullable(),
    lapsesAt: instant
      .nullable()
      .describe('When it stops to bring in new people, since its record is gone; null: the record is there.'),
  })
  .openapi('CompanyDomain');
const provider = providerInput
  .omit({ clientSecret: true })
  .extend({
    saml: z
      .object({
        entityId: z.string(),
        entry: z.string().describe('Where people are sent.'),
        emailAttribute: z.string(),
        metadataUrl: z.string().describe('Read again daily; empty: the metadata was pasted.'),
        certificates: z.array(z.object({ fingerprint: z.string().describe('SHA-256.'), expiresAt: instant })),
      })
      .nullable()
      .describe('Set for one that speaks SAML 2.0; its client id is empty.'),
  })
  .openapi('CompanyProvider');
export const view = z
  .object({
    offered: z.boolean().describe('false: this gateway lets owners set up no provider.'),
    redirectUri: z.string().describe('What is registered at the provider.'),
    domains: z.array(domainView),
    directory: z
      .object({
        address: z.string(),
        token: z
          .object({ createdAt: instant, lastUsedAt: instant.nullable() })
          .nullable()
          .describe('null: there is none, and no directory is taken.'),
      })
      .describe('SCIM 2.0: where the directory of the company says who is in the account.'),
    required: z.boolean().describe('Whether people of the domains sign in by the provider alone.'),
    saml: z
      .object({ acs: z.string(), entityId: z.string().describe('Address of the metadata of this gateway, too.') })
      .describe('What is registered at a provider that speaks SAML 2.0.'),
    provider: provider.nullable(),
  })
  .openapi('CompanySignIn');

export async function ownCompany(services: ConsoleServices, c: RequestContext) {
  const { companies } = services;
  const accountId = await ownAccount(services, c);
  const [domains, provider, required] = await Promise.all([
    companies.domains.list(accountId),
    companies.of(accountId),
    companies.isRequired(accountId),
  ]);
  return { accountId, domains, provider, required };
}

export async function shownCompany(services: ConsoleServices, c: RequestContext) {
  const { accountId, domains, provider, required } = await ownCompany(services, c);
  return {
    offered: services.companies.isOffered,
    redirectUri: `${c.env.origin}${authPath}/callback/${providerIdOf(accountId)}`,
    domains: domains.map(domainJson),
    directory: await directoryJson(services, accountId, c.env.origin),
    required,
    saml: samlAddresses(c.env.origin, providerIdOf(accountId)),
    provider: provider === undefined ? null : providerJson(provider),
  };
}

/** A change, within the bound, and what is there after it. */
export const changed =
  (services: ConsoleServices, c: RequestContext, work: (accountId: string) => Promise<void>) => async () => {
    await work(await turnOf(services, c));
    return shownCompany(services, c);
  };

/** What asks DNS or a provider is asked so often in a minute at most. */
const mostTurns = 30;

export async function turnOf(services: ConsoleServices, c: RequestContext): Promise<string> {
  const accountId = await ownAccount(services, c);
  const retryAfterMs = services.throttle.take(`company:${accountId}`, mostTurns, 60_000);
  if (retryAfterMs === 0) return accountId;
  throw new GatewayError('rate_limited', 'Too many changes. Try again later.', { retryAfterMs });
}

async function directoryJson({ companies }: ConsoleServices, accountId: string, origin: string) {
  const token = await companies.scim.token(accountId);
  const times = token && {
    createdAt: token.createdAt.toISOString(),
    lastUsedAt: token.lastUsedAt?.toISOString() ?? null,
  };
  return { address: `${origin}/console/scim/v2`, token: times ?? null };
}

/** What people compare with what the provider shows. */
function certificateJson(pem: string) {
  const { fingerprint256: fingerprint, validTo } = new X509Certificate(pem);
  return { fingerprint, expiresAt: new Date(validTo).toISOString() };
}

const domainJson = (one: DomainView) => ({
  domain: one.domain,
  record: recordOf(one),
  verifiedAt: isoOrNull(one.verifiedAt),
  lapsesAt: isoOrNull(one.missingSince && one.missingSince + lapseMs),
});

function providerJson(settings: ProviderOfAccount) {
  const { name, issuer, clientId, scopes, verifiedClaim, role: given, groups, saml } = settings;
  return {
    ...{ name, issuer, clientId, scopes: [...scopes], verifiedClaim, role: given },
    saml: saml === undefined ? null : { ...saml, certificates: saml.certificates.map(certificateJson) },
    groups: groups.map(({ claim, project = null, ...rule }) => ({
      ...rule,
      claim: typeof claim === 'string' ? claim : [...claim],
      project,
    })),
  };
}
