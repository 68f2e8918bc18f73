/** Finds models that are sold below the operator's cost, at any future time, in any tier, at the lowest ratio. Pure. */
import type { Fault, Host } from '../../../core/contract/contract.ts';
import { formatUsd, isLess, one, type Ratio, timesRatio, unitPrice } from '../../common/domain/money.ts';
import { type Plans, plans } from '../../common/domain/plans.ts';
import { lowestRatio, multipliers } from '../../common/domain/price-ratio.ts';
import {
  changesFrom,
  type PriceBook,
  type PriceContext,
  type PriceVersion,
  versionAt,
} from '../../common/domain/prices.ts';
import type { Providers } from '../../common/domain/upstreams.ts';
import { type Usage, type UsageClass, usageClasses } from '../../common/domain/usage.ts';
import type { ModelConfig, ModelsConfig } from '../config.ts';

/** The lowest ratio of any caller on a model of the section; `offered` instead of the plans that the gateway offers. */
export function lowestRatioIn(
  host: Pick<Host, 'find'>,
  offered?: Pick<Plans, 'list'>,
): (id: string, model: ModelConfig) => Ratio {
  return (id, { aliases, multiplier, batch }) => {
    // A line of a batch is the cheapest call.
    const own = batch !== undefined && isLess(batch, one) ? timesRatio(multiplier ?? one, batch) : multiplier;
    const services = { multipliers: host.find(multipliers), plans: offered ?? host.find(plans) };
    return lowestRatio(services, { id, aliases, multiplier: own });
  };
}

/** Removes targets that have a cost and are not used because their provider has no key. */
export function withoutUnusedCosts(config: ModelsConfig, providers: Pick<Providers, 'find'>): ModelsConfig {
  const isCounted = ({ provider, cost }: ModelConfig['targets'][number]) =>
    cost === undefined || providers.find(provider) !== undefined;
  return Object.fromEntries(
    Object.entries(config).map(([id, model]) => [id, { ...model, targets: model.targets.filter(isCounted) }]),
  );
}

/** One fault per model and target that is sold below its cost without `below_cost`. */
export function floorFaults(
  config: ModelsConfig,
  at: number,
  lowest: (id: string, model: ModelConfig) => Ratio,
): Fault[] {
  return Object.entries(config).flatMap(([id, model]) => {
    const { price } = model;
    if (price === undefined || model.below_cost) return [];
    const ratio = lowest(id, model);
    return costsOf(model).flatMap(({ location, cost }): Fault[] => {
      const loss = firstLoss(price, cost, ratio, at);
      return loss === undefined ? [] : [{ path: [id, 'price'], message: lossSentence(loss, ratio, location) }];
    });
  });
}

/** The distinct cost price lists of a model that is not to be sold below them. */
function costsOf({ targets, cost }: ModelConfig): { location: string; cost: PriceBook }[] {
  const own = targets.flatMap((target) =>
    target.cost === undefined || target.below_cost ? [] : [{ location: ` at ${target.provider}`, cost: target.cost }],
  );
  const common = cost !== undefined && targets.some((target) => target.cost === undefined);
  return common ? [...own, { location: '', cost }] : own;
}

interface Loss {
  readonly name: UsageClass;
  readonly tier: string;
  readonly sale: bigint;
  readonly cost: bigint;
}

function lossSentence({ name, tier, sale, cost }: Loss, ratio: Ratio, location: string): string {
  const factor = ratio === one ? '' : ` × ${ratio.numerator}/${ratio.denominator}`;
  const where = tier === '' ? name : `${name} (${tier})`;
  return `${where} is sold at ${formatUsd(sale)}${factor}, below its cost of ${formatUsd(cost)}${location}: raise the price, or write below_cost: true`;
}

function firstLoss(sale: PriceBook, cost: PriceBook, ratio: Ratio, at: number): Loss | undefined {
  for (const time of new Set([...changesFrom(sale, at), ...changesFrom(cost, at)])) {
    const [selling, paying] = [versionAt(sale, time), versionAt(cost, time)];
    const loss = selling === undefined || paying === undefined ? undefined : lossBetween(selling, paying, ratio, time);
    if (loss !== undefined) return loss;
  }
  return undefined;
}

/** Every class in every combination of tiers of both sides. */
function lossBetween(sale: PriceVersion, cost: PriceVersion, ratio: Ratio, at: number): Loss | undefined {
  for (const { time, usage, context } of pricePoints(sale, cost, at)) {
    const { price, tier } = sale.priced(time, usage, context);
    const paid = cost.priced(time, usage, context).price;
    for (const name of usageClasses) {
      const [selling, paying] = [unitPrice(price, name), unitPrice(paid, name)];
      if (selling * ratio.numerator < paying * ratio.denominator) return { name, tier, sale: selling, cost: paying };
    }
  }
  return undefined;
}

export interface PricePoint {
  readonly time: number;
  readonly usage: Usage;
  readonly context: PriceContext;
}

const dayMs = 86_400_000;
const minuteMs = 60_000;

/** Prompts of each length, each service that is sold, each medium, and a moment on either side of each hour. */
export function pricePoints(sale: PriceVersion, cost: PriceVersion, at: number): PricePoint[] {
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

/** Within a week from the day of `at`: prices by the hour repeat each week. */
function momentsOf(hours: readonly { readonly from: number; readonly until: number }[], at: number): number[] {
  if (hours.length === 0) return [at];
  const minutes = new Set(hours.flatMap(({ from, until }) => [from, until % 1_440]));
  const midnight = Math.floor(at / dayMs) * dayMs;
  return Array.from({ length: 7 }, (_, day) => day).flatMap((day) =>
    [...minutes].map((minute) => midnight + day * dayMs + minute * minuteMs),
  );
}
