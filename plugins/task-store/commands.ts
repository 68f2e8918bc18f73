/** What an operator does about tasks by hand. */
import type { Command, Host } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { accounts } from '../../core/vocabulary.ts';

export function commandsOf(host: Host, secretOf: (accountId: string) => Promise<string>): Command[] {
  return [
    {
      name: 'callbacks secret',
      summary: 'Tells what an account verifies its callbacks with.',
      arguments: ['<account>'],
      async run({ account: name }) {
        const account = await host.find(accounts)?.find(String(name));
        if (account === undefined)
          throw new GatewayError('not_found', `There is no account "${String(name)}".`, { field: 'account' });
        const secret = await secretOf(account.id);
        return { json: { account: account.name, secret }, text: secret };
      },
    },
  ];
}
