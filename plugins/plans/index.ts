/** The caller's plan and its limits. */
import {
  definePlugin,
  type Exchange,
  type Host,
  type Next,
  type Notice,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { caller } from '../common/domain/accounts.ts';
import { ledger } from '../common/domain/ledger.ts';
import { catalog } from '../common/domain/models.ts';
import { plan, plans, rateLimits, shop } from '../common/domain/plans.ts';
import { doubtfulRatio } from '../common/domain/price-ratio.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import { type Offer, offerSchema, toOffer } from './offer.ts';

const planEvent = defineEvent('plans.plan', (name: string) => `on the plan "${name}"`);

const config = z
  .strictObject({
    default: z
      .string()
      .min(1)
      .describe('Plan of an account that chose none, or whose plan is no longer offered. Write a name of `offers`.'),
    offers: z
      .record(z.string().min(1).max(100), offerSchema.nullable())
      .describe(
        'The plans by name; null: a plan of an included file that is not offered here. Add one for each group of clients with its own limits or prices.',
      ),
  })
  .superRefine((section, context) => {
    for (const [name, { price, grant, windows, duration, renew }] of offered(section.offers)) {
      const wrong = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['offers', name, field], message });
      if (windows !== undefined && grant === undefined)
        wrong('windows', 'bounds the spending of a grant, and this plan has none: add "grant" or remove "windows"');
      const ends = duration !== undefined || (grant !== undefined && price > 0n);
      if (renew && !ends)
        wrong('renew', 'is about the end of a plan, and this one has none: add "duration" or remove "renew"');
    }
    const names = offered(section.offers).map(([name]) => name);
    if (names.includes(section.default)) return;
    context.addIssue({
      code: 'custom',
      path: ['default'],
      message: `names the plan "${section.default}", which is not among the offers${didYouMean(section.default, names)}`,
    });
  });

type Settings = z.output<typeof config>;

/** Without the ones that an included file has and this one takes away. */
const offered = <Written>(offers: Readonly<Record<string, Written | null>>): [name: string, written: Written][] =>
  Object.entries(offers).flatMap(([name, written]) => (written === null ? [] : [[name, written]]));

export default definePlugin<Settings>({
  name: 'plans',
  config,
  services: { optional: [shop, rateLimits, ledger, catalog], provides: [plans] },
  optional: [caller],
  sets: [plan],

  setup(host: Host, settings: Settings) {
    let current = offersOf(settings);
    host.provide(plans, {
      get default() {
        return current.fallback.name;
      },
      terms: (name) => termsIn(current, name),
      offer: (name) => current.byName.get(name),
      has: (name) => current.byName.has(name),
      list: () => [...current.byName.values()],
    });

    const instance: PluginInstance<Settings> = {
      checks: {
        notices: () => [
          ...[current.fallback].filter(isSold).map(unpaid),
          ...doubtful([...current.byName.values()]),
          ...withoutEffect(host, [...current.byName.values()]),
        ],
      },
      // The plan also limits endpoints that answer by themselves; without a caller there is no plan.
      applies: () => true,
      handle: planHandler(current, host),
      reload: {
        prepare(changed) {
          const offers = offersOf(changed);
          return () => {
            current = offers;
            instance.handle = planHandler(offers, host);
          };
        },
      },
    };
    return instance;
  },
});

interface Offers {
  readonly byName: ReadonlyMap<string, Offer>;
  readonly fallback: Offer;
}

function offersOf(settings: Settings): Offers {
  const byName = new Map<string, Offer>();
  for (const [name, written] of offered(settings.offers)) byName.set(name, toOffer(name, written));
  return { byName, fallback: byName.get(settings.default)! };
}

function termsIn({ byName, fallback }: Offers, name: string): Offer {
  return byName.get(name) ?? fallback;
}

function planHandler(offers: Offers, host: Host): NonNullable<PluginInstance['handle']> {
  return function plans(exchange: Exchange, next: Next) {
    const identity = exchange.find(caller);
    if (identity === undefined) return next();
    // An ended plan is followed by the default plan at that moment.
    const ended = identity.planEndsAt !== undefined && host.clock.now() >= identity.planEndsAt;
    const offer = (ended ? undefined : offers.byName.get(identity.plan)) ?? offers.fallback;
    exchange.set(plan, offer);
    recordEvent(exchange, host.clock.now(), planEvent, [offer.name]);
    return next();
  };
}

function isSold({ price }: Offer): boolean {
  return price > 0n;
}

function doubtful(offers: readonly Offer[]): Notice[] {
  return offers
    .flatMap(({ name, multiplier }) => doubtfulRatio(`plans.offers.${name}.multiplier`, multiplier))
    .map((text) => ({ level: 'warning', text }));
}

function unpaid({ name }: Offer): Notice {
  return {
    level: 'warning',
    text: `plan "${name}" has a price, but as the default plan every account is on it unpaid`,
  };
}

/** Settings of the plans that no plugin of the list enforces: one sentence for each kind. */
function withoutEffect(host: Host, offers: readonly Offer[]): Notice[] {
  const limits = (offer: Offer) => Object.keys(offer.limits);
  const limited = offers.filter((offer) => limits(offer).length > 0);
  const names = [...new Set(limited.flatMap(limits))].join(', ');
  const about = (found: readonly Offer[], text: string): Notice[] =>
    found.length === 0 ? [] : [{ level: 'warning', text: `${subject(found)} ${text}` }];
  const pick = (found: readonly Offer[], one: string, many: string) => (found.length === 1 ? one : many);
  const sold = offers.filter(isSold);
  const granted = offers.filter(({ grant }) => grant !== undefined);
  const bound = offers.filter(({ models }) => models !== undefined);
  return [
    ...(host.find(shop) === undefined
      ? about(sold, pick(sold, 'has a price, but cannot be bought', 'have a price, but cannot be bought') + add('shop'))
      : []),
    ...(host.find(rateLimits) === undefined
      ? about(
          limited,
          `${pick(limited, 'has', 'have')} limits (${names}), but they are not enforced${add('rate-limit')}`,
        )
      : []),
    ...(host.find(ledger) === undefined
      ? about(granted, `${pick(granted, 'has', 'have')} a grant, but no account gets it${add('billing')}`)
      : []),
    ...(host.find(catalog) === undefined
      ? about(bound, `${pick(bound, 'names', 'name')} models, but all models may be called${add('models')}`)
      : []),
  ];
}

function add(plugin: string): string {
  return `: add "${plugin}" to the list`;
}

function subject(offers: readonly Offer[]): string {
  const names = offers.map(({ name }) => `"${name}"`);
  return offers.length === 1 ? `plan ${names[0]}` : `plans ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
