/** The terms of a hold: everything that the price of a request depends on. Types. */

import type { Model } from '../../common/domain/models.ts';
import type { PieceBounds, Ratio } from '../../common/domain/money.ts';
import type { PriceContext, PriceVersion } from '../../common/domain/prices.ts';
import type { CallPlan } from '../grants/terms.ts';
import type { CapShare } from './caps.ts';

/** Everything that the price of a request depends on, fixed when the hold is taken. */
export interface Terms {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
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
  /** Its share of the key's spend cap, if any. */
  readonly cap?: CapShare;
}

/** Pieces that a hold covers. */
export type Allowance = PieceBounds;
