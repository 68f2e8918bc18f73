/** An account's ledger rows as they are shown. */
import { sql } from 'drizzle-orm';
import { type Runner, rowsOf, tablesOf } from './sql.ts';

export interface StoredRow {
  readonly seq: string;
  readonly kind: string;
  readonly request_id: string | null;
  readonly amount: string;
  readonly balance_after: string;
  readonly detail: Record<string, unknown>;
  readonly created_at: string;
}

/** The account's last ledger rows, newest first. */
export function readLedger(runner: Runner, schema: string, accountId: string, limit: number): Promise<StoredRow[]> {
  return rowsOf<StoredRow>(
    runner,
    sql`select seq::text as seq, kind, request_id::text as request_id, amount::text as amount,
          balance_after::text as balance_after, detail,
          to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
        from ${tablesOf(schema)('ledger')} where account_id = ${accountId} order by ledger.seq desc limit ${limit}::int`,
  );
}
