/** A plan as a card: what it costs, brings and allows. */

import { z } from '@hono/zod-openapi';
import { formatRatio } from '../../common/domain/money.ts';
import type { PlanOffer, PlanTerms } from '../../common/domain/plans.ts';
import { usd, usdOrNull, usdText } from './schemas.ts';

export const planCard = z
  .object({
    name: z.string(),
    price: usd.nullable().describe('null: cannot be bought.'),
    lastsDays: z.number().nullable().describe('null: for one period of its grant, or without end.'),
    renew: z.boolean(),
    limits: z.object({
      rpm: z.number().nullable(),
      rpd: z.number().nullable(),
      tpm: z.number().nullable(),
      concurrency: z.number().nullable(),
    }),
    models: z.array(z.string()).nullable(),
    multiplier: z.string().nullable(),
    grant: z.object({ amount: usd, every: z.enum(['day', 'week', 'month']) }).nullable(),
    windows: z.object({
      '5h': usd.nullable(),
      day: usd.nullable(),
      week: usd.nullable(),
      month: usd.nullable(),
    }),
  })
  .openapi('Plan');

const dayMs = 86_400_000;

export function planJson(plan: PlanOffer | PlanTerms): z.infer<typeof planCard> {
  const { name, limits, models, multiplier, grant, windows } = plan;
  const offer = 'price' in plan ? plan : undefined;
  return {
    name,
    price: usdOrNull(offer?.price),
    lastsDays: offer?.durationMs === undefined ? null : offer.durationMs / dayMs,
    renew: offer?.renew ?? false,
    limits: {
      rpm: limits.rpm ?? null,
      rpd: limits.rpd ?? null,
      tpm: limits.tpm ?? null,
      concurrency: limits.concurrency ?? null,
    },
    models: models === undefined ? null : [...models],
    multiplier: multiplier === undefined ? null : formatRatio(multiplier),
    grant: grant === undefined ? null : { amount: usdText(grant.amount), every: grant.every },
    windows: {
      '5h': usdOrNull(windows?.['5h']),
      day: usdOrNull(windows?.day),
      week: usdOrNull(windows?.week),
      month: usdOrNull(windows?.month),
    },
  };
}
