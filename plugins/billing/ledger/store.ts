/** The ledger's rows: statements that move money, and what calls may spend. */
import { sql } from 'drizzle-orm';
import packageFile from '../../../package.json' with { type: 'json' };
import type { Database, Orm } from '../../common/domain/database.ts';
import type { Ledger } from '../../common/domain/ledger.ts';
import type { Money } from '../../common/domain/money.ts';
import type { SumTable } from '../../common/rollups/table.ts';
import { type Funds, readExpired, readFunds } from '../grants/funds.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import { applyBatch, type Cursor } from './batch.ts';
import { Entries } from './entries.ts';

/**
 * A ledger written by several processes. Each call is one transaction, complete or without effect, also when its
 * answer is lost.
 */
export interface LedgerStore {
  /** The cursor of a journal and the last epoch seen; undefined for a new journal. */
  cursorOf(journal: string): Promise<{ readonly applied: number; readonly epoch: number } | undefined>;
  /** From now on only `owner` may write the journal. False: this epoch or a later one was seen before. */
  claim(journal: string, owner: string, epoch: number): Promise<boolean>;
  /**
   * Applies journal text; existing rows change nothing. `accounts`: those of which calls end in it, with what their running
   * calls hold. Resolves with their balances afterwards.
   */
  apply(text: string, accounts: ReadonlyMap<string, Money>, cursor: Cursor): Promise<Map<string, Money>>;
  /** The accounts' funds at wall-clock milliseconds `at`; a balance of 0 for an account without any. */
  funds(accountIds: readonly string[], at: number): Promise<Map<string, Funds>>;
  /** Accounts behind `after`, in the order of their ids, with something left of a grant that ended before wall-clock milliseconds `before`. */
  expired(before: number, after: string, limit: number): Promise<string[]>;
  /** The end of a request; `open`: it has not ended. `in_vain`: it was not charged, though a vendor may have worked. */
  endOf(requestId: string): ReturnType<Ledger['endOf']>;
  /**
   * Runs `work` under the account's lock; all of its entries have one time: `at`, by this node's wall clock, or
   * slightly later.
   */
  transact<T>(accountId: string, at: number, work: (entries: Entries) => Promise<T>): Promise<T>;
}

/** The ledger in SQL. `requestSums`: where requests are summed up. */
export function sqlLedgerStore(place: Database, requestSums: () => SumTable | undefined): LedgerStore {
  const { orm, schema } = place;
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
              values (${journal}, ${owner}, ${epoch}, now(), ${packageFile.version}, now())
            on conflict (journal) do update set owner = excluded.owner, epoch = excluded.epoch, asked = 0, updated_at = now(),
              version = excluded.version, started_at = now()
            where known.epoch < excluded.epoch returning 1 as one`,
      );
      return claimed.length === 1;
    },
    apply: (text, accounts, cursor) => applyBatch(place, text, accounts, { ...cursor, requestSums: requestSums() }),
    funds: (accountIds, at) => readFunds(orm, schema, accountIds, at),
    expired: (before, after, limit) => readExpired(orm, schema, { before, after, limit }),
    endOf: (requestId) => readEnd(orm, schema, requestId),
    transact: (accountId, at, work) => Entries.transact(orm, schema, accountId, at, work),
  };
}

type End = Awaited<ReturnType<Ledger['endOf']>>;

/** `open`: money is set aside for it. Undefined: the database knows of no such call, or not yet. */
async function readEnd(orm: Orm, schema: string, requestId: string): Promise<End> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ settled: boolean | null; ran: boolean; open: boolean }>(
    orm,
    sql`select settled, coalesce(ran, false) as ran, open
        from (select exists (select from ${table('deposits')} where request_id = ${requestId}::uuid) as open) as deposit
        left join (select settled, exists (select from json_array_elements(${table('attempts_of')}(attempts, provider, target_model)) as attempt
            where attempt->>'result' not in ('refused', 'not_sent')) as ran
          from ${table('calls')} where id = ${requestId}::uuid
          union all select true, true from ${table('archived_charges')} where id = ${requestId}::uuid limit 1) as ended on true`,
  );
  const { settled, ran, open } = row!;
  if (settled === null) return open ? 'open' : undefined;
  if (settled) return 'charged';
  return ran ? 'in_vain' : 'free';
}
