/** Sign-in of the account's company: its domains, its provider, and where people of a domain sign in. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { grantedRoles } from '../../company/config.ts';
import { recordOf } from '../../company/domains.ts';
import { providerIdOf } from '../../company/providers.ts';
import type { DomainView, ProviderOfAccount, ProviderSettings } from '../../company/types.ts';
import { authPath } from '../../people/auth-names.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, ownAccount, type RequestContext } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instant, isoOrNull, takes } from '../schemas.ts';

const text = (most: number) => z.string().trim().min(1).max(most);
const role = z.enum(grantedRoles);
const group = z.strictObject({
  claim: z
    .union([text(200), z.array(text(200)).min(1).max(10)])
    .describe('Name of a claim, or the path to a member of one: `groups`, `realm_access.roles`.'),
  value: text(500).describe('Text that the claim is, or that is in its list.'),
  role,
  project: text(100).nullish().describe('Project that keys of these people are for; null: any.'),
});
const providerInput = z
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
  })
  .openapi('CompanyDomain');
const view = z
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
    provider: providerInput.omit({ clientSecret: true }).nullable().openapi('CompanyProvider'),
  })
  .openapi('CompanySignIn');

const look = route('get', '/members/sign-in', 'Domains and provider of the company', answers(view));
const addDomain = route('post', '/members/sign-in/domains', 'Name a domain of the company', answers(view), {
  body: takes(z.strictObject({ domain: text(200) })),
});
const oneDomain = { params: z.object({ domain: z.string().max(200) }) };
const verify = route(
  'post',
  '/members/sign-in/domains/{domain}/verify',
  'Look in DNS whether the domain is of this account',
  answers(view),
  oneDomain,
);
const removeDomain = route(
  'delete',
  '/members/sign-in/domains/{domain}',
  'Give a domain up: its people sign in by the provider no more',
  answers(view),
  oneDomain,
);
const save = route('post', '/members/sign-in/provider', 'Set the provider of the company', answers(view), {
  body: takes(providerInput),
});
const removeProvider = route(
  'delete',
  '/members/sign-in/provider',
  'Forget the provider: sessions that began by it end',
  answers(view),
);
const test = route(
  'post',
  '/members/sign-in/test',
  'Read what the provider says of itself',
  answers(z.object({ problem: z.string().nullable() })),
);
const find = route(
  'post',
  '/company-sign-in',
  'The provider by which people with this address sign in',
  answers(z.object({ provider: z.object({ id: z.string(), name: z.string() }).nullable() })),
  { body: takes(z.strictObject({ email: z.email().max(200) })) },
);

export function companyRoutes(services: ConsoleServices) {
  const { companies } = services;
  const own = async (c: RequestContext) => {
    const accountId = await ownAccount(services, c);
    return { accountId, domains: await companies.domains.list(accountId), provider: await companies.of(accountId) };
  };
  const shown = async (c: RequestContext) => {
    const { accountId, domains, provider } = await own(c);
    return {
      offered: companies.isOffered,
      redirectUri: `${c.env.origin}${authPath}/callback/${providerIdOf(accountId)}`,
      domains: domains.map(domainJson),
      directory: await directoryJson(services, accountId, c.env.origin),
      provider: provider === undefined ? null : providerJson(provider),
    };
  };
  const run = (c: RequestContext, work: (accountId: string) => Promise<void>) => async () => {
    await work(await turnOf(services, c));
    return shown(c);
  };
  return new Routes(services)
    .read(look, ({ c }) => shown(c))
    .action(addDomain, ({ c, json: { domain } }) => ({
      action: 'sign-in.domain',
      subject: domain,
      run: run(c, (accountId) => companies.domains.add(accountId, domain)),
    }))
    .action(verify, ({ c, param: { domain } }) => ({
      action: 'sign-in.verify',
      subject: domain,
      run: run(c, (accountId) => companies.domains.verify(accountId, domain)),
    }))
    .action(removeDomain, ({ c, param: { domain } }) => ({
      action: 'sign-in.domain-off',
      subject: domain,
      run: run(c, (accountId) => companies.domains.remove(accountId, domain)),
    }))
    .action(save, async ({ c, json: { clientSecret, ...json } }) => {
      const before = (await own(c)).provider;
      const wanted: ProviderSettings = { ...json, groups: json.groups.map(withoutNull) };
      const secret = clientSecret === undefined ? {} : { clientSecret: 'changed' };
      const changes = changesBetween(before ?? {}, wanted);
      return {
        action: 'sign-in.provider',
        subject: json.name,
        changes: [...changes, ...changesOf(secret)],
        run: run(c, (accountId) => companies.save(accountId, wanted, clientSecret)),
      };
    })
    .action(removeProvider, async ({ c }) => ({
      action: 'sign-in.provider-off',
      subject: (await own(c)).provider?.name ?? '',
      run: run(c, (accountId) => companies.remove(accountId)),
    }))
    .read(test, async ({ c }) => ({ problem: (await companies.problem(await turnOf(services, c))) ?? null }))
    .read(find, async ({ json: { email } }) => ({ provider: (await companies.named(email)) ?? null }));
}

/** What asks DNS or a provider is asked so often in a minute at most. */
const mostTurns = 30;

export async function turnOf(services: ConsoleServices, c: RequestContext): Promise<string> {
  const accountId = await ownAccount(services, c);
  const retryAfterMs = services.throttle.take(`company:${accountId}`, mostTurns, 60_000);
  if (retryAfterMs === 0) return accountId;
  throw new GatewayError('rate_limited', 'Too many changes. Try again later.', { retryAfterMs });
}

const withoutNull = ({ project, ...rule }: z.output<typeof group>) => ({
  ...rule,
  ...(project === null || project === undefined ? {} : { project }),
});

async function directoryJson({ companies }: ConsoleServices, accountId: string, origin: string) {
  const token = await companies.scim.token(accountId);
  const times = token && {
    createdAt: token.createdAt.toISOString(),
    lastUsedAt: token.lastUsedAt?.toISOString() ?? null,
  };
  return { address: `${origin}/console/scim/v2`, token: times ?? null };
}

const domainJson = (one: DomainView) => ({
  domain: one.domain,
  record: recordOf(one),
  verifiedAt: isoOrNull(one.verifiedAt),
});

function providerJson(settings: ProviderOfAccount) {
  const { name, issuer, clientId, scopes, verifiedClaim, role: given, groups } = settings;
  return {
    ...{ name, issuer, clientId, scopes: [...scopes], verifiedClaim, role: given },
    groups: groups.map(({ claim, project = null, ...rule }) => ({
      ...rule,
      claim: typeof claim === 'string' ? claim : [...claim],
      project,
    })),
  };
}
