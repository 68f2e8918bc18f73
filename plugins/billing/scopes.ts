/** Connects the tallies of scopes and the budgets of accounts with the runtime, and with other processes. */
import type { Host } from '../../core/contract/contract.ts';
import type { Database } from '../common/domain/database.ts';
import { type BudgetRule, budgetAdmin } from '../common/domain/organizations/budgets.ts';
import { projectAdmin } from '../common/domain/organizations/projects.ts';
import { openBudgetAdmin } from './budgets/admin.ts';
import { BudgetBook } from './budgets/book.ts';
import { OwnBudgets, type ScopeServices } from './budgets/own.ts';
import { type BudgetRows, budgetsTopic } from './budgets/rows.ts';
import { Tallies } from './budgets/tallies.ts';
import { leaseTimes } from './leases/manager.ts';
import type { BillingRuntime } from './runtime.ts';

const tickMs = 1_000;
/** Accounts of which budgets are kept in memory at least. */
const leastAccounts = 1_000;

interface Stores {
  readonly store: Database;
  readonly rows: BudgetRows;
}

interface Settings {
  readonly budgets: readonly BudgetRule[];
  /** The most accounts and scopes in memory. */
  readonly accounts: number;
}

export interface Scopes extends ScopeServices {
  /** Takes changed settings. */
  change(settings: Pick<Settings, 'budgets'>): void;
  /** Before calls come. */
  start(): Promise<void>;
}

/** Provides the administration of budgets too. `runtime` is there while calls come. */
export function openScopes(
  host: Host,
  { store, rows }: Stores,
  settings: Settings,
  runtime: () => BillingRuntime | undefined,
): Scopes {
  const { clock, log } = host;
  const book = new BudgetBook(settings.budgets);
  const tallies = openTallies(host, store, settings.accounts, runtime);
  const revise = (accountId?: string) => tallies.revise((scope) => book.revised(scope), accountId);
  const own = new OwnBudgets({ rows, book, log, changed: revise, limit: Math.max(settings.accounts, leastAccounts) });
  host.provide(
    budgetAdmin,
    openBudgetAdmin({ database: store, rows, book, clock, projects: () => host.find(projectAdmin) }),
  );
  store.onChange(budgetsTopic, (accountId) => own.announced(accountId));
  return {
    ...{ tallies, book, own },
    change: ({ budgets }) => {
      book.change(budgets);
      revise();
    },
    start: async () => {
      await own.start();
      host.every(tickMs, 'read changed budgets', () => own.tick());
    },
  };
}

/** `limit`: the most scopes in memory. */
function openTallies(
  { clock, log }: Host,
  store: Database,
  limit: number,
  runtime: () => BillingRuntime | undefined,
): Tallies {
  const announce = (topic: string) => (key: string) => {
    store.announce(topic, `${runtime()?.scopes.node} ${key}`).catch((error: unknown) => {
      log.warn({ error, topic }, 'other nodes could not be notified of a share');
    });
  };
  const tallies = new Tallies({
    ...{ clock, log, limit },
    drained: () => runtime()!.scopes.drained(),
    take: (requests) => runtime()!.scopes.take(requests),
    times: store.shared === true ? leaseTimes(store.bridgeMs ?? 0) : undefined,
    recall: announce('scope wanted'),
    returned: announce('scope returned'),
  });
  // Other processes want what this one has of a scope, or have returned what they had.
  const ofOthers = (work: (subject: string) => void) => (subject: string) => {
    const serving = runtime();
    if (serving !== undefined && !subject.startsWith(`${serving.scopes.node} `)) work(subject);
  };
  const onChange = (topic: string, work: (subject: string) => void) => store.onChange(topic, ofOthers(work));
  onChange('scope wanted', (subject) => tallies.wanted(subject));
  onChange('scope returned', (subject) => tallies.wasReturned(subject));
  return tallies;
}
