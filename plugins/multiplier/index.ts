/** The plan's ratio on the official price, or the default; no model may come below the minimum with its own ratio. */
import {
  definePlugin,
  type Endpoint,
  type Fault,
  type Host,
  type Notice,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { call } from '../common/domain/calls.ts';
import { catalog, model } from '../common/domain/models.ts';
import { formatRatio, isLess, one, type Ratio, timesRatio } from '../common/domain/money.ts';
import { ratio } from '../common/domain/money-schema.ts';
import { plan, plans } from '../common/domain/plans.ts';
import { doubtfulRatio, lowest, multipliers, priceRatio } from '../common/domain/price-ratio.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';

const ratioEvent = defineEvent('multiplier.ratio', (ratio: string) => `sold at the official price × ${ratio}`);

const config = z
  .strictObject({
    default: ratio().prefault(2).describe('Ratio for plans that state none.'),
    minimum: ratio().prefault(1).describe('No plan and no model may be sold below it; the gateway does not start.'),
    models: z
      .record(z.string().min(1), ratio())
      .prefault({})
      .meta({ deprecated: true })
      .describe('By model id: former place of `multiplier` at the model; without it 1.'),
  })
  .superRefine((section, context) => {
    if (!isLess(section.default, section.minimum)) return;
    context.addIssue({
      code: 'custom',
      path: ['default'],
      message: `is below the minimum of ${formatRatio(section.minimum)}`,
    });
  });

type Config = z.output<typeof config>;

export default definePlugin<Config>({
  name: 'multiplier',
  config,
  services: { optional: [catalog, plans], provides: [multipliers] },
  requires: [model],
  optional: [plan],
  sets: [priceRatio],

  setup(host: Host, configured: Config) {
    let settings = configured;
    let ratioOf = ratiosOf(settings);
    const bases = () => offersOf(settings, host).map(({ base }) => base);
    host.provide(multipliers, {
      lowest: (modelId) => ratioOf(lowest(bases()) ?? settings.default, modelId),
      of: (plan, modelId) => ratioOf(host.find(plans)?.terms(plan).multiplier ?? settings.default, modelId),
    });
    const instance: PluginInstance<Config> = {
      applies: (endpoint: Endpoint) => endpoint.setsOnOpen?.includes(call) ?? false,
      handle: ratioHandler(settings, host),
      notices: () => noticesOf(settings, host),
      problems: () => faultsOf(settings, host),
      prepare: (changed) => () => {
        settings = changed;
        ratioOf = ratiosOf(changed);
        instance.handle = ratioHandler(changed, host);
      },
    };
    return instance;
  },
});

/** The product of a base ratio and the model's own factor. */
function ratiosOf({ models }: Config): (base: Ratio, modelId: string) => Ratio {
  const factors = new Map(Object.entries(models));
  return (base, modelId) => {
    const factor = factors.get(modelId);
    return factor === undefined ? base : timesRatio(base, factor);
  };
}

function ratioHandler(settings: Config, host: Host): NonNullable<PluginInstance['handle']> {
  const ratioOf = ratiosOf(settings);
  return function multiplier(exchange, next) {
    const stated = ratioOf(exchange.find(plan)?.multiplier ?? settings.default, exchange.get(model).id);
    exchange.set(priceRatio, stated);
    recordEvent(exchange, host.clock.now(), ratioEvent, () => [formatRatio(stated)]);
    return next();
  };
}

/** The base ratio of each plan's accounts. Without plans all accounts pay the default. */
function offersOf({ default: fallback }: Config, host: Host): readonly { name: string; base: Ratio }[] {
  const offers = host.find(plans)?.list() ?? [];
  return offers.length === 0
    ? [{ name: 'default', base: fallback }]
    : offers.map(({ name, multiplier }) => ({ name, base: multiplier ?? fallback }));
}

/** Every plan with every model: a price below the minimum loses money with each call. */
function faultsOf(settings: Config, host: Host): Fault[] {
  const { minimum, models } = settings;
  const stated = new Map(Object.entries(models));
  const offered = host.find(catalog)?.list() ?? [];
  const listed = new Map(offered.map(({ id, multiplier }) => [id, multiplier]));
  const factors: { readonly path: string[]; readonly id?: string; readonly factor: Ratio }[] = [
    { path: ['minimum'], factor: one },
    ...Object.entries(models).map(([id, factor]) => ({ path: ['models', id], id, factor })),
    ...Array.from(listed).flatMap(([id, factor]) => (factor === undefined ? [] : [{ path: ['minimum'], id, factor }])),
    ...offered.flatMap(({ id, multiplier = one, batch }) => {
      const own = stated.get(id) ?? multiplier;
      return batch === undefined ? [] : [{ path: ['minimum'], id, factor: timesRatio(own, batch) }];
    }),
  ];
  const tooLow = offersOf(settings, host).flatMap(({ name, base }) =>
    factors.flatMap(({ path, id, factor }): Fault[] => {
      const whole = timesRatio(base, factor);
      if (!isLess(whole, minimum)) return [];
      const what = id === undefined ? `plan "${name}"` : `plan "${name}" with the model "${id}"`;
      const message = `${what} comes to ${formatRatio(whole)}, below the minimum of ${formatRatio(minimum)}: raise it, or lower the minimum`;
      return [{ path, message }];
    }),
  );
  return [...twiceStated(models, listed), ...tooLow];
}

/** Models with a ratio in both places: each place alone would mislead. */
function twiceStated(models: Config['models'], listed: ReadonlyMap<string, Ratio | undefined>): Fault[] {
  return Object.entries(models).flatMap(([id, factor]): Fault[] => {
    const own = listed.get(id);
    if (own === undefined) return [];
    const product = formatRatio(timesRatio(own, factor));
    const message = `the model has a multiplier of its own, ${formatRatio(own)}: write ${product}, their product, there and remove this one`;
    return [{ path: ['models', id], message }];
  });
}

function noticesOf({ default: fallback, models }: Config, host: Host): Notice[] {
  const notices: Notice[] = doubtfulRatio('multiplier.default', fallback).map((text) => ({ level: 'warning', text }));
  const withoutMultiplier = (host.find(plans)?.list() ?? []).filter(({ multiplier }) => multiplier === undefined);
  if (withoutMultiplier.length > 0) {
    const names = withoutMultiplier.map(({ name }) => name).join(', ');
    notices.push({
      level: 'info',
      text: `plans that state no multiplier are sold at ${formatRatio(fallback)}: ${names}`,
    });
  }
  const former = Object.keys(models);
  if (former.length > 0)
    notices.push({
      level: 'warning',
      text: `multiplier.models is the former place of a model's ratio: write it as models.NAME.multiplier (${former.join(', ')})`,
    });
  const missing = former.filter((id) => host.find(catalog)?.find(id)?.id !== id);
  if (missing.length > 0)
    notices.push({ level: 'warning', text: `multiplier.models names what is no model here: ${missing.join(', ')}` });
  return notices;
}
