/** What sums of requests count, and money beside counts: what the requests of a filter cost, altogether and over time. */
import { z } from '@hono/zod-openapi';
import type { ChargeFilter, SpendSums } from '../../common/domain/admin/ledger.ts';
import { marginOf } from '../../common/domain/admin/margin.ts';
import { noiseCauses, type RequestFilter, type RequestGroup } from '../../common/domain/admin/requests.ts';
import { money, parseUsd, zero } from '../../common/domain/money.ts';
import { totalTokens } from '../../common/domain/usage.ts';
import { ledgerQueries, requestQueries } from '../services.ts';
import { type ConsoleServices, need } from './routing/router.ts';
import { usd, usdOrNull, usdText } from './schemas.ts';

export const refusedCount = z
  .number()
  .describe('Requests with a wrong key or for a model that does not exist; they are in none of the other counts.');

/** The filter of sums and charts, which leave out requests that were refused before serving unless their cause is named. */
export const countedOf = (filter: RequestFilter): RequestFilter =>
  filter.cause === undefined ? { ...filter, withoutCauses: noiseCauses } : filter;

export const mostCauses = 100;

/** How many requests `countedOf` leaves out. */
export async function refusedIn(services: ConsoleServices, filter: RequestFilter): Promise<number> {
  if (filter.cause !== undefined) return 0;
  const causes = await need(services, requestQueries).causes(filter, mostCauses, noiseCauses);
  return causes.reduce((sum, { result, requests }) => (result === 'client_error' ? sum + requests : sum), 0);
}

/** The filter for charges; undefined where it names something that charges do not have, such as an operation. */
export function chargeFilter(filter: RequestFilter): ChargeFilter | undefined {
  const { operation, result, cause } = filter;
  const { from, until, accountId, keyId, keys, personId, projectIds, model, provider } = filter;
  if (operation !== undefined || cause !== undefined || (result !== undefined && result !== 'ok')) return undefined;
  return { from, until, accountId, keyId, keys, personId, projectIds, model, provider };
}

const unknown = {
  ...{
    cost: null,
    refunded: null,
    ownCost: null,
    ownCostUnknown: null,
    uncosted: null,
    writtenOff: null,
    margin: null,
  },
  tokens: null,
};

type Counted = 'ownCostUnknown' | 'tokens';
type MoneyJson = { readonly [Name in Exclude<keyof typeof unknown, Counted>]: string | null } & {
  readonly [Name in Counted]: number | null;
};

/** undefined: not known. */
export function moneyJson(sums: SpendSums | undefined): MoneyJson {
  if (sums === undefined) return unknown;
  const { cost, ownCost, ownCostUnknown = 0, uncosted = zero, writtenOff = zero, refunded = zero } = sums;
  const margin = marginOf(sums);
  return {
    cost: usdText(cost),
    refunded: usdText(refunded),
    ownCost: margin === undefined ? null : usdText(ownCost),
    ownCostUnknown,
    uncosted: usdText(uncosted),
    writtenOff: usdText(writtenOff),
    margin: usdOrNull(margin),
    tokens: totalTokens(sums.usage),
  };
}

export async function spendOf(services: ConsoleServices, filter: RequestFilter): Promise<MoneyJson> {
  const [sums] = await spendBetween(services, filter, [filter.from, filter.until]);
  return sums!;
}

/** What a client has spent: one rule for every page of clients. */
export const spentSums = {
  cost: usd.nullable().describe('Charges of calls.'),
  refunded: usd.nullable().describe('Given back in this time, whenever the calls were.'),
  spent: usd.nullable().describe('cost - refunded; below zero where more was given back.'),
};

export async function spentOf(services: ConsoleServices, filter: RequestFilter) {
  const sums = await spendOf(services, filter);
  return { ...spentIn(sums), tokens: sums.tokens };
}

export function spentIn({ cost, refunded }: Pick<MoneyJson, 'cost' | 'refunded'>) {
  const spent = cost === null || refunded === null ? null : usdText(money(parseUsd(cost) - parseUsd(refunded)));
  return { cost, refunded, spent };
}

/** Spend within the bounds of the requests. */
export async function spendBetween(
  services: ConsoleServices,
  filter: RequestFilter,
  bounds: readonly number[],
): Promise<readonly MoneyJson[]> {
  const ledger = services.find(ledgerQueries);
  const wanted = chargeFilter(filter);
  if (ledger === undefined || wanted === undefined || filter.from >= filter.until)
    return bounds.slice(1).map(() => unknown);
  return (await ledger.spendBetween(wanted, bounds)).map(moneyJson);
}

export const nothing: SpendSums = { requests: 0, cost: money(0n), ownCost: money(0n), usage: {} };

/** What each of these groups came to; undefined where charges are not known by such groups. */
export async function spendOfGroups(
  services: ConsoleServices,
  filter: RequestFilter,
  by: RequestGroup,
  groups: readonly string[],
): Promise<((group: string) => SpendSums) | undefined> {
  const ledger = services.find(ledgerQueries);
  const wanted = chargeFilter(filter);
  if (ledger === undefined || wanted === undefined || by === 'operation' || groups.length === 0) return undefined;
  const sums = await ledger.spendOfGroups(wanted, [filter.from, filter.until], by, groups);
  const known = new Map(sums.map((group) => [group.group, group]));
  return (group) => known.get(group) ?? nothing;
}

/** The largest groups by their number of requests, and by what they cost. */
export async function sizesOf(services: ConsoleServices, filter: RequestFilter, by: RequestGroup, limit: number) {
  const wanted = chargeFilter(filter);
  const ledger = services.find(ledgerQueries);
  const [byNumber, byCost = []] = await Promise.all([
    need(services, requestQueries).groupCounts(countedOf(filter), by, limit),
    by === 'operation' || wanted === undefined ? undefined : ledger?.spend(wanted, by, limit),
  ]);
  return { byNumber, byCost };
}
