/** What a plan offers, as written in the configuration and as other plugins see it. */
import type { Money } from '../../core/money.ts';
import { count, duration, ratio, usd, z } from '../../core/schema.ts';
import type { PlanTerms } from '../../core/vocabulary.ts';

/** Bounds keep the limiter's whole numbers exact. */
const limit = (highest: number) =>
  count().refine((value) => value >= 1 && value <= highest, `must be between 1 and ${highest}`);

const limits = z
  .strictObject({
    rpm: limit(1_000_000_000).optional().describe('Requests per minute.'),
    rpd: limit(100_000_000).optional().describe('Requests per day.'),
    tpm: limit(1_000_000_000).optional().describe('Tokens per minute, input and output together.'),
    concurrency: limit(1_000_000).optional().describe('Calls that may run at the same time.'),
  })
  .prefault({});

const windowLengths = ['5h', 'day', 'week', 'month'] as const;
const grantPeriods = ['day', 'week', 'month'] as const;

export const offerSchema = z.strictObject({
  price: usd().prefault(0).describe('USD for the plan. Credited and charged by the plan shop, not by this plugin.'),
  limits: limits.describe('Rate limits of an account on this plan; an absent one is not limited.'),
  models: z.array(z.string().min(1)).optional().describe('Models that the plan allows; without it all.'),
  multiplier: ratio().optional().describe('Ratio on the official price, such as 2 or 1.6; without it 1.'),
  grant: z
    .strictObject({
      amount: usd().describe('USD that the plan brings each time.'),
      every: z.enum(grantPeriods).describe('How often: day, week or month.'),
    })
    .optional()
    .describe('Money that the plan brings. Credited by the plan shop, not by this plugin.'),
  windows: z
    .partialRecord(z.enum(windowLengths), usd())
    .optional()
    .describe(
      'USD that may be spent of the plan within 5h, day, week or month. Kept by the plan shop, not by this plugin.',
    ),
  lasts: duration()
    .optional()
    .describe('How long the plan runs once bought. Ended by the plan shop, not by this plugin.'),
});

export type OfferConfig = z.output<typeof offerSchema>;

/** The whole offer: the terms that hold for each request, and what the plan shop sells. */
export interface Offer extends PlanTerms {
  readonly price: Money;
  readonly grant: OfferConfig['grant'];
  readonly windows: OfferConfig['windows'];
  /** Milliseconds; undefined: without end. */
  readonly lastsMs: number | undefined;
}

export function toOffer(name: string, written: OfferConfig): Offer {
  const { price, models, multiplier, grant, windows, lasts } = written;
  return {
    name,
    limits: definedLimits(written.limits),
    models: models === undefined ? undefined : new Set(models),
    multiplier,
    price,
    grant,
    windows,
    lastsMs: lasts,
  };
}

/** Fields of the offer that only the plan shop gives an effect. */
export function shopFields({ price, grant, windows, lasts }: OfferConfig): string[] {
  const fields: string[] = [];
  if (price > 0n) fields.push('price');
  if (grant !== undefined) fields.push('grant');
  if (windows !== undefined) fields.push('windows');
  if (lasts !== undefined) fields.push('lasts');
  return fields;
}

function definedLimits(written: OfferConfig['limits']): PlanTerms['limits'] {
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}
