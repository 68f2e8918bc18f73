/** How far below zero an account can get: computed from the configuration, so that an operator knows it beforehand. Pure. */
import type { Notice } from '../../core/contract.ts';
import { cost, formatUsd, type Money, one, timesRatio, unitPrice } from '../../core/money.ts';
import type { Model, PlanTerms } from '../../core/vocabulary.ts';
import type { HoldRules } from './call-terms.ts';

export interface OverdraftTerms {
  readonly rules: HoldRules;
  /** Prices that end before this time count no more. */
  readonly at: number;
  readonly models: readonly Model[];
  readonly plans: readonly PlanTerms[];
}

/**
 * A streamed answer extends its hold as it goes and is ended when the balance is used up; a whole answer shows its length
 * only at its end. So each running call can cost what its model's longest answer costs beyond the hold, and an account
 * can get that far below zero as many times as its plan lets calls run at once, unless holds cover whole answers.
 */
export function overdraftNotices(terms: OverdraftTerms): Notice[] {
  const worst = worstModel(terms);
  if (worst === undefined) return [];
  if (terms.rules.wholeAnswers === 'bound') {
    const text =
      'holds cover whole answers: no account gets below zero by the length of an answer that is not streamed';
    return [{ level: 'info', text }];
  }
  return terms.plans.map((plan): Notice => {
    const { concurrency } = plan.limits;
    const perCall = beyondHold(worst, terms, plan);
    if (concurrency === undefined) {
      const text = `plan "${plan.name}": an account can get ${formatUsd(perCall)} USD below zero for each call that runs at once (${worst.id}); the plan sets no limit to them`;
      return { level: 'warning', text };
    }
    const bound = formatUsd(perCall * BigInt(concurrency));
    return {
      level: 'info',
      text: `plan "${plan.name}": an account can get at most ${bound} USD below zero (${concurrency} calls of ${worst.id})`,
    };
  });
}

function worstModel(terms: OverdraftTerms): Model | undefined {
  let worst: Model | undefined;
  for (const model of terms.models) {
    if (model.prices === undefined) continue;
    if (worst === undefined || beyondHold(model, terms) > beyondHold(worst, terms)) worst = model;
  }
  return worst;
}

/**
 * What the longest answer costs beyond the tokens that the hold covers, in the dearest tier of any price that holds now or
 * will. A model without a known longest answer counts with its context.
 */
function beyondHold(model: Model, { rules: { stepTokens }, at }: OverdraftTerms, plan?: PlanTerms): Money {
  const longest = model.maxOutputTokens ?? model.contextTokens ?? stepTokens;
  const output = (model.prices ?? [])
    .filter(({ until }) => until > at)
    .flatMap((version) => version.all().flatMap(({ price }) => answerClasses.map((name) => unitPrice(price, name))))
    .reduce((left, right) => (left > right ? left : right), 0n);
  const ratio = timesRatio(plan?.multiplier ?? one, model.multiplier ?? one);
  return cost({ output: Math.max(0, longest - stepTokens) }, { output }, ratio);
}

const answerClasses = ['output', 'reasoning', 'output_audio', 'output_image'] as const;
