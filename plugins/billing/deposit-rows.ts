/** One account's deposits, and the ledger rows that they begin and end with, inside one transaction. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../core/money.ts';
import { postRecords } from './batch.ts';
import type { JournalRecord } from './records.ts';
import { type Runner, rowsOf, tablesOf, time } from './sql.ts';

export interface KeptDeposit {
  readonly held: Money;
  /** What the charge depends on, encoded. */
  readonly terms: string;
}

export interface DepositRows {
  /** Makes the ledger rows of records that no journal has; moves the balance with them. */
  post(records: readonly JournalRecord[]): Promise<void>;
  /** `at`: wall-clock milliseconds. */
  add(requestId: string, deposit: KeptDeposit, at: number): Promise<void>;
  find(requestId: string): Promise<KeptDeposit | undefined>;
  remove(requestId: string): Promise<void>;
}

/** The deposits in a database that speaks SQL. */
export function sqlDepositRows(runner: Runner, schema: string, accountId: string): DepositRows {
  const deposits = tablesOf(schema)('deposits');
  return {
    post: (records) => postRecords(runner, schema, accountId, records),
    async add(requestId, { held, terms }, at) {
      await runner.execute(sql`
        insert into ${deposits} (request_id, account_id, held, terms, created_at)
        values (${requestId}::uuid, ${accountId}, ${held.toString()}::bigint, ${terms}::text::json, ${time(at)})`);
    },
    async find(requestId) {
      const [kept] = await rowsOf<{ held: string; terms: string }>(
        runner,
        sql`select held::text as held, terms::text as terms from ${deposits}
            where request_id = ${requestId}::uuid and account_id = ${accountId}`,
      );
      return kept && { held: money(BigInt(kept.held)), terms: kept.terms };
    },
    async remove(requestId) {
      await runner.execute(sql`delete from ${deposits} where request_id = ${requestId}::uuid`);
    },
  };
}
