/** Plans as they are offered, and redeem codes. */

import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { CodeGift, CodeView } from '../../../common/domain/admin/shop.ts';
import { plans, shopAdmin } from '../../services.ts';
import { csvAnswer } from '../csv/answer.ts';
import { planCard, planJson } from '../plan-cards.ts';
import { changesOf } from '../routing/audit-changes.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  answersCsv,
  dayMs,
  id,
  instant,
  instantInput,
  iso,
  isoOrNull,
  listed,
  pageOf,
  pageQuery,
  reasonInput,
  takes,
  usd,
  usdInput,
  usdText,
  writerOf,
} from '../schemas.ts';

const gift = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('balance'), amount: usd, lastsDays: z.number().nullable() }),
  z.object({ kind: z.literal('plan'), plan: z.string() }),
  z.object({ kind: z.literal('days'), plan: z.string(), days: z.number() }),
]);
const days = z.number().int().min(1).max(3_660);
const planName = z.string().min(1).max(100);
const giftInput = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('balance'), amount: usdInput, lastsDays: days.nullish() }),
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
const batchQuery = z.object({ batch: z.string().max(200).optional() });

const listPlans = route(
  'get',
  '/admin/plans',
  'Plans as they are offered',
  answers(z.object({ default: z.string(), rows: z.array(planCard) })),
);
const list = route('get', '/admin/codes', 'Redeem codes, without the codes themselves', answers(pageOf(code)), {
  query: batchQuery.extend(pageQuery.shape),
});
const csv = route('get', '/admin/codes.csv', 'Redeem codes as CSV, without the codes themselves', answersCsv, {
  query: batchQuery,
});
const create = route(
  'post',
  '/admin/codes',
  'Make codes; they are shown this once',
  answers(z.object({ batch: z.string(), codes: z.array(z.string()) })),
  {
    body: takes(
      z.strictObject({
        batch: z.string().trim().min(1).max(100).optional(),
        gift: giftInput,
        count: z.number().int().min(1).max(1_000),
        maxUses: z.number().int().min(1).max(1_000_000).default(1),
        oncePerAccount: z.boolean().default(true),
        expiresAt: instantInput.nullish(),
        reason: reasonInput.optional(),
      }),
    ),
  },
);
const batches = route(
  'get',
  '/admin/codes/batches',
  'Batches of codes',
  answers(
    z.object({
      rows: z.array(z.object({ batch: z.string(), codes: z.number(), uses: z.number(), createdAt: instant })),
    }),
  ),
);
const revoke = route(
  'post',
  '/admin/codes/revoke',
  'Revoke a code or a whole batch',
  answers(z.object({ revoked: z.number() })),
  { body: takes(z.strictObject({ named: z.string().min(1).max(200), reason: reasonInput })) },
);

const redemption = z.object({ accountId: z.string(), at: instant });
const redemptions = route(
  'get',
  '/admin/codes/{id}/redemptions',
  'Accounts that have redeemed a code, the latest first',
  answers(pageOf(redemption)),
  { params: z.object({ id }), query: pageQuery },
);

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

export function codeRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(listPlans, () => {
      const offers = need(services, plans);
      const rows = offers.list().map((terms) => planJson(offers.offer(terms.name) ?? terms));
      return { default: offers.default, rows };
    })
    .list(list, codeJson, async ({ query: { batch } }, page) => need(services, shopAdmin).codes({ batch }, page))
    .file(csv, ({ query: { batch } }) => {
      const codes = need(services, shopAdmin);
      return csvAnswer('codes', columns, async (page) => listed(await codes.codes({ batch }, page), cellsOf));
    })
    .list(redemptions, writerOf(redemption), ({ param }, page) => need(services, shopAdmin).redemptions(param.id, page))
    .action(create, ({ json }) => {
      const { batch, gift, count, maxUses, oncePerAccount, expiresAt, reason } = json;
      refuseUnknownPlan(services, gift);
      const wanted = {
        batch,
        gift: toGift(gift),
        count,
        maxUses,
        oncePerAccount,
        expiresAt: expiresAt ?? undefined,
      };
      return {
        action: 'codes.create',
        subject: batch ?? 'a new batch',
        reason: reason ?? `${count} codes`,
        changes: changesOf({
          gift: giftText(giftJson(wanted.gift)),
          count,
          maxUses,
          oncePerAccount,
          expiresAt: isoOrNull(wanted.expiresAt),
        }),
        run: async () => {
          const { batch, codes } = await need(services, shopAdmin).createCodes(wanted);
          return { batch, codes: [...codes] };
        },
      };
    })
    .read(batches, async () => {
      const rows = await need(services, shopAdmin).batches();
      return { rows: rows.map((row) => ({ ...row, createdAt: iso(row.createdAt) })) };
    })
    .action(revoke, ({ json: { named, reason } }) => ({
      action: 'codes.revoke',
      subject: named,
      reason,
      run: async () => ({ revoked: await need(services, shopAdmin).revokeCodes(named) }),
    }));
}

const writeCode = writerOf(code);
const codeJson = ({ gift, ...view }: CodeView) => writeCode({ ...view, gift: giftJson(gift) });

const giftJson = (gift: CodeGift) => (gift.kind === 'balance' ? balanceJson(gift) : { ...gift });

const balanceJson = ({ amount, lastsMs }: Extract<CodeGift, { kind: 'balance' }>) => ({
  kind: 'balance' as const,
  amount: usdText(amount),
  lastsDays: lastsMs === undefined ? null : lastsMs / dayMs,
});

function toGift(pageRequest: z.output<typeof giftInput>): CodeGift {
  if (pageRequest.kind !== 'balance') return pageRequest;
  const { amount, lastsDays } = pageRequest;
  return {
    kind: 'balance',
    amount,
    lastsMs: lastsDays === null || lastsDays === undefined ? undefined : lastsDays * dayMs,
  };
}

function refuseUnknownPlan(services: ConsoleServices, gift: z.output<typeof giftInput>): void {
  if (gift.kind === 'balance' || services.find(plans)?.has(gift.plan) !== false) return;
  throw new GatewayError('invalid_request', `There is no plan "${gift.plan}".`, { field: 'gift.plan' });
}

const cellsOf = (view: Parameters<typeof codeJson>[0]) => {
  const { gift, ...cells } = codeJson(view);
  return { ...cells, gift: giftText(gift) };
};

function giftText(gift: z.infer<typeof code>['gift']): string {
  if (gift.kind === 'plan') return `plan ${gift.plan}`;
  if (gift.kind === 'days') return `${gift.days} days of plan ${gift.plan}`;
  return `${gift.amount} USD${gift.lastsDays === null ? '' : ` for ${gift.lastsDays} days`}`;
}
