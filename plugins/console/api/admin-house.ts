/** What keeps the house in order: money as a whole, nodes, the audit log, tokens for scripts. */
import { createRoute, z } from '@hono/zod-openapi';
import { money } from '../../../core/money.ts';
import { roles } from '../actor.ts';
import { moneyDesk } from '../desks.ts';
import type { AuditRow, TokenView } from '../people.ts';
import { csvAnswer } from './csv.ts';
import { ledgerAsked, ledgerColumns, ledgerRow, pageOfLedger } from './ledger-rows.ts';
import { actorOf, audited, type Console, need, router } from './router.ts';
import {
  answers,
  answersCsv,
  asked,
  dayMs,
  done,
  id,
  instant,
  instantAsked,
  iso,
  isoOrNull,
  listed,
  pageAsked,
  pageOf,
  spanAsked,
  spanOf,
  takes,
  usd,
  usdText,
} from './words.ts';

const one = z.object({ id });

const totals = z
  .object({
    from: instant,
    until: instant,
    revenue: usd,
    ownCost: usd,
    margin: usd.describe('Revenue less own cost and what was absorbed.'),
    absorbed: usd.describe('Spent at vendors for what no client paid.'),
    credited: usd,
    sold: usd,
    refunded: usd,
    lapsed: usd,
  })
  .openapi('MoneyTotals');
const reconciliation = z
  .object({ checkedAt: instant, ok: z.boolean(), findings: z.array(z.string()), rows: z.number() })
  .openapi('Reconciliation');
const node = z
  .object({
    name: z.string(),
    self: z.boolean(),
    version: z.string().nullable(),
    startedAt: instant.nullable(),
    seenAt: instant.describe('Its last sign of life.'),
    silentMs: z.number().describe('Milliseconds since then.'),
    journalPending: z.number().nullable(),
    leases: z.number(),
    leased: usd,
  })
  .openapi('Node');

const getMoney = createRoute({
  method: 'get',
  path: '/admin/money',
  summary: 'Money as a whole, by default of the last 30 days',
  request: { query: spanAsked },
  responses: answers(totals),
});
const reconcile = createRoute({
  method: 'post',
  path: '/admin/money/reconcile',
  summary: 'Check the whole ledger',
  responses: answers(reconciliation),
});
const ledgerOfAll = ledgerAsked.extend({ accountId: id.optional() });
const ledger = createRoute({
  method: 'get',
  path: '/admin/ledger',
  summary: "The ledger, everybody's or an account's",
  request: { query: ledgerOfAll.extend(pageAsked.shape) },
  responses: answers(pageOf(ledgerRow)),
});
const ledgerCsv = createRoute({
  method: 'get',
  path: '/admin/ledger.csv',
  summary: "Everybody's ledger as CSV",
  request: { query: ledgerOfAll },
  responses: answersCsv,
});
const nodes = createRoute({
  method: 'get',
  path: '/admin/nodes',
  summary: 'Processes that serve this gateway',
  responses: answers(z.object({ rows: z.array(node) })),
});

export function moneyRoutes(hall: Console) {
  return router()
    .openapi(getMoney, async (ask) => {
      const span = spanOf(ask.req.valid('query'), hall.clock.now(), 30 * dayMs);
      const told = await need(hall, moneyDesk).totals(span);
      const { revenue, ownCost, absorbed, credited, sold, refunded, lapsed } = told;
      return ask.json(
        {
          from: iso(span.from),
          until: iso(span.until),
          revenue: usdText(revenue),
          ownCost: usdText(ownCost),
          margin: usdText(money(revenue - ownCost - absorbed)),
          absorbed: usdText(absorbed),
          credited: usdText(credited),
          sold: usdText(sold),
          refunded: usdText(refunded),
          lapsed: usdText(lapsed),
        },
        200,
      );
    })
    .openapi(reconcile, async (ask) => {
      const found = await audited(hall, ask, { action: 'money.reconcile', subject: 'ledger' }, () =>
        need(hall, moneyDesk).reconcile(),
      );
      const { checkedAt, ok, findings, rows } = found;
      return ask.json({ checkedAt: iso(checkedAt), ok, findings: [...findings], rows }, 200);
    })
    .openapi(ledger, async (ask) => {
      const query = ask.req.valid('query');
      return ask.json(await pageOfLedger(hall, query.accountId, query, asked(query)), 200);
    })
    .openapi(ledgerCsv, (ask) => {
      const query = ask.req.valid('query');
      need(hall, moneyDesk);
      return csvAnswer('ledger', ledgerColumns, (page) => pageOfLedger(hall, query.accountId, query, page));
    })
    .openapi(nodes, async (ask) => {
      const now = hall.clock.now();
      const rows = (await need(hall, moneyDesk).nodes()).map((view) => ({
        name: view.name,
        self: view.self,
        version: view.version ?? null,
        startedAt: isoOrNull(view.startedAt),
        seenAt: iso(view.seenAt),
        silentMs: Math.max(0, now - view.seenAt),
        journalPending: view.journalPending ?? null,
        leases: view.leases,
        leased: usdText(view.leased),
      }));
      return ask.json({ rows }, 200);
    });
}

const auditRow = z
  .object({
    id: z.string(),
    at: instant,
    actor: z.string(),
    role: z.enum(roles),
    action: z.string(),
    subject: z.string(),
    reason: z.string().nullable(),
    address: z.string(),
    result: z.string().describe('`done`, the code of the error, or `begun` where the end is not known.'),
  })
  .openapi('AuditRow');
const auditAsked = z.object({
  from: instantAsked.optional(),
  until: instantAsked.optional(),
  actor: z.string().max(200).optional(),
  action: z.string().max(100).optional(),
  subject: z.string().max(200).optional(),
});
const auditList = createRoute({
  method: 'get',
  path: '/admin/audit',
  summary: 'Who changed what, newest first',
  request: { query: auditAsked.extend(pageAsked.shape) },
  responses: answers(pageOf(auditRow)),
});
const auditCsv = createRoute({
  method: 'get',
  path: '/admin/audit.csv',
  summary: 'The audit log as CSV',
  request: { query: auditAsked },
  responses: answersCsv,
});
const auditColumns = ['at', 'id', 'actor', 'role', 'action', 'subject', 'reason', 'address', 'result'] as const;

const token = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string(),
    createdBy: z.string(),
    createdAt: instant,
    expiresAt: instant.nullable(),
    lastUsedAt: instant.nullable(),
  })
  .openapi('Token');
const tokens = createRoute({
  method: 'get',
  path: '/admin/tokens',
  summary: 'Tokens for scripts',
  responses: answers(z.object({ rows: z.array(token) })),
});
const createToken = createRoute({
  method: 'post',
  path: '/admin/tokens',
  summary: 'Make a token with the rights of an operator; it is shown this once',
  request: {
    body: takes(z.strictObject({ name: z.string().trim().min(1).max(100), expiresAt: instantAsked.nullish() })),
  },
  responses: answers(z.object({ view: token, token: z.string() })),
});
const revokeToken = createRoute({
  method: 'delete',
  path: '/admin/tokens/{id}',
  summary: 'Revoke a token at once',
  request: { params: one },
  responses: answers(done),
});

export function auditRoutes(hall: Console) {
  return router()
    .openapi(auditList, async (ask) => {
      const { limit, after, ...filter } = ask.req.valid('query');
      return ask.json(listed(await hall.audit.list(filter, asked({ limit, after })), tellAudit), 200);
    })
    .openapi(auditCsv, (ask) => {
      const filter = ask.req.valid('query');
      return csvAnswer('audit', auditColumns, async (page) => listed(await hall.audit.list(filter, page), tellAudit));
    });
}

export function tokenRoutes(hall: Console) {
  return router()
    .openapi(tokens, async (ask) => ask.json({ rows: (await hall.tokens.list()).map(tellToken) }, 200))
    .openapi(createToken, async (ask) => {
      const { name, expiresAt } = ask.req.valid('json');
      const wanted = { name, expiresAt: expiresAt ?? undefined, createdBy: actorOf(ask).label };
      const made = await audited(hall, ask, { action: 'token.create', subject: name }, () =>
        hall.tokens.create(wanted),
      );
      return ask.json({ view: tellToken(made.view), token: made.token }, 200);
    })
    .openapi(revokeToken, async (ask) => {
      const tokenId = ask.req.valid('param').id;
      await audited(hall, ask, { action: 'token.revoke', subject: tokenId }, () => hall.tokens.revoke(tokenId));
      return ask.json({ ok: true } as const, 200);
    });
}

function tellAudit({
  id,
  at,
  actor,
  role,
  action,
  subject,
  reason,
  address,
  result,
}: AuditRow): z.infer<typeof auditRow> {
  return { id, at: iso(at), actor, role, action, subject, reason: reason ?? null, address, result };
}

function tellToken({
  id,
  name,
  prefix,
  createdBy,
  createdAt,
  expiresAt,
  lastUsedAt,
}: TokenView): z.infer<typeof token> {
  return {
    id,
    name,
    prefix,
    createdBy,
    createdAt: iso(createdAt),
    expiresAt: isoOrNull(expiresAt),
    lastUsedAt: isoOrNull(lastUsedAt),
  };
}
