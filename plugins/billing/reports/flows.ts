/** Where the accounts' money came from and what became of it: paid in or given, used, still there. Spent oldest first, grants that expire before. */
import { type SQL, sql } from 'drizzle-orm';
import type { MoneyFlows } from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { instantText } from '../../common/kit/paging.ts';
import { readSums } from '../../common/rollups/read.ts';
import { column, type SumTable } from '../../common/rollups/table.ts';
import { creditKind } from '../grants/credit-rows.ts';
import { callSums } from '../ledger/call-sums.ts';
import { millisecondsOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { chargeBounds, chargeSpans } from './charge-bounds.ts';

const endOfTime = Date.UTC(9999, 0, 1);
/** References of what a payment service reports. */
const cardReferences = 'stripe:%';

/** A credit that does not expire; what was paid back of it is gone. */
interface Lot {
  readonly account: string;
  readonly at: number;
  readonly amount: bigint;
  readonly isPaid: boolean;
  readonly payouts: readonly { readonly at: number; readonly amount: bigint }[];
}

/** What is left of money that does not expire at a moment, and what was spent beyond it. */
interface Left {
  readonly paid: bigint;
  readonly given: bigint;
  readonly overdrawn: bigint;
}

export async function flowsOf(
  runner: Runner,
  schema: string,
  { from, until }: Span,
  sumsOf: (bounds: readonly number[]) => Promise<SumTable>,
): Promise<MoneyFlows> {
  const span = { from, until };
  const [entered, drawn, lots, wallets, since, after] = await Promise.all([
    readEntered(runner, schema, span),
    readDrawn(runner, schema, span),
    readLots(runner, schema),
    readWallets(runner, schema),
    readChangesSince(runner, schema, from, await sumsOf([from, endOfTime])),
    readChangesSince(runner, schema, until, await sumsOf([until, endOfTime])),
  ]);
  const [before, end] = [leftAt(lots, wallets, since, from), leftAt(lots, wallets, after, until)];
  const isIn = ({ at }: { readonly at: number }) => at >= from && at < until;
  /** What came in of paid or of given money, less what was paid back of it. */
  const added = (isPaid: boolean) => {
    const some = lots.filter((lot) => lot.isPaid === isPaid);
    const back = some.flatMap(({ payouts }) => payouts.filter(isIn));
    return sum(some.filter(isIn)) - sum(back);
  };
  const usedPaid = before.paid + added(true) - end.paid + (end.overdrawn - before.overdrawn) + drawn.paid;
  const usedGiven = before.given + added(false) - end.given + drawn.given;
  return {
    ...entered,
    usedPaid: money(usedPaid),
    usedGiven: money(usedGiven),
    owed: money(end.paid + (await readOwedExpiring(runner, schema, until))),
  };
}

const sum = (given: readonly { readonly amount: bigint }[]): bigint =>
  given.reduce((total, { amount }) => total + amount, 0n);

function leftAt(
  lots: readonly Lot[],
  wallets: ReadonlyMap<string, bigint>,
  changes: ReadonlyMap<string, bigint>,
  at: number,
): Left {
  const byAccount = Map.groupBy(lots, ({ account }) => account);
  let [paid, given, overdrawn] = [0n, 0n, 0n];
  for (const account of new Set([...wallets.keys(), ...byAccount.keys()])) {
    const wallet = (wallets.get(account) ?? 0n) - (changes.get(account) ?? 0n);
    if (wallet < 0n) overdrawn -= wallet;
    const rests = restsOf(byAccount.get(account) ?? [], wallet, at);
    paid += sum(rests.filter(({ isPaid }) => isPaid));
    given += sum(rests.filter(({ isPaid }) => !isPaid));
  }
  return { paid, given, overdrawn };
}

/** The youngest credits are left, since the oldest are spent first. */
function restsOf(lots: readonly Lot[], wallet: bigint, at: number): Pick<Lot, 'amount' | 'isPaid'>[] {
  let left = wallet;
  const rests: Pick<Lot, 'amount' | 'isPaid'>[] = [];
  for (const { amount, isPaid, payouts, at: began } of lots.toReversed()) {
    if (left <= 0n) break;
    if (began >= at) continue;
    const most = amount - sum(payouts.filter((payout) => payout.at < at));
    const rest = most < left ? most : left;
    left -= rest;
    rests.push({ amount: rest, isPaid });
  }
  return rests;
}

const instant = (at: number): SQL => sql`${instantText(at)}::timestamptz`;
const isWithin = ({ from, until }: Span): SQL =>
  sql`entries.created_at >= ${instant(from)} and entries.created_at < ${instant(until)}`;
const amountOf = (digits: string): Money => money(BigInt(digits));

type Entered = Omit<MoneyFlows, 'usedPaid' | 'usedGiven' | 'owed'>;

async function readEntered(runner: Runner, schema: string, span: Span): Promise<Entered> {
  const table = tablesOf(schema);
  const credits = (condition: SQL) => sql`sum(entries.amount) filter (where entries.kind = 'CREDIT' and ${condition})`;
  const parts: { readonly [Name in keyof Entered]: SQL } = {
    card: credits(sql`grants.kind = 'top-up' and grants.reference like ${cardReferences}`),
    byHand: credits(sql`grants.kind = 'top-up' and grants.reference not like ${cardReferences}`),
    paidBack: sql`-sum(entries.amount) filter (where entries.kind = 'PAYOUT' and grants.kind <> ${creditKind})`,
    givenByPlans: credits(sql`grants.kind = 'plan'`),
    givenByCodes: credits(sql`grants.kind = 'code'`),
    givenByPromotions: credits(sql`grants.kind not in ('top-up', 'plan', 'code', ${creditKind})`),
  };
  const columns = Object.entries(parts).map(
    ([name, part]) => sql`coalesce(${part}, 0)::text as ${sql.identifier(name)}`,
  );
  const [row] = await rowsOf<Record<string, string>>(
    runner,
    sql`select ${sql.join(columns, sql`, `)} from ${table('ledger')} as entries
        left join ${table('grants')} as grants
          on grants.id = entries.grant_id and grants.account_id = entries.account_id
        where ${isWithin(span)}`,
  );
  return Object.fromEntries(Object.entries(row!).map(([name, digits]) => [name, amountOf(digits)])) as never;
}

/**
 * Begins a statement with the movements of a span, `entries`, and the grants that paid for them, `draws`. Charges are found by their numbers:
 * by their times alone all calls would be read, and what grants have paid for all of them.
 */
function drawnIn(schema: string, span: { readonly from: number; readonly until?: number }): { with: SQL; from: SQL } {
  const table = tablesOf(schema);
  const at = isWithin({ from: span.from, until: span.until ?? endOfTime });
  const moved = (name: string, among: SQL) =>
    sql`select entries.account_id, entries.seq from ${table(name)} as entries where ${among} and ${at}`;
  const entries = [
    ...chargeSpans(span).flatMap((numbers) => [
      moved('calls', sql`seq is not null and ${numbers}`),
      moved('archived_charges', numbers),
    ]),
    moved('ledger', sql`true`),
  ];
  return {
    with: sql`${chargeBounds(table, undefined, span)}, entries as (${sql.join(entries, sql` union all `)})`,
    from: sql`from entries join ${table('allocations')} as draws on draws.account_id = entries.account_id and draws.seq = entries.seq`,
  };
}

/** What was taken out of grants that expire. */
async function readDrawn(runner: Runner, schema: string, span: Span): Promise<{ paid: bigint; given: bigint }> {
  const drawn = drawnIn(schema, span);
  const [row] = await rowsOf<{ paid: string; given: string }>(
    runner,
    sql`${drawn.with}
        select coalesce(sum(draws.amount) filter (where grants.kind = 'top-up'), 0)::text as paid,
          coalesce(sum(draws.amount) filter (where grants.kind not in ('top-up', ${creditKind})), 0)::text as given
        ${drawn.from} join ${tablesOf(schema)('grants')} as grants
          on grants.id = draws.grant_id and grants.account_id = draws.account_id`,
  );
  return { paid: BigInt(row!.paid), given: BigInt(row!.given) };
}

interface LotRow {
  readonly account_id: string;
  readonly at: string;
  readonly amount: string;
  readonly is_paid: boolean;
  readonly payouts: readonly (readonly [at: string, amount: string])[] | null;
}

/** The oldest first. A refund is paid money unless a grant has paid for a part of its call, or the account has never paid before. */
async function readLots(runner: Runner, schema: string): Promise<Lot[]> {
  const table = tablesOf(schema);
  const isRepaid = sql`not exists (select from ${table('refunds')} as refunds
      join ${table('movements')} as charges on charges.account_id = refunds.account_id and charges.request_id = refunds.request_id
      join ${table('allocations')} as draws on draws.account_id = charges.account_id and draws.seq = charges.seq
      where refunds.account_id = grants.account_id and refunds.grant_id = grants.id)
    and exists (select from ${table('grants')} as earlier
      where earlier.account_id = grants.account_id and earlier.kind = 'top-up' and earlier.created_at <= entries.created_at)`;
  const rows = await rowsOf<LotRow>(
    runner,
    sql`select entries.account_id, ${millisecondsOf(sql`entries.created_at`)} as at, entries.amount::text as amount,
          case grants.kind when 'top-up' then true when 'refund' then ${isRepaid} else false end as is_paid,
          (select json_agg(json_build_array(${millisecondsOf(sql`payouts.created_at`)}, (-payouts.amount)::text))
            from ${table('ledger')} as payouts where payouts.account_id = entries.account_id
              and payouts.kind = 'PAYOUT' and payouts.grant_id = grants.id) as payouts
        from ${table('ledger')} as entries join ${table('grants')} as grants
          on grants.id = entries.grant_id and grants.account_id = entries.account_id
        where entries.kind in ('CREDIT', 'REFUND') and grants.expires_at is null order by entries.seq`,
  );
  return rows.map((row) => ({
    account: row.account_id,
    at: Number.parseInt(row.at, 10),
    amount: BigInt(row.amount),
    isPaid: row.is_paid,
    payouts: (row.payouts ?? []).map(([at, amount]) => ({ at: Number.parseInt(at, 10), amount: BigInt(amount) })),
  }));
}

async function readWallets(runner: Runner, schema: string): Promise<Map<string, bigint>> {
  const table = tablesOf(schema);
  const rows = await rowsOf<{ account_id: string; wallet: string }>(
    runner,
    sql`select balances.account_id, (balances.balance + balances.held - coalesce(grant_balances.remaining, 0))::text as wallet
        from ${table('balances')} as balances left join (
          select account_id, sum(remaining) as remaining from ${table('grant_balances')} where remaining > 0 group by account_id) as grant_balances
          on grant_balances.account_id = balances.account_id`,
  );
  return new Map(rows.map((row) => [row.account_id, BigInt(row.wallet)]));
}

/** By how much each account's money that does not expire has changed since: by entries, calls, and what grants paid of both. */
async function readChangesSince(
  runner: Runner,
  schema: string,
  since: number,
  calls: SumTable,
): Promise<Map<string, bigint>> {
  const table = tablesOf(schema);
  const given = drawnIn(schema, { from: since });
  const isSince = sql`entries.created_at >= ${instant(since)}`;
  const cost = callSums.measures.find(({ name }) => name === 'cost')!;
  const [entries, drawn, charges] = await Promise.all([
    rowsOf<{ account_id: string; amount: string }>(
      runner,
      sql`select entries.account_id, sum(entries.amount)::text as amount from ${table('ledger')} as entries
          left join ${table('grants')} as grants
          on grants.id = entries.grant_id and grants.account_id = entries.account_id
          where ${isSince} and entries.kind <> 'EXPIRE'
            and not (entries.kind = 'CREDIT' and grants.expires_at is not null) group by 1`,
    ),
    rowsOf<{ account_id: string; amount: string }>(
      runner,
      sql`${given.with} select entries.account_id, sum(draws.amount)::text as amount ${given.from} group by 1`,
    ),
    readSums(runner, schema, calls, {
      bounds: [since, endOfTime],
      conditions: [],
      by: 'account_id',
      measures: [{ name: 'cost', of: 'cost', ofKept: sql`sum(${column('cost')})`, ofRows: cost.sum }],
    }),
  ]);
  const changes = new Map<string, bigint>();
  const add = (account: string, amount: bigint) => changes.set(account, (changes.get(account) ?? 0n) + amount);
  for (const { account_id: account, amount } of [...entries, ...drawn]) add(account, BigInt(amount));
  for (const { group, cost: spent } of charges) add(group, -BigInt(spent ?? '0'));
  return changes;
}

/** What was left at a moment of payments that expire. */
async function readOwedExpiring(runner: Runner, schema: string, at: number): Promise<bigint> {
  const table = tablesOf(schema);
  const [row] = await rowsOf<{ amount: string }>(
    runner,
    sql`select coalesce(sum(grants.amount
          - (select coalesce(sum(draws.amount), 0) from ${table('allocations')} as draws
              join ${table('movements')} as entries on entries.account_id = draws.account_id and entries.seq = draws.seq
              where draws.account_id = grants.account_id and draws.grant_id = grants.id and entries.created_at < ${instant(at)})
          + (select coalesce(sum(entries.amount), 0) from ${table('ledger')} as entries
              where entries.account_id = grants.account_id and entries.kind = 'EXPIRE' and entries.grant_id = grants.id
                and entries.created_at < ${instant(at)})), 0)::text as amount
        from ${table('grants')} as grants
        where grants.kind = 'top-up' and grants.expires_at is not null and grants.created_at < ${instant(at)}`,
  );
  return BigInt(row!.amount);
}
