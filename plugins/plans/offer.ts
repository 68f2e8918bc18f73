/** A plan's offer, as configured and as other plugins see it. */
import { count, duration, z } from '../../core/contract/schema.ts';
import { ratio, usd } from '../common/domain/money-schema.ts';
import { mostRegions, regionName } from '../common/domain/organizations/placement.ts';
import type { PlanOffer, PlanTerms } from '../common/domain/plans.ts';

/** Bounds keep the limiter's integers exact. */
const limit = (highest: number) =>
  count().refine((value) => value >= 1 && value <= highest, `must be between 1 and ${highest}`);

const limits = z
  .strictObject({
    rpm: limit(1_000_000_000)
      .optional()
      .describe('Requests per minute. Set it to what one client should need at most. Default: no limit.'),
    rpd: limit(100_000_000).optional().describe('Requests per day. Set it for free plans. Default: no limit.'),
    tpm: limit(1_000_000_000)
      .optional()
      .describe(
        "Tokens per minute, input and output together. Set it to share a vendor's limit between accounts. Default: no limit.",
      ),
    concurrency: limit(1_000_000)
      .optional()
      .describe(
        "Calls that may run at the same time. Set it to share a vendor's limit between accounts. Default: no limit.",
      ),
  })
  .prefault({});

const windowLengths = ['5h', 'day', 'week', 'month'] as const;
const grantPeriods = ['day', 'week', 'month'] as const;

export const offerSchema = z.strictObject({
  price: usd()
    .prefault(0)
    .describe('USD for the plan, taken from the balance when it is bought. Set it to sell the plan.'),
  limits: limits.describe(
    'Rate limits of an account on this plan; an absent one is not limited. Set them for plans that strangers can have.',
  ),
  models: z
    .array(z.string().min(1))
    .optional()
    .describe('Models that the plan allows. Set it to keep dear models out of a plan. Default: all.'),
  regions: z
    .array(z.string().regex(regionName, 'a region is small letters, digits and dashes, such as eu'))
    .min(1)
    .max(mostRegions)
    .optional()
    .describe(
      'Regions in which its calls may be processed: only providers that are labelled with these alone serve them. Set it for plans with such a promise. Default: anywhere.',
    ),
  multiplier: ratio()
    .optional()
    .describe('Ratio on the official price, such as 2 or 1.6. Set it to give a plan its own margin. Default: 1.'),
  grant: z
    .strictObject({
      amount: usd().describe("USD that the plan brings each time. Change it together with the plan's price."),
      every: z
        .enum(grantPeriods)
        .describe(
          'How often the grant comes: day, week or month. Choose month for subscriptions, day for free allowances.',
        ),
    })
    .optional()
    .describe(
      'Money that the plan brings for each period; the rest of it expires at the end of the period. Set it for subscriptions and free allowances.',
    ),
  windows: z
    .partialRecord(z.enum(windowLengths), usd())
    .optional()
    .describe(
      "USD of the plan's grant that may be spent within 5h, a day, a week, a month; other money is not limited by it. Set it to spread a grant over its period.",
    ),
  duration: duration()
    .refine((lengthMs) => lengthMs > 0, 'must be longer than nothing')
    .optional()
    .describe(
      'How long the plan runs once bought. Set it for plans that end. Default: one period of its grant, or without end if it is free or brings none.',
    ),
  renew: z
    .boolean()
    .default(false)
    .describe(
      'Whether it is bought again at its end while the balance covers its price; else the default plan follows. Turn it on for subscriptions.',
    ),
});

export type OfferConfig = z.output<typeof offerSchema>;

/** The whole offer: the terms of each request, and the sale terms. */
export type Offer = PlanOffer;

export function toOffer(name: string, written: OfferConfig): Offer {
  const { price, models, multiplier, grant, windows, duration: durationMs, renew } = written;
  return {
    name,
    limits: definedLimits(written.limits),
    models: models === undefined ? undefined : new Set(models),
    ...(written.regions === undefined ? {} : { regions: new Set(written.regions) }),
    multiplier,
    price,
    grant,
    windows,
    durationMs,
    renew,
  };
}

function definedLimits(written: OfferConfig['limits']): PlanTerms['limits'] {
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}
