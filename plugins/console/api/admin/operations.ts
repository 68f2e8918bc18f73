/** Operations: money as a whole, nodes, the audit log, tokens for scripts. */

import { z } from '@hono/zod-openapi';
import type { Page } from '../../../common/domain/admin/pages.ts';
import { zero } from '../../../common/domain/money.ts';
import { roles, tokenRoles } from '../../actor.ts';
import type { AuditRow } from '../../people.ts';
import { database, ledgerQueries } from '../../services.ts';
import { csvAnswer } from '../csv/answer.ts';
import { csvOfLedger, ledgerPage, ledgerQuery, ledgerRow, ledgerRowJson } from '../ledger-rows.ts';
import { moneySums } from '../request-rows.ts';
import { changesOf } from '../routing/audit-changes.ts';
import { actorOf, type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import {
  answers,
  answersCsv,
  done,
  id,
  instant,
  instantInput,
  isoOrNull,
  listed,
  pageOf,
  pageQuery,
  spanQuery,
  takes,
  usd,
  writerOf,
} from '../schemas.ts';
import { moneyJson } from '../spend.ts';
import { spanOfDays, zoneQuery } from '../time-zone.ts';

const one = z.object({ id });

const totals = z
  .object({
    from: instant,
    until: instant,
    ...moneySums,
    card: usd.describe('Paid in through the payment service.'),
    byHand: usd.describe('Credited by operators as paid.'),
    paidBack: usd.describe('Paid back outside, of both.'),
    givenByPlans: usd,
    givenByCodes: usd,
    givenByPromotions: usd,
    usedPaid: usd.describe('Taken by calls, plans and debits of money that was paid in.'),
    usedGiven: usd.describe('The same of money that was given.'),
    owed: usd.describe('Money that clients have paid in and not used, at the end of the time.'),
    credited: usd,
    debited: usd.describe('Taken by operators.'),
    sold: usd.describe('Prices of plans.'),
    lapsed: usd.describe('What was left of grants at their end.'),
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

const totalsJson = writerOf(
  totals.omit({
    cost: true,
    refunded: true,
    ownCost: true,
    ownCostUnknown: true,
    uncosted: true,
    writtenOff: true,
    margin: true,
    tokens: true,
  }),
);
const [reconciliationJson, nodeJson] = [writerOf(reconciliation), writerOf(node)];
const replica = z
  .object({
    isUsed: z.boolean().describe('false: it is away or too far behind, and pages read the database itself.'),
    lagMs: z.number().nullable().describe('How far it was behind at the last look.'),
  })
  .openapi('Replica');

const getMoney = route('get', '/admin/money', 'Money as a whole, by default of the last 30 days', answers(totals), {
  query: spanQuery.extend(zoneQuery.shape),
});
const reconcile = route('post', '/admin/money/reconcile', 'Check the whole ledger', answers(reconciliation));
const ledgerOfAll = ledgerQuery.extend({ accountId: id.optional() });
const ledger = route('get', '/admin/ledger', 'The ledger of all accounts, or of one', answers(pageOf(ledgerRow)), {
  query: ledgerOfAll.extend(pageQuery.shape),
});
const ledgerCsv = route('get', '/admin/ledger.csv', 'The ledger of all accounts as CSV', answersCsv, {
  query: ledgerOfAll,
});
const nodes = route(
  'get',
  '/admin/nodes',
  'Processes that serve this gateway',
  answers(
    z.object({ rows: z.array(node), replica: replica.nullable().describe('null: pages have no replica to read.') }),
  ),
);

export function moneyRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(getMoney, async ({ query }) => {
      const span = spanOfDays(query, services.clock.now(), 30);
      const queries = need(services, ledgerQueries);
      const [{ calls, ...movements }, flows] = await Promise.all([queries.totals(span), queries.flows(span)]);
      const { debited = zero, ...rest } = movements;
      return { ...totalsJson({ ...span, ...rest, debited, ...flows }), ...moneyJson(calls) };
    })
    .action(reconcile, () => ({
      action: 'money.reconcile',
      subject: 'ledger',
      run: async () => {
        return reconciliationJson(await need(services, ledgerQueries).reconcile());
      },
    }))
    .list(ledger, ledgerRowJson, ({ query }, page) => ledgerPage(services, query.accountId, query, page))
    .file(ledgerCsv, ({ query }) => csvOfLedger(services, query.accountId, query))
    .read(nodes, async () => {
      const now = services.clock.now();
      const views = await need(services, ledgerQueries).nodes();
      const { isUsed, lagMs = null } = services.find(database)?.replica?.() ?? {};
      return {
        rows: views.map((view) => nodeJson({ ...view, silentMs: Math.max(0, now - view.seenAt) })),
        replica: isUsed === undefined ? null : { isUsed, lagMs },
      };
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
    actorKind: z.enum(['person', 'token']).nullable().describe('null, as the next: a row of version 0.1.0.'),
    actorId: z.string().nullable().describe('Of the person or the token.'),
    changes: z
      .array(z.object({ field: z.string(), before: z.string().nullable(), after: z.string().nullable() }))
      .describe('Values that it set, and those that were there before.'),
    configVersion: z.number().nullable().describe('The kept configuration that this change made.'),
  })
  .openapi('AuditRow');
const auditQuery = z.object({
  from: instantInput.optional(),
  until: instantInput.optional(),
  actor: z.string().max(200).optional(),
  action: z.string().max(100).optional(),
  subject: z.string().max(200).optional(),
});
const auditList = route('get', '/admin/audit', 'Who changed what, newest first', answers(pageOf(auditRow)), {
  query: auditQuery.extend(pageQuery.shape),
});
const auditCsv = route('get', '/admin/audit.csv', 'The audit log as CSV', answersCsv, { query: auditQuery });
const auditColumns = [
  'at',
  'id',
  'actor',
  'role',
  'action',
  'subject',
  'reason',
  'address',
  'result',
  'configVersion',
] as const;

const token = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string(),
    role: z.enum(tokenRoles).describe('auditor: it reads; operator: it changes too.'),
    createdBy: z.string(),
    createdAt: instant,
    expiresAt: instant.nullable(),
    lastUsedAt: instant.nullable(),
  })
  .openapi('Token');
const tokens = route('get', '/admin/tokens', 'Tokens for scripts', answers(z.object({ rows: z.array(token) })));
const createToken = route(
  'post',
  '/admin/tokens',
  'Make a token with the rights of a role; it is shown this once',
  answers(z.object({ view: token, token: z.string() })),
  {
    body: takes(
      z.strictObject({
        name: z.string().trim().min(1).max(100),
        role: z.enum(tokenRoles).default('operator'),
        expiresAt: instantInput.nullish(),
      }),
    ),
  },
);
const revokeToken = route('delete', '/admin/tokens/{id}', 'Revoke a token at once', answers(done), { params: one });

export function auditRoutes(services: ConsoleServices) {
  return new Routes(services)
    .list(auditList, auditJson, async ({ query: { limit: _limit, after: _after, ...filter } }, page) =>
      withVersions(services, await services.audit.list(filter, page)),
    )
    .file(auditCsv, ({ query: filter }) => {
      return csvAnswer('audit', auditColumns, async (page) =>
        listed(await withVersions(services, await services.audit.list(filter, page)), auditJson),
      );
    });
}

export function tokenRoutes(services: ConsoleServices) {
  return new Routes(services)
    .read(tokens, async () => ({ rows: (await services.tokens.list()).map(tokenJson) }))
    .action(createToken, ({ json: { name, role, expiresAt }, c }) => ({
      action: 'token.create',
      subject: name,
      changes: changesOf({ role, expiresAt: isoOrNull(expiresAt ?? undefined) }),
      run: async () => {
        const made = await services.tokens.create({
          name,
          role,
          expiresAt: expiresAt ?? undefined,
          createdBy: actorOf(c).label,
        });
        return { view: tokenJson(made.view), token: made.token };
      },
    }))
    .action(revokeToken, ({ param: { id } }) => ({
      action: 'token.revoke',
      subject: id,
      run: () => services.tokens.revoke(id),
    }));
}

const auditJson = writerOf(auditRow);

async function withVersions(services: ConsoleServices, { rows, next }: Page<AuditRow>) {
  const ids = rows.flatMap(({ action, id }) => (action.startsWith('config.') ? [id] : []));
  const versions = ids.length === 0 ? undefined : await services.history.versionsOf(ids);
  return { rows: rows.map((row) => ({ ...row, configVersion: versions?.get(row.id) })), next };
}

const tokenJson = writerOf(token);
