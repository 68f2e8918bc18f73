/** Puts the serving console together: what lasts as long as the gateway, and what its section furnishes, again when that changes. */

import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { configFiles } from '../../core/contract/config-files.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Database } from '../common/domain/database.ts';
import type { MemberContacts } from '../common/domain/organizations/members.ts';
import { includes } from '../common/domain/organizations/rights.ts';
import type { ConsoleSite } from '../common/domain/pages/console-site.ts';
import type { ConsoleServices } from './api/routing/router.ts';
import { brandOf, legalAddresses, mailFoot } from './brand/brand.ts';
import { openCompanies } from './company/companies.ts';
import { openScimStore } from './company/scim/store.ts';
import { scimTables } from './company/scim/tables.ts';
import { openCompanyStore } from './company/store.ts';
import { companyTables } from './company/tables.ts';
import type { ConsoleConfig } from './config.ts';
import { ConfigHistory } from './config-history/history.ts';
import { HistoryRecorder } from './config-history/recorder.ts';
import { openHistoryStore } from './config-history/store.ts';
import { Files } from './files.ts';
import { openPrograms } from './key-requests/programs.ts';
import { openKeyRequests } from './key-requests/store.ts';
import { Live } from './live.ts';
import { openContacts } from './members/contacts.ts';
import { openInvitations } from './members/invitations.ts';
import { addedPages } from './page-problems.ts';
import { openAudit } from './people/audit.ts';
import { sessionCookieName } from './people/cookies.ts';
import type { Links } from './people/links.ts';
import { openMailer } from './people/mail.ts';
import { openPeople } from './people/people-service.ts';
import { mailDomains } from './people/providers/mail-domains.ts';
import { providerAdmin } from './people/providers/provider-admin.ts';
import { loadSecrets } from './people/secrets.ts';
import { createSignIn, type SignInParts } from './people/sign-in.ts';
import { openPeopleStore } from './people/store.ts';
import { consoleTables, peopleTables } from './people/tables.ts';
import { Throttle } from './people/throttle.ts';
import { openTokens } from './people/tokens.ts';
import { openViews } from './saved-views/store.ts';
import { createSite, refuseLarge, type Site } from './site.ts';

export interface OpenParts {
  readonly host: Host;
  readonly store: Database;
  readonly settings: ConsoleConfig;
  readonly links: Links;
}

export interface OpenedConsole extends ConsoleSite {
  readonly contacts: MemberContacts;
  readonly site: Site;
  readonly live: Live;
  readonly refuseLarge: typeof refuseLarge;
  firstOperatorMissing(): Promise<boolean>;
  /** Gets ready for another section; what it returns takes that up. */
  prepare(settings: ConsoleConfig): Promise<() => void>;
  prune(): Promise<void>;
  /** Asks DNS again for the domains of companies. */
  checkDomains(): Promise<void>;
  /** Records what runs and what is applied from now on. */
  keepConfigurations(): void;
  close(): Promise<void>;
}

/** Members of the section that a serving console applies; the others name its cookies and its place. */
export const reloads = [
  'name',
  'brand',
  'secret',
  'sign_up',
  'session',
  'smtp',
  'oidc',
  'domains',
  'companies',
  'throttle',
  'public',
  'media_origins',
] as const;

/** After the database did not take a configuration. */
const retryMs = 60_000;

export async function openConsole(parts: OpenParts): Promise<OpenedConsole> {
  let ground = await layGround(parts);
  const { origin } = parts.settings;
  let current = parts.settings;
  let furniture = await furnish(ground, parts.settings);
  const { people } = furniture.services;
  const live = new Live({
    host: parts.host,
    clock: parts.host.clock,
    people: { ...people, identify: (headers) => furniture.services.people.identify(headers) },
    origin,
  });
  followMembers(parts, live);
  return {
    site: (exchange, forward) => furniture.site(exchange, forward),
    live,
    refuseLarge,
    contacts: openContacts(parts.host, () => furniture.services),
    look: () => lookOf(furniture.services, origin),
    readerOf: (cookie) => readerOf(furniture.services, cookie),
    firstOperatorMissing: () => people.firstOperatorMissing(),
    async prepare(settings) {
      // Most reloads are about others, and putting the API together takes a while.
      if (isDeepStrictEqual(settings, current)) return () => undefined;
      const secrets = isDeepStrictEqual(settings.secret, current.secret)
        ? ground.secrets
        : await secretsOf(parts, settings.secret);
      const changed = { ...ground, secrets };
      const next = await furnish(changed, { ...settings, origin });
      return () => {
        const { mailer } = furniture;
        ground = changed;
        ground.sealing.secrets = secrets;
        furniture = next;
        current = settings;
        void mailer?.close();
      };
    },
    checkDomains: () => furniture.services.companies.check(),
    async prune() {
      await ground.peopleStore.prune(new Date(parts.host.clock.now()));
      await parts.links.prune();
      await ground.keyRequests.prune();
    },
    keepConfigurations() {
      const files = parts.host.find(configFiles);
      if (files === undefined) return;
      const { recorder } = ground;
      recorder.follow(files);
      parts.host.every(retryMs, 'keep the applied configuration', async () =>
        recorder.isIdle ? 'idle' : recorder.flush(),
      );
    },
    async close() {
      await ground.recorder.flush().catch(() => undefined);
      await furniture.mailer?.close();
    },
  };
}

function followMembers({ host: { log }, store }: OpenParts, live: Live): void {
  store.onChange('member', (accountId) => {
    live.membersChanged(accountId).catch((error: unknown) => {
      log.warn({ error }, 'open pages were not checked after members changed; they are within half a minute');
    });
  });
}

function lookOf(
  { settings: { name, brand, pages } }: ConsoleServices,
  origin: string,
): ReturnType<ConsoleSite['look']> {
  const { logo, favicon, origins, shades, legal } = brand;
  return {
    ...{ name, origin, logo, favicon, shades, pictureOrigins: origins },
    legal: legalAddresses(legal, ''),
    publishesModels: pages.models,
  };
}

async function readerOf({ people }: ConsoleServices, cookie: string): ReturnType<ConsoleSite['readerOf']> {
  const actor = await people.identify(new Headers({ cookie }));
  const person = actor?.kind === 'person' ? await people.find(actor.id) : undefined;
  if (actor === undefined || person === undefined) return undefined;
  const name = person.name || person.email;
  // Reading makes no account.
  const isMember = person.role !== 'auditor' && (actor.chosen ?? person.accountId) !== undefined;
  const member = isMember ? await people.membershipOf(actor).catch(() => undefined) : undefined;
  if (member === undefined) return { name, accountId: undefined, seesMoney: false, seesKeys: false };
  const { accountId, role } = member;
  return { name, accountId, seesMoney: includes(role, 'wallet'), seesKeys: includes(role, 'allKeys') };
}

type Ground = Awaited<ReturnType<typeof layGround>>;

/** Rows, secrets and counters. */
async function layGround({ host, store, settings, links }: OpenParts) {
  const { orm, schema } = store;
  const { clock, random, log } = host;
  const secrets = await secretsOf({ store, host }, settings.secret);
  /** The current ones, for as long as the process lives. */
  const sealing = { secrets };
  const kept = openHistoryStore({ store, clock, random, secrets: () => sealing.secrets, node: hostname() });
  const newId = () => random.bytes(16).toString('hex');
  const ownTables = consoleTables(schema);
  const tables = peopleTables(schema);
  const cookiePrefix = `console-${schema}`;
  return {
    host,
    log,
    clock,
    orm,
    tables,
    links,
    newId,
    cookiePrefix,
    sessionCookie: sessionCookieName({ prefix: cookiePrefix, secure: settings.origin.startsWith('https:') }),
    secrets,
    sealing,
    history: new ConfigHistory(kept, () => host.get(configFiles)),
    recorder: new HistoryRecorder(kept, log),
    tokens: openTokens(orm, ownTables, { clock, random, newId }),
    views: openViews(orm, ownTables, clock),
    keyRequests: openKeyRequests(orm, ownTables, { clock, random }),
    audit: openAudit(orm, ownTables, { clock, newId }),
    scimStore: openScimStore(orm, scimTables(schema), tables),
    companyStore: openCompanyStore(orm, companyTables(schema), tables),
    random,
    throttle: new Throttle(clock),
    peopleStore: openPeopleStore(orm, tables),
    hashPassword: async (password: string) => (await import('better-auth/crypto')).hashPassword(password),
  };
}

const secretsOf = ({ store, host }: Pick<OpenParts, 'store' | 'host'>, configured: readonly string[]) =>
  loadSecrets(store.orm, consoleTables(store.schema), configured, host.random);

/** What the pages say: where some domain may sign up, the form is there, and refuses the others. */
function signUpShown({ sign_up, domains }: ConsoleConfig) {
  const isOpen = domains.some((domain) => domain.sign_up === 'open' && domain.passwords === 'on');
  return isOpen ? 'open' : sign_up;
}

async function furnish(ground: Ground, settings: ConsoleConfig) {
  const { host, clock, log, tokens, audit, throttle, history, recorder, peopleStore } = ground;
  const { origin, smtp, oidc } = settings;
  const name = settings.name || host.gateway;
  const brand = brandOf(settings.brand);
  const mailer = smtp.host === '' ? undefined : await openMailer(smtp, log, mailFoot(name, origin, brand));
  const domains = mailDomains(settings);
  const secrets = () => ground.sealing.secrets;
  const companies = openCompanies({
    ...ground,
    store: ground.companyStore,
    secrets,
    settings,
    makePerson: makes(ground, settings),
    saml: { ...ground, secrets },
  });
  const people = openPeople({ ...ground, store: peopleStore, mailer, domains, settings: { name, origin } });
  const services: ConsoleServices = {
    find: (service) => forPages(host.find(service)),
    clock,
    people,
    invitations: openInvitations({ ...ground, store: peopleStore, mailer, settings: { name, origin } }),
    providers: providerAdmin(settings, host.fetch),
    companies,
    log,
    tokens,
    views: ground.views,
    keyRequests: ground.keyRequests,
    programs: openPrograms(host.fetch, () => ground.sealing.secrets),
    audit,
    throttle,
    history,
    recorder,
    addedPages: () => addedPages(host),
    settings: {
      name,
      signUp: signUpShown(settings),
      mail: mailer !== undefined,
      oidc: oidc.map(({ id, name }) => ({ id, name })),
      pages: settings.public,
      brand,
    },
  };
  const signIn = signInOf(ground, settings, { people, mailer, domains, companies, name });
  const folder = new URL('./web/dist/', import.meta.url);
  const files = new Files({ folder, mediaOrigins: settings.media_origins, brand, clock, random: host.random });
  return { services, mailer, site: createSite({ services, signIn, files, origin }) };
}

/** People whom the directory of a company has named, before they come. */
const makes =
  ({ peopleStore, orm, newId, clock }: Ground, { sign_up }: ConsoleConfig) =>
  async (email: string, name: string) => {
    if (sign_up === 'closed') throw new GatewayError('forbidden', 'This gateway takes no new people.');
    const row = { id: newId(), email, name, role: 'client', at: new Date(clock.now()) } as const;
    const made = await peopleStore.insert(orm, row);
    if (made !== undefined) return made;
    throw new GatewayError('conflict', 'Somebody has this address already.', { field: 'email' });
  };

interface SignInGiven extends Pick<SignInParts, 'mailer' | 'domains' | 'companies'> {
  readonly people: ReturnType<typeof openPeople>;
  readonly name: string;
}

function signInOf(ground: Ground, settings: ConsoleConfig, { name, ...given }: SignInGiven) {
  const { host, audit, cookiePrefix, companyStore, peopleStore } = ground;
  const { per_address: perAddress, per_account: perAccount, window: windowMs } = settings.throttle;
  return createSignIn({
    ...ground,
    ...given,
    oidc: settings.oidc,
    // It needs the packages of the sign-in, which a start does without.
    joinCompany: async (arriving) => {
      const { joinsCompanies } = await import('./company/joining.ts');
      await joinsCompanies({ host, audit, store: companyStore, scim: ground.scimStore })(arriving);
    },
    fetch: host.fetch,
    applyPlan: given.people.applyPlan,
    requiredFor: (email) => given.companies.requiredFor(email),
    store: peopleStore,
    settings: {
      name,
      cookiePrefix,
      sessionMs: settings.session,
      throttle: { perAddress, perAccount, windowMs },
    },
  });
}

/** Queries that a replica may answer are answered by it. */
function forPages<T>(found: T): T {
  return (found as { pages?: T } | undefined)?.pages ?? found;
}
