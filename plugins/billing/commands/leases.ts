/**
 * The operator's commands on leases: list the nodes with their leases, release those of a node that will not
 * return.
 */
import type { Command } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database } from '../../common/domain/database.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { listNodes, releaseNode } from '../leases/store.ts';

export function leaseCommands({ orm, schema }: Database): Command[] {
  return [
    {
      name: 'leases',
      summary: 'Lists how much of the balances each process may spend without asking, and whether it still renews that',
      run: async () => {
        const nodes = (await listNodes(orm, schema)).map((node) => ({ ...node, amount: formatUsd(node.amount) }));
        const lines = nodes.map(({ node, accounts, amount, expired, expiresAt, seenAt }) => {
          const state = expired ? `expired ${expiresAt}, kept until its journal is back` : `until ${expiresAt}`;
          return `${node}  ${amount.padStart(14)} USD of ${accounts} accounts, ${state}, seen ${seenAt}`;
        });
        return { json: nodes, text: lines.length > 0 ? lines.join('\n') : 'No process holds a lease.' };
      },
    },
    {
      name: 'leases release',
      summary:
        'Gives back what a process had leased that will not return; what its journal says after all is charged in full',
      arguments: ['<node>'],
      run: async ({ node }) => {
        const released = typeof node === 'string' ? await releaseNode(orm, schema, node) : 0;
        if (released === 0) {
          const message =
            'There is no such node, or its leases still run: they end half a minute after it was seen last.';
          throw new GatewayError('not_found', message, { field: 'node' });
        }
        return { json: { node, released }, text: `The leases of ${released} accounts were given back.` };
      },
    },
  ];
}
