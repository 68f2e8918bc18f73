/** The service that lists prices and quotes requests. */

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
  readonly multiplier: string | undefined;
  readonly source: string | undefined;
  readonly providers: readonly string[];
}

export interface PriceQueries {
  list(): readonly PricedModel[];
  /** What a request would cost now, as a formula; `ratio` on top of the model's own. */
  quote(
    model: string,
    usage: Readonly<Record<string, number>>,
    ratio: string,
  ): { readonly cost: Money; readonly ownCost: Money | undefined; readonly formula: string };
}

export const priceQueries = defineService<PriceQueries>('price queries');
