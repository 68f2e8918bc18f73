/** The catalogue: the models of the configuration that somebody can serve, found by id or alias. Pure. */
import { createHash } from 'node:crypto';
import type { Notice } from '../../core/contract.ts';
import { type Price, usageClasses } from '../../core/usage.ts';
import type { Catalog, Model, Providers } from '../../core/vocabulary.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';

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

function toModel(id: string, section: ModelConfig): Model {
  return {
    id,
    ownedBy: section.owned_by,
    created: section.created,
    displayName: section.display_name ?? id,
    kind: section.kind,
    targets: section.targets.map(({ provider, model, weight, traits }) => ({
      provider,
      model: model ?? id,
      weight,
      ...(traits === undefined ? {} : { traits }),
    })),
    contextTokens: section.context,
    maxOutputTokens: section.max_output,
    price: section.price,
    priceVersion: priceVersion(section.price),
    ...(section.traits === undefined ? {} : { traits: section.traits }),
  };
}

/** Names a price by its content: the same price has the same version, whatever the order in which it was written. */
export function priceVersion(price: Price | undefined): string {
  if (price === undefined) return 'none';
  const text = usageClasses.map((name) => `${name}=${price[name] ?? ''}`).join(';');
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
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
