/** Operator commands for files. */
import type { Command } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { accounts } from '../common/domain/accounts.ts';
import type { FileRows } from './rows.ts';

export function commandsOf(host: Host, rows: FileRows): Command[] {
  return [
    {
      name: 'files usage',
      summary: 'Lists how many files each account has, and what they take.',
      async run() {
        const found = await rows.usage(host.clock.now());
        const lines = found.map(({ accountId, files, bytes }) => `${accountId}  ${files} files  ${bytes} bytes`);
        return { json: found, text: lines.length === 0 ? 'There are no files.' : lines.join('\n') };
      },
    },
    {
      name: 'files delete',
      summary: 'Removes the files of an account, or of one of its tasks: they are not found from now on.',
      arguments: ['<account>', '[task]'],
      async run({ account, task }) {
        const accountId = await idOf(host, String(account));
        const files = await rows.remove(accountId, task === undefined ? undefined : String(task), host.clock.now());
        return { json: { accountId, files }, text: `${files} files are removed.` };
      },
    },
  ];
}

/** By name or id; without a plugin for accounts, ids are used unchecked. */
async function idOf(host: Host, nameOrId: string): Promise<string> {
  const accountService = host.find(accounts);
  if (accountService === undefined) return nameOrId;
  const account = await accountService.find(nameOrId);
  if (account === undefined) {
    throw new GatewayError('not_found', `There is no account "${nameOrId}".`, { field: 'account' });
  }
  return account.id;
}
