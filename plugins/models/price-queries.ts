/** Price queries: the catalogue for people, and quotes for a usage. */

import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { PricedModel, PriceQueries } from '../common/domain/admin/prices.ts';
import { formulaOf } from '../common/domain/formula.ts';
import { type Catalog, type Model, type ModelTarget, protocolsOf } from '../common/domain/models.ts';
import { cost, formatRatio } from '../common/domain/money.ts';
import { ratioOf } from '../common/domain/price-ratio.ts';
import { type PriceBook, priceFor } from '../common/domain/prices.ts';
import type { Providers } from '../common/domain/upstreams.ts';
import type { ModelsConfig } from './config.ts';
import { charged } from './price-commands.ts';
import { exampleQuote, readRatio, usageOf } from './price-example.ts';

export interface PriceQueriesOptions {
  /** The current section. */
  readonly config: () => ModelsConfig;
  readonly catalog: Catalog;
  readonly providers: Providers;
  readonly clock: Clock;
}

/** Inputs of a model without declared inputs: every protocol carries these. */
const usualInputs = ['image', 'document'] as const;

export function openPriceQueries({ config, catalog, providers, clock }: PriceQueriesOptions): PriceQueries {
  const usable = ({ targets }: Model) => targets.filter(({ provider }) => providers.find(provider) !== undefined);
  return {
    list: () =>
      catalog.list().map((model): PricedModel => {
        const targets = usable(model);
        return {
          id: model.id,
          ownedBy: model.ownedBy,
          displayName: model.displayName,
          kind: model.kind,
          contextTokens: model.contextTokens,
          maxOutputTokens: model.maxOutputTokens,
          limits: model.limits,
          modalities: modalitiesOf(model, targets, providers),
          prices: model.prices,
          cost: costOf(model, targets),
          costIsListPrice: isListPrice(costOf(model, targets), config()[model.id]),
          multiplier: model.multiplier === undefined ? undefined : formatRatio(model.multiplier),
          source: config()[model.id]?.price_source,
          providers: [...new Set(targets.map(({ provider }) => provider))],
        };
      }),

    quote(name, counts, ratio) {
      const model = catalog.find(name);
      if (model === undefined) throw new GatewayError('not_found', 'There is no such model.', { field: 'model' });
      const at = clock.now();
      const usage = usageOf(counts);
      const priced = priceFor(model.prices ?? [], at, usage);
      if (priced === undefined)
        throw new GatewayError('not_found', 'This model has no price now.', {
          field: 'model',
          code: 'model_not_priced',
        });
      const factor = ratioOf({ plan: readRatio(ratio), model: model.multiplier });
      const counted = charged(usage, priced);
      const own = priceFor(costOf(model, usable(model)) ?? [], at, usage);
      return {
        cost: cost(counted, priced.price, factor),
        ownCost: own === undefined ? undefined : cost(charged(usage, own), own.price),
        formula: formulaOf(counted, priced.price, factor),
      };
    },

    example: (example) => exampleQuote(example, clock.now()),
  };
}

/** Whether no own cost is written. */
function isListPrice(cost: PriceBook | undefined, section: ModelsConfig[string] | undefined): boolean {
  return cost !== undefined && cost === section?.list_price;
}

/** The operator's cost at the first target. */
function costOf(model: Model, targets: readonly ModelTarget[]) {
  return targets[0]?.cost ?? model.cost;
}

/** Inputs beside text at any target, or the kind of output. */
function modalitiesOf(model: Model, targets: readonly ModelTarget[], providers: Providers): readonly string[] {
  if (model.kind !== 'chat') return ['text', model.kind];
  const inputs = targets.flatMap((target) => {
    const stated = target.traits?.inputs ?? model.traits?.inputs;
    if (stated !== undefined) return stated;
    const known = providers.find(target.provider);
    return protocolsOf(target, known).flatMap((protocol) => known?.dialect?.[protocol]?.inputs ?? usualInputs);
  });
  return ['text', ...new Set(inputs)];
}
