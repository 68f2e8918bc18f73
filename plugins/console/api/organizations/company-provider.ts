/** The provider of the account's company: set, tried, required and removed by its owner. */

import { z } from '@hono/zod-openapi';
import type { ProviderSettings } from '../../company/types.ts';
import { changesBetween, changesOf } from '../routing/audit-changes.ts';
import type { ConsoleServices } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, takes } from '../schemas.ts';
import { changed, type group, ownCompany, providerInput, text, turnOf, view } from './company-view.ts';

const save = route('post', '/members/sign-in/provider', 'Set the provider of the company', answers(view), {
  body: takes(providerInput),
});
const saveSaml = route('post', '/members/sign-in/saml', 'Set a provider that speaks SAML 2.0', answers(view), {
  body: takes(
    providerInput
      .pick({ name: true, role: true, groups: true })
      .extend({
        metadata: text(60_000).describe(
          'Its metadata (XML), or the https address of these, which is read again daily.',
        ),
        emailAttribute: z
          .string()
          .trim()
          .max(200)
          .default('')
          .describe('Attribute with the mail address; empty: one of the usual ones, or the NameID.'),
      })
      .openapi('CompanySamlInput'),
  ),
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
const require = route(
  'post',
  '/members/sign-in/required',
  'Let people of the domains sign in by the provider alone, or any way; when it is turned on, other sessions end',
  answers(view),
  { body: takes(z.strictObject({ required: z.boolean() })) },
);

export function companyProviderRoutes(services: ConsoleServices) {
  const { companies } = services;
  return new Routes(services)
    .action(save, async ({ c, json: { clientSecret, ...json } }) => {
      const before = (await ownCompany(services, c)).provider;
      const wanted: ProviderSettings = { ...json, groups: json.groups.map(withoutNull) };
      const secret = clientSecret === undefined ? {} : { clientSecret: 'changed' };
      const changes = changesBetween(before ?? {}, wanted);
      return {
        action: 'sign-in.provider',
        subject: json.name,
        changes: [...changes, ...changesOf(secret)],
        run: changed(services, c, (accountId) => companies.save(accountId, wanted, clientSecret)),
      };
    })
    .action(saveSaml, async ({ c, json }) => {
      const before = (await ownCompany(services, c)).provider;
      const { metadata, emailAttribute, ...given } = { ...json, groups: json.groups.map(withoutNull) };
      const changes = changesBetween({ ...before, ...before?.saml }, { ...given, emailAttribute, metadata });
      return {
        action: 'sign-in.provider',
        subject: json.name,
        changes,
        run: changed(services, c, (accountId) => companies.saveSaml(accountId, { ...given, metadata, emailAttribute })),
      };
    })
    .action(removeProvider, async ({ c }) => ({
      action: 'sign-in.provider-off',
      subject: (await ownCompany(services, c)).provider?.name ?? '',
      run: changed(services, c, (accountId) => companies.remove(accountId)),
    }))
    .action(require, async ({ c, json: { required } }) => {
      const before = await ownCompany(services, c);
      return {
        action: 'sign-in.required',
        subject: before.provider?.name ?? '',
        changes: changesBetween({ required: before.required }, { required }),
        run: changed(services, c, (accountId) => companies.require(accountId, required)),
      };
    })
    .read(test, async ({ c }) => ({ problem: (await companies.problem(await turnOf(services, c))) ?? null }));
}

const withoutNull = ({ project, ...rule }: z.output<typeof group>) => ({
  ...rule,
  ...(project === null || project === undefined ? {} : { project }),
});
