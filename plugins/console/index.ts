/** The console: pages and an API for the people who use and run this gateway. */
import type { Command } from '../../core/contract/commands.ts';
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import type { CommandLine } from '../../core/contract/plugin-groups.ts';
import type { Fault } from '../../core/contract/remarks.ts';
import { adminPages, clientPages } from '../common/domain/admin/admin-pages.ts';
import { alertAdmin, consolePages, mailers } from '../common/domain/admin/alerts.ts';
import { payments } from '../common/domain/admin/ledger.ts';
import { accountPeople, noticeSender } from '../common/domain/admin/notices.ts';
import type { Database } from '../common/domain/database.ts';
import { priceFloor } from '../common/domain/models.ts';
import { memberContacts } from '../common/domain/organizations/members.ts';
import { consoleSite } from '../common/domain/pages/console-site.ts';
import type { Plans } from '../common/domain/plans.ts';
import { brandOf, mailFoot } from './brand/brand.ts';
import { companyCommand } from './company/commands.ts';
import { sealProvidersAgain } from './company/providers.ts';
import { openCompanyStore } from './company/store.ts';
import { companyTables } from './company/tables.ts';
import { type ConsoleConfig, config } from './config.ts';
import { type CommandParts, historyCommands } from './config-history/commands.ts';
import { sealAgain } from './config-history/store.ts';
import { authorizationEndpoint } from './key-requests/metadata.ts';
import { Mailers } from './mailers.ts';
import { membersCommand } from './members/commands.ts';
import { mailsOf } from './members/in-charge.ts';
import { addedPages, problemsOf } from './page-problems.ts';
import { firstPath, type Links, openLinks } from './people/links.ts';
import { type ProviderAdmin, providerAdmin } from './people/providers/provider-admin.ts';
import { rotatedPeople, type Secrets } from './people/secrets.ts';
import { consoleTables, peopleTables } from './people/tables.ts';
import * as services from './services.ts';

const operation = 'console';
const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'] as const;
const paths = ['/console', '/console/*'];
const pruneIntervalMs = 3_600_000;

export default definePlugin<ConsoleConfig>({
  name: 'console',
  config,
  extensionPoints: [adminPages, clientPages],
  services: {
    requires: [services.database],
    optional: [
      services.accounts,
      services.accountAdmin,
      services.projectAdmin,
      services.memberAdmin,
      services.budgetAdmin,
      services.requestQueries,
      services.recordedBodies,
      services.ledgerQueries,
      services.ledger,
      services.pool,
      services.plans,
      services.shop,
      services.shopAdmin,
      services.taskAdmin,
      services.uploadedFiles,
      services.fileAdmin,
      services.batchAdmin,
      services.cacheReport,
      services.upstreamAdmin,
      services.upstreamProbes,
      services.vendorSecrets,
      services.vendorSetup,
      services.vendorLists,
      services.catalog,
      services.priceQueries,
      services.multipliers,
      services.configFiles,
      services.docsSite,
      payments,
      priceFloor,
      alertAdmin,
      services.noticeAdmin,
      noticeSender,
    ],
    provides: [mailers, consolePages, accountPeople, consoleSite, memberContacts],
  },

  async setup(host: Host, settings: ConsoleConfig): Promise<PluginInstance<ConsoleConfig>> {
    const store = host.get(services.database);
    await store.migrate('console', new URL('./migrations/', import.meta.url));
    const { clock, random } = host;
    const links = openLinks({ orm: store.orm, tables: consoleTables(store.schema), clock, random });
    const footOf = ({ name, origin, brand }: ConsoleConfig) => mailFoot(name || host.gateway, origin, brandOf(brand));
    const mails = new Mailers(settings.smtp, footOf(settings), host.log);
    host.provide(mailers, mails);
    let listening = '';
    host.provide(accountPeople, inCharge(host, store));
    host.provide(consolePages, { address: (path) => `${settings.origin || listening}/console${path}` });
    const commandLine = commandLineOf({ host, store, secrets: settings.secret }, links, settings);
    const problems = () => [...problemsOf(addedPages(host)), ...unknownPlans(settings, host.find(services.plans))];
    if (host.mode !== 'serve') {
      const stop = () => mails.close();
      const endpoints = endpointsFor(host, settings, refuse);
      return { endpoints, commandLine, checks: { problems }, lifecycle: { stop } };
    }
    // Sign-in and API are large, and commands have no use for them.
    const { openConsole, reloads } = await import('./open.ts');
    const opened = await openConsole({ host, store, settings, links });
    host.provide(consoleSite, opened);
    host.provide(memberContacts, opened.contacts);
    return {
      endpoints: endpointsFor(host, settings, (exchange, forward) => opened.site(exchange, forward)),
      addresses: { sockets: [opened.live.endpoint] },
      commandLine,
      checks: { problems },
      reload: {
        async prepare(changed) {
          const commit = await opened.prepare(changed);
          return () => {
            commit();
            mails.use(changed.smtp, footOf(changed));
          };
        },
        members: reloads,
      },
      // Stands before the body is read.
      applies: (endpoint) => endpoint.operation === operation,
      async handle(exchange: Exchange, next: Next) {
        return opened.refuseLarge(exchange) ?? next();
      },
      lifecycle: {
        start() {
          opened.live.start();
          opened.keepConfigurations();
          host.every(pruneIntervalMs, 'prune sessions and links', () => opened.prune());
          host.every(pruneIntervalMs, 'ask DNS for the domains of companies', () => opened.checkDomains());
        },
        listening(origin) {
          listening = origin;
          return greet(host, links, settings.origin || origin, () => opened.firstOperatorMissing());
        },
        drain: () => opened.live.stop(),
        async stop() {
          await opened.close();
          await mails.close();
        },
      },
    };
  },
});

function unknownPlans({ oidc }: ConsoleConfig, offers: Plans | undefined): Fault[] {
  return oidc.flatMap(({ plans, place }) =>
    [...plans.entries()]
      .filter(([, { plan }]) => offers !== undefined && !offers.has(plan))
      .map(([at, { plan }]) => ({ path: ['oidc', place, 'plans', at, 'plan'], message: `names no plan: "${plan}"` })),
  );
}

function endpointsFor(host: Host, { origin }: ConsoleConfig, handle: NonNullable<Endpoint['handle']>): Endpoint[] {
  const common = { operation, keyless: true, sameOrigin: true, unlogged: true, timeoutMs: 60_000, handle } as const;
  return [
    { ...common, method: 'GET', path: '/' },
    ...methods.flatMap((method) => paths.map((path) => ({ ...common, method, path }))),
    authorizationEndpoint(host, origin),
  ];
}

const inCharge = (host: Host, { orm, schema }: Database) => ({
  mailsOf: mailsOf(orm, peopleTables(schema), () => host.find(services.memberAdmin)),
});

function refuse(): never {
  throw new Error('the console answers while the gateway serves');
}

/** Shows a link for the first operator while there is none: at a terminal for people, else as a line of the log. */
async function greet(host: Host, links: Links, origin: string, isMissing: () => Promise<boolean>): Promise<void> {
  if (!host.processGroup.isFirst || !(await isMissing())) return;
  const path = firstPath(await links.make('first_operator'));
  if (process.stdout.isTTY !== true) {
    // As a record: a token can look like a key, and would be masked.
    const line = { time: new Date(host.clock.now()).toISOString(), url: origin + path };
    return host.log.record(
      'the console has no operator yet: this link makes one, once, within 24 hours',
      JSON.stringify(line),
    );
  }
  process.stdout.write(`
  The console of the gateway "${host.gateway}" has no operator yet. This link makes one, once, within 24 hours:

      ${origin}${path}

`);
}

function commandLineOf(parts: CommandParts, links: Links, settings: ConsoleConfig): CommandLine {
  const { host, store, secrets } = parts;
  const providers = providerAdmin(settings, host.fetch);
  return {
    commands: [
      ...consoleCommands(links, settings.origin),
      providersCommand(providers),
      companyCommand({ ...parts, settings }),
      membersCommand(parts),
      ...historyCommands(parts),
    ],
    secrets: () => [rotatedPeople(store, secrets, host.random, (all) => allSealedAgain(store, all, host.random))],
  };
}

async function allSealedAgain(store: Database, secrets: Secrets, random: Host['random']) {
  const { orm, schema } = store;
  const companies = openCompanyStore(orm, companyTables(schema), peopleTables(schema));
  const texts = await sealAgain(store, secrets, random);
  const providers = await sealProvidersAgain(companies, secrets, random);
  return { done: texts.done + providers.done, left: texts.left + providers.left };
}

function providersCommand(providers: ProviderAdmin): Command {
  return {
    name: 'console providers',
    summary: 'Says what to register at each provider that people sign in by, and whether it answers as it should',
    async run() {
      const rows = await Promise.all(
        providers.list().map(async (one) => ({ ...one, problem: (await providers.test(one.id))?.problem })),
      );
      const text = rows.map(({ id, name, redirectUri, signOut, signedOutUri, problem }) =>
        [
          `${id} (${name}): ${problem ?? 'answers as it should'}`,
          `  redirect address: ${redirectUri}`,
          ...(signOut === 'provider' ? [`  address after signing out: ${signedOutUri}`] : []),
        ].join('\n'),
      );
      return {
        json: rows,
        text: text.join('\n') || 'This gateway has no providers (console.oidc).',
        exitCode: rows.some(({ problem }) => problem !== undefined) ? 1 : 0,
      };
    },
  };
}

function consoleCommands(links: Links, origin: string): Command[] {
  return [
    {
      name: 'console operator-link',
      summary: 'Makes a link by which a person becomes an operator, once, within 24 hours',
      async run() {
        const path = firstPath(await links.make('first_operator'));
        const where = origin === '' ? `, at the address of this gateway:\n${path}` : `:\n${origin}${path}`;
        return {
          json: { path, ...(origin === '' ? {} : { url: origin + path }) },
          text: `Open this within 24 hours to become an operator; it works once${where}`,
        };
      },
    },
  ];
}
