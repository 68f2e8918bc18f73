/** A plan as a card: what it costs, brings and allows. */

import { z } from '@hono/zod-openapi';
import { formatRatio } from '../../common/domain/money.ts';
import type { PlanOffer, PlanTerms } from '../../common/domain/plans.ts';
import { usd, writerOf } from './schemas.ts';

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

const write = writerOf(planCard);

export function planJson(plan: PlanOffer | PlanTerms): z.infer<typeof planCard> {
  const { multiplier, windows = {} } = plan;
  const offer = 'price' in plan ? plan : undefined;
  return write({
    ...plan,
    price: offer?.price,
    lastsDays: offer?.durationMs === undefined ? null : offer.durationMs / dayMs,
    renew: offer?.renew ?? false,
    multiplier: multiplier && formatRatio(multiplier),
    models: plan.models && [...plan.models],
    windows,
  });
}
