/** The lowest balance an account can reach, computed from the configuration for the operator. */
import type { Endpoint, Host, Notice } from '../../../core/contract/contract.ts';
import { call } from '../../common/domain/calls.ts';
import { catalog, type Model } from '../../common/domain/models.ts';
import { cost, formatUsd, type Money, unitPrice } from '../../common/domain/money.ts';
import { type PlanTerms, plans, type RateLimits, rateLimits } from '../../common/domain/plans.ts';
import { type Multipliers, multipliers, planRatio, ratioOf } from '../../common/domain/price-ratio.ts';
import type { HoldRules } from './call-terms.ts';

export interface OverdraftTerms {
  readonly rules: HoldRules;
  /** Prices that end before this time are ignored. */
  readonly at: number;
  readonly models: readonly Model[];
  /** Resolves any name of a model to its id: a plan may allow a model by an alias. */
  readonly idOf?: (name: string) => string | undefined;
  readonly plans: readonly PlanTerms[];
  /** The multiplier service, if configured; otherwise the plans' own ratios apply. */
  readonly multipliers?: Pick<Multipliers, 'of'> | undefined;
  /** Processes that share the accounts: each counts concurrent calls on its own. */
  readonly nodes?: number;
  /** Operations on which calls are charged but not limited; `all`: no limit is enforced anywhere. */
  readonly unlimited?: 'all' | readonly string[];
}

/**
 * A streamed answer extends its hold as it runs and is ended when the balance is used up; a non-streamed answer
 * shows its length only at its end. So each running call can exceed its hold by the cost of its model's longest
 * answer (of several choices all but one are held in full), and an account can be overdrawn by that amount times
 * its plan's concurrency limit, unless holds cover whole answers. An account's own ratio is not included.
 */
export function overdraftNotices(terms: OverdraftTerms): Notice[] {
  const { nodes = 1 } = terms;
  if (!terms.models.some(isSold)) return [];
  if (terms.rules.nonStreaming === 'max') {
    const text =
      'holds cover whole answers: no account gets below zero by the length of an answer that is not streamed';
    return [{ level: 'info', text }];
  }
  return terms.plans.flatMap((plan): Notice[] => {
    const worst = worstOf(terms, plan);
    if (worst === undefined || worst.amount === 0n) return [];
    const { concurrency } = plan.limits;
    const reason = unboundedBecause(concurrency, terms.unlimited);
    if (concurrency === undefined || reason !== undefined) {
      const text = `plan "${plan.name}": an account can get ${formatUsd(worst.amount)} USD below zero for each call that runs at once (${worst.id}); ${reason}`;
      return [{ level: 'warning', text }];
    }
    const bound = formatUsd(worst.amount * BigInt(concurrency) * BigInt(nodes));
    const calls = `${concurrency} calls of ${worst.id}${nodes > 1 ? ` on each of ${nodes} processes` : ''}`;
    return [
      { level: 'info', text: `plan "${plan.name}": an account can get at most ${bound} USD below zero (${calls})` },
    ];
  });
}

/** Why concurrency is unlimited; undefined when an enforced limit exists. */
function unboundedBecause(
  concurrency: number | undefined,
  unlimited: OverdraftTerms['unlimited'] = [],
): string | undefined {
  if (concurrency === undefined) return 'the plan sets no limit to them';
  if (unlimited === 'all') return `the plan's limit of ${concurrency} is not enforced: add "rate-limit" to the list`;
  if (unlimited.length === 0) return undefined;
  return `the plan's limit of ${concurrency} is not enforced on ${unlimited.join(', ')}: add them to "rate-limit.endpoints"`;
}

/** The charged operations without an enforced limit. Deferred work is held in full and so is not included. */
function unlimitedOperations(
  endpoints: readonly Endpoint[],
  limits: Pick<RateLimits, 'covers'> | undefined,
): 'all' | readonly string[] {
  if (limits === undefined) return 'all';
  const charged = endpoints.filter((endpoint) => {
    const { charges, handle, deferred: later, setsOnOpen: keys } = endpoint;
    return charges !== false && handle === undefined && later !== true && keys?.includes(call) === true;
  });
  return [...new Set(charged.filter((endpoint) => !limits.covers(endpoint)).map(({ operation }) => operation))];
}

function isSold({ prices }: Model): boolean {
  return prices !== undefined;
}

/** The model of the plan with the largest possible cost beyond its hold. */
function worstOf(terms: OverdraftTerms, plan: PlanTerms): { id: string; amount: Money } | undefined {
  const { models, idOf } = terms;
  const allowed = plan.models && new Set(Array.from(plan.models, (name) => idOf?.(name) ?? name));
  let worst: { id: string; amount: Money } | undefined;
  for (const model of models) {
    if (!isSold(model) || allowed?.has(model.id) === false) continue;
    const amount = beyondHold(model, terms, plan);
    if (worst === undefined || amount > worst.amount) worst = { id: model.id, amount };
  }
  return worst;
}

/**
 * The cost of the longest answer beyond the tokens that the hold covers, in the most expensive tier of any current
 * or future price. A model without a known longest answer counts with its context length.
 */
function beyondHold(model: Model, terms: OverdraftTerms, plan: PlanTerms): Money {
  const { at, multipliers } = terms;
  const { stepTokens } = terms.rules;
  const longest = model.maxOutputTokens ?? model.contextTokens ?? stepTokens;
  const classes = model.traits?.text_only === true ? textClasses : answerClasses;
  const output = (model.prices ?? [])
    .filter(({ until }) => until > at)
    .flatMap((version) => version.all().flatMap(({ price }) => classes.map((name) => unitPrice(price, name))))
    .reduce((left, right) => (left > right ? left : right), 0n);
  const ofPlan = planRatio({ multipliers, plans: { terms: () => plan } }, plan.name);
  const ratio = ratioOf({ plan: ofPlan, model: model.multiplier });
  return cost({ output: Math.max(0, longest - stepTokens) }, { output }, ratio);
}

const textClasses = ['output', 'reasoning'] as const;
const answerClasses = ['output', 'reasoning', 'output_audio', 'output_image'] as const;

/** By the services of this gateway. */
export function noticesOfOverdraft(host: Host, rules: HoldRules, nodes: number): Notice[] {
  return overdraftNotices({
    rules,
    at: host.clock.now(),
    models: host.find(catalog)?.list() ?? [],
    idOf: (name) => host.find(catalog)?.find(name)?.id,
    plans: host.find(plans)?.list() ?? [],
    multipliers: host.find(multipliers),
    nodes,
    unlimited: unlimitedOperations(host.endpoints(), host.find(rateLimits)),
  });
}
