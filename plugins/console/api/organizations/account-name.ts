/** Another name for an account: by its owner, or by an operator. */
import { z } from '@hono/zod-openapi';
import { accountAdmin } from '../../services.ts';
import { knownAccount } from '../admin/accounts.ts';
import { changesBetween } from '../routing/audit-changes.ts';
import { type ConsoleServices, need, ownAccount } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, done, id, reasonInput, takes } from '../schemas.ts';

const name = z.string().trim().min(1).max(100);
const renameOwn = route('patch', '/account', 'Give the account another name', answers(done), {
  body: takes(z.strictObject({ name })),
});
const rename = route('post', '/admin/accounts/{id}/rename', 'Give an account another name', answers(done), {
  params: z.object({ id }),
  body: takes(z.strictObject({ name, reason: reasonInput })),
});

export function accountNameRoutes(services: ConsoleServices) {
  return new Routes(services)
    .action(renameOwn, async ({ c, json }) => renaming(services, await ownAccount(services, c), json))
    .action(rename, ({ param, json }) => renaming(services, param.id, json));
}

async function renaming(
  services: ConsoleServices,
  accountId: string,
  { name: wanted, reason }: { readonly name: string; readonly reason?: string },
) {
  const { name: subject } = await knownAccount(services, accountId);
  const run = () => need(services, accountAdmin).rename(accountId, wanted);
  return {
    action: 'account.rename',
    subject,
    reason,
    changes: changesBetween({ name: subject }, { name: wanted }),
    run,
  };
}
