/** Sums of charges as they are kept, and of ledger rows, in whole nano-USD, and balances of many accounts. */
import { type SQL, sql } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type {
  ChargeFilter,
  MoneyTotals,
  SpendCell,
  SpendGroup,
  SpendSums,
  SpendTableQuery,
} from '../../common/domain/admin/ledger.ts';
import type { Span } from '../../common/domain/admin/pages.ts';
import { type Money, money } from '../../common/domain/money.ts';
import { usageClasses } from '../../common/domain/usage.ts';
import { instantText } from '../../common/kit/paging.ts';
import { type Condition, keysCondition, type ReadMeasure, readSums, type SumsRow } from '../../common/rollups/read.ts';
import { column } from '../../common/rollups/table.ts';
import { callSums } from '../ledger/call-sums.ts';
import { jsonOf, type Runner, rowsOf, tablesOf } from '../model/sql.ts';
import { tagRows } from './tags.ts';

export type SpendBy = 'day' | 'hour' | keyof typeof dimensionOf;

const mostGroups = 1_500;
const mostBalances = 10_000;
const mostCells = 20_000;

const columnOf = { model: 'model', key: 'key_id', person: 'person', project: 'project' } as const;
const dimensionOf = { ...columnOf, account: 'account_id', provider: 'provider' } as const;

/** Days and hours: the latest, oldest first, without empty ones. Other groups: the most expensive first. */
export async function spendBy(
  runner: Runner,
  schema: string,
  filter: ChargeFilter,
  by: SpendBy,
  limit: number,
  sums = callSums,
): Promise<SpendGroup[]> {
  if (!Number.isInteger(limit) || limit < 1 || limit > mostGroups) {
    const message = `"limit" is a whole number from 1 to ${mostGroups}.`;
    throw new GatewayError('invalid_request', message, { field: 'limit' });
  }
  if (filter.from >= filter.until) return [];
  const query = { bounds: [filter.from, filter.until], conditions: conditionsOf(filter), measures };
  if (by === 'day' || by === 'hour') {
    const ending = sql`having sum(charged) > 0 order by "group"::bigint desc limit ${limit}::int`;
    return (await readSums(runner, schema, sums, { ...query, each: by, ending })).map(groupOf).reverse();
  }
  const ending = sql`having sum(charged) > 0 order by sum(cost) desc, "group" limit ${limit}::int`;
  return (await readSums(runner, schema, sums, { ...query, by: dimensionOf[by], ending })).map(groupOf);
}

/** From each of the instants to the next, empty ones too. */
export async function spendBetween(
  runner: Runner,
  schema: string,
  filter: Omit<ChargeFilter, keyof Span>,
  bounds: readonly number[],
  sums = callSums,
): Promise<(SpendSums & { readonly at: number })[]> {
  checkBounds(bounds);
  const rows = await readSums(runner, schema, sums, { bounds, conditions: conditionsOf(filter), measures });
  const found = new Map(rows.map((row) => [Number.parseInt(row.slot, 10), spendSums(row)]));
  return bounds.slice(0, -1).map((at, index) => ({ at, ...(found.get(index + 1) ?? none) }));
}

/** Buckets of each of these groups; those without a charge are left out. */
export async function spendOfGroups(
  runner: Runner,
  schema: string,
  filter: Omit<ChargeFilter, keyof Span>,
  bounds: readonly number[],
  by: keyof typeof dimensionOf,
  groups: readonly string[],
  sums = callSums,
): Promise<(SpendSums & { readonly at: number; readonly group: string })[]> {
  checkBounds(bounds);
  if (groups.length === 0) return [];
  const conditions: Condition[] = [...conditionsOf(filter), [dimensionOf[by], groups]];
  const rows = await readSums(runner, schema, sums, { bounds, conditions, by: dimensionOf[by], measures });
  return rows.map((row) => ({ at: bounds[Number.parseInt(row.slot, 10) - 1]!, ...groupOf(row) }));
}

function checkBounds(bounds: readonly number[]): void {
  const inOrder = bounds.every((at, index) => Number.isFinite(at) && (index === 0 || at > bounds[index - 1]!));
  if (inOrder && bounds.length >= 2 && bounds.length <= mostGroups + 1) return;
  const message = `A series has 1 to ${mostGroups} buckets, in order.`;
  throw new GatewayError('invalid_request', message, { field: 'bounds' });
}

/** By slots of time and groups, in the order of time. */
export async function spendTable(
  runner: Runner,
  schema: string,
  query: SpendTableQuery,
  sums = callSums,
): Promise<SpendCell[]> {
  const { bounds, by, tags } = query;
  checkBounds(bounds);
  const ending = sql`having sum(charged) > 0 order by slot::bigint, "group" limit ${mostCells + 1}::int`;
  const rows =
    tags === undefined
      ? await tableRows(runner, schema, query, ending, sums)
      : await tagRows(runner, schema, { ...query, tags }, ending);
  if (rows.length > mostCells) {
    const message = `More than ${mostCells} groups: ask for a shorter time, wider buckets or fewer groups.`;
    throw new GatewayError('invalid_request', message, { field: 'group_by', shouldRetry: false });
  }
  return rows.map((row) => ({
    slot: Number.parseInt(row.slot, 10) - 1,
    group: by.length === 0 ? [] : (JSON.parse(row.group) as string[]),
    ...spendSums(row),
  }));
}

function tableRows(
  runner: Runner,
  schema: string,
  { accountId, keyIds, models, personIds, projectIds, bounds, by }: SpendTableQuery,
  ending: SQL,
  sums: typeof callSums,
): Promise<SumsRow[]> {
  const conditions: Condition[] = [['account_id', accountId]];
  const wanted = { key_id: keyIds, model: models, person: personIds, project: projectIds };
  for (const [name, values] of Object.entries(wanted)) if (values !== undefined) conditions.push([name, values]);
  const names = by.map((name) => columnOf[name as Exclude<typeof name, 'tag'>]);
  const group = names.length === 0 ? {} : { by: names };
  return readSums(runner, schema, sums, { bounds, conditions, measures, ending, ...group });
}

function conditionsOf(filter: Omit<ChargeFilter, keyof Span>): Condition[] {
  const { accountId, keyId, keys, personId, projectIds, model, provider } = filter;
  const wanted = [
    ['account_id', accountId],
    ['key_id', keyId],
    ['model', model],
    ['provider', provider],
    ['person', personId],
    ['project', projectIds],
  ] as const;
  const named = wanted.flatMap(([name, value]): Condition[] => (value === undefined ? [] : [[name, value]]));
  return [...named, ...keysCondition(keys)];
}

const zero = money(0n);
export const none: SpendSums = {
  ...{ requests: 0, cost: zero, ownCost: zero, ownCostUnknown: 0, uncosted: zero, writtenOff: zero },
  usage: {},
};

function spendSums(row: SumsRow): SpendSums {
  const classes = usageClasses.filter((name) => row[name] !== null);
  return {
    requests: Number.parseInt(row['charged'] ?? '0', 10),
    cost: amountOf(row['cost'] ?? '0'),
    ownCost: amountOf(row['own_cost'] ?? '0'),
    ownCostUnknown: Number.parseInt(row['own_unknown'] ?? '0', 10),
    uncosted: amountOf(row['uncosted'] ?? '0'),
    writtenOff: amountOf(row['absorbed'] ?? '0'),
    usage: Object.fromEntries(classes.map((name) => [name, Number.parseInt(row[name]!, 10)])),
  };
}

const groupOf = (row: SumsRow): SpendGroup => ({ group: row.group, ...spendSums(row) });

const read = (name: string): ReadMeasure[] =>
  callSums.measures
    .filter((measure) => measure.name === name)
    .map(({ sum }) => ({ name, of: name, ofKept: sql`sum(${column(name)})`, ofRows: sum }));

const sums = ['charged', 'cost', 'own_cost', 'own_unknown', 'uncosted', 'absorbed'] as const;
const measures = [...sums, ...usageClasses].flatMap(read);

/** Movements of money outside of calls. */
type Movements = Required<Omit<MoneyTotals, 'calls'>>;

const sideOf: {
  readonly [Total in keyof Movements]: SQL;
} = {
  credited: sql`sum(amount) filter (where kind = 'CREDIT')`,
  sold: sql`sum(revenue) filter (where kind = 'PURCHASE')`,
  lapsed: sql`-sum(amount) filter (where kind = 'EXPIRE')`,
  paidOut: sql`-sum(amount) filter (where kind = 'PAYOUT')`,
  debited: sql`-sum(amount) filter (where kind = 'DEBIT')`,
};

/** Sums of all accounts, by the times of the rows. */
export async function movementsIn(runner: Runner, schema: string, { from, until }: Span): Promise<Movements> {
  const within = sql`created_at >= ${instantText(from)}::timestamptz and created_at < ${instantText(until)}::timestamptz`;
  const names = Object.keys(sideOf) as (keyof typeof sideOf)[];
  const columns = names.map((name) => sql`coalesce(${sideOf[name]!}, 0)::text as ${sql.identifier(name)}`);
  const [row] = await rowsOf<Record<string, string>>(
    runner,
    sql`select ${sql.join(columns, sql`, `)} from ${tablesOf(schema)('ledger')} where ${within}`,
  );
  return Object.fromEntries(names.map((name) => [name, amountOf(row![name]!)])) as unknown as Movements;
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
