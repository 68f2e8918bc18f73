/** The price desk: the catalogue as people look at it, and what a request would cost. */
import type { Clock } from '../../core/contract.ts';
import type { PriceDesk, PricedModel } from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { formulaOf } from '../../core/formula.ts';
import { cost, one, parseRatio, type Ratio, timesExactly, timesRatio } from '../../core/money.ts';
import { priceFor } from '../../core/prices.ts';
import { readCount, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import type { Catalog, Model, ModelTarget, Providers } from '../../core/vocabulary.ts';
import type { ModelsConfig } from './config.ts';
import { charged } from './price-commands.ts';

export interface DeskParts {
  /** The section as it holds at the moment. */
  readonly config: () => ModelsConfig;
  readonly catalog: Catalog;
  readonly providers: Providers;
  readonly clock: Clock;
}

/** What every protocol carries to a model of which nobody states what it takes. */
const usualInputs = ['image', 'document'] as const;

export function openDesk({ config, catalog, providers, clock }: DeskParts): PriceDesk {
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
          modalities: modalitiesOf(model, targets, providers),
          prices: model.prices,
          cost: costOf(model, targets),
          multiplier: model.multiplier === undefined ? undefined : ratioText(model.multiplier),
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
      const factor = timesRatio(ratioOf(ratio), model.multiplier ?? one);
      const counted = charged(usage, priced);
      const own = priceFor(costOf(model, usable(model)) ?? [], at, usage);
      return {
        cost: cost(counted, priced.price, factor),
        ownCost: own === undefined ? undefined : cost(charged(usage, own), own.price),
        formula: formulaOf(counted, priced.price, factor),
      };
    },
  };
}

/** What the operator pays where calls go first. */
function costOf(model: Model, targets: readonly ModelTarget[]) {
  return targets[0]?.cost ?? model.cost;
}

/** What it takes beside text at any of its targets, or what it makes. */
function modalitiesOf(model: Model, targets: readonly ModelTarget[], providers: Providers): readonly string[] {
  if (model.kind !== 'chat') return ['text', model.kind];
  const inputs = targets.flatMap(({ provider, traits }) => {
    const stated = traits?.inputs ?? model.traits?.inputs;
    if (stated !== undefined) return stated;
    const known = providers.find(provider);
    return Object.keys(known?.speaks ?? {}).flatMap((protocol) => known?.dialect?.[protocol]?.inputs ?? usualInputs);
  });
  return ['text', ...new Set(inputs)];
}

function usageOf(counts: Readonly<Record<string, number>>): Usage {
  const usage: { [name: string]: number } = {};
  for (const [name, value] of Object.entries(counts)) {
    const count = readCount(value);
    if (!usageClasses.includes(name as UsageClass) || count === undefined)
      throw new GatewayError('invalid_request', `"${name.slice(0, 40)}" is not a class with a whole number.`, {
        field: 'usage',
      });
    usage[name] = count;
  }
  return usage;
}

function ratioOf(text: string): Ratio {
  try {
    return parseRatio(text);
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'ratio' });
  }
}

/** As an operator writes it, with six decimals at most; as a fraction where it has more. */
function ratioText(ratio: Ratio): string {
  const millionths = timesExactly(1_000_000n, ratio);
  if (millionths === undefined) return `${ratio.numerator}/${ratio.denominator}`;
  const digits = millionths.toString().padStart(7, '0');
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
}
