/** What is to be paid of an account's credit line when the month of a statement ends, by the movements that it knows. */
import { sql } from 'drizzle-orm';
import { money } from '../../common/domain/money.ts';
import { instant } from '../../common/kit/sql.ts';
import { creditKind } from '../grants/credit-rows.ts';
import { monthsOf } from '../ledger/credit-lines.ts';
import { millisecondsOf, rowsOf, tablesOf } from '../model/sql.ts';
import type { DueMonth } from './format.ts';
import type { Bounds, Place } from './rows.ts';

interface Terms {
  /** The first movement of a later month: those before it are all of this statement or an earlier one. */
  readonly openSeq: string;
  readonly payWithinMs: number;
}

/**
 * Oldest first. What was used is what has gone from the grants, less what later movements took: of those alone allocations are read. A charge
 * that reaches the ledger after the statement, and a payment after the end of the month, count in the next one.
 */
export async function dueMonths(
  { orm, schema }: Place,
  { accountId, until, seenSeq }: Bounds,
  { openSeq, payWithinMs }: Terms,
): Promise<DueMonth[]> {
  const table = tablesOf(schema);
  const gone = sql`(select coalesce(-sum(amount), 0) from ${table('ledger')}
    where account_id = ${accountId} and grant_id = grants.id and kind = 'EXPIRE')`;
  const later = sql`(select coalesce(sum(draws.amount), 0) from ${table('allocations')} as draws
    join ${table('movements')} as moved on moved.account_id = draws.account_id and moved.seq = draws.seq
    where draws.account_id = ${accountId} and draws.grant_id = grants.id and draws.seq >= ${openSeq}::bigint and moved.account_id = ${accountId}
      and moved.seq >= ${openSeq}::bigint and (moved.seq > ${seenSeq}::bigint or moved.created_at >= ${instant(until)}))`;
  const paid = sql`(select coalesce(-sum(amount), 0) from ${table('ledger')} where account_id = ${accountId} and grant_id = grants.id
    and kind = 'PAYOUT' and seq <= ${seenSeq}::bigint and created_at < ${instant(until)})`;
  const rows = await rowsOf<Readonly<Record<'reference' | 'month_end' | 'used' | 'paid', string>>>(
    orm,
    sql`select grants.reference, ${millisecondsOf(sql`grants.expires_at`)} as month_end,
          (grants.amount - known.remaining - ${gone} - ${later})::text as used, ${paid}::text as paid
        from ${table('grants')} as grants join ${table('grant_balances')} as known on known.account_id = grants.account_id and known.grant_id = grants.id
        where grants.account_id = ${accountId} and grants.kind = ${creditKind} and grants.expires_at <= ${instant(until)}
        order by grants.expires_at, grants.created_at, grants.id`,
  );
  const grants = rows.map(({ reference, month_end, used, paid: given }) => ({
    ...{ reference, monthEnd: Number.parseInt(month_end, 10), used: money(BigInt(used)), paid: money(BigInt(given)) },
  }));
  return monthsOf(grants, { payWithinMs }, until).flatMap((month) =>
    month.used <= month.paid
      ? []
      : {
          month: month.month,
          until: new Date(month.until).toISOString(),
          due_at: new Date(month.dueAt).toISOString(),
          used: String(month.used),
          paid: String(month.paid),
        },
  );
}
