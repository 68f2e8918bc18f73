/** How far below zero an account can get: computed from the configuration, so that an operator knows it beforehand. Pure. */
import type { Notice } from '../../core/contract.ts';
import { cost, formatUsd, type Money, one, unitPrice } from '../../core/money.ts';
import type { Model, PlanTerms } from '../../core/vocabulary.ts';

export interface OverdraftTerms {
  /** Output tokens that a hold covers at most. */
  readonly holdTokens: number;
  readonly models: readonly Model[];
  readonly plans: readonly PlanTerms[];
  /** Processes that share the accounts: each of them counts the calls that run at once by itself. */
  readonly nodes?: number;
}

/**
 * A streamed answer extends its hold as it goes and is ended when the balance is used up; a whole answer shows its length
 * only at its end. So each running call can cost what its model's longest answer costs beyond the hold, and an account
 * can get that far below zero as many times as its plan lets calls run at once.
 */
export function overdraftNotices(terms: OverdraftTerms): Notice[] {
  const { nodes = 1 } = terms;
  const worst = worstModel(terms);
  if (worst === undefined) return [];
  return terms.plans.map((plan): Notice => {
    const { concurrency } = plan.limits;
    const perCall = beyondHold(worst, terms.holdTokens, plan);
    if (concurrency === undefined) {
      const text = `plan "${plan.name}": an account can get ${formatUsd(perCall)} USD below zero for each call that runs at once (${worst.id}); the plan sets no limit to them`;
      return { level: 'warning', text };
    }
    const bound = formatUsd(perCall * BigInt(concurrency) * BigInt(nodes));
    const calls = `${concurrency} calls of ${worst.id}${nodes > 1 ? ` on each of ${nodes} processes` : ''}`;
    return {
      level: 'info',
      text: `plan "${plan.name}": an account can get at most ${bound} USD below zero (${calls})`,
    };
  });
}

function worstModel({ models, holdTokens }: OverdraftTerms): Model | undefined {
  let worst: Model | undefined;
  for (const model of models) {
    if (model.price === undefined) continue;
    if (worst === undefined || beyondHold(model, holdTokens) > beyondHold(worst, holdTokens)) worst = model;
  }
  return worst;
}

/** What the longest answer costs beyond the tokens that the hold covers. A model without a known longest answer counts with its context. */
function beyondHold(model: Model, holdTokens: number, plan?: PlanTerms): Money {
  const longest = model.maxOutputTokens ?? model.contextTokens ?? holdTokens;
  const price = model.price ?? {};
  const dearest = (['output', 'reasoning', 'output_audio', 'output_image'] as const)
    .map((name) => unitPrice(price, name))
    .reduce((left, right) => (left > right ? left : right));
  const ratio = plan?.multiplier ?? one;
  return cost({ output: Math.max(0, longest - holdTokens) }, { output: dearest }, ratio);
}
