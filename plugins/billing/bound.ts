/** How far below zero an account can get: computed from the configuration, so that an operator knows it beforehand. Pure. */
import type { Notice } from '../../core/contract.ts';
import { cost, formatUsd, type Money, one, timesRatio, unitPrice } from '../../core/money.ts';
import type { Model, Multipliers, PlanTerms } from '../../core/vocabulary.ts';
import type { HoldRules } from './call-terms.ts';

export interface OverdraftTerms {
  readonly rules: HoldRules;
  /** Prices that end before this time count no more. */
  readonly at: number;
  readonly models: readonly Model[];
  /** A model's id for any of its names: a plan may allow it by an alias. */
  readonly idOf?: (name: string) => string | undefined;
  readonly plans: readonly PlanTerms[];
  /** Where somebody multiplies by plan and model; else the plans' own ratios count. */
  readonly multipliers?: Pick<Multipliers, 'of'> | undefined;
  /** Processes that share the accounts: each of them counts the calls that run at once by itself. */
  readonly nodes?: number;
}

/**
 * A streamed answer extends its hold as it goes and is ended when the balance is used up; a whole answer shows its length
 * only at its end. So each running call can cost what its model's longest answer costs beyond the hold (of several answers
 * all but one are held in full), and an account can get that far below zero as many times as its plan lets calls run at
 * once, unless holds cover whole answers. An account's own ratio is not counted.
 */
export function overdraftNotices(terms: OverdraftTerms): Notice[] {
  const { nodes = 1 } = terms;
  if (!terms.models.some(isSold)) return [];
  if (terms.rules.wholeAnswers === 'bound') {
    const text =
      'holds cover whole answers: no account gets below zero by the length of an answer that is not streamed';
    return [{ level: 'info', text }];
  }
  return terms.plans.flatMap((plan): Notice[] => {
    const worst = worstOf(terms, plan);
    if (worst === undefined) return [];
    const { concurrency } = plan.limits;
    if (concurrency === undefined) {
      const text = `plan "${plan.name}": an account can get ${formatUsd(worst.amount)} USD below zero for each call that runs at once (${worst.id}); the plan sets no limit to them`;
      return [{ level: 'warning', text }];
    }
    const bound = formatUsd(worst.amount * BigInt(concurrency) * BigInt(nodes));
    const calls = `${concurrency} calls of ${worst.id}${nodes > 1 ? ` on each of ${nodes} processes` : ''}`;
    return [
      { level: 'info', text: `plan "${plan.name}": an account can get at most ${bound} USD below zero (${calls})` },
    ];
  });
}

function isSold({ prices }: Model): boolean {
  return prices !== undefined;
}

/** Of the models that the plan allows the one whose longest answer costs most beyond its hold. */
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
 * What the longest answer costs beyond the tokens that the hold covers, in the dearest tier of any price that holds now or
 * will. A model without a known longest answer counts with its context.
 */
function beyondHold(model: Model, terms: OverdraftTerms, plan: PlanTerms): Money {
  const { at, multipliers } = terms;
  const { stepTokens } = terms.rules;
  const longest = model.maxOutputTokens ?? model.contextTokens ?? stepTokens;
  const output = (model.prices ?? [])
    .filter(({ until }) => until > at)
    .flatMap((version) => version.all().flatMap(({ price }) => answerClasses.map((name) => unitPrice(price, name))))
    .reduce((left, right) => (left > right ? left : right), 0n);
  const ofPlan = multipliers?.of?.(plan.name, model.id) ?? plan.multiplier ?? one;
  const ratio = timesRatio(ofPlan, model.multiplier ?? one);
  return cost({ output: Math.max(0, longest - stepTokens) }, { output }, ratio);
}

const answerClasses = ['output', 'reasoning', 'output_audio', 'output_image'] as const;
