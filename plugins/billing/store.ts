/** What billing asks of its database, in one place: every statement that moves money, or lets it be spent, stands behind this door. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import { version } from '../../core/version.ts';
import type { Database, Ledger } from '../../core/vocabulary.ts';
import { applyBatch, type Cursor } from './batch.ts';
import type { KeySpend } from './caps.ts';
import { readEnd } from './ends.ts';
import { Entries } from './entries.ts';
import { type Funds, readFunds } from './funds.ts';
import { type Leases, sqlLeases } from './leases/store.ts';
import { rowsOf, tablesOf, time } from './sql.ts';

/** A ledger that several processes write. Each call is one transaction: all of it or nothing, also when its answer is lost. */
export interface Store {
  /** How far a journal is applied, and the last epoch of it that was seen; undefined for one that is new. */
  cursorOf(journal: string): Promise<{ readonly applied: number; readonly epoch: number } | undefined>;
  /** From now on `owner` alone may go on with the journal. false: this epoch or a later one was seen before. */
  claim(journal: string, owner: string, epoch: number): Promise<boolean>;
  /** Applies journal text; rows that are there already change nothing. Resolves with the accounts' balances afterwards. */
  apply(text: string, accountIds: readonly string[], cursor: Cursor): Promise<Map<string, Money>>;
  /** What the accounts have at wall-clock milliseconds `at`; a balance of 0 for one that never had any. */
  funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>>;
  /** How a request ended; `open`: it has not. `in_vain`: for nothing, though a vendor may have worked. */
  endOf(requestId: string): ReturnType<Ledger['endOf']>;
  /** What a key was charged since wall-clock milliseconds `from`, and what is set aside for its open orders. */
  spentBy(keyId: string, from: number): Promise<KeySpend>;
  /** Runs `work` under the account's lock; all of its entries are of one time: `at`, by this node's wall clock, or a little later. */
  transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T>;
  /** The parts of balances that processes spend from memory. */
  readonly leases: Leases;
}

/** The store in a database that speaks SQL. */
export function sqlStore({ orm, schema }: Database): Store {
  const table = tablesOf(schema);
  const cursors = table('journal_cursor');
  return {
    cursorOf: async (journal) => {
      const [row] = await rowsOf<{ applied: string; epoch: string }>(
        orm,
        sql`select applied::text, epoch::text from ${cursors} where journal = ${journal}`,
      );
      return row === undefined
        ? undefined
        : { applied: Number.parseInt(row.applied, 10), epoch: Number.parseInt(row.epoch, 10) };
    },
    claim: async (journal, owner, epoch) => {
      const claimed = await rowsOf(
        orm,
        sql`insert into ${cursors} as known (journal, owner, epoch, updated_at, version, started_at)
              values (${journal}, ${owner}, ${epoch}, now(), ${version}, now())
            on conflict (journal) do update set owner = excluded.owner, epoch = excluded.epoch, asked = 0, updated_at = now(),
              version = excluded.version, started_at = now()
            where known.epoch < excluded.epoch returning 1 as one`,
      );
      return claimed.length === 1;
    },
    apply: (text, accountIds, cursor) => applyBatch(orm, schema, text, accountIds, cursor),
    funds: (accountIds, at) => readFunds(orm, schema, accountIds, at),
    endOf: (requestId) => readEnd(orm, schema, requestId),
    spentBy: async (keyId, from) => {
      const [row] = await rowsOf<{ settled: string; ordered: string }>(
        orm,
        sql`select
          (select coalesce(sum(cost), 0)::text from ${table('usage')}
            where key_id = ${keyId} and created_at >= ${time(from)}::timestamptz) as settled,
          (select coalesce(sum(held), 0)::text from ${table('deposits')} where terms->>'key' = ${keyId}) as ordered`,
      );
      return { settled: money(BigInt(row!.settled)), ordered: money(BigInt(row!.ordered)) };
    },
    transact: (accountId, at, work) => Entries.transact(orm, schema, accountId, at, work),
    leases: sqlLeases(orm, schema),
  };
}
