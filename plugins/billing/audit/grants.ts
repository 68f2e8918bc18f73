/** Checks grants: remaining amounts, allocations within their windows, expiry and refunds. */
import { type SQL, sql } from 'drizzle-orm';
import { money } from '../../common/domain/money.ts';
import { remainingIn } from '../grants/allocations.ts';
import { allocate, type GrantBalance, type Spent } from '../grants/balances.ts';
import { creditKind } from '../grants/credit-rows.ts';
import { decodeLimits } from '../grants/funds.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';

type Table = (name: string) => SQL;

export interface Check {
  readonly rule: string;
  readonly what: string;
  /** Selects `subject`, one row per violation. `archived`: a table of the calls in archived files. */
  readonly query: (table: Table, schema: string, archived: SQL) => SQL;
}

export const poolChecks: readonly Check[] = [
  {
    rule: 'P2',
    what: 'the rest of a grant does not follow from its allocations',
    query: (table) => sql`
      select grants.id::text as subject from ${table('grants')} as grants
      left join ${table('grant_balances')} as known on known.account_id = grants.account_id and known.grant_id = grants.id
      left join (select account_id, grant_id, sum(amount) as amount from ${table('allocations')} group by 1, 2) as allocations
        on allocations.account_id = grants.account_id and allocations.grant_id = grants.id
      left join (select account_id, grant_id, amount from ${table('ledger')} where kind = 'EXPIRE') as expiries
        on expiries.account_id = grants.account_id and expiries.grant_id = grants.id
      where (grants.expires_at is not null or known.grant_id is not null or allocations.grant_id is not null)
        and ((known.remaining, known.expires_at) is distinct from
            (grants.amount - coalesce(allocations.amount, 0) + coalesce(expiries.amount, 0),
              case when grants.kind = ${creditKind} then least(known.expires_at, grants.expires_at) else grants.expires_at end))`,
  },
  {
    rule: 'P4',
    what: 'a grant was taken back before it expired, or from another account',
    query: (table) => sql`
      select 'row ' || ledger.seq as subject from ${table('ledger')} as ledger
      left join ${table('grant_balances')} as known on known.account_id = ledger.account_id and known.grant_id = ledger.grant_id
      where ledger.kind = 'EXPIRE' and (known.expires_at is null or ledger.created_at < known.expires_at)`,
  },
  {
    rule: 'P5',
    what: 'more was refunded than was paid',
    query: (table) => sql`
      select refunds.request_id::text as subject
      from (select account_id, request_id, sum(amount) as amount from ${table('refunds')} group by 1, 2) as refunds
      left join ${table('movements')} as charges on charges.account_id = refunds.account_id and charges.request_id = refunds.request_id
      where refunds.amount > coalesce(charges.revenue, 0)
      union all
      select grants.id::text from ${table('grants')} as grants
      join (select account_id, grant_id, sum(amount) as amount from ${table('ledger')} where kind = 'PAYOUT' group by 1, 2) as payouts
        on payouts.account_id = grants.account_id and payouts.grant_id = grants.id
      left join ${table('grant_balances')} as known on known.account_id = grants.account_id and known.grant_id = grants.id
      left join ${table('ledger')} as expiries
        on expiries.account_id = grants.account_id and expiries.grant_id = grants.id and expiries.kind = 'EXPIRE'
      where payouts.amount < case when grants.kind = ${creditKind}
        then known.remaining - coalesce(expiries.amount, 0) - grants.amount else -grants.amount end`,
  },
  {
    rule: 'M6',
    what: 'processes may spend more than the account has',
    // An expired lease may cover an expired grant: its process is gone and cannot spend it.
    query: (table) => sql`
      select leases.account_id as subject from ${table('leases')} as leases
      left join ${table('balances')} as balances on balances.account_id = leases.account_id
      group by leases.account_id, balances.balance
      having sum(leases.amount) > greatest(coalesce(balances.balance, 0), 0) and min(leases.expires_at) > now()`,
  },
  {
    rule: 'P5',
    what: 'a refund and its row do not match',
    query: (table) => sql`
      select coalesce(refunds.grant_id, rows.grant_id)::text as subject from ${table('refunds')} as refunds
      full join (select account_id, grant_id, amount from ${table('ledger')} where kind = 'REFUND') as rows
        on rows.account_id = refunds.account_id and rows.grant_id = refunds.grant_id
      where refunds.amount is distinct from rows.amount`,
  },
];

export const allocationRule = { rule: 'P3', what: 'a row was not paid by the grants whose turn it was' };

interface ReplayRow {
  readonly seq: string;
  readonly account_id: string;
  readonly kind: string;
  readonly amount: string;
  readonly revenue: string;
  readonly at: string;
  readonly held_at: string | null;
  readonly grant_id: string | null;
  readonly expires_at: string | null;
  readonly source: string | null;
  readonly windows: string | null;
  readonly anchor: string | null;
  readonly allocations: Record<string, string> | null;
  readonly is_credit: boolean;
}

interface Account {
  readonly id: string;
  readonly grantBalances: Map<string, GrantBalance>;
  readonly spent: Spent;
  balance: bigint;
}

const pageRows = 5_000;

/**
 * Replays the spending of every account row by row and returns the rows with other allocations: it checks the
 * order of spending, the windows, and that no account is overdrawn while a grant could pay. Accounts without an
 * expiring grant have no allocations. `archived`: a table of the calls in archived files.
 */
export async function replayAllocations(runner: Runner, schema: string, archived: SQL): Promise<{ subject: string }[]> {
  const wrong: { subject: string }[] = [];
  let account: Account | undefined;
  let after = { account: '', seq: '0' };
  for (;;) {
    const rows = await readPage(runner, schema, archived, after);
    for (const row of rows) {
      if (account?.id !== row.account_id) {
        account = { id: row.account_id, grantBalances: new Map(), spent: new Map(), balance: 0n };
      }
      if (!isPaidCorrectly(account, row)) wrong.push({ subject: `row ${row.seq}` });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return wrong;
    after = { account: last.account_id, seq: last.seq };
  }
}

function isPaidCorrectly(account: Account, row: ReplayRow): boolean {
  const { grantBalances, spent } = account;
  const before = account.balance;
  account.balance += BigInt(row.amount);
  if (row.kind === 'EXPIRE') {
    const grantBalance = grantBalances.get(row.grant_id!);
    const left = grantBalance?.remaining;
    if (grantBalance !== undefined) grantBalance.remaining = money(0n);
    return left === -BigInt(row.amount) && row.allocations === null;
  }
  const wallet = before - remainingIn(grantBalances.values());
  const due = dueFor(row, wallet);
  const at = Number.parseInt(row.held_at ?? row.at, 10);
  const opened = grantBalanceOf(row);
  if (opened !== undefined) grantBalances.set(opened.grantId, opened);
  // A new grant covers the overdraft even if others exist: those have expired.
  const from = opened === undefined ? [...grantBalances.values()] : [opened];
  const allocations = allocate(from, spent, opened === undefined ? wallet : 0n, due, at);
  const given = row.allocations ?? {};
  return (
    allocations.length === Object.keys(given).length &&
    allocations.every(({ grant: grantBalance, amount }) => given[grantBalance.grantId] === amount.toString())
  );
}

/** The amount that the row takes from grants and wallet. */
function dueFor({ kind, amount, revenue }: ReplayRow, wallet: bigint): bigint {
  if (kind === 'CHARGE') return BigInt(revenue);
  if (kind === 'DEBIT') return -BigInt(amount);
  if (kind !== 'CREDIT' || wallet >= 0n) return 0n;
  return -wallet < BigInt(amount) ? -wallet : BigInt(amount);
}

function grantBalanceOf({
  kind,
  grant_id: grantId,
  expires_at: expiresAt,
  amount,
  source,
  windows,
  anchor,
  is_credit: isCredit,
}: ReplayRow) {
  if (kind !== 'CREDIT' || grantId === null || expiresAt === null) return undefined;
  const bounds =
    windows === null
      ? undefined
      : { source: source!, anchor: Number.parseInt(anchor!, 10), limits: decodeLimits(windows) };
  return {
    grantId,
    remaining: money(BigInt(amount)),
    expiresAt: Number.parseInt(expiresAt, 10),
    windows: bounds,
    isCredit,
  };
}

/** The rows of accounts that ever had an expiring grant, by account and number. */
function readPage(
  runner: Runner,
  schema: string,
  archived: SQL,
  after: { account: string; seq: string },
): Promise<ReplayRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ReplayRow>(
    runner,
    sql`select movements.seq::text as seq, movements.account_id, movements.kind, movements.amount::text as amount,
          movements.revenue::text as revenue, movements.grant_id::text as grant_id, source, windows::text as windows,
          ${millisecondsOf(sql`movements.created_at`)} as at, ${millisecondsOf(sql`coalesce(calls.held_at, archived.held_at)`)} as held_at,
          ${millisecondsOf(sql`known.expires_at`)} as expires_at, ${millisecondsOf(sql`anchor`)} as anchor, coalesce(grants.kind = ${creditKind}, false) as is_credit,
          (select json_object_agg(allocations.grant_id, allocations.amount::text) from ${table('allocations')} as allocations
            where allocations.account_id = movements.account_id and allocations.seq = movements.seq) as allocations
        from ${table('movements')} as movements
        left join ${table('calls')} as calls on calls.account_id = movements.account_id and calls.id = movements.request_id
        left join ${archived} as archived on archived.account_id = movements.account_id and archived.id = movements.request_id
        left join ${table('grants')} as grants on grants.account_id = movements.account_id and grants.id = movements.grant_id
        left join ${table('grant_balances')} as known on known.account_id = grants.account_id and known.grant_id = grants.id
        where (movements.account_id, movements.seq) > (${after.account}, ${after.seq}::bigint)
          and movements.account_id in (select account_id from ${table('grants')} where expires_at is not null)
        order by movements.account_id, movements.seq limit ${pageRows}::int`,
  );
}
