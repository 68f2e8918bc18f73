/** Sums over charges and ledger rows, computed by the database in whole nano-USD, and balances of many accounts. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { ChargeFilter, MoneyTotals, SpendGroup, SpendSums } from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { usageClasses } from '../../common/domain/usage.ts';
import { instantText } from '../../common/kit/paging.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../ledger/sql.ts';
import { conditionOf, endedWithin } from './charges.ts';

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

/** The start of each row's bucket of this many seconds (UTC), in milliseconds. */
function bucket(seconds: number): SQL {
  return sql`floor(extract(epoch from created_at) / ${sql.raw(String(seconds))})::bigint * ${sql.raw(`${seconds}000`)}`;
}

interface SpendRow {
  readonly group: string;
  readonly requests: number;
  readonly cost: string;
  readonly own_cost: string;
  readonly own_unknown: number;
  readonly usage: Readonly<Record<string, number>>;
}

/** Days and hours: the latest, oldest first, without empty ones. Other groups: the most expensive first. */
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
    sql`select slot::text as "group", ${measures}
        from (select ${groups[by]} as slot, cost, own_cost, classes
          from ${tablesOf(schema)('calls')} where ${conditionOf(filter)}) as charges
        group by slot order by ${isTime ? sql`slot desc` : sql`sum(cost) desc, slot`} limit ${limit}::int`,
  );
  const found = rows.map((row) => ({ group: row.group, ...sumsOf(row) }));
  return isTime ? found.reverse() : found;
}

/** From each of the instants to the next, empty ones too. */
export async function spendBetween(
  runner: Runner,
  schema: string,
  filter: Omit<ChargeFilter, keyof Span>,
  bounds: readonly number[],
): Promise<(SpendSums & { readonly at: number })[]> {
  const inOrder = bounds.every((at, index) => Number.isFinite(at) && (index === 0 || at > bounds[index - 1]!));
  if (!inOrder || bounds.length < 2 || bounds.length > mostGroups + 1) {
    const message = `A series has 1 to ${mostGroups} buckets, in order.`;
    throw new GatewayError('invalid_request', message, { field: 'bounds' });
  }
  const whole = { ...filter, from: bounds[0]!, until: bounds.at(-1)! };
  const list = jsonOf(bounds.map(instantText));
  const rows = await rowsOf<SpendRow>(
    runner,
    sql`select width_bucket(created_at, array(select value::timestamptz from json_array_elements_text(${list}) with ordinality
            order by ordinality))::text as "group", ${measures}
        from ${tablesOf(schema)('calls')} where ${conditionOf(whole)} group by 1`,
  );
  const found = new Map(rows.map((row) => [Number.parseInt(row.group, 10), sumsOf(row)]));
  return bounds.slice(0, -1).map((at, index) => ({ at, ...(found.get(index + 1) ?? none) }));
}

const none: SpendSums = { requests: 0, cost: money(0n), ownCost: money(0n), ownCostUnknown: 0, usage: {} };

function sumsOf({ requests, cost, own_cost: ownCost, own_unknown: ownCostUnknown, usage }: SpendRow): SpendSums {
  return { requests, cost: amountOf(cost), ownCost: amountOf(ownCost), ownCostUnknown, usage };
}

const classSums = sql.join(
  usageClasses.map((name) => sql`${sql.raw(`'${name}'`)}, sum((classes->>${sql.raw(`'${name}'`)})::numeric)`),
  sql`, `,
);

const measures = sql`count(*)::int as requests, sum(cost)::text as cost, coalesce(sum(own_cost), 0)::text as own_cost,
  (count(*) filter (where own_cost is null))::int as own_unknown, jsonb_strip_nulls(jsonb_build_object(${classSums})) as usage`;

const sideOf: { readonly [Total in Exclude<keyof MoneyTotals, 'ownCost' | 'ownCostUnknown' | 'absorbed'>]: SQL } = {
  revenue: sql`sum(revenue) filter (where kind = 'CHARGE')`,
  credited: sql`sum(amount) filter (where kind = 'CREDIT')`,
  sold: sql`sum(revenue) filter (where kind = 'PURCHASE')`,
  refunded: sql`-sum(revenue) filter (where kind = 'REFUND')`,
  lapsed: sql`-sum(amount) filter (where kind = 'EXPIRE')`,
  paidOut: sql`-sum(amount) filter (where kind = 'PAYOUT')`,
  debited: sql`-sum(amount) filter (where kind = 'DEBIT')`,
};

/** Of all accounts, by the times of the rows. */
export async function totalsOf(runner: Runner, schema: string, { from, until }: Span): Promise<MoneyTotals> {
  const table = tablesOf(schema);
  const within = sql`created_at >= ${instantText(from)}::timestamptz and created_at < ${instantText(until)}::timestamptz`;
  const names = Object.keys(sideOf) as (keyof typeof sideOf)[];
  const columns = names.map((name) => sql`coalesce(${sideOf[name]!}, 0)::text as ${sql.identifier(name)}`);
  const [row] = await rowsOf<Record<string, string>>(
    runner,
    sql`select ${sql.join(columns, sql`, `)}, max(spent.own_cost)::text as "ownCost",
          max(spent.unknown)::text as "unknown", max(spent.absorbed)::text as "absorbed"
        from (select coalesce(sum(own_cost), 0) as own_cost, count(*) filter (where settled and own_cost is null) as unknown,
            coalesce(sum(absorbed), 0) as absorbed
            from ${table('calls')} where ${endedWithin({ from, until })}) as spent
        left join ${table('ledger')} on ${within}`,
  );
  const sums = Object.fromEntries(names.map((name) => [name, amountOf(row![name]!)])) as {
    [Name in keyof typeof sideOf]: Money;
  };
  return {
    ...sums,
    absorbed: amountOf(row!['absorbed']!),
    ownCost: amountOf(row!['ownCost']!),
    ownCostUnknown: Number.parseInt(row!['unknown']!, 10),
  };
}

/** From the database: a call's cost shows within a second. 0 for accounts without a balance. */
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
    sql`select account_id, (balance + held)::text as balance from ${tablesOf(schema)('balances')}
        where account_id in (select value from json_array_elements_text(${jsonOf(accountIds)}))`,
  );
  const none = accountIds.map((accountId): [string, Money] => [accountId, money(0n)]);
  return new Map([...none, ...rows.map((row): [string, Money] => [row.account_id, amountOf(row.balance)])]);
}

function amountOf(digits: string): Money {
  return money(BigInt(digits));
}
