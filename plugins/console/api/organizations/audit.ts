/** What members of the chosen account and operators have done in it. */
import { z } from '@hono/zod-openapi';
import { accountLog } from '../../members/account-log.ts';
import type { AuditRow } from '../../people.ts';
import { type ConsoleServices, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, instant, instantInput, pageOf, pageQuery, writerOf } from '../schemas.ts';

const row = z
  .object({
    id: z.string(),
    at: instant,
    actor: z.string().describe("Address of the person; the gateway's name: one of its operators."),
    action: z.string(),
    subject: z.string(),
    result: z.string().describe('`done`, the code of the error, or `begun` where the end is not known.'),
    changes: z.array(z.object({ field: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
  })
  .openapi('AccountAuditRow');
const list = route(
  'get',
  '/members/audit',
  'What members and operators have done, newest first',
  answers(pageOf(row)),
  {
    query: pageQuery.extend({
      from: instantInput.optional(),
      until: instantInput.optional(),
      actor: z.string().max(200).optional(),
      action: z.string().max(100).optional(),
    }),
  },
);
const rowJson = writerOf(row);

export function memberAuditRoutes(services: ConsoleServices) {
  return new Routes(services).list(
    list,
    (found: AuditRow) => rowJson({ ...found, changes: [...found.changes] }),
    async ({ c, query: { from, until, actor, action } }, page) =>
      accountLog(services, await ownAccount(services, c), { from, until, actor, action }, page),
  );
}
