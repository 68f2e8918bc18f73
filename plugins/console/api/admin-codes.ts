/** Plans as they are offered, and redeem codes. */
import { createRoute, z } from '@hono/zod-openapi';
import type { CodeGift, CodeView } from '../../../core/desk.ts';
import { GatewayError } from '../../../core/errors.ts';
import { plans, shopDesk } from '../desks.ts';
import { csvAnswer } from './csv.ts';
import { planCard, tellPlan } from './plan-cards.ts';
import { audited, type Console, need, router } from './router.ts';
import {
  answers,
  answersCsv,
  asked,
  dayMs,
  instant,
  instantAsked,
  iso,
  isoOrNull,
  pageAsked,
  pageOf,
  reasonAsked,
  takes,
  usd,
  usdAsked,
  usdText,
} from './words.ts';

const gift = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('balance'), amount: usd, lastsDays: z.number().nullable() }),
  z.object({ kind: z.literal('plan'), plan: z.string() }),
  z.object({ kind: z.literal('days'), plan: z.string(), days: z.number() }),
]);
const days = z.number().int().min(1).max(3_660);
const planName = z.string().min(1).max(100);
const giftAsked = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('balance'), amount: usdAsked, lastsDays: days.nullish() }),
  z.strictObject({ kind: z.literal('plan'), plan: planName }),
  z.strictObject({ kind: z.literal('days'), plan: planName, days }),
]);
const code = z
  .object({
    id: z.string(),
    prefix: z.string(),
    batch: z.string(),
    gift,
    maxUses: z.number(),
    uses: z.number(),
    oncePerAccount: z.boolean(),
    expiresAt: instant.nullable(),
    revokedAt: instant.nullable(),
    createdAt: instant,
  })
  .openapi('Code');
const batchAsked = z.object({ batch: z.string().max(200).optional() });

const listPlans = createRoute({
  method: 'get',
  path: '/admin/plans',
  summary: 'Plans as they are offered',
  responses: answers(z.object({ default: z.string(), rows: z.array(planCard) })),
});
const list = createRoute({
  method: 'get',
  path: '/admin/codes',
  summary: 'Redeem codes, without the codes themselves',
  request: { query: batchAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(code)),
});
const csv = createRoute({
  method: 'get',
  path: '/admin/codes.csv',
  summary: 'Redeem codes as CSV, without the codes themselves',
  request: { query: batchAsked },
  responses: answersCsv,
});
const create = createRoute({
  method: 'post',
  path: '/admin/codes',
  summary: 'Make codes; they are shown this once',
  request: {
    body: takes(
      z.strictObject({
        batch: z.string().trim().min(1).max(100).optional(),
        gift: giftAsked,
        count: z.number().int().min(1).max(1_000),
        maxUses: z.number().int().min(1).max(1_000_000).default(1),
        oncePerAccount: z.boolean().default(true),
        expiresAt: instantAsked.nullish(),
        reason: reasonAsked.optional(),
      }),
    ),
  },
  responses: answers(z.object({ batch: z.string(), codes: z.array(z.string()) })),
});
const batches = createRoute({
  method: 'get',
  path: '/admin/codes/batches',
  summary: 'Batches of codes',
  responses: answers(
    z.object({
      rows: z.array(z.object({ batch: z.string(), codes: z.number(), uses: z.number(), createdAt: instant })),
    }),
  ),
});
const revoke = createRoute({
  method: 'post',
  path: '/admin/codes/revoke',
  summary: 'Revoke a code or a whole batch',
  request: { body: takes(z.strictObject({ named: z.string().min(1).max(200), reason: reasonAsked })) },
  responses: answers(z.object({ revoked: z.number() })),
});

const columns = [
  'id',
  'prefix',
  'batch',
  'gift',
  'maxUses',
  'uses',
  'oncePerAccount',
  'expiresAt',
  'revokedAt',
  'createdAt',
] as const;

export function codeRoutes(hall: Console) {
  return router()
    .openapi(listPlans, (ask) => {
      const offers = need(hall, plans);
      const rows = offers.list().map((terms) => tellPlan(offers.offer(terms.name) ?? terms));
      return ask.json({ default: offers.default, rows }, 200);
    })
    .openapi(list, async (ask) => {
      const query = ask.req.valid('query');
      return ask.json(await pageOfCodes(hall, query.batch, asked(query)), 200);
    })
    .openapi(csv, (ask) => {
      const { batch } = ask.req.valid('query');
      need(hall, shopDesk);
      return csvAnswer('codes', columns, (page) => pageOfCodes(hall, batch, page));
    })
    .openapi(create, async (ask) => {
      const { batch, gift, count, maxUses, oncePerAccount, expiresAt, reason } = ask.req.valid('json');
      refuseUnknownPlan(hall, gift);
      const wanted = { batch, gift: toGift(gift), count, maxUses, oncePerAccount, expiresAt: expiresAt ?? undefined };
      const change = { action: 'codes.create', subject: batch ?? 'a new batch', reason: reason ?? `${count} codes` };
      const made = await audited(hall, ask, change, () => need(hall, shopDesk).createCodes(wanted));
      return ask.json({ batch: made.batch, codes: [...made.codes] }, 200);
    })
    .openapi(batches, async (ask) => {
      const rows = await need(hall, shopDesk).batches();
      return ask.json({ rows: rows.map((row) => ({ ...row, createdAt: iso(row.createdAt) })) }, 200);
    })
    .openapi(revoke, async (ask) => {
      const { named, reason } = ask.req.valid('json');
      const revoked = await audited(hall, ask, { action: 'codes.revoke', subject: named, reason }, () =>
        need(hall, shopDesk).revokeCodes(named),
      );
      return ask.json({ revoked }, 200);
    });
}

async function pageOfCodes(
  hall: Console,
  batch: string | undefined,
  page: { limit: number; after?: string | undefined },
) {
  const { rows, next } = await need(hall, shopDesk).codes({ batch }, page);
  return { rows: rows.map(tellCode), next: next ?? null };
}

function tellCode(view: CodeView): z.infer<typeof code> {
  const { id, prefix, batch, gift, maxUses, uses, oncePerAccount } = view;
  return {
    id,
    prefix,
    batch,
    gift:
      gift.kind === 'balance'
        ? {
            kind: 'balance',
            amount: usdText(gift.amount),
            lastsDays: gift.lastsMs === undefined ? null : gift.lastsMs / dayMs,
          }
        : { ...gift },
    maxUses,
    uses,
    oncePerAccount,
    expiresAt: isoOrNull(view.expiresAt),
    revokedAt: isoOrNull(view.revokedAt),
    createdAt: iso(view.createdAt),
  };
}

function toGift(asked: z.output<typeof giftAsked>): CodeGift {
  if (asked.kind !== 'balance') return asked;
  const { amount, lastsDays } = asked;
  return {
    kind: 'balance',
    amount,
    lastsMs: lastsDays === null || lastsDays === undefined ? undefined : lastsDays * dayMs,
  };
}

function refuseUnknownPlan(hall: Console, gift: z.output<typeof giftAsked>): void {
  if (gift.kind === 'balance' || hall.find(plans)?.has(gift.plan) !== false) return;
  throw new GatewayError('invalid_request', `There is no plan "${gift.plan}".`, { field: 'gift.plan' });
}
