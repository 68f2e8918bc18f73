/** The operator's commands that move money: credit, debit, refund. */

import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { invalid } from '../../../core/json/request-body.ts';
import type { Account } from '../../common/domain/accounts.ts';
import { formatUsd, type Money, money, parseUsd } from '../../common/domain/money.ts';
import { spanOf, textOf, type Values } from '../../common/kit/commands/arguments.ts';
import { type CommandTools, findAccount } from './arguments.ts';

const reference = { '--reference <text>': 'Names the event: a second one of the same reference changes nothing' };

export function moneyCommands(tools: CommandTools): Command[] {
  return [
    {
      name: 'accounts credit',
      summary: 'Adds money to an account',
      arguments: ['<name>', '<usd>'],
      options: {
        '--reason <text>': 'Why, for the ledger',
        '--kind <kind>': 'top-up (if not said otherwise) or promotion',
        '--lasts <time>': 'How long the money lasts, such as 30d; without it for good',
        ...reference,
      },
      run: (values) => credit(tools, values),
    },
    {
      name: 'accounts debit',
      summary: 'Takes money from an account: what expires first, first',
      arguments: ['<name>', '<usd>'],
      options: { '--reason <text>': 'Why, for the ledger', ...reference },
      run: (values) => debit(tools, values),
    },
    {
      name: 'accounts refund',
      summary: 'Refunds a charge, or debits the rest of a credit that was paid back outside',
      arguments: ['<name>', '<usd>'],
      options: {
        '--request <id>': 'the settled request that is given back, or a part of it',
        '--credit <reference>': 'the credit that was paid back outside, or a part of it',
        '--reason <text>': 'Why, for the ledger',
        ...reference,
      },
      run: (values) => refund(tools, values),
    },
  ];
}

interface Movement {
  readonly account: Account;
  readonly amount: Money;
  readonly reason: string;
  readonly reference: string;
}

async function readMovement({ host }: CommandTools, values: Values): Promise<Movement> {
  const reason = values['reason'];
  if (typeof reason !== 'string' || reason === '') throw invalid('--reason says why, for the ledger.', 'reason');
  const account = await findAccount(host, values['name']);
  const given = textOf(values, 'reference');
  return {
    account,
    amount: readAmount(values['usd']),
    reason,
    reference: given ?? `command:${host.random.bytes(16).toString('hex')}`,
  };
}

async function credit(tools: CommandTools, values: Values): Promise<CommandResult> {
  const { account, amount, ...entry } = await readMovement(tools, values);
  const kind = textOf(values, 'kind') ?? 'top-up';
  if (kind !== 'top-up' && kind !== 'promotion') throw invalid('--kind is top-up or promotion.', 'kind');
  const lastsMs = spanOf(values, 'lasts');
  const expiresAt = lastsMs === undefined ? undefined : tools.host.clock.now() + lastsMs;
  await tools.ledger.credit(account.id, amount, { kind, ...entry, expiresAt });
  const balance = await balanceOf(tools, account);
  const json = { account: account.name, credited: formatUsd(amount), balance };
  return { json, text: `${account.name} was credited ${json.credited} USD; its balance is ${balance} USD.` };
}

async function debit(tools: CommandTools, values: Values): Promise<CommandResult> {
  const { account, amount, ...entry } = await readMovement(tools, values);
  await tools.pool.debit(account.id, amount, entry);
  const balance = await balanceOf(tools, account);
  const json = { account: account.name, debited: formatUsd(amount), balance };
  return { json, text: `${account.name} was debited ${json.debited} USD; its balance is ${balance} USD.` };
}

async function refund(tools: CommandTools, values: Values): Promise<CommandResult> {
  const [request, of] = [textOf(values, 'request'), textOf(values, 'credit')];
  if ((request === undefined) === (of === undefined)) {
    throw invalid('Name the refunded charge or credit: --request ID or --credit REFERENCE.', 'of');
  }
  const { account, amount, ...entry } = await readMovement(tools, values);
  if (request === undefined) await tools.pool.refundCredit(account.id, of!, amount, entry);
  else await tools.pool.refundRequest(account.id, request, amount, entry);
  const balance = await balanceOf(tools, account);
  const json = { account: account.name, refunded: formatUsd(amount), of: request ?? of, balance };
  return { json, text: `${json.refunded} USD were refunded; the balance of ${account.name} is ${json.balance} USD.` };
}

/** The account's money, with holds of running calls, as the ledger's lines add up to it. */
async function balanceOf({ pool }: CommandTools, { id }: Account): Promise<string> {
  const { balance, held } = await pool.view(id);
  return formatUsd(money(balance + held));
}

export function readAmount(value: unknown): Money {
  try {
    return parseUsd(String(value));
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'usd' });
  }
}
