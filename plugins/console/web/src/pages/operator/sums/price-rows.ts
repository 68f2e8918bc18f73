/** A model's prices beside its costs, class by class. Pure. */
import { isNegative, minus, percentOf } from './usd.ts';

interface Line {
  readonly class: string;
  readonly per: 'million' | 'image' | 'second' | 'request' | 'call' | 'search' | 'characters' | 'hour';
  readonly official: string;
  readonly yours: string;
}
interface Sheet {
  readonly version: string;
  readonly ratio: string;
  readonly lines: readonly Line[];
  readonly tiers: readonly { readonly name: string; readonly lines: readonly Line[] }[];
}
export interface PriceRow {
  /** undefined: the list price. */
  readonly tier: string | undefined;
  readonly class: string;
  readonly per: Line['per'];
  readonly official: string | undefined;
  readonly sale: string | undefined;
  readonly cost: string | undefined;
  /** Sale less cost, where both are known. */
  readonly margin: string | undefined;
}

/** List prices first, then each tier's. Classes that are only bought or only sold have a row too. */
export function priceRows(sale: Sheet | null, cost: Sheet | null): PriceRow[] {
  const names = [...new Set([...(sale?.tiers ?? []), ...(cost?.tiers ?? [])].map(({ name }) => name))];
  const linesOf = (sheet: Sheet | null, tier: string | undefined) =>
    tier === undefined ? sheet?.lines : sheet?.tiers.find(({ name }) => name === tier)?.lines;
  return [undefined, ...names].flatMap((tier) => rowsOf(tier, linesOf(sale, tier) ?? [], linesOf(cost, tier) ?? []));
}

function rowsOf(tier: string | undefined, sale: readonly Line[], cost: readonly Line[]): PriceRow[] {
  const classes = [...new Set([...sale, ...cost].map((line) => line.class))];
  return classes.map((name) => {
    const sold = sale.find((line) => line.class === name);
    const bought = cost.find((line) => line.class === name);
    const margin = sold === undefined || bought === undefined ? undefined : minus(sold.yours, bought.official);
    const per = (sold ?? bought)!.per;
    return { tier, class: name, per, official: sold?.official, sale: sold?.yours, cost: bought?.official, margin };
  });
}

/** Whether some class is sold for less than it costs. */
export function sellsBelowCost(sale: Sheet | null, cost: Sheet | null): boolean {
  return priceRows(sale, cost).some(({ margin }) => margin !== undefined && isNegative(margin));
}

/** The price of one class on the list; undefined: it has none of its own. */
export function listPrice(sheet: Sheet | null, name: string): string | undefined {
  return sheet?.lines.find((line) => line.class === name)?.yours;
}

/** The smallest share of a list price that is left after the own cost, in percent, and its class; undefined: no cost is known. */
export function leastMargin(sale: Sheet | null, cost: Sheet | null): { class: string; percent: number } | undefined {
  const margins = priceRows(sale, cost).flatMap((row) => {
    const percent = row.tier === undefined && row.margin !== undefined ? percentOf(row.margin, row.sale!) : undefined;
    return percent === undefined ? [] : [{ class: row.class, percent }];
  });
  return margins.toSorted((left, right) => left.percent - right.percent)[0];
}

/** The first own costs of a list, which tell the most: of input and output, of an image, of a second. */
export const mainCosts = (cost: Sheet | null): readonly string[] =>
  ['input', 'output', 'image', 'second', 'request', 'character', 'audio']
    .flatMap((name) => cost?.lines.find((line) => line.class === name)?.official ?? [])
    .slice(0, 2);
