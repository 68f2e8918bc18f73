/** Checks the pool: what is left of each grant, who paid each row within which windows, what lapsed, what was refunded. */
import { type SQL, sql } from 'drizzle-orm';
import { money } from '../../core/money.ts';
import { remainingIn } from './draws.ts';
import { decodeLimits, millisecondsOf } from './funds.ts';
import { draw, type Pot, type Spent } from './pots.ts';
import { type Runner, rowsOf, tablesOf } from './sql.ts';

export type Table = (name: string) => SQL;

export interface Check {
  readonly rule: string;
  readonly what: string;
  /** Selects `subject`, one row for each violation. */
  readonly query: (table: Table, schema: string) => SQL;
}

export const poolChecks: readonly Check[] = [
  {
    rule: 'P1',
    what: 'what is set aside is not the sum of the ledger rows',
    query: (table) => sql`
      select balances.account_id as subject from ${table('balances')} as balances
      left join (select account_id, sum(held) as held from ${table('ledger')} group by account_id) as sums
        on sums.account_id = balances.account_id
      where balances.held <> coalesce(sums.held, 0)`,
  },
  {
    rule: 'P2',
    what: 'what is left of a grant does not follow from its draws',
    query: (table) => sql`
      select grants.id::text as subject from ${table('grants')} as grants
      left join ${table('pots')} as pots on pots.grant_id = grants.id
      left join (select grant_id, sum(amount) as amount from ${table('draws')} group by grant_id) as draws
        on draws.grant_id = grants.id
      left join (select grant_id, amount from ${table('ledger')} where kind = 'LAPSE') as lapses
        on lapses.grant_id = grants.id
      where (grants.expires_at is not null or pots.grant_id is not null or draws.grant_id is not null)
        and (pots.remaining, pots.account_id, pots.expires_at) is distinct from
          (grants.amount - coalesce(draws.amount, 0) + coalesce(lapses.amount, 0), grants.account_id, grants.expires_at)`,
  },
  {
    rule: 'P4',
    what: 'a grant lapsed before it expired, or in another account',
    query: (table) => sql`
      select 'row ' || ledger.seq as subject from ${table('ledger')} as ledger
      join ${table('grants')} as grants on grants.id = ledger.grant_id
      where ledger.kind = 'LAPSE' and (grants.expires_at is null or ledger.created_at < grants.expires_at
        or grants.account_id <> ledger.account_id)`,
  },
  {
    rule: 'P5',
    what: 'more was refunded than was paid',
    query: (table) => sql`
      select usage.request_id::text as subject from ${table('usage')} as usage
      join (select request_id, sum(amount) as amount from ${table('refunds')} group by request_id) as refunds
        on refunds.request_id = usage.request_id
      where refunds.amount > usage.cost
      union all
      select grants.id::text from ${table('grants')} as grants
      join (select grant_id, sum(amount) as amount from ${table('ledger')} where kind = 'PAYOUT' group by grant_id) as payouts
        on payouts.grant_id = grants.id
      where grants.amount + payouts.amount < 0`,
  },
  {
    rule: 'P5',
    what: 'a refund and its row do not match',
    query: (table) => sql`
      select coalesce(refunds.grant_id, rows.grant_id)::text as subject from ${table('refunds')} as refunds
      full join (select grant_id, amount from ${table('ledger')} where kind = 'REFUND') as rows on rows.grant_id = refunds.grant_id
      where refunds.amount is distinct from rows.amount`,
  },
];

export const drawRule = { rule: 'P3', what: 'a row was not paid by the grants whose turn it was' };

interface ReplayRow {
  readonly seq: string;
  readonly account_id: string;
  readonly kind: string;
  readonly amount: string;
  readonly held: string;
  readonly revenue: string;
  readonly at: string;
  readonly held_at: string | null;
  readonly grant_id: string | null;
  readonly expires_at: string | null;
  readonly source: string | null;
  readonly windows: string | null;
  readonly anchor: string | null;
  readonly draws: Record<string, string> | null;
}

interface Account {
  readonly id: string;
  readonly pots: Map<string, Pot>;
  readonly spent: Spent;
  /** Not charged yet: what is there and what is set aside. */
  uncharged: bigint;
}

const pageRows = 5_000;

/**
 * Spends every account's money once more, row by row in its order, and tells the rows whose draws are other ones: order of
 * spending, windows, and that nobody is overdrawn while a grant could pay. Accounts without a grant that expires have none.
 */
export async function replayDraws(runner: Runner, schema: string): Promise<{ subject: string }[]> {
  const wrong: { subject: string }[] = [];
  let account: Account | undefined;
  let after = { account: '', seq: '0' };
  for (;;) {
    const rows = await readPage(runner, schema, after);
    for (const row of rows) {
      if (account?.id !== row.account_id) {
        account = { id: row.account_id, pots: new Map(), spent: new Map(), uncharged: 0n };
      }
      if (!paidAsItShould(account, row)) wrong.push({ subject: `row ${row.seq}` });
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return wrong;
    after = { account: last.account_id, seq: last.seq };
  }
}

function paidAsItShould(account: Account, row: ReplayRow): boolean {
  const { pots, spent } = account;
  const before = account.uncharged;
  account.uncharged += BigInt(row.amount) + BigInt(row.held);
  if (row.kind === 'LAPSE') {
    const pot = pots.get(row.grant_id!);
    const left = pot?.remaining;
    if (pot !== undefined) pot.remaining = money(0n);
    return left === -BigInt(row.amount) && row.draws === null;
  }
  const wallet = before - remainingIn(pots.values());
  const due = dueFor(row, wallet);
  const at = Number.parseInt(row.held_at ?? row.at, 10);
  const opened = potOf(row);
  if (opened !== undefined) pots.set(opened.grantId, opened);
  // What was overdrawn is made good by the grant that comes in, whatever others there are: they have expired.
  const from = opened === undefined ? [...pots.values()] : [opened];
  const draws = draw(from, spent, opened === undefined ? wallet : 0n, due, at);
  const given = row.draws ?? {};
  return (
    draws.length === Object.keys(given).length &&
    draws.every(({ pot, amount }) => given[pot.grantId] === amount.toString())
  );
}

/** What the row takes out of grants and wallet. */
function dueFor({ kind, amount, revenue }: ReplayRow, wallet: bigint): bigint {
  if (kind === 'SETTLE') return BigInt(revenue);
  if (kind === 'DEBIT') return -BigInt(amount);
  if (kind !== 'CREDIT' || wallet >= 0n) return 0n;
  return -wallet < BigInt(amount) ? -wallet : BigInt(amount);
}

function potOf({ kind, grant_id: grantId, expires_at: expiresAt, amount, source, windows, anchor }: ReplayRow) {
  if (kind !== 'CREDIT' || grantId === null || expiresAt === null) return undefined;
  const bounds =
    windows === null
      ? undefined
      : { source: source!, anchor: Number.parseInt(anchor!, 10), limits: decodeLimits(windows) };
  return { grantId, remaining: money(BigInt(amount)), expiresAt: Number.parseInt(expiresAt, 10), windows: bounds };
}

/** The rows of accounts that ever had a grant which expires, by account and number. */
function readPage(runner: Runner, schema: string, after: { account: string; seq: string }): Promise<ReplayRow[]> {
  const table = tablesOf(schema);
  return rowsOf<ReplayRow>(
    runner,
    sql`select ledger.seq::text as seq, ledger.account_id, ledger.kind, ledger.amount::text as amount, ledger.held::text as held,
          ledger.revenue::text as revenue, ledger.grant_id::text as grant_id, source, windows::text as windows,
          ${millisecondsOf(sql`ledger.created_at`)} as at, ${millisecondsOf(sql`hold.created_at`)} as held_at,
          ${millisecondsOf(sql`grants.expires_at`)} as expires_at, ${millisecondsOf(sql`anchor`)} as anchor,
          (select json_object_agg(draws.grant_id, draws.amount::text) from ${table('draws')} as draws
            where draws.seq = ledger.seq) as draws
        from ${table('ledger')} as ledger
        left join ${table('ledger')} as hold on ledger.kind = 'SETTLE' and hold.kind = 'HOLD' and hold.request_id = ledger.request_id
        left join ${table('grants')} as grants on grants.id = ledger.grant_id
        where (ledger.account_id, ledger.seq) > (${after.account}, ${after.seq}::bigint)
          and ledger.account_id in (select account_id from ${table('grants')} where expires_at is not null)
        order by ledger.account_id, ledger.seq limit ${pageRows}::int`,
  );
}
