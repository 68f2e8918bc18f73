/** The command that says whether anything of an account's calls is kept. */
import type { Command, CommandResult } from '../../core/contract/commands.ts';
import { invalid } from '../../core/json/request-body.ts';
import { textOf, type Values } from '../common/kit/commands/arguments.ts';
import { type AccountService, noAccount } from './accounts.ts';

export function retentionCommand(accountService: AccountService): Command {
  return {
    name: 'accounts retention',
    summary: 'With none, keeps nothing of what an account sends and gets, from now on; default takes it back.',
    arguments: ['<name>', '<retention>'],
    run: (values) => setRetention(accountService, values),
  };
}

async function setRetention(accountService: AccountService, values: Values): Promise<CommandResult> {
  const name = textOf(values, 'name') ?? '';
  const account = await accountService.find(name);
  if (account === undefined) throw noAccount(name);
  const retention = retentionIn(values);
  await accountService.setRetention(account.id, retention);
  const kept = retention === 'none' ? 'Nothing of the calls of' : 'What the settings say of the calls of';
  return {
    json: { ...account, retention: retention ?? null },
    text: `${kept} account "${account.name}" is kept from now on. What was kept before stays for its time.`,
  };
}

/** undefined: what the settings say. Throws invalid_request. */
function retentionIn(values: Values): 'none' | undefined {
  const written = textOf(values, 'retention');
  if (written === 'none') return written;
  if (written === 'default') return undefined;
  throw invalid('The retention is "none" or "default".', 'retention');
}
