/** The ratio on the official price: the plan's or the default, times the model's, exact, stated before money is held. */
import { definePlugin, type Endpoint, type Fault, type Host, type Notice, type Part } from '../../core/contract.ts';
import { isLess, type Ratio } from '../../core/money.ts';
import { ratio, z } from '../../core/schema.ts';
import { call, catalog, defineLine, model, multipliers, plan, plans, priceRatio, tell } from '../../core/vocabulary.ts';
import { lower, product, written } from './ratio.ts';

const ratioLine = defineLine('multiplier.ratio', (ratio: string) => `sold at the official price × ${ratio}`);

const config = z
  .strictObject({
    default: ratio().prefault(2).describe('Ratio for plans that state none.'),
    minimum: ratio().prefault(1).describe('No plan and no model may be sold below it; the gateway does not start.'),
    models: z
      .record(z.string().min(1), ratio())
      .prefault({})
      .describe("By model id: what the plan's ratio is multiplied by; without it 1."),
  })
  .superRefine((section, context) => {
    if (!isLess(section.default, section.minimum)) return;
    context.addIssue({
      code: 'custom',
      path: ['default'],
      message: `is below the minimum of ${written(section.minimum)}`,
    });
  });

type Config = z.output<typeof config>;

export default definePlugin<Config>({
  name: 'multiplier',
  config,
  uses: [catalog, plans],
  provides: [multipliers],
  reads: [model],
  finds: [plan],
  writes: [priceRatio],

  setup(host: Host, written: Config) {
    let settings = written;
    let ratioOf = ratiosOf(settings);
    const bases = () => offersOf(settings, host).map(({ base }) => base);
    host.provide(multipliers, {
      lowest: (modelId) => ratioOf(bases().reduce(lower), modelId),
      of: (plan, modelId) => ratioOf(host.find(plans)?.terms(plan).multiplier ?? settings.default, modelId),
    });
    const part: Part<Config> = {
      applies: (endpoint: Endpoint) => endpoint.states?.includes(call) ?? false,
      handle: stating(settings, host),
      notices: () => noticesOf(settings, host),
      problems: () => faultsOf(settings, host),
      prepare: (changed) => () => {
        settings = changed;
        ratioOf = ratiosOf(changed);
        part.handle = stating(changed, host);
      },
    };
    return part;
  },
});

/** What a base ratio comes to with the model's own factor. */
function ratiosOf({ models }: Config): (base: Ratio, modelId: string) => Ratio {
  const factors = new Map(Object.entries(models));
  return (base, modelId) => {
    const factor = factors.get(modelId);
    return factor === undefined ? base : product(base, factor);
  };
}

function stating(settings: Config, host: Host): NonNullable<Part['handle']> {
  const ratioOf = ratiosOf(settings);
  return function multiplier(exchange, next) {
    const stated = ratioOf(exchange.find(plan)?.multiplier ?? settings.default, exchange.get(model).id);
    exchange.set(priceRatio, stated);
    tell(exchange, host.clock.now(), ratioLine, () => [written(stated)]);
    return next();
  };
}

/** What every plan's accounts pay without a model's factor. Without plans everybody pays the default. */
function offersOf({ default: fallback }: Config, host: Host): readonly { name: string; base: Ratio }[] {
  const offers = host.find(plans)?.list() ?? [];
  return offers.length === 0
    ? [{ name: 'default', base: fallback }]
    : offers.map(({ name, multiplier }) => ({ name, base: multiplier ?? fallback }));
}

/** Every plan with every model: what is sold below the minimum is a mistake that costs money with each call. */
function faultsOf(settings: Config, host: Host): Fault[] {
  const { minimum, models } = settings;
  return offersOf(settings, host).flatMap(({ name, base }) =>
    [[undefined, undefined] as const, ...Object.entries(models)].flatMap(([id, factor]): Fault[] => {
      const whole = factor === undefined ? base : product(base, factor);
      if (!isLess(whole, minimum)) return [];
      const what = id === undefined ? `plan "${name}"` : `plan "${name}" with the model "${id}"`;
      const message = `${what} comes to ${written(whole)}, below the minimum of ${written(minimum)}: raise it, or lower the minimum`;
      return [{ path: id === undefined ? ['minimum'] : ['models', id], message }];
    }),
  );
}

function noticesOf({ default: fallback, models }: Config, host: Host): Notice[] {
  const notices: Notice[] = [];
  const silent = (host.find(plans)?.list() ?? []).filter(({ multiplier }) => multiplier === undefined);
  if (silent.length > 0) {
    const names = silent.map(({ name }) => name).join(', ');
    notices.push({ level: 'info', text: `plans that state no multiplier are sold at ${written(fallback)}: ${names}` });
  }
  const missing = Object.keys(models).filter((id) => host.find(catalog)?.find(id)?.id !== id);
  if (missing.length > 0)
    notices.push({ level: 'warning', text: `multiplier.models names what is no model here: ${missing.join(', ')}` });
  return notices;
}
