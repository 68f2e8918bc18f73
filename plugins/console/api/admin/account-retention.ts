/** Whether anything of an account's calls is kept: set by operators, with a reason. */

import { z } from '@hono/zod-openapi';
import { accountAdmin } from '../../services.ts';
import { changesBetween } from '../routing/audit-changes.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, reasonInput, takes } from '../schemas.ts';
import { knownAccount } from './accounts.ts';

const setRetention = route(
  'post',
  '/admin/accounts/{id}/retention',
  "Keep nothing of an account's calls, or what the settings say",
  answers(done),
  {
    params: z.object({ id }),
    body: takes(
      z.strictObject({
        retention: z.enum(['none']).nullable().describe('null: what the settings say.'),
        reason: reasonInput,
      }),
    ),
  },
);

export function accountRetentionRoutes(services: ConsoleServices) {
  return new Routes(services).action(setRetention, async ({ param, json: { retention, reason } }) => {
    const { id: subject, retention: before = null } = await knownAccount(services, param.id);
    const run = () => need(services, accountAdmin).setRetention(subject, retention ?? undefined);
    const changes = changesBetween({ retention: before }, { retention });
    return { action: 'account.retention', subject, reason: `${retention ?? 'default'}: ${reason}`, changes, run };
  });
}
