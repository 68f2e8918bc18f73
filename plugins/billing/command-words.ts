/** What the commands about money read from a terminal, and what they work with. */
import type { Command, Host } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { type Account, accounts, type Ledger, type Pool } from '../../core/vocabulary.ts';
import type { AuditReport } from './audit.ts';
import type { StoredRow } from './rows.ts';

export interface CommandTools {
  readonly host: Host;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly readLedger: (accountId: string, limit: number) => Promise<StoredRow[]>;
  readonly audit: () => Promise<AuditReport>;
}

export type Values = Parameters<Command['run']>[0];

export function missing(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field });
}

export async function findAccount(host: Host, name: unknown): Promise<Account> {
  if (typeof name !== 'string' || name === '') throw missing('account', 'Name an account.');
  const directory = host.find(accounts);
  if (directory === undefined) throw new GatewayError('unsupported', 'This gateway has no accounts.');
  const account = await directory.find(name);
  if (account === undefined)
    throw new GatewayError('not_found', `There is no account "${name}".`, { field: 'account' });
  return account;
}
