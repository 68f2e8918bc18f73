/** The terms of a hold: everything that the price of a request depends on. Pure. */

import type { Attribution, SharedBudget } from '../../common/domain/accounts.ts';
import type { Model } from '../../common/domain/models.ts';
import type { PieceBounds, Ratio } from '../../common/domain/money.ts';
import type { PriceContext, PriceVersion } from '../../common/domain/prices.ts';
import type { ScopeShare } from '../budgets/tallies.ts';
import type { CallPlan } from '../ledger/terms.ts';

/** Everything that the price of a request depends on, fixed when the hold is taken. */
export interface Terms {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly attribution?: Attribution | undefined;
  /** The tags of the call as text; absent: none. */
  readonly tags?: string | undefined;
  readonly model: string;
  readonly prices: PriceVersion;
  /** The time and the call's own values that select price tiers. */
  readonly at: number;
  readonly context: PriceContext;
  readonly ratio: Ratio;
  /** Estimated prompt tokens. */
  readonly inputTokens: number;
  /** Output tokens that the first hold covers. */
  readonly outputTokens: number;
  /** Pieces that it covers. */
  readonly allowance: Allowance;
  /** The catalogue's entry, for the operator's cost; undefined if it was removed from the catalogue. */
  readonly entry: Model | undefined;
  /** The plan that the call is made on; it may grant money. */
  readonly plan?: CallPlan | undefined;
  /** What it shares with other calls of its run; absent: nothing. */
  readonly budget?: SharedBudget | undefined;
  /** Its share of the scopes that it lies in, if any. */
  readonly cap?: ScopeShare;
  /** Terms of other models that may serve the call; the hold covers each of them. */
  readonly others?: readonly Terms[];
  /** The model that was asked before this one, and the number of its last attempt. */
  readonly before?: { readonly terms: Terms; readonly attempts: number };
}

/** The terms of the model that an attempt asked. */
export function termsOfAttempt<T extends Pick<Terms, 'before'>>(terms: T, number: number): T | Terms {
  const { before } = terms;
  return before === undefined || number > before.attempts ? terms : termsOfAttempt(before.terms, number);
}

/** Pieces that a hold covers. */
export type Allowance = PieceBounds;
