/** Who comes to pay less than the own cost by what was sold or granted: plans that bring more than their price, accounts with a ratio. Pure. */
import { formatUsd, isLess, one, parseRatio, type Ratio, timesRatio } from '../../core/money.ts';
import type { Account, Multipliers, PlanOffer, Plans } from '../../core/vocabulary.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';
import { allows, floorFaults, lowestRatio } from './floors.ts';

const dayMs = 86_400_000;
/** A month has 28 days at least: so a plan never brings more grants than are counted here. */
const shortestMs = { day: dayMs, week: 7 * dayMs, month: 28 * dayMs };

/**
 * One sentence for each plan whose grants, spent to the end, sell a model below its cost: 25 USD for 20 are a ratio of 4/5.
 * Free plans are gifts. No error: whoever sells plans may count on what is not spent.
 */
export function undersellingPlans(
  config: ModelsConfig,
  plans: Plans | undefined,
  multipliers: Multipliers | undefined,
  at: number,
): string[] {
  return (plans?.list() ?? []).flatMap(({ name }) => {
    const offer = plans?.offer(name);
    const brought = offer === undefined ? undefined : broughtBy(offer);
    if (offer === undefined || brought === undefined || offer.price === 0n || offer.price >= brought) return [];
    const discount = { numerator: offer.price, denominator: brought };
    const allowed = Object.entries(config).filter(([id, model]) => allows(offer.models, id, model));
    const ratio = (id: string, model: ModelConfig) =>
      timesRatio(lowestRatio(id, model, { list: () => [offer] }, multipliers), discount);
    const models = modelsIn(floorFaults(Object.fromEntries(allowed), at, ratio));
    if (models.length === 0) return [];
    const sold = `plan "${name}" brings up to ${formatUsd(brought)} USD for ${formatUsd(offer.price)}`;
    return [`${sold}: spent to the end, that is below the cost of ${models.join(', ')}`];
  });
}

/** All money that a term of the plan brings at most; undefined: none. */
function broughtBy({ grant, lastsMs }: PlanOffer): bigint | undefined {
  if (grant === undefined) return undefined;
  const times = lastsMs === undefined ? 1 : Math.ceil(lastsMs / shortestMs[grant.every]);
  return grant.amount * BigInt(times);
}

/** One sentence for each account whose own ratio sells a model below its cost that others pay. */
export function undersoldAccounts(
  config: ModelsConfig,
  accounts: readonly Account[],
  lowest: (id: string, model: ModelConfig) => Ratio,
  at: number,
): string[] {
  return accounts.flatMap(({ name, multiplier }) => {
    const own = multiplier == null ? one : parseRatio(multiplier);
    if (!isLess(own, one)) return [];
    const models = modelsIn(floorFaults(config, at, (id, model) => timesRatio(lowest(id, model), own)));
    return models.length === 0
      ? []
      : [`account "${name}" pays × ${multiplier}, which is below the cost of ${models.join(', ')}`];
  });
}

function modelsIn(faults: ReturnType<typeof floorFaults>): string[] {
  return [...new Set(faults.map(({ path }) => String(path?.[0])))];
}
