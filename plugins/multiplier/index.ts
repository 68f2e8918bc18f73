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
import { catalog } from '../common/domain/models.ts';
import { formatRatio, isLess, one, type Ratio, timesRatio } from '../common/domain/money.ts';
import { ratio } from '../common/domain/money-schema.ts';
import { plan, plans } from '../common/domain/plans.ts';
import { doubtfulRatio, lowest, multipliers, priceRatio } from '../common/domain/price-ratio.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';

const ratioEvent = defineEvent('multiplier.ratio', (ratio: string) => `sold at the official price × ${ratio}`);

const config = z
  .strictObject({
    default: ratio()
      .prefault(2)
      .describe('Ratio on the official price for plans that state none. Set it to your usual margin.'),
    minimum: ratio()
      .prefault(1)
      .describe(
        'No plan and no model may be sold below it; the gateway does not start. Lower it below 1 to sell at a loss on purpose.',
      ),
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
  optional: [plan],
  sets: [priceRatio],

  setup(host: Host, configured: Config) {
    let settings = configured;
    host.provide(multipliers, {
      lowest: () => lowest(offersOf(settings, host).map(({ base }) => base)) ?? settings.default,
      of: (plan) => host.find(plans)?.terms(plan).multiplier ?? settings.default,
    });
    const instance: PluginInstance<Config> = {
      applies: (endpoint: Endpoint) => endpoint.setsOnOpen?.includes(call) ?? false,
      handle: ratioHandler(settings, host),
      checks: {
        notices: () => noticesOf(settings, host),
        problems: () => faultsOf(settings, host),
      },
      reload: {
        prepare: (changed) => () => {
          settings = changed;
          instance.handle = ratioHandler(changed, host);
        },
      },
    };
    return instance;
  },
});

function ratioHandler(settings: Config, host: Host): NonNullable<PluginInstance['handle']> {
  return function multiplier(exchange, next) {
    const stated = exchange.find(plan)?.multiplier ?? settings.default;
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
  const { minimum } = settings;
  const factors: { readonly id?: string; readonly factor: Ratio }[] = [
    { factor: one },
    ...(host.find(catalog)?.list() ?? []).flatMap(({ id, multiplier = one, batch = one }) => [
      ...(multiplier === one ? [] : [{ id, factor: multiplier }]),
      ...(batch === one ? [] : [{ id, factor: timesRatio(multiplier, batch) }]),
    ]),
  ];
  return offersOf(settings, host).flatMap(({ name, base }) =>
    factors.flatMap(({ id, factor }): Fault[] => {
      const whole = timesRatio(base, factor);
      if (!isLess(whole, minimum)) return [];
      const what = id === undefined ? `plan "${name}"` : `plan "${name}" with the model "${id}"`;
      const message = `${what} comes to ${formatRatio(whole)}, below the minimum of ${formatRatio(minimum)}: raise it, or lower the minimum`;
      return [{ path: ['minimum'], message }];
    }),
  );
}

function noticesOf({ default: fallback }: Config, host: Host): Notice[] {
  const notices: Notice[] = doubtfulRatio('multiplier.default', fallback).map((text) => ({ level: 'warning', text }));
  const withoutMultiplier = (host.find(plans)?.list() ?? []).filter(({ multiplier }) => multiplier === undefined);
  if (withoutMultiplier.length > 0) {
    const names = withoutMultiplier.map(({ name }) => name).join(', ');
    notices.push({
      level: 'info',
      text: `plans that state no multiplier are sold at ${formatRatio(fallback)}: ${names}`,
    });
  }
  return notices;
}
