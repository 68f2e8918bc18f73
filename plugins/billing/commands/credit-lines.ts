/** The operator's commands on credit lines: what each account has and owes, and a decision on one. */
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Account } from '../../common/domain/accounts.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { type CreditLineView, creditLineAdmin } from '../../common/domain/organizations/credit-lines.ts';
import { textOf, type Values } from '../../common/kit/commands/arguments.ts';
import { findAccount } from './arguments.ts';
import { readAmount } from './money.ts';

const mostListed = 10_000;

export function creditCommands(host: Host): Command[] {
  return [
    {
      name: 'credit-lines show',
      summary: "Shows an account's credit line: what it may use each month, what it has used, paid and owes",
      arguments: ['<account>'],
      run: (values) => show(host, values),
    },
    {
      name: 'credit-lines set',
      summary:
        'Lets an account use this much each month before it pays; 0 stops that. "accounts credit" enters a payment',
      arguments: ['<account>', '<usd>'],
      options: { '--reason <text>': 'Why, for the ledger' },
      run: (values) => set(host, values),
    },
    {
      name: 'credit-lines unpaid',
      summary: 'Lists what accounts have to pay for months that have ended, by account',
      run: () => unpaid(host),
    },
  ];
}

async function show(host: Host, values: Values): Promise<CommandResult> {
  const account = await findAccount(host, values['account']);
  const view = await host.get(creditLineAdmin).find(account.id);
  if (view === undefined)
    return { json: { account: account.name, amount: null }, text: `${account.name} has no credit line.` };
  return shown(account, view);
}

async function set(host: Host, values: Values): Promise<CommandResult> {
  const reason = textOf(values, 'reason');
  if (reason === undefined) throw invalid('--reason says why, for the ledger.', 'reason');
  const account = await findAccount(host, values['account']);
  return shown(account, await host.get(creditLineAdmin).set(account.id, readAmount(values['usd']), reason));
}

function shown(account: Account, { amount, left, isStopped, months }: CreditLineView): CommandResult {
  const json = {
    ...{ account: account.name, amount: formatUsd(amount), left: formatUsd(left), stopped: isStopped },
    months: months.map(monthJson),
  };
  const state = isStopped ? ', stopped until it is paid' : '';
  const lines = [`${account.name} may use ${json.amount} USD a month${state}; ${json.left} USD are left.`];
  return { json, text: [...lines, ...json.months.map(lineOf)].join('\n') };
}

async function unpaid(host: Host): Promise<CommandResult> {
  const found = await host.get(creditLineAdmin).unpaid('', mostListed);
  const json = found.flatMap(({ accountId, months }) =>
    months.map((month) => ({ account: accountId, ...monthJson(month) })),
  );
  const text = json.map((month) => `${month.account}  ${lineOf(month)}`).join('\n');
  return { json, text: json.length === 0 ? 'Nothing is to be paid.' : text };
}

const monthJson = ({ month, used, paid, dueAt, state }: CreditLineView['months'][number]) => ({
  ...{ month, used: formatUsd(used), paid: formatUsd(paid), due: formatUsd(used - paid) },
  ...{ dueAt: new Date(dueAt).toISOString(), state },
});

function lineOf({ month, used, paid, due, dueAt, state }: ReturnType<typeof monthJson>): string {
  return `${month}  ${used} used  ${paid} paid  ${due} due by ${dueAt}  ${state}`;
}
