/** What billing asks of its database, in one place: every statement that moves money stands behind this door. */
import type { Money } from '../../core/money.ts';
import type { Database } from '../../core/vocabulary.ts';
import { applyBatch, type Cursor, claimCursor } from './batch.ts';
import { Entries } from './entries.ts';
import { type Funds, readFunds } from './funds.ts';

/** A ledger that several processes share. Each call is one transaction: all of it or nothing, also when its answer is lost. */
export interface Store {
  /** Where a journal was left, for `owner`, who alone may go on with it from now on. */
  claim(journal: string, owner: string): Promise<number>;
  /** Applies journal text; rows that are there already change nothing. Resolves with the accounts' balances afterwards. */
  apply(text: string, accountIds: readonly string[], cursor: Cursor): Promise<Map<string, Money>>;
  /** What the accounts have at wall-clock milliseconds `at`; a balance of 0 for one that never had any. */
  funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>>;
  /** Runs `work` under the account's lock; all of its entries are of wall-clock milliseconds `at`. */
  transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T>;
}

/** The store in a database that speaks SQL. */
export function sqlStore({ orm, schema }: Database): Store {
  return {
    claim: (journal, owner) => claimCursor(orm, schema, journal, owner),
    apply: (text, accountIds, cursor) => applyBatch(orm, schema, text, accountIds, cursor),
    funds: (accountIds, at) => readFunds(orm, schema, accountIds, at),
    transact: (accountId, at, work) => Entries.transact(orm, schema, accountId, at, work),
  };
}
