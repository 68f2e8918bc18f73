/** What billing asks of its database, in one place: every statement that moves money stands behind this door. */
import type { Money } from '../../core/money.ts';
import type { Database } from '../../core/vocabulary.ts';
import { applyBatch, type Cursor, claimCursor } from './batch.ts';
import { creditAccount, type Grant, readBalances } from './grants.ts';

/** A ledger that several processes share. Each call is one transaction: all of it or nothing, also when its answer is lost. */
export interface Store {
  /** Where a journal was left, for `owner`, who alone may go on with it from now on. */
  claim(journal: string, owner: string): Promise<number>;
  /** Applies journal text; rows that are there already change nothing. Resolves with the accounts' balances afterwards. */
  apply(text: string, accountIds: readonly string[], cursor: Cursor): Promise<Map<string, Money>>;
  /** Balances in nano-USD; 0 for an account that never had any. */
  balances(accountIds: readonly string[]): Promise<Map<string, Money>>;
  /** Adds a grant once for each reference, at wall-clock milliseconds `at`. Resolves with the balance afterwards. */
  credit(accountId: string, amount: Money, grant: Grant, at: number): Promise<Money>;
}

/** The store in a database that speaks SQL. */
export function sqlStore({ orm, schema }: Database): Store {
  return {
    claim: (journal, owner) => claimCursor(orm, schema, journal, owner),
    apply: (text, accountIds, cursor) => applyBatch(orm, schema, text, accountIds, cursor),
    balances: (accountIds) => readBalances(orm, schema, accountIds),
    credit: (accountId, amount, grant, at) => creditAccount(orm, schema, accountId, amount, grant, at),
  };
}
