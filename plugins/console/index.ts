/** The console: pages and an API for the people who use and run this gateway. */
import { definePlugin, type Endpoint, type Exchange, type Host, type Next, type Part } from '../../core/contract.ts';
import { payments } from '../../core/desk-money.ts';
import { priceFloor } from '../../core/vocabulary.ts';
import { consoleCommands } from './commands.ts';
import { type ConsoleConfig, config } from './config.ts';
import * as desks from './desks.ts';
import { firstPath, type Links, openLinks } from './people/links.ts';
import { houseTables } from './people/tables.ts';

const operation = 'console';
const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE'] as const;
const paths = ['/console', '/console/*'];
const pruneIntervalMs = 3_600_000;

export default definePlugin<ConsoleConfig>({
  name: 'console',
  config,
  needs: [desks.database],
  uses: [
    desks.accounts,
    desks.accountDesk,
    desks.requestDesk,
    desks.bodyDesk,
    desks.moneyDesk,
    desks.ledger,
    desks.pool,
    desks.plans,
    desks.shop,
    desks.shopDesk,
    desks.taskDesk,
    desks.upstreamDesk,
    desks.probeDesk,
    desks.catalog,
    desks.priceDesk,
    desks.multipliers,
    desks.configDesk,
    payments,
    priceFloor,
  ],

  async setup(host: Host, settings: ConsoleConfig): Promise<Part<ConsoleConfig>> {
    const store = host.need(desks.database);
    await store.migrate('console', new URL('./migrations/', import.meta.url));
    const links = openLinks({
      orm: store.orm,
      tables: houseTables(store.schema),
      clock: host.clock,
      random: host.random,
    });
    const commands = consoleCommands(links, settings.origin);
    if (host.mode !== 'serve') return { endpoints: endpointsFor(refuse), commands };
    // Sign-in and API are large, and commands have no use for them.
    const { openConsole, reloads } = await import('./open.ts');
    const opened = await openConsole({ host, store, settings, links });
    return {
      endpoints: endpointsFor((exchange, forward) => opened.site(exchange, forward)),
      sockets: [opened.live.endpoint],
      commands,
      prepare: (changed) => opened.prepare(changed),
      reloads,
      // Stands before the body is read.
      applies: (endpoint) => endpoint.operation === operation,
      async handle(exchange: Exchange, next: Next) {
        return opened.refuseLarge(exchange) ?? next();
      },
      start() {
        opened.live.start();
        host.every(pruneIntervalMs, 'prune sessions and links', () => opened.prune());
      },
      listening: (origin) => greet(host, links, settings.origin || origin, () => opened.firstOperatorMissing()),
      drain: () => opened.live.stop(),
      stop: () => opened.close(),
    };
  },
});

function endpointsFor(handle: NonNullable<Endpoint['handle']>): Endpoint[] {
  return methods.flatMap((method) =>
    paths.map(
      (path) => ({ method, path, operation, keyless: true, unlogged: true, timeoutMs: 60_000, handle }) as const,
    ),
  );
}

function refuse(): never {
  throw new Error('the console answers while the gateway serves');
}

/** Somebody must be the first; whoever reads the terminal may be. */
async function greet(host: Host, links: Links, origin: string, isMissing: () => Promise<boolean>): Promise<void> {
  if (!host.crew.isFirst || !(await isMissing())) return;
  const path = firstPath(await links.make('first_operator'));
  process.stdout.write(`
  The console of the gateway "${host.gateway}" has no operator yet. Whoever opens this first, within 24 hours, is it:

      ${origin}${path}

`);
}
