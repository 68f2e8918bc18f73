/** Holds within scopes: the money and a share of each scope are held together, or neither is. */

import type { GatewayError } from '../../../core/contract/errors.ts';
import type { SharedBudget } from '../../common/domain/accounts.ts';
import { type Money, money, zero } from '../../common/domain/money.ts';
import type { Scope } from '../budgets/scope.ts';
import type { ScopeShare, Tallies } from '../budgets/tallies.ts';
import { firstHold } from './charge.ts';
import type { Hold } from './hold.ts';
import type { Reservations } from './reservations.ts';
import type { Terms } from './terms.ts';

/** At once where all scopes are known. 402 when one of them, or the budget that the call shares, does not cover it. */
export function holdWithin(
  tallies: Tallies,
  scopes: readonly Scope[],
  terms: Terms,
  reservations: Reservations,
): Hold | Promise<Hold> {
  const amount = firstHold(terms);
  if (terms.budget?.covers(amount) === false) throw terms.budget.refusal();
  const share = tallies.enter(scopes, amount);
  return share instanceof Promise
    ? share.then((later) => holdBy(later, terms, reservations))
    : holdBy(share, terms, reservations);
}

function holdBy(ofScopes: ScopeShare, terms: Terms, reservations: Reservations): Hold | Promise<Hold> {
  const share = terms.budget === undefined ? ofScopes : shareOf(ofScopes, terms.budget, terms);
  const releaseShare = (error: unknown): never => {
    share.end(zero, terms.at, terms.model);
    throw error;
  };
  try {
    const hold = reservations.create({ ...terms, cap: share });
    return hold instanceof Promise ? hold.catch(releaseShare) : hold;
  } catch (error) {
    return releaseShare(error);
  }
}

/** The scopes may have been waited for. */
function shareOf(ofScopes: ScopeShare, budget: SharedBudget, terms: Terms): ScopeShare {
  const amount = firstHold(terms);
  if (budget.covers(amount)) return new BudgetedShare(ofScopes, budget, amount);
  ofScopes.end(zero, terms.at, terms.model);
  throw budget.refusal();
}

/** A share of scopes and of a budget: what is held is held in all of them. */
class BudgetedShare implements ScopeShare {
  readonly #scopes: ScopeShare;
  readonly #budget: SharedBudget;
  #held: Money = zero;

  constructor(scopes: ScopeShare, budget: SharedBudget, amount: Money) {
    this.#scopes = scopes;
    this.#budget = budget;
    this.#hold(amount);
  }

  get size(): number {
    return this.#scopes.size;
  }

  has(key: string): boolean {
    return this.#scopes.has(key);
  }

  covers(amount: Money): boolean {
    return this.#budget.covers(amount) && this.#scopes.covers(amount);
  }

  grow(amount: Money): void {
    this.#hold(amount);
    this.#scopes.grow(amount);
  }

  async whenCovered(amount: Money, use: () => void): Promise<void> {
    if (!this.#budget.covers(amount)) throw this.#budget.refusal();
    await this.#scopes.whenCovered(amount, use);
  }

  prepare(amount: Money): void {
    this.#scopes.prepare(amount);
  }

  refusal(amount: Money): GatewayError {
    return this.#budget.covers(amount) ? this.#scopes.refusal(amount) : this.#budget.refusal();
  }

  end(cost: Money, at: number, model: string): void {
    this.#budget.end(this.#held, cost);
    this.#held = zero;
    this.#scopes.end(cost, at, model);
  }

  #hold(amount: Money): void {
    this.#budget.hold(amount);
    this.#held = money(this.#held + amount);
  }
}
