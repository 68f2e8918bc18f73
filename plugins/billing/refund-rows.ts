/** What was given back of one account's charges, inside one transaction. */
import { sql } from 'drizzle-orm';
import type { Money } from '../../core/money.ts';
import { type Runner, rowsOf, tablesOf } from './sql.ts';

export interface RefundRows {
  /** What a settled request of the account has cost, and how much of that was given back; undefined: there is none. */
  chargeOf(requestId: string): Promise<{ readonly cost: bigint; readonly refunded: bigint } | undefined>;
  add(grantId: string, requestId: string, amount: Money): Promise<void>;
}

/** The refunds in a database that speaks SQL. */
export function sqlRefundRows(runner: Runner, schema: string, accountId: string): RefundRows {
  const table = tablesOf(schema);
  return {
    async chargeOf(requestId) {
      const [row] = await rowsOf<{ cost: string; refunded: string }>(
        runner,
        sql`select cost::text as cost, (select coalesce(sum(amount), 0)::text from ${table('refunds')} as refunds
              where refunds.request_id = usage.request_id) as refunded
            from ${table('usage')} as usage where request_id = ${requestId}::uuid and account_id = ${accountId}`,
      );
      return row && { cost: BigInt(row.cost), refunded: BigInt(row.refunded) };
    },
    async add(grantId, requestId, amount) {
      await runner.execute(
        sql`insert into ${table('refunds')} (grant_id, request_id, amount)
            values (${grantId}::uuid, ${requestId}::uuid, ${amount.toString()}::bigint)`,
      );
    },
  };
}
