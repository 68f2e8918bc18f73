/** A new tier as it is filled in: its faults, and the members that are written for it. Pure. */
import { isRatio } from '../../../sums/usd.ts';
import type { FormValue } from '../edit-yaml.ts';
import { isAmount, isTokenCount } from './model-kinds.ts';

export const sorts = ['level', 'service', 'servicePrices', 'hours'] as const;
export type Sort = (typeof sorts)[number];
/** The member of a price that has tiers of this sort. */
export const memberOf = { level: 'above', service: 'service', servicePrices: 'service', hours: 'hours' } as const;
/** Whether it has prices; others have a ratio. */
export const hasPrices = (sort: Sort): boolean => sort === 'level' || sort === 'servicePrices';

type Amounts = ReadonlyMap<string, string>;

export interface TierText {
  readonly name: string;
  readonly ratio: string;
  /** By class; at first those of the price it belongs to. */
  readonly amounts: Amounts;
}

/** Keys of texts. */
export type TierFault = 'nameMissing' | 'nameTaken' | 'thresholdWrong' | 'ratioWrong' | 'amountWrong' | 'differs';

/** Faults by field: `name`, `ratio`, `amounts.input` … */
export function tierFaults(
  sort: Sort,
  tier: TierText,
  base: Amounts,
  taken: ReadonlySet<string>,
): ReadonlyMap<string, TierFault> {
  const faults = new Map<string, TierFault>();
  const name = tier.name.trim();
  if (name === '') faults.set('name', 'nameMissing');
  if (sort === 'level' && !isTokenCount(name)) faults.set('name', 'thresholdWrong');
  if (taken.has(name)) faults.set('name', 'nameTaken');
  if (!hasPrices(sort)) {
    if (!isRatio(tier.ratio)) faults.set('ratio', 'ratioWrong');
    return faults;
  }
  const changed = changedAmounts(tier, base);
  if (changed.size === 0) for (const one of tier.amounts.keys()) faults.set(`amounts.${one}`, 'differs');
  for (const [one, text] of changed) if (!isAmount(text)) faults.set(`amounts.${one}`, 'amountWrong');
  return faults;
}

/** What stays as it is needs no line of its own. */
export function tierValue(sort: Sort, tier: TierText, base: Amounts): NonNullable<FormValue> {
  return hasPrices(sort) ? changedAmounts(tier, base) : tier.ratio.trim();
}

function changedAmounts({ amounts }: TierText, base: Amounts): Amounts {
  const typed = [...amounts].map(([name, text]): [string, string] => [name, text.trim()]);
  return new Map(typed.filter(([name, text]) => text !== '' && text !== base.get(name)));
}
