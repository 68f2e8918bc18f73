/** Argument parsing and shared services of the money commands. */

import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { type Account, accounts } from '../../common/domain/accounts.ts';
import type { Database } from '../../common/domain/database.ts';
import type { Ledger, Pool } from '../../common/domain/ledger.ts';
import type { Archive } from '../archive/archive.ts';
import type { AuditReport } from '../audit/audit.ts';
import type { Files } from '../journal/segments.ts';
import type { LedgerStore } from '../ledger/store.ts';
import type { StatementRow } from '../reports/ledger-pages.ts';
import type { RestoreWatch } from '../restores/watch.ts';
import type { Statements } from '../statements/statements.ts';

export interface CommandTools {
  readonly host: Host;
  readonly store: Database;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly archive: Archive;
  readonly statements: Statements;
  /** The account's last movements, newest first. */
  readonly statement: (accountId: string, limit: number) => Promise<StatementRow[]>;
  /** `days`: rollups of so many days, by chance, instead of all. */
  readonly audit: (days?: number) => Promise<AuditReport>;
  /** Absent where no database can be put back. */
  readonly watch: RestoreWatch | undefined;
  readonly journal: {
    readonly files: Files;
    readonly directory: string;
    readonly cursorOf: LedgerStore['cursorOf'];
  };
}

export async function findAccount(host: Host, name: unknown): Promise<Account> {
  if (typeof name !== 'string' || name === '') throw invalid('Name an account.', 'account');
  const directory = host.find(accounts);
  if (directory === undefined) throw new GatewayError('unsupported', 'This gateway has no accounts.');
  const account = await directory.find(name);
  if (account === undefined)
    throw new GatewayError('not_found', `There is no account "${name}".`, { field: 'account' });
  return account;
}
