/** Whether a model is sold below what it costs the operator: at any time to come, in any tier, to whoever pays least. Pure. */
import type { Fault } from '../../core/contract.ts';
import { formatUsd, isLess, one, type Ratio, timesRatio, unitPrice } from '../../core/money.ts';
import { changesFrom, type PriceBook, type PriceContext, type PriceVersion, versionAt } from '../../core/prices.ts';
import { type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import type { Multipliers, Plans } from '../../core/vocabulary.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';

/** The lowest ratio on a model that a caller can come to, without the account's own: told by whoever multiplies, else by the plans. */
export function lowestRatio(
  id: string,
  model: Pick<ModelConfig, 'multiplier' | 'aliases'>,
  plans: Pick<Plans, 'list'> | undefined,
  multipliers: Multipliers | undefined,
): Ratio {
  const ratios = (plans?.list() ?? [])
    .filter((plan) => allows(plan.models, id, model))
    .map((plan) => plan.multiplier ?? one);
  const ofPlans = ratios.reduce((lowest, ratio) => (isLess(ratio, lowest) ? ratio : lowest), ratios[0] ?? one);
  return timesRatio(multipliers?.lowest(id) ?? ofPlans, model.multiplier ?? one);
}

/** Whether a plan lets its accounts call the model, by its id or by another name. */
export function allows(
  names: ReadonlySet<string> | undefined,
  id: string,
  { aliases }: Pick<ModelConfig, 'aliases'>,
): boolean {
  return names === undefined || names.has(id) || aliases.some((alias) => names.has(alias));
}

/** One fault for each model and target that is sold below its cost without `below_cost`. */
export function floorFaults(
  config: ModelsConfig,
  at: number,
  lowest: (id: string, model: ModelConfig) => Ratio,
): Fault[] {
  return Object.entries(config).flatMap(([id, model]) => {
    const { price } = model;
    if (price === undefined || model.below_cost) return [];
    const ratio = lowest(id, model);
    return costsOf(model).flatMap(({ who, cost }): Fault[] => {
      const loss = firstLoss(price, cost, ratio, at);
      return loss === undefined ? [] : [{ path: [id, 'price'], message: lossSentence(loss, ratio, who) }];
    });
  });
}

/** Every book that the model may cost by, each once. */
function costsOf({ targets, cost }: ModelConfig): { who: string; cost: PriceBook }[] {
  const own = targets.flatMap((target) =>
    target.cost === undefined ? [] : [{ who: ` at ${target.provider}`, cost: target.cost }],
  );
  const common = cost !== undefined && targets.some((target) => target.cost === undefined);
  return common ? [...own, { who: '', cost }] : own;
}

interface Loss {
  readonly name: UsageClass;
  readonly tier: string;
  readonly sale: bigint;
  readonly cost: bigint;
}

function lossSentence({ name, tier, sale, cost }: Loss, ratio: Ratio, who: string): string {
  const factor = ratio === one ? '' : ` × ${ratio.numerator}/${ratio.denominator}`;
  const where = tier === '' ? name : `${name} (${tier})`;
  return `${where} is sold at ${formatUsd(sale)}${factor}, below its cost of ${formatUsd(cost)}${who}: raise the price, or write below_cost: true`;
}

function firstLoss(sale: PriceBook, cost: PriceBook, ratio: Ratio, at: number): Loss | undefined {
  for (const time of new Set([...changesFrom(sale, at), ...changesFrom(cost, at)])) {
    const [selling, paying] = [versionAt(sale, time), versionAt(cost, time)];
    const loss = selling === undefined || paying === undefined ? undefined : lossBetween(selling, paying, ratio, time);
    if (loss !== undefined) return loss;
  }
  return undefined;
}

/** Every class in every combination of tiers that either side knows. */
function lossBetween(sale: PriceVersion, cost: PriceVersion, ratio: Ratio, at: number): Loss | undefined {
  for (const { time, usage, context } of circumstances(sale, cost, at)) {
    const { price, tier } = sale.priced(time, usage, context);
    const paid = cost.priced(time, usage, context).price;
    for (const name of usageClasses) {
      const [selling, paying] = [unitPrice(price, name), unitPrice(paid, name)];
      if (selling * ratio.numerator < paying * ratio.denominator) return { name, tier, sale: selling, cost: paying };
    }
  }
  return undefined;
}

interface Circumstance {
  readonly time: number;
  readonly usage: Usage;
  readonly context: PriceContext;
}

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** A prompt of each length, each service that is sold, each medium, and a moment on either side of each hour. */
function circumstances(sale: PriceVersion, cost: PriceVersion, at: number): Circumstance[] {
  const tiers = [...sale.tiers, ...cost.tiers];
  const lengths = new Set([0, ...tiers.flatMap(({ above }) => (above === undefined ? [] : [above + 1]))]);
  const services = new Set([undefined, ...sale.tiers.map(({ service }) => service)]);
  const media = [sale, cost].flatMap(({ image, second }) => [image, second].flatMap((table) => table?.entries ?? []));
  const times = momentsOf(
    tiers.flatMap(({ hours }) => hours ?? []),
    at,
  );
  return [...lengths].flatMap((input) =>
    [...services].flatMap((service) =>
      [[], ...media.map(({ words }) => words)].flatMap((words) =>
        times.map((time) => ({
          time,
          usage: { input },
          context: { media: words, ...(service === undefined ? {} : { services: { tier: service } }) },
        })),
      ),
    ),
  );
}

/** Within a week that begins on the day of `at`: prices by the hour come again each week. */
function momentsOf(hours: readonly { readonly from: number; readonly until: number }[], at: number): number[] {
  if (hours.length === 0) return [at];
  const minutes = new Set(hours.flatMap(({ from, until }) => [from, until % 1_440]));
  const midnight = Math.floor(at / dayMs) * dayMs;
  return Array.from({ length: 7 }, (_, day) => day).flatMap((day) =>
    [...minutes].map((minute) => midnight + day * dayMs + minute * minuteMs),
  );
}
