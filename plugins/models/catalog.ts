/** The catalogue: the models of the configuration that somebody can serve, found by id or alias. Pure. */
import type { Endpoint, Notice } from '../../core/contract.ts';
import type { Catalog, Model, Providers } from '../../core/vocabulary.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';
import { reportPrices } from './price-report.ts';

/** Models without any usable target are left out. */
export function buildCatalog(config: ModelsConfig, providers: Providers): Catalog {
  const models: Model[] = [];
  const byName = new Map<string, Model>();
  for (const [id, section] of Object.entries(config)) {
    const model = toModel(id, section);
    if (!model.targets.some((target) => providers.find(target.provider) !== undefined)) continue;
    models.push(model);
    for (const name of [id, ...section.aliases]) byName.set(name, model);
  }
  return { find: (id) => byName.get(id), list: () => models };
}

/** Of these models those that some endpoint of the gateway takes: what nobody can ask for is not on offer. */
export function takenBy(endpoints: readonly Endpoint[], models: readonly Model[]): readonly Model[] {
  const kinds = new Set<string>(['chat', ...endpoints.flatMap(({ takes }) => takes ?? [])]);
  return models.every(({ kind }) => kinds.has(kind)) ? models : models.filter(({ kind }) => kinds.has(kind));
}

function toModel(id: string, section: ModelConfig): Model {
  return {
    id,
    ownedBy: section.owned_by,
    created: section.created,
    displayName: section.display_name ?? id,
    kind: section.kind,
    targets: section.targets.map(({ provider, model, weight, traits, cost }) => ({
      provider,
      model: model ?? id,
      weight,
      ...(traits === undefined ? {} : { traits }),
      ...(cost === undefined ? {} : { cost }),
    })),
    contextTokens: section.context,
    maxOutputTokens: section.max_output,
    prices: section.price,
    ...(section.cost === undefined ? {} : { cost: section.cost }),
    ...(section.multiplier === undefined ? {} : { multiplier: section.multiplier }),
    ...(section.traits === undefined ? {} : { traits: section.traits }),
    ...(section.choose === undefined ? {} : { choose: section.choose }),
    ...(section.hedge === undefined ? {} : { hedgeAfterMs: section.hedge }),
  };
}

/** What `check` tells: one sentence for each matter, however many models it concerns. */
export function catalogNotices(config: ModelsConfig, providers: Providers): Notice[] {
  const entries = Object.entries(config);
  const usable = (section: ModelConfig) =>
    section.targets.some(({ provider }) => providers.find(provider) !== undefined);
  const orphans = entries.filter(([, section]) => !usable(section)).map(([id]) => id);
  const unpriced = entries.filter(([, section]) => section.price === undefined).map(([id]) => id);
  const examples = entries.filter(([, section]) => section.price_source === 'example').map(([id]) => id);
  const named = new Set(entries.flatMap(([, section]) => section.targets.map((target) => target.provider)));
  const missing = [...named].filter((name) => providers.find(name) === undefined);
  const notices: Notice[] = [];
  const tell = (level: Notice['level'], sentence: string, names: readonly string[]) => {
    if (names.length > 0) notices.push({ level, text: `${sentence}: ${names.join(', ')}` });
  };
  tell('warning', 'models without a price are not sold', unpriced);
  tell('warning', 'models without any usable target are left out', orphans);
  tell('info', 'models with an example price; check it before you sell them', examples);
  tell('info', 'targets name providers that are not configured or have no key', missing);
  return notices;
}

const soonMs = 30 * 86_400_000;

/** Prices that do not hold throughout, or that change soon. */
export function priceNotices(config: ModelsConfig, at: number): Notice[] {
  const { gaps, endings } = reportPrices(config, undefined, at, soonMs);
  return [
    ...gaps.map(({ model, from }): Notice => ({ level: 'warning', text: `${model} has no price from ${from} on` })),
    ...endings.map(({ model, version, at: end, next }): Notice => {
      return {
        level: 'info',
        text: `the price ${version} of ${model} ends at ${end}, then ${next ?? 'it is not sold'}`,
      };
    }),
  ];
}
