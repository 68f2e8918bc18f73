/**
 * Finds plans and accounts that pay less than the operator's cost: plans that grant more than their price, accounts
 * with a low ratio. Pure.
 */

import type { Host } from '../../../core/contract/contract.ts';
import type { Account } from '../../common/domain/accounts.ts';
import { formatUsd, isLess, one, parseRatio, type Ratio, timesRatio } from '../../common/domain/money.ts';
import { type PlanOffer, plans } from '../../common/domain/plans.ts';
import { allowsModel } from '../../common/domain/price-ratio.ts';
import type { ModelConfig, ModelsConfig } from '../config.ts';
import { floorFaults, lowestRatioIn } from './floors.ts';

const dayMs = 86_400_000;
/** A month has at least 28 days: a plan never grants more often than counted here. */
const shortestMs = { day: dayMs, week: 7 * dayMs, month: 28 * dayMs };

/**
 * One sentence per plan that sells a model below its cost if all grants are spent: 25 USD for 20 are a ratio of 4/5.
 * Free plans are gifts. A notice, not an error: operators may count on unspent grants.
 */
export function undersellingPlans(host: Pick<Host, 'find'>, config: ModelsConfig, at: number): string[] {
  const offered = host.find(plans);
  return (offered?.list() ?? []).flatMap(({ name }) => {
    const offer = offered?.offer(name);
    const granted = offer === undefined ? undefined : maxGrants(offer);
    if (offer === undefined || granted === undefined || offer.price === 0n || offer.price >= granted) return [];
    const discount = { numerator: offer.price, denominator: granted };
    const allowed = Object.entries(config).filter(([id, model]) => allowsModel(offer, { id, aliases: model.aliases }));
    const lowest = lowestRatioIn(host, { list: () => [offer] });
    const ratio = (id: string, model: ModelConfig) => timesRatio(lowest(id, model), discount);
    const models = modelsIn(floorFaults(Object.fromEntries(allowed), at, ratio));
    if (models.length === 0) return [];
    const sold = `plan "${name}" brings up to ${formatUsd(granted)} USD for ${formatUsd(offer.price)}`;
    return [`${sold}: spent to the end, that is below the cost of ${models.join(', ')}`];
  });
}

/** The most money that a term of the plan grants; undefined: none. */
function maxGrants({ grant, durationMs }: PlanOffer): bigint | undefined {
  if (grant === undefined) return undefined;
  const times = durationMs === undefined ? 1 : Math.ceil(durationMs / shortestMs[grant.every]);
  return grant.amount * BigInt(times);
}

/** One sentence per account with a ratio that sells a model below its cost. */
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
