/** A client's own keys: made (shown once), changed, revoked. */
import { createRoute, z } from '@hono/zod-openapi';
import type { KeyTerms, KeyView } from '../../../core/desk.ts';
import { accountDesk, moneyDesk } from '../desks.ts';
import { audited, type Console, need, ownAccount, router } from './router.ts';
import {
  answers,
  asked,
  dayMs,
  id,
  instant,
  instantAsked,
  iso,
  isoOrNull,
  pageAsked,
  pageOf,
  takes,
  usd,
  usdAsked,
  usdOrNull,
  usdText,
} from './words.ts';

const most = z.number().int().min(1).max(1_000_000_000);
const limits = z.strictObject({
  rpm: most.optional(),
  rpd: most.optional(),
  tpm: most.optional(),
  concurrency: most.optional(),
});
const every = z.enum(['day', 'week', 'month', 'ever']);

export const keyRow = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string(),
    models: z.array(z.string()).nullable().describe('null: every model of the plan.'),
    addresses: z.array(z.string()).nullable().describe('Addresses and ranges it may be used from; null: anywhere.'),
    limits: limits.nullable(),
    cap: z.object({ amount: usd, every }).nullable(),
    expiresAt: instant.nullable(),
    createdAt: instant,
    lastUsedAt: instant.nullable(),
    revokedAt: instant.nullable(),
  })
  .openapi('Key');

export const terms = z
  .strictObject({
    name: z.string().trim().min(1).max(100),
    models: z.array(z.string().min(1).max(200)).min(1).max(1_000).nullish(),
    addresses: z.array(z.string().min(1).max(60)).min(1).max(100).nullish(),
    limits: limits.nullish(),
    cap: z.strictObject({ amount: usdAsked, every }).nullish(),
    expiresAt: instantAsked.nullish(),
  })
  .openapi('KeyTerms');

export function tellKey(view: KeyView): z.infer<typeof keyRow> {
  const { id, name, prefix, models, addresses, limits, cap } = view;
  return {
    id,
    name,
    prefix,
    models: models === undefined ? null : [...models],
    addresses: addresses === undefined ? null : [...addresses],
    limits: limits === undefined ? null : { ...limits },
    cap: cap === undefined ? null : { amount: usdText(cap.amount), every: cap.every },
    expiresAt: isoOrNull(view.expiresAt),
    createdAt: iso(view.createdAt),
    lastUsedAt: isoOrNull(view.lastUsedAt),
    revokedAt: isoOrNull(view.revokedAt),
  };
}

function termsOf(body: z.output<typeof terms>): KeyTerms {
  const { name, models, addresses, limits, cap, expiresAt } = body;
  return {
    name,
    models: models ?? undefined,
    addresses: addresses ?? undefined,
    // Members that are absent and members that are undefined are told apart by nobody here.
    limits:
      limits === null || limits === undefined
        ? undefined
        : (JSON.parse(JSON.stringify(limits)) as NonNullable<KeyTerms['limits']>),
    cap: cap ?? undefined,
    expiresAt: expiresAt ?? undefined,
  };
}

const list = createRoute({
  method: 'get',
  path: '/keys',
  summary: 'Own keys',
  request: { query: pageAsked },
  responses: answers(pageOf(keyRow.extend({ spent30d: usd.nullable() }))),
});
const create = createRoute({
  method: 'post',
  path: '/keys',
  summary: 'Make a key; it is shown this once',
  request: { body: takes(terms) },
  responses: answers(z.object({ id: z.string(), key: z.string(), prefix: z.string() })),
});
const change = createRoute({
  method: 'patch',
  path: '/keys/{id}',
  summary: 'Change what a key may do; all of its terms are replaced',
  request: { params: z.object({ id }), body: takes(terms) },
  responses: answers(keyRow),
});
const revoke = createRoute({
  method: 'delete',
  path: '/keys/{id}',
  summary: 'Revoke a key at once',
  request: { params: z.object({ id }) },
  responses: answers(keyRow),
});

export function keyRoutes(hall: Console) {
  return router()
    .openapi(list, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const { rows, next } = await need(hall, accountDesk).keys(accountId, asked(ask.req.valid('query')));
      const spent = await spentByKey(hall, accountId);
      return ask.json(
        {
          rows: rows.map((row) => ({
            ...tellKey(row),
            spent30d: spent === undefined ? null : (spent.get(row.id) ?? '0.00'),
          })),
          next: next ?? null,
        },
        200,
      );
    })
    .openapi(create, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const wanted = termsOf(ask.req.valid('json'));
      const made = await audited(hall, ask, { action: 'key.create', subject: wanted.name }, () =>
        need(hall, accountDesk).createKey(accountId, wanted),
      );
      return ask.json({ id: made.id, key: made.key, prefix: made.prefix }, 200);
    })
    .openapi(change, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const keyId = ask.req.valid('param').id;
      const wanted = termsOf(ask.req.valid('json'));
      const view = await audited(hall, ask, { action: 'key.change', subject: keyId }, () =>
        need(hall, accountDesk).updateKey(accountId, keyId, wanted),
      );
      return ask.json(tellKey(view), 200);
    })
    .openapi(revoke, async (ask) => {
      const accountId = await ownAccount(hall, ask);
      const keyId = ask.req.valid('param').id;
      const view = await audited(hall, ask, { action: 'key.revoke', subject: keyId }, () =>
        need(hall, accountDesk).revokeKey(accountId, keyId),
      );
      return ask.json(tellKey(view), 200);
    });
}

async function spentByKey(hall: Console, accountId: string): Promise<Map<string, string> | undefined> {
  const desk = hall.find(moneyDesk);
  if (desk === undefined) return undefined;
  const now = hall.clock.now();
  const groups = await desk.spend({ from: now - 30 * dayMs, until: now + 1, accountId }, 'key', 500);
  return new Map(groups.map(({ group, cost }) => [group, usdOrNull(cost)!]));
}
