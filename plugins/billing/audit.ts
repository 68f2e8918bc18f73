/** Checks the money's invariants against the rows themselves and tells what breaks them. */
import { type SQL, sql } from 'drizzle-orm';
import type { Orm } from '../../core/vocabulary.ts';
import { chargeRule, recountCharges } from './charge-audit.ts';
import { otherJournals } from './leases/others.ts';
import { type Check, drawRule, poolChecks, replayDraws, type Table } from './pool-audit.ts';
import { type Files, listSegments, scanSegment } from './segments.ts';
import { rowsOf, tablesOf } from './sql.ts';

/** Violations of one kind that are listed one by one; the rest is counted. */
const listed = 20;

export interface Violation {
  /** `M1` … as the rules are numbered. */
  readonly rule: string;
  readonly what: string;
  /** Account, request or row at fault. */
  readonly subject: string;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly violations: Violation[];
  readonly accounts: number;
  readonly rows: number;
}

const ends = sql`('SETTLE', 'VOID', 'EXPIRE')`;

const checks: readonly Check[] = [
  {
    rule: 'M1',
    what: 'the balance is not the sum of the ledger rows',
    query: (table) => sql`
      select coalesce(balances.account_id, sums.account_id) as subject from ${table('balances')} as balances
      full join (select account_id, sum(amount) as amount from ${table('ledger')} group by account_id) as sums
        on sums.account_id = balances.account_id
      where coalesce(balances.balance, 0) <> coalesce(sums.amount, 0)`,
  },
  {
    rule: 'M1',
    what: 'the sides of a ledger row do not add up to zero',
    query: (table) => sql`
      select 'row ' || seq as subject from ${table('ledger')}
      where amount + held + revenue + funding + absorbed <> 0`,
  },
  {
    rule: 'M1',
    what: 'the totals are not the sums of the ledger rows',
    query: (table) => sql`
      select side as subject from ${table('totals')} as totals,
        (select coalesce(sum(amount), 0) as available, coalesce(sum(held), 0) as held,
          coalesce(sum(revenue), 0) as revenue, coalesce(sum(funding), 0) as funding,
          coalesce(sum(absorbed), 0) as absorbed from ${table('ledger')}) as sums,
        lateral (values ('available', totals.available <> sums.available), ('held', totals.held <> sums.held),
          ('revenue', totals.revenue <> sums.revenue), ('funding', totals.funding <> sums.funding),
          ('absorbed', totals.absorbed <> sums.absorbed)) as sides (side, wrong)
      where wrong`,
  },
  {
    rule: 'M1',
    what: 'the balance after a row does not follow from the row before it',
    query: (table) => sql`
      select 'row ' || seq as subject from (
        select seq, amount, balance_after, lag(balance_after, 1, 0::bigint) over (partition by account_id order by seq) as before
        from ${table('ledger')}) as chain
      where before + amount <> balance_after`,
  },
  {
    rule: 'M2',
    what: 'the trigger that keeps rows from being changed is missing or off',
    query: (_table, schema) => sql`
      select guarded as subject from (values ('ledger'), ('grants'), ('draws'), ('refunds')) as tables (guarded)
      where not exists (
        select from pg_trigger where tgrelid = (quote_ident(${schema}::text) || '.' || guarded)::regclass
          and tgname = 'immutable' and tgenabled = 'O' and tgtype & 56 = 56)`,
  },
  {
    rule: 'M3',
    what: 'a request does not have exactly one hold',
    query: (table) => sql`
      select request_id::text as subject from ${table('ledger')} where request_id is not null
      group by request_id having count(*) filter (where kind = 'HOLD') <> 1`,
  },
  {
    rule: 'M3',
    what: 'a request ended more than once',
    query: (table) => sql`
      select request_id::text as subject from ${table('ledger')} where kind in ${ends}
      group by request_id having count(*) > 1`,
  },
  {
    rule: 'M3',
    what: 'money is still set aside for a request that has ended',
    query: (table) => sql`
      select request_id::text as subject from ${table('ledger')} where request_id is not null
      group by request_id having count(*) filter (where kind in ${ends}) > 0 and sum(held) <> 0`,
  },
  {
    rule: 'M3',
    what: 'a deposit and the open hold of its request do not match',
    query: (table) => sql`
      select request_id::text as subject from ${table('deposits')} as deposits
      where deposits.held is distinct from (select sum(ledger.held) from ${table('ledger')} as ledger
        where ledger.request_id = deposits.request_id and ledger.account_id = deposits.account_id)`,
  },
  {
    rule: 'M4',
    what: 'a charge and its usage row do not match',
    query: (table) => sql`
      select coalesce(usage.request_id, charges.request_id)::text as subject from ${table('usage')} as usage
      full join (select request_id, account_id, revenue from ${table('ledger')} where kind = 'SETTLE') as charges
        on charges.request_id = usage.request_id
      where charges.revenue is distinct from usage.cost or charges.account_id is distinct from usage.account_id`,
  },
  {
    rule: 'M5',
    what: 'a charged request has no attempt',
    query: (table) => sql`
      select request_id::text as subject from ${table('usage')} as usage
      where not exists (select from ${table('attempts')} as attempts where attempts.request_id = usage.request_id)`,
  },
  {
    rule: 'M9',
    what: 'a charge is below zero',
    query: (table) =>
      sql`select 'row ' || seq as subject from ${table('ledger')} where revenue < 0 and kind <> 'REFUND'`,
  },
  {
    rule: 'M10',
    what: 'a client bears more than one attempt, or one of a request that it was not charged for',
    query: (table) => sql`
      select attempts.request_id::text as subject from ${table('attempts')} as attempts
      where borne_by = 'client' group by attempts.request_id
      having count(*) > 1 or not exists (select from ${table('ledger')} as ledger
        where ledger.request_id = attempts.request_id and kind = 'SETTLE')`,
  },
  {
    rule: 'M10',
    what: 'what the operator bears is not the sum of what the attempts cost',
    query: (table) => sql`
      select coalesce(ends.request_id, sums.request_id)::text as subject
      from (select request_id, sum(absorbed) as absorbed from ${table('ledger')} where request_id is not null
        group by request_id) as ends
      full join (select request_id, sum(absorbed) as absorbed from ${table('attempts')} group by request_id) as sums
        on sums.request_id = ends.request_id
      where coalesce(ends.absorbed, 0) <> coalesce(sums.absorbed, 0)`,
  },
  {
    rule: 'M12',
    what: 'a grant and its credit do not match',
    query: (table) => sql`
      select coalesce(grants.id, credits.grant_id)::text as subject from ${table('grants')} as grants
      full join (select grant_id, account_id, amount from ${table('ledger')} where kind in ('CREDIT', 'REFUND')) as credits
        on credits.grant_id = grants.id
      where credits.amount is distinct from grants.amount or credits.account_id is distinct from grants.account_id`,
  },
];

/** Runs every check in one snapshot, then looks for the open holds in the journal at `directory`. */
export async function audit(orm: Orm, schema: string, files: Files, directory: string): Promise<AuditReport> {
  const table = tablesOf(schema);
  const violations: Violation[] = [];
  const counts = await orm.transaction(
    async (transaction) => {
      for (const { rule, what, query } of [...checks, ...poolChecks]) {
        const rows = await rowsOf<{ subject: string }>(transaction, query(table, schema));
        violations.push(...describe(rule, what, rows));
      }
      violations.push(...describe(drawRule.rule, drawRule.what, await replayDraws(transaction, schema)));
      violations.push(...describe(chargeRule.rule, chargeRule.what, await recountCharges(transaction, schema)));
      const open = await rowsOf<{ subject: string }>(transaction, openHolds(table));
      const others = await otherJournals(transaction, schema, files, directory);
      const [row] = await rowsOf<{ accounts: number; rows: number }>(
        transaction,
        sql`select (select count(*)::int from ${table('balances')}) as accounts,
              (select count(*)::int from ${table('ledger')}) as rows`,
      );
      return { ...row!, open, others };
    },
    { isolationLevel: 'repeatable read', accessMode: 'read only' },
  );
  const open = counts.open.map((row) => row.subject);
  // Where others serve too, an open hold may be in a journal that cannot be read from here.
  const lost = counts.others > 0 ? [] : leaveOutJournaled(open, files, directory);
  const what = 'a hold has no end, and no journal here knows of it';
  violations.push(
    ...describe(
      'M3',
      what,
      lost.map((subject) => ({ subject })),
    ),
  );
  return { ok: violations.length === 0, violations, accounts: counts.accounts, rows: counts.rows };
}

function describe(rule: string, what: string, rows: readonly { subject: string }[]): Violation[] {
  const violations = rows.slice(0, listed).map(({ subject }) => ({ rule, what, subject }));
  if (rows.length > listed) violations.push({ rule, what, subject: `and ${rows.length - listed} more` });
  return violations;
}

function openHolds(table: Table): SQL {
  return sql`
    select request_id::text as subject from ${table('ledger')} as hold where kind = 'HOLD'
      and not exists (select from ${table('ledger')} as ending
        where ending.request_id = hold.request_id and ending.kind in ${ends})
      -- What is done later is kept here until it ends; no journal knows of it.
      and not exists (select from ${table('deposits')} as deposits where deposits.request_id = hold.request_id)`;
}

/**
 * An open hold is sound while its record is in a live segment: then its end will come, or recovery makes one. A segment
 * outlives the ends of its holds by minutes, so reading it after the rows misses none that ended in between.
 */
function leaveOutJournaled(requestIds: readonly string[], files: Files, directory: string): string[] {
  const missing = new Set(requestIds);
  for (const segment of missing.size === 0 ? [] : listSegments(files, directory)) {
    for (const { records } of readable(files, segment.path, segment.first)) {
      for (const record of records) if (record.kind === 'HOLD') missing.delete(record.id);
    }
  }
  return [...missing];
}

function readable(files: Files, path: string, first: number) {
  try {
    return scanSegment(files.read(path), first).lines;
  } catch (error) {
    // The serving process may delete a finished segment at this moment.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
