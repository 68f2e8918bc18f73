/** The actor, this gateway's features, and the one-time link that creates its first operator. */

import { z } from '@hono/zod-openapi';
import { alertAdmin } from '../../common/domain/admin/alerts.ts';
import { payments } from '../../common/domain/admin/ledger.ts';
import { type AccountRight, accountRights, includes, memberRoles } from '../../common/domain/organizations/rights.ts';
import { type Actor, roles } from '../actor.ts';
import type { LegalName } from '../brand/brand.ts';
import { moduleAddress } from '../modules.ts';
import type { AddedPage } from '../page-problems.ts';
import type { PersonView } from '../people.ts';
import {
  accountAdmin,
  accounts,
  batchAdmin,
  budgetAdmin,
  configFiles,
  creditLineAdmin,
  docsSite,
  guardrailVerdicts,
  ledgerQueries,
  memberAdmin,
  noticeAdmin,
  plans,
  pool,
  priceQueries,
  recordedBodies,
  requestQueries,
  shop,
  shopAdmin,
  statementAdmin,
  taskAdmin,
  uploadedFiles,
  upstreamAdmin,
  upstreamProbes,
} from '../services.ts';
import { mayAsk } from './routing/access.ts';
import { actorOf, type ConsoleServices, membershipOf, type RequestContext } from './routing/router.ts';
import { Routes, route } from './routing/routes.ts';
import { answers, done, instant, isoOrNull, takes } from './schemas.ts';

const features = {
  accounts: accountAdmin,
  budgets: budgetAdmin,
  requests: requestQueries,
  bodies: recordedBodies,
  money: ledgerQueries,
  wallet: pool,
  shop,
  codes: shopAdmin,
  tasks: taskAdmin,
  files: uploadedFiles,
  batches: batchAdmin,
  upstreams: upstreamAdmin,
  tests: upstreamProbes,
  prices: priceQueries,
  plans,
  config: configFiles,
  payments,
  alerts: alertAdmin,
  notices: noticeAdmin,
  guardrails: guardrailVerdicts,
  statements: statementAdmin,
  creditLines: creditLineAdmin,
} as const;
type Feature = keyof typeof features;
const featureNames = Object.keys(features) as Feature[];
/** What a member must have the right to, so that a page of it is shown; operators see it for others too. */
const rightsOfFeatures: Partial<Record<Feature, AccountRight>> = {
  accounts: 'keys',
  wallet: 'wallet',
  creditLines: 'wallet',
  tasks: 'work',
  files: 'work',
  batches: 'work',
  notices: 'notices',
  payments: 'payments',
  shop: 'payments',
  codes: 'payments',
};

const rightNames = Object.keys(accountRights) as [AccountRight, ...AccountRight[]];

const byLanguage = z.record(z.string(), z.string());
const me = z
  .object({
    role: z.enum(roles),
    person: z
      .object({
        id: z.string(),
        email: z.string(),
        name: z.string(),
        emailVerified: z.boolean(),
        twoFactor: z.boolean(),
        hasPassword: z.boolean(),
        providerOnly: z.boolean().describe('Signs in by their provider alone, without passwords and passkeys.'),
      })
      .nullable()
      .describe('null: a script with a token.'),
    account: z
      .object({
        id: z.string(),
        name: z.string(),
        plan: z.string(),
        planEndsAt: instant.nullable(),
        disabled: z.boolean(),
        retention: z
          .enum(['none'])
          .nullable()
          .describe('none: nothing of its calls is kept; null: what the settings say.'),
        role: z.enum(memberRoles).describe('Of the person in it.'),
        rights: z.array(z.enum(rightNames)).describe('What the role includes.'),
      })
      .nullable()
      .describe('The account that was chosen; null: a script, an auditor, or in no account any more.'),
    accounts: z
      .array(z.object({ id: z.string(), name: z.string(), role: z.enum(memberRoles) }))
      .describe('Those that the person is a member of, by name.'),
    gateway: z.object({
      name: z.string(),
      origin: z.string().describe('Base address that clients are set up with, without a path.'),
    }),
    features: z
      .record(z.enum(featureNames as [Feature, ...Feature[]]), z.boolean())
      .describe(
        'What this gateway can show, and the role of a client in the account includes; other pages are not shown.',
      ),
    pages: z
      .array(
        z.object({
          name: z.string(),
          title: byLanguage,
          intro: byLanguage.nullable(),
          path: z.string().describe('Where the console shows it.'),
          group: z
            .enum(['traffic', 'customers', 'sales', 'system'])
            .nullable()
            .describe('null: among the pages of the own account.'),
          module: z.string().describe('Address of the ES module that draws it.'),
        }),
      )
      .describe('Pages that plugins add, as far as the role may see them.'),
  })
  .openapi('Me');

const legalLink = z
  .string()
  .nullable()
  .describe('Where it is read: an address, or a page of this console; null: none.');
const info = z
  .object({
    gateway: z.string(),
    signUp: z.enum(['open', 'invite', 'closed']),
    providers: z.array(z.object({ id: z.string(), name: z.string() })),
    companies: z.boolean().describe('Whether people of some mail domains sign in by the provider of their company.'),
    firstOperatorMissing: z.boolean(),
    mail: z.boolean().describe('Whether mails are sent; without, links come from the operator.'),
    public: z.object({ models: z.boolean(), status: z.boolean() }).describe('Pages that need no signing in.'),
    brand: z.object({
      logo: z.string().nullable().describe("Address of the operator's picture; null: the product's own mark."),
      docs: z.string().nullable().describe('Address of the pages for clients; null: there are none.'),
      terms: legalLink,
      imprint: legalLink,
    }),
  })
  .openapi('Info');

const password = z.string().min(10, 'needs at least 10 characters').max(128);
const personName = z.string().trim().min(1).max(100);

const getMe = route('get', '/me', 'Who asks', answers(me));
const patchMe = route('patch', '/me', 'Change the own name', answers(me), {
  body: takes(z.strictObject({ name: personName })),
});
const getInfo = route('get', '/info', 'What the sign-in page must know', answers(info));
const first = route('post', '/first-operator', 'Make the first operator by the one-time link', answers(done), {
  body: takes(
    z.strictObject({ token: z.string().min(1).max(200), email: z.email().max(200), password, name: personName }),
  ),
});

export function meRoutes(services: ConsoleServices) {
  const { people, settings } = services;
  return new Routes(services)
    .read(getMe, ({ c }) => meJson(services, c))
    .read(patchMe, async ({ json, c }) => {
      await people.rename(actorOf(c).id, json.name);
      return meJson(services, c);
    })
    .read(getInfo, async () => {
      const { name: gateway, signUp, oidc, mail } = settings;
      const [firstOperatorMissing, companies] = await Promise.all([
        people.firstOperatorMissing(),
        services.companies.exist(),
      ]);
      const providers = oidc.map((provider) => ({ ...provider }));
      const brand = { ...brandJson(settings.brand), docs: services.find(docsSite)?.address() ?? null };
      return { gateway, signUp, providers, companies, firstOperatorMissing, mail, public: settings.pages, brand };
    })
    .read(first, async ({ json: wanted, c }) => {
      // A wrong token leaves no row in the audit log.
      await people.makeFirstOperator(wanted);
      const actor = { kind: 'person', id: 'first-operator', label: wanted.email, role: 'operator' } as const;
      const change = { action: 'operator.first', subject: wanted.email, reason: undefined };
      const end = await services.audit.begin({ actor, ...change, address: c.env.address });
      await end('done');
      return { ok: true } as const;
    });
}

function brandJson({ logo, legal }: ConsoleServices['settings']['brand']) {
  const linkOf = (name: LegalName) => {
    const text = legal[name];
    return text === undefined ? null : 'url' in text ? text.url : `/console/legal/${name}`;
  };
  return { logo: logo ?? null, terms: linkOf('terms'), imprint: linkOf('imprint') };
}

async function meJson(services: ConsoleServices, c: RequestContext): Promise<z.infer<typeof me>> {
  const actor = actorOf(c);
  const person = actor.kind === 'person' ? await services.people.find(actor.id) : undefined;
  const account = person === undefined || actor.role === 'auditor' ? null : await accountJson(services, c);
  const includesRight = (name: Feature) => {
    const right = rightsOfFeatures[name];
    return account === null || actor.role !== 'client' || right === undefined || account.rights.includes(right);
  };
  return {
    role: actor.role,
    person: person === undefined ? null : await personJson(services, person, actor),
    account,
    accounts: person === undefined ? [] : await accountsOf(services, actor),
    gateway: { name: services.settings.name, origin: c.env.origin },
    features: Object.fromEntries(
      featureNames.map((name) => [name, includesRight(name) && services.find<unknown>(features[name]) !== undefined]),
    ) as Record<Feature, boolean>,
    pages: services
      .addedPages()
      .filter(({ page }) => mayAsk('access' in page ? page.access : 'own:pages', actor))
      .map(pageJson),
  };
}

function pageJson(added: AddedPage) {
  const { name, title, intro = null } = added.page;
  const group = added.place === 'admin' ? added.page.group : null;
  const path = `/${added.place}/${name}`;
  return { name, title: { ...title }, intro: intro && { ...intro }, path, group, module: moduleAddress(added) };
}

async function personJson({ people }: ConsoleServices, person: PersonView, { company }: Actor) {
  const { id, email, name, emailVerified, twoFactor } = person;
  const { password: hasPassword, providerOnly } = await people.waysIn(person);
  const isOnly = providerOnly || company !== undefined;
  return { id, email, name, emailVerified, twoFactor, hasPassword, providerOnly: isOnly };
}

async function accountJson(services: ConsoleServices, c: RequestContext): Promise<z.infer<typeof me>['account']> {
  const codeOf = (error: unknown) => (error as { code?: unknown }).code;
  const member = await membershipOf(services, c)
    .catch((error: unknown) => {
      if (codeOf(error) !== 'not_in_account') throw error;
      // The tab goes on in the account that the session has.
      return services.people.membershipOf({ ...actorOf(c), named: undefined });
    })
    .catch((error: unknown) => {
      if (codeOf(error) === 'no_account') return undefined;
      throw error;
    });
  if (member === undefined) return null;
  const { accountId, role } = member;
  const own = { role, rights: rightNames.filter((right) => includes(role, right)) };
  const view = await services.find(accountAdmin)?.find(accountId);
  if (view !== undefined) {
    const { id, name, plan, disabled, retention = null } = view;
    return { id, name, plan, planEndsAt: isoOrNull(view.planEndsAt), disabled, retention, ...own };
  }
  const account = await services.find(accounts)?.find(accountId);
  if (account === undefined) return null;
  const { id, name, plan } = account;
  return { id, name, plan, planEndsAt: null, disabled: false, retention: null, ...own };
}

async function accountsOf(services: ConsoleServices, { id: personId, company }: Actor) {
  const found = (await services.find(memberAdmin)?.accountsOf(personId)) ?? [];
  const open = company === undefined ? found : found.filter(({ accountId }) => accountId === company);
  return open.map(({ accountId: id, name, role }) => ({ id, name, role }));
}
