/** Commands about payments: list them, and reconcile one now. */
import type { Command, CommandResult } from '../../core/contract/commands.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { formatUsd } from '../common/domain/money.ts';
import { countOf, textOf } from '../common/kit/commands/arguments.ts';
import { uuidForm } from '../common/kit/paging.ts';
import { orderOfSession } from './restored.ts';
import type { Order } from './rows.ts';
import type { SettlementServices } from './services.ts';
import { lookAt } from './settlement.ts';

const usual = 50;
const most = 1_000;

export function commandsOf(services: SettlementServices): Command[] {
  return [
    {
      name: 'payments list',
      summary: 'Lists payments, newest first, with how each stands here and its name at the payment service',
      options: { '--account <id>': 'Only those of this account', '--limit <n>': `How many (${usual})` },
      run: async (values) => {
        const count = countOf(values, 'limit', usual, most);
        return resultOf(await services.rows.page(textOf(values, 'account'), count, undefined));
      },
    },
    {
      name: 'payments look',
      summary:
        'Asks the payment service how a payment stands, by its id here or there (cs_…), and does what follows from that',
      arguments: ['<payment>'],
      run: async ({ payment }) => {
        const name = String(payment);
        const isSession = /^cs_\w+$/.test(name);
        const known = uuidForm.test(name) ? await services.rows.find({ id: name }) : undefined;
        const order = isSession ? await orderOfSession(services, name) : known;
        if (order === undefined)
          throw new GatewayError('not_found', 'There is no payment of this id.', { field: 'payment' });
        await lookAt(services, order);
        return resultOf([(await services.rows.find({ id: order.id }))!]);
      },
    },
  ];
}

function resultOf(orders: readonly Order[]): CommandResult {
  const json = orders.map(({ id, accountId, amount, state, session, createdAt, refunded }) => ({
    id,
    account: accountId,
    usd: formatUsd(amount),
    paid_back: formatUsd(refunded),
    state,
    session: session ?? null,
    created_at: new Date(createdAt).toISOString(),
  }));
  const lines = json.map(({ id, account, usd, paid_back: back, state, session, created_at: at }) => {
    const returned = back === '0.00' ? '' : `, ${back} of it paid back`;
    return `${at}  ${state.padEnd(8)}  ${usd.padStart(9)} USD${returned}  ${account}  ${id}  ${session ?? ''}`.trimEnd();
  });
  return { json, text: lines.length > 0 ? lines.join('\n') : 'There are no payments.' };
}
