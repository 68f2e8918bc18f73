/** One account's plan terms inside one transaction: each has a beginning and an end. */
import { sql } from 'drizzle-orm';
import type { PlanTerm } from '../../common/domain/ledger.ts';
import { money } from '../../common/domain/money.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import type { WindowLimits } from './balances.ts';
import { encodeLimits } from './funds.ts';
import type { PeriodName } from './periods.ts';

export interface StoredTerm extends PlanTerm {
  /** The amount granted each period; 0 means no grant. */
  readonly amount: bigint;
  readonly every: PeriodName | undefined;
  readonly limits: WindowLimits;
}

type NewTerm = Omit<StoredTerm, 'id'>;

/** Times are wall-clock milliseconds. */
export interface TermRows {
  /** The term that began last by `at`, whether it has ended or not. */
  last(at: number): Promise<StoredTerm | undefined>;
  /** Whether a term of this plan ends after `since` or has no end. */
  hasEnded(plan: string, since: number): Promise<boolean>;
  /** Ends every term that is still running at `at`. */
  endAll(at: number): Promise<void>;
  add(term: NewTerm): Promise<void>;
  /** Sets a term's end; undefined removes it. */
  setEnd(termId: string, endsAt: number | undefined): Promise<void>;
}

/** The largest tolerated difference between clocks of nodes, or jump back of one clock. */
export const clocksDifferMs = 15 * 60_000;

/**
 * The account's time when a node's clock reads `at`. It never precedes the beginning of a term, which another node
 * may have dated slightly later; otherwise a term could end before it began and its payment would be lost.
 */
export async function momentOf(runner: Runner, schema: string, accountId: string, at: number): Promise<number> {
  const [row] = await rowsOf<{ latest: string | null }>(
    runner,
    sql`select ${millisecondsOf(sql`max(starts_at)`)} as latest from ${tablesOf(schema)('terms')}
        where account_id = ${accountId} and starts_at > ${time(at)} and starts_at <= ${time(at + clocksDifferMs)}`,
  );
  return row?.latest == null ? at : Number.parseInt(row.latest, 10);
}

interface TermRow {
  readonly id: string;
  readonly plan: string;
  readonly amount: string;
  readonly every: PeriodName | null;
  readonly windows: string | null;
  readonly starts_at: string;
  readonly ends_at: string | null;
}

/** Plan terms in SQL. */
export function sqlTermRows(runner: Runner, schema: string, accountId: string): TermRows {
  const terms = tablesOf(schema)('terms');
  return {
    async last(at) {
      const [row] = await rowsOf<TermRow>(
        runner,
        sql`select id::text as id, plan, amount::text as amount, every, windows::text as windows,
              ${millisecondsOf(sql`starts_at`)} as starts_at, ${millisecondsOf(sql`ends_at`)} as ends_at
            from ${terms} where account_id = ${accountId} and starts_at <= ${time(at)}
            order by terms.starts_at desc, terms.ends_at desc nulls first limit 1`,
      );
      return row && termOf(row);
    },
    async hasEnded(plan, since) {
      const rows = await rowsOf(
        runner,
        sql`select 1 as found from ${terms}
            where account_id = ${accountId} and plan = ${plan} and (ends_at is null or ends_at > ${time(since)}) limit 1`,
      );
      return rows.length > 0;
    },
    async endAll(at) {
      await runner.execute(
        sql`update ${terms} set ends_at = ${time(at)}
            where account_id = ${accountId} and (ends_at is null or ends_at > ${time(at)})`,
      );
    },
    async add({ plan, amount, every, limits, startsAt, endsAt }) {
      await runner.execute(
        sql`insert into ${terms} (account_id, plan, amount, every, windows, starts_at, ends_at)
            values (${accountId}, ${plan}, ${amount.toString()}::bigint, ${every ?? null}::text,
              ${encodeLimits(limits)}::text::json, ${time(startsAt)}, ${endOf(endsAt)}::timestamptz)`,
      );
    },
    async setEnd(termId, endsAt) {
      await runner.execute(
        sql`update ${terms} set ends_at = ${endOf(endsAt)}::timestamptz where account_id = ${accountId} and id = ${termId}::uuid`,
      );
    },
  };
}

function endOf(endsAt: number | undefined): string | null {
  return endsAt === undefined ? null : time(endsAt);
}

function termOf(row: TermRow): StoredTerm {
  const limits = Object.entries(JSON.parse(row.windows ?? '{}') as Record<string, string>);
  return {
    id: row.id,
    plan: row.plan,
    amount: BigInt(row.amount),
    every: row.every ?? undefined,
    limits: Object.fromEntries(limits.map(([name, digits]) => [name, money(BigInt(digits))])),
    startsAt: Number.parseInt(row.starts_at, 10),
    endsAt: row.ends_at === null ? undefined : Number.parseInt(row.ends_at, 10),
  };
}
