/** Which plan the caller is on, and what that plan allows. */
import { definePlugin, type Exchange, type Host, type Next, type Notice, type Part } from '../../core/contract.ts';
import { z } from '../../core/schema.ts';
import { caller, defineLine, plan, plans, priceRatio, shop, tell } from '../../core/vocabulary.ts';
import { type Offer, offerSchema, toOffer } from './offer.ts';

const planLine = defineLine('plans.plan', (name: string) => `on the plan "${name}"`);

const config = z
  .strictObject({
    default: z.string().min(1).describe('Plan of an account that chose none, or whose plan is no longer offered.'),
    offers: z.record(z.string().min(1).max(100), offerSchema).describe('The plans by name.'),
  })
  .superRefine((section, context) => {
    for (const [name, { price, grant, windows, lasts, renew }] of Object.entries(section.offers)) {
      const wrong = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['offers', name, field], message });
      if (windows !== undefined && grant === undefined)
        wrong('windows', 'bounds what is spent of a grant, and this plan has none: add "grant" or remove "windows"');
      const ends = lasts !== undefined || (grant !== undefined && price > 0n);
      if (renew && !ends)
        wrong('renew', 'is about the end of a plan, and this one has none: add "lasts" or remove "renew"');
    }
    if (Object.hasOwn(section.offers, section.default)) return;
    context.addIssue({
      code: 'custom',
      path: ['default'],
      message: `names the plan "${section.default}", which is not among the offers`,
    });
  });

type Settings = z.output<typeof config>;

export default definePlugin<Settings>({
  name: 'plans',
  config,
  uses: [shop],
  provides: [plans],
  finds: [caller],
  writes: [plan, priceRatio],

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

    const part: Part<Settings> = {
      notices: () => [
        ...(host.find(shop) === undefined ? [...current.byName.values()].filter(isSold).map(unsold) : []),
        ...[current.fallback].filter(isSold).map(unpaid),
      ],
      // Also endpoints that answer by themselves are limited by the plan; without a caller there is none.
      applies: () => true,
      handle: stating(current, host),
      prepare(changed) {
        const offers = offersOf(changed);
        return () => {
          current = offers;
          part.handle = stating(offers, host);
        };
      },
    };
    return part;
  },
});

interface Offers {
  readonly byName: ReadonlyMap<string, Offer>;
  readonly fallback: Offer;
}

function offersOf(settings: Settings): Offers {
  const byName = new Map<string, Offer>();
  for (const [name, written] of Object.entries(settings.offers)) byName.set(name, toOffer(name, written));
  return { byName, fallback: byName.get(settings.default)! };
}

function termsIn({ byName, fallback }: Offers, name: string): Offer {
  return byName.get(name) ?? fallback;
}

function stating(offers: Offers, host: Host): NonNullable<Part['handle']> {
  return function plans(exchange: Exchange, next: Next) {
    const who = exchange.find(caller);
    if (who === undefined) return next();
    // An ended plan is followed by the default plan at that moment, whoever has noticed.
    const ended = who.planEndsAt !== undefined && host.clock.now() >= who.planEndsAt;
    const offer = ended ? offers.fallback : termsIn(offers, who.plan);
    exchange.set(plan, offer);
    tell(exchange, host.clock.now(), planLine, [offer.name]);
    if (offer.multiplier !== undefined && exchange.find(priceRatio) === undefined)
      exchange.set(priceRatio, offer.multiplier);
    return next();
  };
}

function isSold({ price }: Offer): boolean {
  return price > 0n;
}

function unsold({ name }: Offer): Notice {
  return { level: 'warning', text: `plan "${name}" has a price, but nobody can buy it: add "shop" to the list` };
}

function unpaid({ name }: Offer): Notice {
  return {
    level: 'warning',
    text: `plan "${name}" has a price, but as the default plan every account is on it unpaid`,
  };
}
