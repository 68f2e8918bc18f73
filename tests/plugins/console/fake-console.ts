/** A whole console without a gateway: every service in memory, with rows of several days. */

import { configFiles } from '../../../core/contract/config-files.ts';
import { type Accounts, accounts } from '../../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { alertAdmin } from '../../../plugins/common/domain/admin/alerts.ts';
import { batchAdmin } from '../../../plugins/common/domain/admin/batches.ts';
import { fileAdmin } from '../../../plugins/common/domain/admin/files.ts';
import { ledgerQueries } from '../../../plugins/common/domain/admin/ledger.ts';
import { noticeAdmin } from '../../../plugins/common/domain/admin/notices.ts';
import { priceQueries } from '../../../plugins/common/domain/admin/prices.ts';
import { recordedBodies } from '../../../plugins/common/domain/admin/recorded-bodies.ts';
import { requestQueries } from '../../../plugins/common/domain/admin/requests.ts';
import { shopAdmin } from '../../../plugins/common/domain/admin/shop.ts';
import { taskAdmin } from '../../../plugins/common/domain/admin/tasks.ts';
import { upstreamAdmin, upstreamProbes } from '../../../plugins/common/domain/admin/upstreams.ts';
import { ledger, pool } from '../../../plugins/common/domain/ledger.ts';
import { catalog } from '../../../plugins/common/domain/models.ts';
import { budgetAdmin } from '../../../plugins/common/domain/organizations/budgets.ts';
import { creditLineAdmin } from '../../../plugins/common/domain/organizations/credit-lines.ts';
import { memberAdmin } from '../../../plugins/common/domain/organizations/members.ts';
import { projectAdmin } from '../../../plugins/common/domain/organizations/projects.ts';
import { statementAdmin } from '../../../plugins/common/domain/organizations/statements.ts';
import { plans, shop } from '../../../plugins/common/domain/plans.ts';
import { uploadedFiles } from '../../../plugins/common/domain/stored-files.ts';
import type { Role } from '../../../plugins/console/actor.ts';
import type { ConsoleServices as Console } from '../../../plugins/console/api/routing/router.ts';
import { brandOf } from '../../../plugins/console/brand/brand.ts';
import { brand } from '../../../plugins/console/brand/config.ts';
import type { OidcProvider } from '../../../plugins/console/config.ts';
import { openPrograms } from '../../../plugins/console/key-requests/programs.ts';
import { providerAdmin } from '../../../plugins/console/people/providers/provider-admin.ts';
import { Throttle } from '../../../plugins/console/people/throttle.ts';
import { type FakeHost, fakeHost } from '../../helpers/fakes.ts';
import { fakeAlerts } from './fakes/alerts.ts';
import { fakeBodies } from './fakes/bodies.ts';
import { fakeBudgets } from './fakes/budgets.ts';
import { fakeCompanies } from './fakes/companies.ts';
import { fakeHistory } from './fakes/config-history.ts';
import { fakeCreditLines } from './fakes/credit-lines.ts';
import { fakeBatches, fakeFiles } from './fakes/files.ts';
import { fakeInvitations, fakeMembers } from './fakes/members.ts';
import { fakeNotices } from './fakes/notices.ts';
import { fakeAudit, fakeKeyRequests, fakePeople, fakeTokens, fakeViews } from './fakes/persons.ts';
import { fakeProjects } from './fakes/projects.ts';
import { fakeAccounts, fakeMoney, fakeRequests } from './fakes/rows.ts';
import { fakeCatalog, fakeConfig, fakePrices } from './fakes/settings.ts';
import { fakeStatements } from './fakes/statements.ts';
import { fakePlans, fakePool, fakeShop, fakeTasks } from './fakes/trade.ts';
import { fakeProbes, fakeUpstreams } from './fakes/upstreams.ts';
import { clientAccount, makeWorld, type World } from './fakes/world.ts';

/** No logo, colour or legal text of an operator. */
export const plainBrand = brandOf(brand.parse({}));

export interface FakeConsole extends Console {
  readonly host: FakeHost;
  readonly world: World;
  readonly people: ReturnType<typeof fakePeople>;
  readonly audit: ReturnType<typeof fakeAudit>;
}

export interface FakeOptions {
  /** Wall clock of every row; by default the fake host's. */
  readonly now?: () => number;
  /** The role of requests that name none; undefined: not signed in. */
  readonly role?: Role | undefined;
  /** Leaves every service out, as a gateway without these plugins does. */
  readonly bare?: boolean;
}

const acmeProvider = {
  ...{ id: 'acme', name: 'Acme SSO', issuer: 'https://login.acme.example', client_id: 'gateway', client_secret: 'x' },
  ...{ scopes: ['openid'], domains: ['acme.example'], verified_claim: 'email_verified', roles: [], plans: [] },
  ...{ sign_out: 'console', account: '', member: 'developer', members: [] },
} as unknown as OidcProvider;

export function fakeConsole({ now, role, bare = false }: FakeOptions = {}): FakeConsole {
  const host = fakeHost();
  const clock = now === undefined ? host.clock : { ...host.clock, now };
  const world = makeWorld(clock.now);
  if (!bare) provideServices(host, world);
  const people = fakePeople(world, role);
  return {
    host,
    world,
    find: host.find,
    clock,
    people,
    invitations: fakeInvitations(world, people),
    companies: fakeCompanies(clock.now),
    log: host.log,
    providers: providerAdmin({ oidc: [acmeProvider], domains: [], origin: 'https://gateway.example' }, host.fetch),
    tokens: fakeTokens(world),
    views: fakeViews(),
    keyRequests: fakeKeyRequests(clock.now),
    programs: openPrograms(host.fetch, () => ['a secret of this test']),
    audit: fakeAudit(world),
    throttle: new Throttle(clock),
    ...fakeHistory(host, clock.now),
    addedPages: () => [],
    settings: {
      name: 'Demo gateway',
      signUp: 'open',
      mail: false,
      pages: { models: true, status: true },
      brand: plainBrand,
      oidc: [{ id: 'acme', name: 'Acme SSO' }],
    },
  };
}

/** Every service that a console looks at. */
function provideServices(host: FakeHost, world: World): void {
  const money = fakePool(world);
  const trade = fakeShop(world, money.post);
  const book = fakeAccounts(world);
  host.provide(accountAdmin, book);
  host.provide(projectAdmin, fakeProjects(world));
  host.provide(memberAdmin, fakeMembers(world));
  host.provide(creditLineAdmin, fakeCreditLines());
  host.provide(statementAdmin, fakeStatements(clientAccount));
  host.provide(budgetAdmin, fakeBudgets(world));
  host.provide(accounts, accountsOf(world, book));
  host.provide(requestQueries, fakeRequests(world));
  host.provide(recordedBodies, fakeBodies(world));
  host.provide(ledgerQueries, fakeMoney(world));
  host.provide(pool, money.pool);
  host.provide(ledger, money.ledger);
  host.provide(plans, fakePlans);
  host.provide(shop, trade.shop);
  host.provide(shopAdmin, trade.admin);
  host.provide(taskAdmin, fakeTasks(world, clientAccount));
  const uploads = fakeFiles(world, clientAccount);
  host.provide(uploadedFiles, uploads.files);
  host.provide(fileAdmin, uploads.admin);
  host.provide(batchAdmin, fakeBatches(world, clientAccount));
  host.provide(upstreamAdmin, fakeUpstreams());
  host.provide(upstreamProbes, fakeProbes());
  host.provide(catalog, fakeCatalog());
  host.provide(priceQueries, fakePrices());
  host.provide(alertAdmin, fakeAlerts(world.now));
  host.provide(noticeAdmin, fakeNotices(world.now));
  host.provide(configFiles, fakeConfig(world.now));
}

function accountsOf(world: World, book: ReturnType<typeof fakeAccounts>): Accounts {
  const report = ({ id, name, plan, multiplier, createdAt }: World['accounts'][number]) => ({
    id,
    name,
    plan,
    multiplier: multiplier ?? null,
    createdAt: new Date(createdAt),
  });
  return {
    async create(name, plan) {
      const row = {
        id: world.nextId('account'),
        name,
        plan,
        planEndsAt: undefined,
        multiplier: undefined,
        disabled: false,
        retention: undefined,
        createdAt: world.now(),
      };
      world.accounts.push(row);
      return report(row);
    },
    async find(nameOrId) {
      const row = world.accounts.find(({ id, name }) => id === nameOrId || name === nameOrId);
      return row === undefined ? undefined : report(row);
    },
    list: async () => world.accounts.map(report),
    async setPlan(_orm, accountId, plan, planEndsAt) {
      const index = world.accounts.findIndex(({ id }) => id === accountId);
      world.accounts[index] = { ...world.accounts[index]!, plan, planEndsAt };
    },
    createKey: (accountId, { name, models, expiresAt }) =>
      book.createKey(accountId, { name, models, expiresAt: expiresAt?.getTime() }),
  };
}
