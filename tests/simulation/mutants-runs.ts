/** Faults in the budgets that the calls of a run share. */
import type { LiveExchange } from '../../core/http/exchange.ts';
import { type Caller, caller, type SharedBudget } from '../../plugins/common/domain/accounts.ts';
import { zero } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';

/** Changes the budget of each call that has one. */
function budgeting(exchange: LiveExchange, change: (budget: SharedBudget) => Partial<SharedBudget>): void {
  const set = exchange.set.bind(exchange);
  exchange.set = (fact, value) => {
    const { budget } = (fact as unknown) === caller ? (value as Caller) : { budget: undefined };
    if (budget === undefined) return set(fact, value);
    const plain: SharedBudget = {
      covers: (amount) => budget.covers(amount),
      hold: (amount) => budget.hold(amount),
      end: (held, cost) => budget.end(held, cost),
      refusal: () => budget.refusal(),
    };
    return set(fact, { ...value, budget: { ...plain, ...change(budget) } });
  };
}

export const runMutants: Readonly<Record<string, Mutant>> = {
  'run-first-hold-alone': {
    summary: "a run's budget bounds what its calls hold at first, and not what they hold as they grow",
    exchange: (exchange) =>
      budgeting(exchange, (budget) => {
        let isFirst = true;
        return {
          covers: (amount) => !isFirst || budget.covers(amount),
          hold: (amount) => {
            isFirst = false;
            budget.hold(amount);
          },
        };
      }),
  },
  'run-forgets-costs': {
    summary: "a run's budget has back what an ended call has held, whatever that has cost",
    exchange: (exchange) => budgeting(exchange, (budget) => ({ end: (held) => budget.end(held, zero) })),
  },
};
