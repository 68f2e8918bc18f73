/** Sign-in of the account's company: its domains, and where people of a domain sign in. */

import { z } from '@hono/zod-openapi';
import type { ConsoleServices } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, takes } from '../schemas.ts';
import { changed, shownCompany, text, view } from './company-view.ts';

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
const find = route(
  'post',
  '/company-sign-in',
  'The provider by which people with this address sign in',
  answers(z.object({ provider: z.object({ id: z.string(), name: z.string() }).nullable() })),
  { body: takes(z.strictObject({ email: z.email().max(200) })) },
);

export function companyRoutes(services: ConsoleServices) {
  const { companies } = services;
  return new Routes(services)
    .read(look, ({ c }) => shownCompany(services, c))
    .action(addDomain, ({ c, json: { domain } }) => ({
      action: 'sign-in.domain',
      subject: domain,
      run: changed(services, c, (accountId) => companies.domains.add(accountId, domain)),
    }))
    .action(verify, ({ c, param: { domain } }) => ({
      action: 'sign-in.verify',
      subject: domain,
      run: changed(services, c, (accountId) => companies.domains.verify(accountId, domain)),
    }))
    .action(removeDomain, ({ c, param: { domain } }) => ({
      action: 'sign-in.domain-off',
      subject: domain,
      run: changed(services, c, (accountId) => companies.domains.remove(accountId, domain)),
    }))
    .read(find, async ({ json: { email } }) => ({ provider: (await companies.named(email)) ?? null }));
}
