/** Refunds of one account's charges, inside one transaction. */
import { sql } from 'drizzle-orm';
import type { Money } from '../../common/domain/money.ts';
import { type Runner, rowsOf, tablesOf } from '../model/sql.ts';

export interface RefundRows {
  /** The cost of the account's settled request and the amount refunded; undefined: there is none. */
  chargeOf(requestId: string): Promise<{ readonly cost: bigint; readonly refunded: bigint } | undefined>;
  add(grantId: string, requestId: string, amount: Money): Promise<void>;
}

/** Refund rows in SQL. */
export function sqlRefundRows(runner: Runner, schema: string, accountId: string): RefundRows {
  const table = tablesOf(schema);
  return {
    async chargeOf(requestId) {
      const [row] = await rowsOf<{ cost: string; refunded: string }>(
        runner,
        sql`select cost::text as cost, (select coalesce(sum(amount), 0)::text from ${table('refunds')} as refunds
              where refunds.account_id = ${accountId} and refunds.request_id = ${requestId}::uuid) as refunded
            from (select cost from ${table('calls')} where account_id = ${accountId} and id = ${requestId}::uuid and settled
              union all select cost from ${table('archived_charges')} where account_id = ${accountId} and id = ${requestId}::uuid) as charges`,
      );
      return row && { cost: BigInt(row.cost), refunded: BigInt(row.refunded) };
    },
    async add(grantId, requestId, amount) {
      await runner.execute(
        sql`insert into ${table('refunds')} (account_id, grant_id, request_id, amount)
            values (${accountId}, ${grantId}::uuid, ${requestId}::uuid, ${amount.toString()}::bigint)`,
      );
    },
  };
}
