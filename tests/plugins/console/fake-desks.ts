/** A whole console without a gateway: every service in memory, with rows of several days. */
import {
  accountDesk,
  bodyDesk,
  configDesk,
  priceDesk,
  probeDesk,
  requestDesk,
  shopDesk,
  taskDesk,
  upstreamDesk,
} from '../../../core/desk.ts';
import { moneyDesk } from '../../../core/desk-money.ts';
import { type Accounts, accounts, catalog, ledger, plans, pool, shop } from '../../../core/vocabulary.ts';
import type { Role } from '../../../plugins/console/actor.ts';
import type { Console } from '../../../plugins/console/api/router.ts';
import { Throttle } from '../../../plugins/console/people/throttle.ts';
import { type FakeHost, fakeHost } from '../../helpers/fakes.ts';
import { fakeBodies } from './fakes/bodies.ts';
import { fakeAudit, fakePeople, fakeTokens } from './fakes/persons.ts';
import { fakeAccounts, fakeMoney, fakeRequests } from './fakes/rows.ts';
import { fakeCatalog, fakeConfig, fakePrices } from './fakes/settings.ts';
import { fakePlans, fakePool, fakeShop, fakeTasks } from './fakes/trade.ts';
import { fakeProbes, fakeUpstreams } from './fakes/upstreams.ts';
import { clientAccount, makeWorld, type World } from './fakes/world.ts';

export interface FakeConsole extends Console {
  readonly host: FakeHost;
  readonly world: World;
  readonly people: ReturnType<typeof fakePeople>;
  readonly audit: ReturnType<typeof fakeAudit>;
}

export interface FakeOptions {
  /** Wall clock of every row; by default the fake host's. */
  readonly now?: () => number;
  /** Who is signed in where a request does not say; undefined: nobody. */
  readonly role?: Role | undefined;
  /** Leaves every service out, as a gateway without these plugins does. */
  readonly bare?: boolean;
}

export function fakeConsole({ now, role, bare = false }: FakeOptions = {}): FakeConsole {
  const host = fakeHost();
  const clock = now === undefined ? host.clock : { ...host.clock, now };
  const world = makeWorld(clock.now);
  if (!bare) provideDesks(host, world);
  return {
    host,
    world,
    find: host.find,
    clock,
    people: fakePeople(world, role),
    tokens: fakeTokens(world),
    audit: fakeAudit(world),
    throttle: new Throttle(clock),
    settings: {
      name: 'Demo gateway',
      signUp: 'open',
      mail: false,
      oidc: [{ id: 'acme', name: 'Acme SSO' }],
    },
  };
}

/** Every service that a console looks at. */
export function provideDesks(host: FakeHost, world: World): void {
  const money = fakePool(world);
  const trade = fakeShop(world, money.post);
  const book = fakeAccounts(world);
  host.provide(accountDesk, book);
  host.provide(accounts, accountsOf(world, book));
  host.provide(requestDesk, fakeRequests(world));
  host.provide(bodyDesk, fakeBodies(world));
  host.provide(moneyDesk, fakeMoney(world));
  host.provide(pool, money.pool);
  host.provide(ledger, money.ledger);
  host.provide(plans, fakePlans);
  host.provide(shop, trade.shop);
  host.provide(shopDesk, trade.desk);
  host.provide(taskDesk, fakeTasks(world, clientAccount));
  host.provide(upstreamDesk, fakeUpstreams());
  host.provide(probeDesk, fakeProbes());
  host.provide(catalog, fakeCatalog());
  host.provide(priceDesk, fakePrices());
  host.provide(configDesk, fakeConfig(world.now));
}

function accountsOf(world: World, book: ReturnType<typeof fakeAccounts>): Accounts {
  const told = ({ id, name, plan, multiplier, createdAt }: World['accounts'][number]) => ({
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
        createdAt: world.now(),
      };
      world.accounts.push(row);
      return told(row);
    },
    async find(nameOrId) {
      const row = world.accounts.find(({ id, name }) => id === nameOrId || name === nameOrId);
      return row === undefined ? undefined : told(row);
    },
    list: async () => world.accounts.map(told),
    async setPlan(_orm, accountId, plan, planEndsAt) {
      const index = world.accounts.findIndex(({ id }) => id === accountId);
      world.accounts[index] = { ...world.accounts[index]!, plan, planEndsAt };
    },
    createKey: (accountId, { name, models, expiresAt }) =>
      book.createKey(accountId, { name, models, expiresAt: expiresAt?.getTime() }),
  };
}
