/** The store: billing's only access to its database for statements that move money or allow spending. */
import type { Database } from '../common/domain/database.ts';
import type { SumTable } from '../common/rollups/table.ts';
import { type BudgetRows, openBudgetRows } from './budgets/rows.ts';
import type { BudgetShares } from './budgets/shares.ts';
import { sqlShares } from './budgets/store.ts';
import { type Leases, sqlLeases } from './leases/store.ts';
import { type LedgerStore, sqlLedgerStore } from './ledger/store.ts';
import { type RestoreRows, sqlRestores } from './restores/rows.ts';

export interface Store extends LedgerStore {
  /** The leases of balances that processes spend from memory. */
  readonly leases: Leases;
  /** What scopes may spend, and the shares of processes in it. */
  readonly budgets: BudgetShares;
  /** What accounts have of their own beside the settings. */
  readonly ownBudgets: BudgetRows;
  /** Absent where no database can be put back. */
  readonly restores?: RestoreRows;
}

/** The store in SQL. `requestSums`: where requests are summed up, if the request log is in the list of plugins. */
export function sqlStore(database: Database, requestSums: () => SumTable | undefined = () => undefined): Store {
  const { orm, schema } = database;
  const [leases, restores] = [sqlLeases(orm, schema), sqlRestores(orm, schema)];
  return {
    ...sqlLedgerStore(database, requestSums),
    leases,
    budgets: sqlShares(orm, schema),
    ownBudgets: openBudgetRows(database),
    restores,
  };
}
