/** One account's credit line inside one transaction: what operators have decided, and the grants that it has brought. */
import { sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';

export const creditKind = 'credit_line';

export interface CreditLine {
  /** Counts the account's decisions, from 1. */
  readonly number: number;
  /** For each month; 0: no more. */
  readonly amount: Money;
}

/** With the account's own time zone; undefined: it has none. */
type ZonedLine = CreditLine & { readonly zone?: string | undefined };

/** What a line has brought for a month, or for the rest of one. */
export interface CreditGrant {
  readonly id: string;
  readonly reference: string;
  readonly amount: Money;
  readonly used: Money;
  /** What of it was paid or given back. */
  readonly paid: Money;
  /** The end of its month, and its own end, in wall-clock milliseconds. */
  readonly monthEnd: number;
  readonly expiresAt: number;
}

export interface CreditRows {
  /** The decision that counts; undefined: there was none yet. */
  line(): Promise<ZonedLine | undefined>;
  setLine(line: CreditLine & { readonly reason: string }, at: number): Promise<void>;
  /** Oldest first: those of months that end after `since`, and all that are not paid. */
  grants(since: number): Promise<CreditGrant[]>;
  /** Ends a grant before its month does, behind all that it has paid: clocks of processes differ. */
  end(grantId: string, expiresAt: number): Promise<void>;
  /** What grants of lines have paid of a settled request's charge. */
  paidOf(requestId: string): Promise<{ readonly reference: string; readonly amount: Money }[]>;
}

export interface GrantRow
  extends Readonly<Record<'id' | 'reference' | 'amount' | 'used' | 'paid' | 'month_end', string>> {
  readonly expires_at: string;
}

export function sqlCreditRows(runner: Runner, schema: string, accountId: string): CreditRows {
  const table = tablesOf(schema);
  return {
    async line() {
      const [row] = await rowsOf<{ number: number; amount: string; zone: string | null }>(
        runner,
        sql`select number, amount::text as amount, (select zone from ${table('account_zones')} where account_id = ${accountId}) as zone
            from ${table('credit_lines')} where account_id = ${accountId} order by number desc limit 1`,
      );
      return row && { number: row.number, amount: money(BigInt(row.amount)), zone: row.zone ?? undefined };
    },
    async setLine({ number, amount, reason }, at) {
      await runner.execute(
        sql`insert into ${table('credit_lines')} (account_id, number, amount, reason, set_at)
            values (${accountId}, ${number}::int, ${amount.toString()}::bigint, ${reason}, ${time(at)}::timestamptz)`,
      );
    },
    async grants(since) {
      const rows = await rowsOf<GrantRow>(runner, creditGrants(schema, sql`grants.account_id = ${accountId}`, since));
      return rows.map(grantOf);
    },
    async end(grantId, expiresAt) {
      await runner.execute(
        sql`update ${table('grant_balances')} set expires_at = greatest(${time(expiresAt)}::timestamptz,
              (select max(held_at) + interval '1 millisecond' from ${table('allocations')}
                where account_id = ${accountId} and grant_id = ${grantId}::uuid))
            where account_id = ${accountId} and grant_id = ${grantId}::uuid`,
      );
    },
    async paidOf(requestId) {
      const rows = await rowsOf<{ reference: string; amount: string }>(
        runner,
        sql`select grants.reference, draws.amount::text as amount
            from (select account_id, seq from ${table('calls')} where account_id = ${accountId} and id = ${requestId}::uuid and seq is not null
              union all select account_id, seq from ${table('archived_charges')} where account_id = ${accountId} and id = ${requestId}::uuid) as charges
            join ${table('allocations')} as draws on draws.account_id = charges.account_id and draws.seq = charges.seq
            join ${table('grants')} as grants on grants.account_id = draws.account_id and grants.id = draws.grant_id
            where grants.kind = ${creditKind}`,
      );
      return rows.map(({ reference, amount }) => ({ reference, amount: money(BigInt(amount)) }));
    },
  };
}

/** What was used is the amount less what is left and less what has expired: no allocation is read. */
export function creditGrants(schema: string, which: ReturnType<typeof sql>, since: number) {
  const table = tablesOf(schema);
  const moved = (kind: string) => sql`(select coalesce(-sum(moved.amount), 0) from ${table('ledger')} as moved
    where moved.account_id = grants.account_id and moved.grant_id = grants.id and moved.kind = ${kind})`;
  return sql`select * from (
      select grants.account_id, grants.id::text as id, grants.reference, grants.amount::text as amount, grants.created_at,
        (grants.amount - known.remaining - ${moved('EXPIRE')})::text as used, ${moved('PAYOUT')}::text as paid,
        ${millisecondsOf(sql`grants.expires_at`)} as month_end, ${millisecondsOf(sql`known.expires_at`)} as expires_at
      from ${table('grants')} as grants join ${table('grant_balances')} as known
        on known.account_id = grants.account_id and known.grant_id = grants.id
      where grants.kind = ${creditKind} and ${which}) as brought
    where month_end::bigint > ${since}::bigint or used <> paid order by created_at, id`;
}

export function grantOf(row: GrantRow): CreditGrant {
  const { id, reference } = row;
  const amounts = { amount: money(BigInt(row.amount)), used: money(BigInt(row.used)), paid: money(BigInt(row.paid)) };
  const ends = { monthEnd: Number.parseInt(row.month_end, 10), expiresAt: Number.parseInt(row.expires_at, 10) };
  return { id, reference, ...amounts, ...ends };
}
