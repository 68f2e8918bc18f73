/** Checks the money invariants against the ledger's rows and reports violations. */
import { sql } from 'drizzle-orm';
import type { RequestSumsAudit } from '../../common/domain/admin/requests.ts';
import type { Orm } from '../../common/domain/database.ts';
import { tokenClasses } from '../../common/domain/usage.ts';
import { checkSums } from '../../common/rollups/check.ts';
import { type ArchiveReader, noFiles } from '../archive/reader.ts';
import { callSumsBeside } from '../archive/sums.ts';
import { moneyColumns, ownColumns } from '../ledger/call-rows.ts';
import { callSums } from '../ledger/call-sums.ts';
import { rowsOf, tablesOf } from '../model/sql.ts';
import { servedPrefix } from '../reservations/outcome.ts';
import { checkArchive } from './archive.ts';
import { chargeRule, recountCharges } from './charges.ts';
import { allocationRule, type Check, poolChecks, replayAllocations } from './grants.ts';
import { checkTagSums } from './tags.ts';

/** At most this many violations of one kind are listed; the others are counted. */
const listed = 20;

/** Beyond what the prompt shows: far above the contexts and answers of all choices and runs of one call. */
const mostTokens = 100_000_000;

export interface Violation {
  /** The invariant's number: `M1` … */
  readonly rule: string;
  readonly what: string;
  /** The account, request or row in violation. */
  readonly subject: string;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly violations: Violation[];
  readonly accounts: number;
  readonly rows: number;
}

const checks: readonly Check[] = [
  {
    rule: 'M1',
    what: 'the balance is not the sum of the ledger rows',
    query: (table) => sql`
      select coalesce(balances.account_id, sums.account_id) as subject from ${table('balances')} as balances
      full join (select account_id, sum(amount) as amount from ${table('movements')} group by account_id) as sums
        on sums.account_id = balances.account_id
      where coalesce(balances.balance + balances.held, 0) <> coalesce(sums.amount, 0)`,
  },
  {
    rule: 'M1',
    what: 'the sides of a ledger row do not add up to zero',
    query: (table) => sql`
      select 'row ' || seq as subject from ${table('movements')}
      where amount + revenue + funding <> 0`,
  },
  {
    rule: 'M1',
    what: 'the sides of an account are not the sums of its rows',
    query: (table) => sql`
      select coalesce(balances.account_id, sums.account_id) as subject from ${table('balances')} as balances
      full join (select account_id, sum(revenue) as revenue, sum(funding) as funding from ${table('movements')} group by account_id) as sums
        on sums.account_id = balances.account_id
      where (coalesce(balances.revenue, 0), coalesce(balances.funding, 0)) <> (coalesce(sums.revenue, 0), coalesce(sums.funding, 0))`,
  },
  {
    rule: 'M1',
    what: 'the balance after a row does not follow from the row before it',
    query: (table) => sql`
      select 'row ' || seq as subject from (
        select seq, amount, balance_after, lag(balance_after, 1, 0::bigint) over (partition by account_id order by seq) as before
        from ${table('movements')}) as chain
      where before + amount <> balance_after`,
  },
  {
    rule: 'M2',
    what: 'the trigger that keeps rows from being changed is missing or off',
    query: (_table, schema) => sql`
      select distinct guarded as subject from (values ('ledger', 'immutable', 56), ('grants', 'immutable', 56), ('allocations', 'immutable', 56),
        ('movement_references', 'immutable', 56), ('refunds', 'immutable', 56), ('archives', 'immutable', 56), ('statements', 'immutable', 56), ('archived_charges', 'immutable', 56), ('calls', 'immutable', 48), ('calls', 'archived', 8))
        as tables (guarded, guard, events)
      where not exists (
        select from pg_trigger where tgrelid = (quote_ident(${schema}::text) || '.' || guarded)::regclass
          and tgname = guard and tgenabled = 'O' and tgtype & events = events
          and not exists (select from pg_attribute where attrelid = tgrelid and attnum > 0 and not attisdropped
            and cardinality(tgattr::int2[]) > 0 and attnum <> all (tgattr::int2[])
            and attname in (${sql.raw([...moneyColumns, ...ownColumns].map((name) => `'${name}'`).join(', '))})))`,
  },
  {
    rule: 'M3',
    what: 'money is still set aside for a call that has ended',
    query: (table) => sql`
      select request_id::text as subject from ${table('deposits')} as deposits
      where exists (select from ${table('calls')} as calls where calls.account_id = deposits.account_id and calls.id = deposits.request_id)
        or exists (select from ${table('archived_charges')} as archived
          where archived.account_id = deposits.account_id and archived.id = deposits.request_id)`,
  },
  {
    rule: 'M3',
    what: 'the authorized money is not the sum of the authorizations',
    query: (table) => sql`
      select coalesce(balances.account_id, sums.account_id) as subject from ${table('balances')} as balances
      full join (select account_id, sum(held) as held from ${table('deposits')} group by account_id) as sums
        on sums.account_id = balances.account_id
      where coalesce(balances.held, 0) <> coalesce(sums.held, 0)`,
  },
  {
    rule: 'M4',
    what: 'a charge and its archived call do not match',
    query: (table, _schema, archived) => sql`
      select distinct coalesce(archived.id, charges.id)::text as subject from ${archived} as archived
      full join ${table('archived_charges')} as charges on charges.account_id = archived.account_id and charges.id = archived.id
      where charges.cost is distinct from archived.cost`,
  },
  {
    rule: 'M4',
    what: 'a call is there twice',
    query: (table, _schema, archived) => sql`
      select id::text as subject from ${archived} as archived group by id having count(*) > 1
      union select id::text from ${archived} as archived where id in (select id from ${table('calls')})
      union select id::text from ${table('calls')} group by id having count(*) > 1`,
  },
  {
    rule: 'M9',
    what: 'a charge is below zero',
    query: (table) =>
      sql`select 'row ' || seq as subject from ${table('movements')} where revenue < 0 and kind <> 'REFUND'`,
  },
  {
    rule: 'M12',
    what: 'a grant and its credit do not match',
    query: (table) => sql`
      select coalesce(grants.id, credits.grant_id)::text as subject from ${table('grants')} as grants
      full join (select grant_id, account_id, amount from ${table('ledger')} where kind in ('CREDIT', 'REFUND')) as credits
        on credits.account_id = grants.account_id and credits.grant_id = grants.id
      where credits.amount is distinct from grants.amount`,
  },
  {
    rule: 'M12',
    what: 'a movement and the name of its event do not match',
    query: (table) => sql`
      select coalesce(named.reference, moved.reference) as subject from ${table('movement_references')} as named
      full join (select reference, true as is_grant, account_id from ${table('grants')}
          union all select reference, false, account_id from ${table('ledger')} where reference is not null) as moved
        on moved.reference = named.reference and moved.is_grant = named.is_grant
      where named.account_id is distinct from moved.account_id`,
  },
];

/** Checks of single calls, archived ones too. */
const callChecks: readonly Check[] = [
  {
    rule: 'M5',
    what: 'a charged call has no attempt, and nothing else has served it',
    query: (table) => sql`
      select id::text as subject from ${table('calls')} as calls where settled and json_array_length(attempts) = 0 and reason not like ${`${servedPrefix}%`}`,
  },
  {
    rule: 'M10',
    what: 'a client bears more than one attempt, or one of a call that it was not charged for',
    query: (table) => sql`
      select id::text as subject from ${table('calls')} as calls, lateral (select count(*) as count
        from json_array_elements(attempts) as attempt where coalesce(attempt->>'bearer', attempt->>9) in ('client', '1')) as clients
      where clients.count > settled::int`,
  },
  {
    rule: 'M10',
    what: 'what the operator bears is not the sum of what the attempts cost',
    query: (table) => sql`
      select id::text as subject from ${table('calls')} as calls, lateral (
        select coalesce(sum(coalesce(attempt->>'absorbed', attempt->>10)::bigint), 0) as absorbed from json_array_elements(attempts) as attempt) as sums
      where calls.absorbed <> sums.absorbed`,
  },
  {
    rule: 'M18',
    what: 'more tokens were charged than a call can have consumed',
    query: (table) => sql`
      select id::text as subject from ${table('calls')} as calls, lateral (
        select sum(count::numeric) as tokens from jsonb_each_text(classes) as counts (name, count)
        where name in (${sql.raw(tokenClasses.map((name) => `'${name}'`).join(', '))})) as sums
      where settled and reason is distinct from 'absurd' and sums.tokens > 64 * coalesce(estimated_input, 0) + ${sql.raw(String(mostTokens))}`,
  },
];

export interface AuditOptions {
  /** Rollups of so many days, by chance, instead of all. */
  readonly days?: number | undefined;
  readonly archive?: ArchiveReader | undefined;
  /** The audit of the request log's sums, where there is a request log. */
  readonly requestSums?: RequestSumsAudit | undefined;
}

const sumsRule = { rule: 'M17', what: 'a kept sum is not the sum of its rows' };

/** Runs every check in one snapshot, but for that of the request log. */
export async function audit(orm: Orm, schema: string, options: AuditOptions = {}): Promise<AuditReport> {
  const { days, requestSums, archive = noFiles() } = options;
  const table = tablesOf(schema);
  const violations: Violation[] = [];
  const add = (rule: string, what: string, rows: readonly { subject: string }[]) =>
    void violations.push(...describe(rule, what, rows));
  const counts = await orm.transaction(
    async (transaction) => {
      const { archived, hasFiles, found } = await checkArchive(transaction, schema, archive, callChecks);
      for (const { rule, what, subjects } of found) add(rule, what, subjects);
      for (const { rule, what, query } of [...checks, ...callChecks, ...poolChecks])
        add(rule, what, await rowsOf(transaction, query(table, schema, archived)));
      add(allocationRule.rule, allocationRule.what, await replayAllocations(transaction, schema, archived));
      add(chargeRule.rule, chargeRule.what, await recountCharges(transaction, table('calls')));
      const sums = hasFiles ? callSumsBeside(archived) : callSums;
      add(sumsRule.rule, sumsRule.what, await checkSums(transaction, schema, sums, days));
      const ofTags = await checkTagSums(transaction, schema, days);
      add(sumsRule.rule, 'a sum by tag is not the sum of its calls', ofTags);
      const [row] = await rowsOf<{ accounts: number; rows: number }>(
        transaction,
        sql`select (select count(*)::int from ${table('balances')}) as accounts,
              (select count(*)::int from ${table('movements')}) as rows`,
      );
      return row!;
    },
    // Only a temporary table is written.
    { isolationLevel: 'repeatable read' },
  );
  add(sumsRule.rule, 'a kept sum of requests is not the sum of its rows', (await requestSums?.check(days)) ?? []);
  return { ok: violations.length === 0, violations, ...counts };
}

function describe(rule: string, what: string, rows: readonly { subject: string }[]): Violation[] {
  const violations = rows.slice(0, listed).map(({ subject }) => ({ rule, what, subject }));
  if (rows.length > listed) violations.push({ rule, what, subject: `and ${rows.length - listed} more` });
  return violations;
}
