/** Which plan the caller is on, and what that plan allows. */
import { definePlugin, type Exchange, type Host, type Next, type Notice } from '../../core/contract.ts';
import { z } from '../../core/schema.ts';
import { caller, plan, plans, priceRatio } from '../../core/vocabulary.ts';
import { type Offer, offerSchema, shopFields, toOffer } from './offer.ts';

const config = z
  .strictObject({
    default: z.string().min(1).describe('Plan of an account that chose none, or whose plan is no longer offered.'),
    offers: z
      .record(z.string().min(1).max(100), offerSchema)
      .describe('The plans by name. Grants and windows are credited by the plan shop; limits hold from here on.'),
  })
  .superRefine((section, context) => {
    if (Object.hasOwn(section.offers, section.default)) return;
    context.addIssue({
      code: 'custom',
      path: ['default'],
      message: `names the plan "${section.default}", which is not among the offers`,
    });
  });

export default definePlugin({
  name: 'plans',
  config,
  provides: [plans],
  finds: [caller],
  writes: [plan, priceRatio],

  setup(host: Host, settings: z.output<typeof config>) {
    const offers = new Map<string, Offer>();
    for (const [name, written] of Object.entries(settings.offers)) offers.set(name, toOffer(name, written));
    const fallback = offers.get(settings.default)!;
    const terms = (name: string) => offers.get(name) ?? fallback;
    host.provide(plans, {
      default: settings.default,
      terms,
      has: (name) => offers.has(name),
      list: () => [...offers.values()],
    });

    return {
      notices: () =>
        Object.entries(settings.offers).flatMap(([name, written]) => idleNotice(name, shopFields(written))),

      // Also endpoints that answer by themselves are limited by the plan; without a caller there is none.
      applies: () => true,

      handle(exchange: Exchange, next: Next) {
        const who = exchange.find(caller);
        if (who === undefined) return next();
        const offer = terms(who.plan);
        exchange.set(plan, offer);
        if (offer.multiplier !== undefined && exchange.find(priceRatio) === undefined)
          exchange.set(priceRatio, offer.multiplier);
        return next();
      },
    };
  },
});

/** What is written of a plan for a shop, where there is none. */
function idleNotice(name: string, fields: readonly string[]): Notice[] {
  if (fields.length === 0) return [];
  return [{ level: 'warning', text: `plan "${name}": ${fields.join(', ')} has no effect without a plan shop` }];
}
