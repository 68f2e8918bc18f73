/** The ratio on a model's official price: plan × model × account. All code that charges, quotes or checks a price uses it. */
import { defineContextKey, defineService, type Exchange } from '../../../core/contract/contract.ts';
import { formatRatio, isLess, one, type Ratio, timesRatio } from './money.ts';
import { type Plans, type PlanTerms, plan } from './plans.ts';

/** The factors of a ratio; an absent one is 1. */
export interface RatioTerms {
  readonly plan: Ratio | undefined;
  readonly model: Ratio | undefined;
  readonly account?: Ratio | undefined;
}

/** The whole ratio, exact and in lowest terms. */
export function ratioOf(terms: RatioTerms): Ratio {
  return timesRatio(timesRatio(terms.plan ?? one, terms.model ?? one), terms.account ?? one);
}

/** The plan's factor for a call, with the default where the plan states none; set by the multiplier plugin. */
export const priceRatio = defineContextKey<Ratio>('price ratio');

/** The plans' factors, with a default for those that state none; provided by the multiplier plugin. */
export interface Multipliers {
  /** The lowest factor of any plan. */
  lowest(): Ratio;
  /** The factor for accounts on this plan. */
  of?(plan: string): Ratio;
}

export const multipliers = defineService<Multipliers>('multipliers');

/** The services that know the plans' factors; either may be missing in a gateway. */
export interface RatioSources<Offers> {
  readonly multipliers: Pick<Multipliers, 'of'> | undefined;
  readonly plans: Offers | undefined;
}

/** The plan's factor of this call. */
export function planRatioOfCall(exchange: Exchange): Ratio | undefined {
  return exchange.find(priceRatio) ?? exchange.find(plan)?.multiplier;
}

/** The factor of the plan with this name. */
export function planRatio({ multipliers, plans }: RatioSources<Pick<Plans, 'terms'>>, name: string): Ratio | undefined {
  return multipliers?.of?.(name) ?? plans?.terms(name).multiplier;
}

/** A model as the check for the lowest ratio sees it. */
export interface RatedModel {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly multiplier: Ratio | undefined;
}

/** The lowest ratio of any caller on this model, without the account's own factor. */
export function lowestRatio(
  {
    multipliers,
    plans,
  }: { readonly multipliers: Multipliers | undefined; readonly plans: Pick<Plans, 'list'> | undefined },
  model: RatedModel,
): Ratio {
  const ofPlans = (plans?.list() ?? [])
    .filter((terms) => allowsModel(terms, model))
    .map(({ multiplier }) => multiplier ?? one);
  return ratioOf({ plan: multipliers?.lowest() ?? lowest(ofPlans), model: model.multiplier });
}

/** The lowest of some ratios; undefined: there is none. */
export function lowest(ratios: readonly Ratio[]): Ratio | undefined {
  return ratios.reduce<Ratio | undefined>(
    (low, ratio) => (low === undefined || isLess(ratio, low) ? ratio : low),
    undefined,
  );
}

/** Whether a plan allows the model, by its id or an alias. */
export function allowsModel(
  { models }: Pick<PlanTerms, 'models'>,
  { id, aliases }: Pick<RatedModel, 'id' | 'aliases'>,
): boolean {
  return models === undefined || models.has(id) || aliases.some((alias) => models.has(alias));
}

const [ten, tenth]: Ratio[] = [
  { numerator: 10n, denominator: 1n },
  { numerator: 1n, denominator: 10n },
];

/** What to say of a ratio that is probably meant as a percentage, by the name of its setting. */
export function doubtfulRatio(setting: string, ratio: Ratio | undefined): string[] {
  if (ratio === undefined || !(isLess(ten!, ratio) || isLess(ratio, tenth!))) return [];
  return [`${setting} is ${formatRatio(ratio)}: it is a factor, no percentage; 1.2 is a fifth more`];
}
