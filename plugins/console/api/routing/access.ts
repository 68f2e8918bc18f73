/** Which role may use which route: the one table. A route that is not in it is refused to all. */
import { table } from '../../../../core/contract/table.ts';
import type { Actor, Role } from '../../actor.ts';

/**
 * `public`: no session needed. `person`: a signed-in person. `own`: people with an account of their own, for that account
 * only. `any`: every role, tokens too. `read`: auditors and operators. `act`: operators.
 */
export type Access = 'public' | 'person' | 'own' | 'any' | 'read' | 'act';

export const access: Readonly<Record<string, Access>> = table({
  'GET /openapi.json': 'any',
  'GET /info': 'public',
  'POST /first-operator': 'public',
  'GET /me': 'any',
  'PATCH /me': 'person',
  'GET /home': 'own',
  'GET /keys': 'own',
  'POST /keys': 'own',
  'PATCH /keys/:id': 'own',
  'DELETE /keys/:id': 'own',
  'GET /usage': 'own',
  'GET /usage/sums': 'own',
  'GET /usage/series': 'own',
  'GET /usage.csv': 'own',
  'GET /usage/:id': 'own',
  'GET /models': 'any',
  'GET /tasks': 'own',
  'GET /tasks.csv': 'own',
  'GET /tasks/:id': 'own',
  'DELETE /tasks/:id': 'own',
  'GET /wallet': 'own',
  'GET /wallet/ledger': 'own',
  'GET /wallet/ledger.csv': 'own',
  'POST /wallet/redeem': 'own',
  'GET /wallet/plans': 'own',
  'POST /wallet/plans/:name': 'own',
  'GET /payments': 'own',
  'POST /payments/checkout': 'own',
  'GET /admin/monitor': 'read',
  'GET /admin/monitor/series': 'read',
  'GET /admin/monitor/groups': 'read',
  'GET /admin/upstreams': 'read',
  'POST /admin/upstreams/:provider/enable': 'act',
  'POST /admin/upstreams/:provider/disable': 'act',
  'POST /admin/upstreams/:provider/wake': 'act',
  'GET /admin/upstreams/:provider/choices': 'read',
  'POST /admin/upstreams/:provider/test': 'act',
  'GET /admin/accounts': 'read',
  'GET /admin/accounts/:id': 'read',
  'GET /admin/accounts/:id/ledger': 'read',
  'GET /admin/accounts/:id/keys': 'read',
  'GET /admin/accounts/:id/requests': 'read',
  'GET /admin/accounts/:id/tasks': 'read',
  'POST /admin/accounts/:id/credit': 'act',
  'POST /admin/accounts/:id/debit': 'act',
  'POST /admin/accounts/:id/plan': 'act',
  'POST /admin/accounts/:id/multiplier': 'act',
  'POST /admin/accounts/:id/disable': 'act',
  'POST /admin/accounts/:id/enable': 'act',
  'DELETE /admin/accounts/:id/keys/:keyId': 'act',
  'GET /admin/requests': 'read',
  'GET /admin/requests.csv': 'read',
  'GET /admin/requests/:id': 'read',
  'POST /admin/requests/:id/refund': 'act',
  // Clients' content is for operators, not for auditors.
  'GET /admin/requests/:id/bodies': 'act',
  'DELETE /admin/requests/:id/bodies': 'act',
  'DELETE /admin/accounts/:id/bodies': 'act',
  'GET /admin/recordings': 'act',
  'POST /admin/recordings': 'act',
  'DELETE /admin/recordings/:id': 'act',
  'GET /admin/people': 'read',
  'POST /admin/people': 'act',
  'PATCH /admin/people/:id': 'act',
  'POST /admin/people/:id/reset': 'act',
  'POST /admin/invitations': 'act',
  'GET /admin/plans': 'read',
  'GET /admin/codes': 'read',
  'POST /admin/codes': 'act',
  'GET /admin/codes/batches': 'read',
  'GET /admin/codes.csv': 'read',
  'POST /admin/codes/revoke': 'act',
  'GET /admin/prices': 'read',
  'GET /admin/prices/versions': 'read',
  'POST /admin/prices/quote': 'read',
  'GET /admin/tasks': 'read',
  'GET /admin/tasks.csv': 'read',
  'DELETE /admin/tasks/:id': 'act',
  'GET /admin/money': 'read',
  'POST /admin/money/reconcile': 'act',
  'GET /admin/ledger': 'read',
  'GET /admin/ledger.csv': 'read',
  'GET /admin/nodes': 'read',
  'GET /admin/audit': 'read',
  'GET /admin/audit.csv': 'read',
  'GET /admin/config': 'read',
  'POST /admin/config/check': 'act',
  'POST /admin/config/save': 'act',
  'POST /admin/config/reload': 'act',
  'GET /admin/tokens': 'act',
  'POST /admin/tokens': 'act',
  'DELETE /admin/tokens/:id': 'act',
});

const allowed: Readonly<Record<'any' | 'read' | 'act', readonly Role[]>> = {
  any: ['client', 'auditor', 'operator'],
  read: ['auditor', 'operator'],
  act: ['operator'],
};

/** Whether this actor may (undefined: no session). An auditor has no account of their own. */
export function mayAsk(needed: Access, actor: Actor | undefined): boolean {
  if (needed === 'public') return true;
  if (actor === undefined) return false;
  if (needed === 'person') return actor.kind === 'person';
  if (needed === 'own') return actor.kind === 'person' && actor.role !== 'auditor';
  return allowed[needed].includes(actor.role);
}
