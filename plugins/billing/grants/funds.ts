/** Accounts' funds from the database: balances, expiring grants, and spending within their windows. */
import { type SQL, sql } from 'drizzle-orm';
import { type Money, money } from '../../common/domain/money.ts';
import { jsonOf, millisecondsOf, type Runner, rowsOf, tablesOf, time } from '../model/sql.ts';
import { type GrantBalance, inOrder, type Spent, type WindowAt, type WindowLimits, windowsAt } from './balances.ts';
import { creditKind } from './credit-rows.ts';

export interface Funds {
  readonly balance: Money;
  /** Its expiring grants with a remaining amount. */
  readonly pool?: PoolState | undefined;
  /** Names the plan term that began last, and the decision on a credit line that counts. */
  readonly term?: string | undefined;
}

export interface PoolState {
  readonly grants: readonly GrantBalance[];
  readonly spent: Spent;
}

interface FundsRow {
  readonly account_id: string;
  readonly balance: string;
  readonly pooled: boolean;
  readonly term: string | null;
}

/** The accounts' funds at `at`; a balance of 0 for an account without any. */
export async function readFunds(
  runner: Runner,
  schema: string,
  accountIds: readonly string[],
  at: number,
): Promise<Map<string, Funds>> {
  const table = tablesOf(schema);
  const rows = await rowsOf<FundsRow>(
    runner,
    sql`select account_id, balance::text as balance,
          exists (select from ${table('grant_balances')} as known where known.account_id = balances.account_id and remaining > 0) as pooled,
          nullif(concat(
            (select id::text from ${table('terms')} as terms where terms.account_id = balances.account_id order by starts_at desc limit 1),
            ${creditTermOf(table, sql`balances.account_id`)}), '') as term
        from ${table('balances')} as balances
        where account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))`,
  );
  const funds = new Map<string, Funds>(accountIds.map((accountId) => [accountId, { balance: money(0n) }]));
  const pooled = rows.filter((row) => row.pooled).map((row) => row.account_id);
  // Read after the balances: spending in between makes an account appear poorer than it is, never richer.
  const pools = await readPools(runner, schema, pooled, [at]);
  for (const { account_id: accountId, balance, term } of rows) {
    const entry = { balance: money(BigInt(balance)), pool: pools.get(accountId), term: term ?? undefined };
    funds.set(accountId, entry);
  }
  return funds;
}

/** Changes with each decision on the account's credit line and with the zone of its months; null: there was none. `accountId` names its table. */
export function creditTermOf(table: ReturnType<typeof tablesOf>, accountId: SQL): SQL {
  const zone = sql`(select ' ' || zone from ${table('account_zones')} as zones where zones.account_id = ${accountId})`;
  return sql`(select ' credit ' || max(number) || coalesce(${zone}, '') from ${table('credit_lines')} as lines where lines.account_id = ${accountId})`;
}

/** Accounts behind `after` with something left of a grant that ended before `before`; the index of open grants alone is read. */
export async function readExpired(
  runner: Runner,
  schema: string,
  { before, after, limit }: { readonly before: number; readonly after: string; readonly limit: number },
): Promise<string[]> {
  const rows = await rowsOf<{ account_id: string }>(
    runner,
    sql`select distinct account_id from ${tablesOf(schema)('grant_balances')}
        where remaining > 0 and expires_at <= ${time(before)}::timestamptz and account_id > ${after}
        order by account_id limit ${limit}::int`,
  );
  return rows.map((row) => row.account_id);
}

/** The accounts among these with a top-up that was not paid back in full. */
export async function readPaying(runner: Runner, schema: string, accountIds: readonly string[]): Promise<Set<string>> {
  const table = tablesOf(schema);
  const rows = await rowsOf<{ account_id: string }>(
    runner,
    sql`select distinct credits.account_id from ${table('ledger')} as credits
        join ${table('grants')} as grants on grants.account_id = credits.account_id and grants.id = credits.grant_id
        where credits.account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))
          and credits.kind = 'CREDIT' and grants.kind = 'top-up'
          and grants.amount > (select coalesce(-sum(back.amount), 0) from ${table('ledger')} as back
            where back.account_id = credits.account_id and back.kind = 'PAYOUT'
              and back.grant_id = credits.grant_id)`,
  );
  return new Set(rows.map((row) => row.account_id));
}

/** The grants with a remaining amount in spending order, with the spending in their windows around `times`. */
export async function readPools(
  runner: Runner,
  schema: string,
  accountIds: readonly string[],
  times: readonly number[],
): Promise<Map<string, PoolState>> {
  const pools = new Map<string, PoolState>();
  if (accountIds.length === 0) return pools;
  const grantBalances = await readGrantBalances(runner, schema, accountIds);
  const spent = await readSpent(runner, schema, grantBalances, times);
  for (const [accountId, list] of grantBalances) pools.set(accountId, { grants: inOrder(list), spent });
  return pools;
}

interface GrantBalanceRow {
  readonly account_id: string;
  readonly grant_id: string;
  readonly remaining: string;
  readonly expires_at: string;
  readonly source: string | null;
  readonly windows: string | null;
  readonly anchor: string | null;
  readonly is_credit: boolean;
}

async function readGrantBalances(
  runner: Runner,
  schema: string,
  accountIds: readonly string[],
): Promise<Map<string, GrantBalance[]>> {
  const table = tablesOf(schema);
  const rows = await rowsOf<GrantBalanceRow>(
    runner,
    sql`select known.account_id, grant_id::text as grant_id, remaining::text as remaining, source, windows::text as windows,
          ${millisecondsOf(sql`known.expires_at`)} as expires_at, ${millisecondsOf(sql`anchor`)} as anchor, grants.kind = ${creditKind} as is_credit
        from ${table('grant_balances')} as known join ${table('grants')} as grants
          on grants.account_id = known.account_id and grants.id = known.grant_id
        where remaining > 0 and known.account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))`,
  );
  const found = new Map<string, GrantBalance[]>();
  for (const row of rows) found.set(row.account_id, [...(found.get(row.account_id) ?? []), grantBalanceOf(row)]);
  return found;
}

function grantBalanceOf({
  grant_id: grantId,
  remaining,
  expires_at: expiresAt,
  source,
  windows,
  anchor,
  is_credit: isCredit,
}: GrantBalanceRow): GrantBalance {
  const bounds =
    windows === null || source === null
      ? undefined
      : { source, anchor: Number.parseInt(anchor ?? '', 10), limits: decodeLimits(windows) };
  const left = money(BigInt(remaining));
  return { grantId, remaining: left, expiresAt: Number.parseInt(expiresAt, 10), windows: bounds, isCredit };
}

/** The sum of the allocations in each window. */
async function readSpent(
  runner: Runner,
  schema: string,
  grantBalances: ReadonlyMap<string, readonly GrantBalance[]>,
  times: readonly number[],
): Promise<Spent> {
  const windows = new Map<string, WindowAt & { source: string; account: string }>();
  for (const [account, list] of grantBalances) {
    for (const grantBalance of list) {
      const source = grantBalance.windows?.source;
      if (source === undefined) continue;
      for (const window of times.flatMap((at) => windowsAt(grantBalance, at)))
        windows.set(window.key, { ...window, source, account });
    }
  }
  if (windows.size === 0) return new Map();
  const requested = Array.from(windows.values(), ({ key, account, source, start, end }) => ({
    key,
    account,
    source,
    from: start,
    to: end,
  }));
  const rows = await rowsOf<{ key: string; spent: string }>(
    runner,
    sql`select key, (select coalesce(sum(amount), 0)::text from ${tablesOf(schema)('allocations')} as allocations
            where allocations.account_id = requested.account and allocations.source = requested.source and held_at >= ${instantOf(sql`requested."from"`)}
              and held_at < ${instantOf(sql`requested."to"`)}) as spent
        from json_to_recordset(${jsonOf(requested)}) as requested (key text, account text, source text, "from" bigint, "to" bigint)`,
  );
  return new Map(rows.map(({ key, spent }) => [key, money(BigInt(spent))]));
}

/** Whole milliseconds as a time. */
function instantOf(milliseconds: ReturnType<typeof sql>) {
  return sql`to_timestamp(${milliseconds} / 1000.0)`;
}

export function encodeLimits(limits: WindowLimits): string {
  return JSON.stringify(limits, (_name, value) => (typeof value === 'bigint' ? value.toString() : value));
}

export function decodeLimits(text: string): WindowLimits {
  const digits = JSON.parse(text) as Record<string, string>;
  return Object.fromEntries(Object.entries(digits).map(([name, value]) => [name, BigInt(value)])) as WindowLimits;
}
