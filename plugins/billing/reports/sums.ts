/** Sums over charges and ledger rows, made by the database in whole nano-USD, and balances of many accounts. */
import { type SQL, sql } from 'drizzle-orm';
import type { ChargeFilter, MoneyTotals, Span, SpendGroup } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { type Money, money } from '../../../core/money.ts';
import { instantText } from '../../../core/paging.ts';
import { usageClasses } from '../../../core/usage.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../sql.ts';
import { conditionOf } from './charges.ts';

export type SpendBy = 'day' | 'hour' | 'model' | 'key' | 'account' | 'provider';

const mostGroups = 1_500;
const mostBalances = 10_000;

const groups: { readonly [By in SpendBy]: SQL } = {
  day: bucket(86_400),
  hour: bucket(3_600),
  model: sql`model`,
  key: sql`key_id`,
  account: sql`account_id`,
  provider: sql`coalesce(provider, '')`,
};

/** The beginning of each row's bucket of so many seconds (UTC), as milliseconds. */
function bucket(seconds: number): SQL {
  return sql`floor(extract(epoch from created_at) / ${sql.raw(String(seconds))})::bigint * ${sql.raw(`${seconds}000`)}`;
}

interface SpendRow {
  readonly group: string;
  readonly requests: number;
  readonly cost: string;
  readonly own_cost: string;
  readonly usage: Readonly<Record<string, number>>;
}

/** Days and hours: the last ones, oldest first, without empty ones. Else those that cost most, dearest first. */
export async function spendBy(
  runner: Runner,
  schema: string,
  filter: ChargeFilter,
  by: SpendBy,
  limit: number,
): Promise<SpendGroup[]> {
  if (!Number.isInteger(limit) || limit < 1 || limit > mostGroups) {
    const message = `"limit" is a whole number from 1 to ${mostGroups}.`;
    throw new GatewayError('invalid_request', message, { field: 'limit' });
  }
  const isTime = by === 'day' || by === 'hour';
  const rows = await rowsOf<SpendRow>(
    runner,
    sql`select slot::text as "group", count(*)::int as requests, sum(cost)::text as cost,
          coalesce(sum(own_cost), 0)::text as own_cost, jsonb_strip_nulls(jsonb_build_object(${classSums})) as usage
        from (select ${groups[by]} as slot, cost, own_cost, classes
          from ${tablesOf(schema)('usage')} where ${conditionOf(filter)}) as charges
        group by slot order by ${isTime ? sql`slot desc` : sql`sum(cost) desc, slot`} limit ${limit}::int`,
  );
  const found = rows.map(({ group, requests, cost, own_cost: ownCost, usage }) => {
    return { group, requests, cost: amountOf(cost), ownCost: amountOf(ownCost), usage };
  });
  return isTime ? found.reverse() : found;
}

const classSums = sql.join(
  usageClasses.map((name) => sql`${sql.raw(`'${name}'`)}, sum((classes->>${sql.raw(`'${name}'`)})::numeric)`),
  sql`, `,
);

const sideOf: { readonly [Total in keyof MoneyTotals]: SQL } = {
  revenue: sql`sum(revenue) filter (where kind = 'SETTLE')`,
  absorbed: sql`sum(absorbed)`,
  ownCost: sql`max(spent.own_cost)`,
  credited: sql`sum(amount) filter (where kind = 'CREDIT')`,
  sold: sql`sum(revenue) filter (where kind = 'PURCHASE')`,
  refunded: sql`-sum(revenue) filter (where kind = 'REFUND')`,
  lapsed: sql`-sum(amount) filter (where kind = 'LAPSE')`,
  paidOut: sql`-sum(amount) filter (where kind = 'PAYOUT')`,
  debited: sql`-sum(amount) filter (where kind = 'DEBIT')`,
};

/** Of all accounts, by the times of the rows. */
export async function totalsOf(runner: Runner, schema: string, { from, until }: Span): Promise<MoneyTotals> {
  const table = tablesOf(schema);
  const within = sql`created_at >= ${instantText(from)}::timestamptz and created_at < ${instantText(until)}::timestamptz`;
  const names = Object.keys(sideOf) as (keyof MoneyTotals)[];
  const columns = names.map((name) => sql`coalesce(${sideOf[name]!}, 0)::text as ${sql.identifier(name)}`);
  const [row] = await rowsOf<Record<string, string>>(
    runner,
    sql`select ${sql.join(columns, sql`, `)}
        from (select coalesce(sum(own_cost), 0) as own_cost from ${table('usage')} where ${within}) as spent
        left join ${table('ledger')} on ${within}`,
  );
  return Object.fromEntries(names.map((name) => [name, amountOf(row![name]!)])) as {
    [Name in keyof MoneyTotals]: Money;
  };
}

/** As the database has them: what a call has cost shows within a second. 0 of accounts that never had any. */
export async function balancesOf(
  runner: Runner,
  schema: string,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, Money>> {
  if (accountIds.length > mostBalances) {
    throw new GatewayError('invalid_request', `Balances of at most ${mostBalances} accounts are read at once.`);
  }
  const rows = await rowsOf<{ account_id: string; balance: string }>(
    runner,
    sql`select account_id, balance::text as balance from ${tablesOf(schema)('balances')}
        where account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))`,
  );
  const none = accountIds.map((accountId): [string, Money] => [accountId, money(0n)]);
  return new Map([...none, ...rows.map((row): [string, Money] => [row.account_id, amountOf(row.balance)])]);
}

function amountOf(digits: string): Money {
  return money(BigInt(digits));
}
