/** The console's contract: the service that lists prices and quotes requests. */

import { defineService } from '../../../../core/contract/contract.ts';
import type { ModelKind } from '../models.ts';
import type { Money } from '../money.ts';
import type { PriceBook } from '../prices.ts';
import type { ModelLimits } from '../traits.ts';

export interface PricedModel {
  readonly id: string;
  readonly ownedBy: string;
  readonly displayName: string;
  readonly kind: ModelKind;
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly limits?: ModelLimits | undefined;
  readonly modalities: readonly string[];
  /** undefined: not sold. */
  readonly prices: PriceBook | undefined;
  readonly cost: PriceBook | undefined;
  /** Whether `cost` is what the model's maker asks publicly, as the operator has written none. */
  readonly costIsListPrice: boolean;
  readonly multiplier: string | undefined;
  readonly source: string | undefined;
  readonly providers: readonly string[];
}

/** A usage by prices as a configuration writes them. */
export interface PriceExample {
  /** `'free'`, one version, or several; numbers may be texts. */
  readonly price: unknown;
  /** The operator's cost, written like a price; undefined: not known. */
  readonly cost: unknown;
  /** The model's own ratio. */
  readonly multiplier: string | undefined;
  /** The plan's ratio. */
  readonly ratio: string;
  readonly usage: Readonly<Record<string, number>>;
  /** A service beyond the standard one, such as `flex`. */
  readonly service: string | undefined;
}

export interface ExampleQuote {
  readonly cost: Money;
  readonly ownCost: Money | undefined;
  /** The whole ratio. */
  readonly ratio: string;
  /** The tiers that hold, such as `>200k + flex`; empty: the list price itself. */
  readonly tier: string;
  readonly formula: string;
}

export interface PriceQueries {
  list(): readonly PricedModel[];
  /** The price of a request now, as a formula; `ratio` on top of the model's own. */
  quote(
    model: string,
    usage: Readonly<Record<string, number>>,
    ratio: string,
  ): { readonly cost: Money; readonly ownCost: Money | undefined; readonly formula: string };
  /** The price of a request now by unsaved prices; throws invalid_request with the field at fault. */
  example(example: PriceExample): ExampleQuote;
}

export const priceQueries = defineService<PriceQueries>('price queries');
