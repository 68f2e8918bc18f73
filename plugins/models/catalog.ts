/** The catalogue: configured models with a usable target, by id or alias. Pure. */
import type { Endpoint, Notice } from '../../core/contract/contract.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import type { Catalog, Model } from '../common/domain/models.ts';
import type { PlanTerms } from '../common/domain/plans.ts';
import type { Providers } from '../common/domain/upstreams.ts';
import type { ModelConfig, ModelsConfig } from './config.ts';
import { withListCosts } from './list-cost.ts';
import { reportPrices } from './price-report.ts';

/** Models without any usable target are left out. */
export function buildCatalog(config: ModelsConfig, providers: Providers): Catalog {
  const models: Model[] = [];
  const byName = new Map<string, Model>();
  for (const [id, section] of Object.entries(withListCosts(config, providers))) {
    const model = toModel(id, section);
    if (!model.targets.some((target) => providers.find(target.provider) !== undefined)) continue;
    models.push(model);
    for (const name of [id, ...section.aliases]) byName.set(name, model);
  }
  return { find: (id) => byName.get(id), list: () => models };
}

/** Models of a kind that some endpoint of the gateway accepts; others are not offered. */
export function offeredBy(endpoints: readonly Endpoint[], models: readonly Model[]): readonly Model[] {
  const kinds = new Set<string>(['chat', ...endpoints.flatMap(({ modelKind: takes }) => takes ?? [])]);
  return models.every(({ kind }) => kinds.has(kind)) ? models : models.filter(({ kind }) => kinds.has(kind));
}

function toModel(id: string, section: ModelConfig): Model {
  return {
    id,
    ownedBy: section.owned_by,
    created: section.created,
    displayName: section.display_name ?? id,
    kind: section.kind,
    targets: section.targets.map(({ provider, model, weight, speaks, headers, traits, cost, context }) => ({
      provider,
      model: model ?? id,
      weight,
      ...(speaks === undefined ? {} : { speaks }),
      ...(headers === undefined ? {} : { headers }),
      ...(traits === undefined ? {} : { traits }),
      ...(cost === undefined ? {} : { cost }),
      ...(context === undefined ? {} : { contextTokens: context }),
    })),
    contextTokens: section.context,
    maxOutputTokens: section.max_output,
    ...limitsOf(section),
    prices: section.price,
    ...(section.cost === undefined ? {} : { cost: section.cost }),
    ...(section.multiplier === undefined ? {} : { multiplier: section.multiplier }),
    ...(section.batch === undefined ? {} : { batch: section.batch }),
    ...(section.traits === undefined ? {} : { traits: section.traits }),
    ...(section.strategy === undefined ? {} : { strategy: section.strategy }),
    ...(section.hedge === undefined ? {} : { hedgeAfterMs: section.hedge }),
    ...(section.instead === undefined ? {} : { instead: section.instead }),
  };
}

function limitsOf({ limits, traits }: ModelConfig): Pick<Model, 'limits'> {
  const resolutions = limits?.resolutions ?? traits?.resolutions;
  const needsImage = traits?.needs_image === true;
  if (limits === undefined && resolutions === undefined && !needsImage) return {};
  return { limits: { ...limits, resolutions, ...(needsImage ? { needsImage } : {}) } };
}

/** Notices of `check`: one sentence per subject, however many models it concerns. */
export function catalogNotices(config: ModelsConfig, providers: Providers): Notice[] {
  const entries = Object.entries(config);
  const idsOf = (isMeant: (section: ModelConfig) => boolean) =>
    entries.flatMap(([id, section]) => (isMeant(section) ? [id] : []));
  const isUsable = ({ provider }: { provider: string }) => providers.find(provider) !== undefined;
  const named = new Set(entries.flatMap(([, section]) => section.targets.map(({ provider }) => provider)));
  const configured = providers.configured?.();
  const unusable = [...named].filter((provider) => !isUsable({ provider }));
  const notices: Notice[] = [];
  const addNotice = (level: Notice['level'], sentence: string, names: readonly string[]) => {
    if (names.length > 0) notices.push({ level, text: `${sentence}: ${shortened(names)}`, path: [names[0]!] });
  };
  addNotice(
    'warning',
    'models without a price are not sold',
    idsOf(({ price }) => price === undefined),
  );
  const leftOut = entries.filter(([, { targets }]) => !targets.some(isUsable));
  if (leftOut.length > 0)
    notices.push({
      level: 'warning',
      text: `models without any usable target are left out: ${byVendor(leftOut)}`,
      path: [leftOut[0]![0]],
    });
  addNotice(
    'warning',
    'models without `created`: clients see that they came out in 1970',
    idsOf(({ created }) => created === 0),
  );
  addNotice(
    'info',
    'models with an example price; check it before you sell them',
    idsOf((it) => it.price_source === 'example'),
  );
  if (configured === undefined)
    addNotice('info', 'targets name providers that are not configured or have no key', unusable);
  // Providers without a key are reported where they are configured.
  for (const name of configured === undefined ? [] : unusable.filter((one) => !configured.has(one)))
    notices.push(
      unknownProvider(
        name,
        idsOf(({ targets }) => targets.some(({ provider }) => provider === name)),
        configured!.keys(),
      ),
    );
  return notices;
}

const fewNames = 8;

/** The first names, and how many there are beside them. */
function shortened(names: readonly string[], shown = fewNames): string {
  const rest = names.length - shown;
  return rest <= 1 ? names.join(', ') : `${names.slice(0, shown).join(', ')} and ${rest} more`;
}

/** A few by their ids; many as `12 of one (a, b, c and 9 more), x of another`, under the provider of their first target. */
function byVendor(models: readonly (readonly [id: string, section: ModelConfig])[]): string {
  if (models.length <= fewNames) return models.map(([id]) => id).join(', ');
  const groups = Map.groupBy(models, ([, { targets }]) => targets[0]!.provider);
  const sentences = [...groups].map(([provider, list]) => {
    const names = list.map(([id]) => id);
    return names.length === 1
      ? `${names[0]} of ${provider}`
      : `${names.length} of ${provider} (${shortened(names, 3)})`;
  });
  return sentences.join(', ');
}

function unknownProvider(name: string, models: readonly string[], configured: Iterable<string>): Notice {
  const text = `there is no provider "${name}", which ${listed(models)} ${models.length === 1 ? 'has' : 'have'} as a target${didYouMean(name, configured)}`;
  return { level: 'warning', text, path: [models[0]!, 'targets'] };
}

/** Models that plans allow and the catalogue does not have. */
export function planNotices(config: ModelsConfig, plans: readonly PlanTerms[]): Notice[] {
  const known = new Set(Object.entries(config).flatMap(([id, { aliases }]) => [id, ...aliases]));
  const byModel = new Map<string, string[]>();
  for (const { name, models = [] } of plans)
    for (const model of models) if (!known.has(model)) byModel.set(model, [...(byModel.get(model) ?? []), `"${name}"`]);
  return [...byModel].map(([model, names]) => ({
    level: 'warning',
    text: `there is no model "${model}", which ${names.length === 1 ? 'the plan' : 'the plans'} ${listed(names)} ${names.length === 1 ? 'allows' : 'allow'}${didYouMean(model, known)}`,
  }));
}

const mostListed = 5;

function listed(names: readonly string[]): string {
  if (names.length > mostListed)
    return `${names.slice(0, mostListed - 1).join(', ')} and ${names.length - mostListed + 1} more`;
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

const soonMs = 30 * 86_400_000;

/** Prices with gaps, or that change soon. */
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
