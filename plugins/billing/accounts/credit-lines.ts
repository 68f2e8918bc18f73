/** Credit lines for people: what an account has and owes, an operator's decision, and what is not paid. */
import { sql } from 'drizzle-orm';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { money } from '../../common/domain/money.ts';
import type { CreditLineAdmin, CreditLineView } from '../../common/domain/organizations/credit-lines.ts';
import { creditGrants, type GrantRow, grantOf } from '../grants/credit-rows.ts';
import { clocksDifferMs } from '../grants/term-rows.ts';
import { leaseTimes } from '../leases/manager.ts';
import { type CreditTerms, monthsOf, setCredit, viewCredit } from '../ledger/credit-lines.ts';
import { rowsOf } from '../model/sql.ts';
import type { AccountChanges } from './changes.ts';

const none = money(0n);
/** Behind the clock of every database. */
const endOfTime = Date.UTC(9999, 0, 1);

interface Settings {
  readonly statements: { readonly zone?: string | undefined };
  readonly credit_lines: { readonly pay_within: number; readonly stop_after?: number | undefined };
}

export function creditTermsOf({ statements, credit_lines: given }: Settings, { bridgeMs = 0 }: Database): CreditTerms {
  return {
    zone: statements.zone ?? 'UTC',
    payWithinMs: given.pay_within,
    stopAfterMs: given.stop_after,
    // A clock may jump back, or be behind the others: what it ends late, they must not have used in vain.
    noticeMs: clocksDifferMs + 2 * leaseTimes(bridgeMs).lastsMs,
  };
}

export function openCreditLines(
  changes: AccountChanges,
  { orm, schema }: Database,
  terms: CreditTerms,
  clock: Clock,
): CreditLineAdmin {
  return {
    find: (accountId) => changes.read(accountId, (entries) => viewCredit(entries, terms)),
    set: (accountId, amount, reason) =>
      changes.change(accountId, none, async (entries): Promise<CreditLineView> => {
        await setCredit(entries, amount, reason, terms);
        return (await viewCredit(entries, terms))!;
      }),
    unpaid: async (after, most) => {
      const behind = sql`grants.account_id > ${after}`;
      const rows = await rowsOf<GrantRow & { readonly account_id: string }>(
        orm,
        sql`with unpaid as (${creditGrants(schema, behind, endOfTime)})
            select * from unpaid where account_id in (select account_id from unpaid group by 1 order by 1 limit ${most}::int)
            order by account_id, created_at, id`,
      );
      return Array.from(
        Map.groupBy(rows, (row) => row.account_id),
        ([accountId, parts]) => {
          const months = monthsOf(parts.map(grantOf), terms, clock.now());
          return { accountId, months: months.filter(({ state }) => state === 'due' || state === 'overdue') };
        },
      );
    },
  };
}
