/** Commands about redeem codes. */

import type { Command, CommandResult } from '../../core/contract/commands.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { CodeGift, CodeView } from '../common/domain/admin/shop.ts';
import { formatUsd } from '../common/domain/money.ts';
import {
  accountOf,
  amountOf,
  columns,
  countOf,
  spanOf,
  textOf,
  timeText,
  type Values,
} from '../common/kit/commands/arguments.ts';
import type { CodeLists } from './code-lists.ts';
import { endCodes, makeCodes, mostCodes, mostDays, mostUses } from './codes.ts';
import type { PlanTools } from './plan-commands.ts';
import type { CodeStore } from './store.ts';

export interface CodeTools extends PlanTools {
  readonly codes: CodeStore;
  readonly lists: CodeLists;
}

export function codeCommands(tools: CodeTools): Command[] {
  const { lists, host } = tools;
  return [
    {
      name: 'codes create',
      summary: 'Makes redeem codes and shows them this once.',
      options: {
        '--usd <amount>': 'the code gives this much money',
        '--lasts <time>': 'how long that money lasts once redeemed, such as 30d; without it for good',
        '--plan <name>': 'the code gives this plan, for as long as it is sold for',
        '--days <n>': 'with --plan: for so many days instead',
        '--count <n>': 'how many codes (1)',
        '--uses <n>': 'how many times each may be redeemed (1), once by each account',
        '--repeatable': 'an account may redeem a code of several uses more than once',
        '--expires <time>': 'the code can be redeemed for so long, such as 30d; without it for good',
        '--batch <name>': 'name of the batch, for listing, export and revoking',
      },
      run: (values) => createCodes(tools, values),
    },
    {
      name: 'codes list',
      summary: 'Lists codes by their first characters, never in full.',
      options: { '--batch <name>': 'only the codes of this batch' },
      run: async (values) => listCodes(await codesIn(lists, values), host.clock.now()),
    },
    {
      name: 'codes export',
      summary: 'Writes the codes of a batch and what became of them as CSV.',
      options: { '--batch <name>': 'only the codes of this batch' },
      run: async (values) => exportCodes(await codesIn(lists, values), host.clock.now()),
    },
    {
      name: 'codes revoke',
      summary: 'Ends a code, or all codes of a batch; redeemed values stay.',
      arguments: ['<code>'],
      run: (values) => revokeCodes(tools, values),
    },
    {
      name: 'codes redeem',
      summary: 'Redeems a code for an account.',
      arguments: ['<code>'],
      options: { '--account <name>': 'account that gets what the code gives, by name or id' },
      run: (values) => redeem(tools, values),
    },
  ];
}

async function createCodes({ host, codes, plans }: CodeTools, values: Values): Promise<CommandResult> {
  const gift = readGift(values);
  const maxUses = countOf(values, 'uses', 1, mostUses);
  const lifeMs = spanOf(values, 'expires');
  const made = await makeCodes(
    { codes, plans, clock: host.clock, random: host.random },
    {
      batch: textOf(values, 'batch'),
      gift,
      count: countOf(values, 'count', 1, mostCodes),
      maxUses,
      oncePerAccount: values['repeatable'] !== true,
      expiresAt: lifeMs === undefined ? undefined : host.clock.now() + lifeMs,
    },
  );
  return {
    json: { batch: made.batch, gift: giftText(gift), uses: maxUses, codes: made.codes },
    text: made.codes.join('\n'),
  };
}

function readGift(values: Values): CodeGift {
  const [usd, plan] = [textOf(values, 'usd'), textOf(values, 'plan')];
  const lastsMs = spanOf(values, 'lasts');
  if ((usd === undefined) === (plan === undefined))
    throw invalid('A code gives either --usd AMOUNT or --plan NAME.', 'usd');
  if (usd !== undefined) {
    if (textOf(values, 'days') !== undefined) throw invalid('--days belongs to --plan.', 'days');
    return { kind: 'balance', amount: amountOf(usd, 'usd'), lastsMs };
  }
  if (lastsMs !== undefined) throw invalid('--lasts belongs to --usd; a plan takes --days.', 'lasts');
  if (textOf(values, 'days') === undefined) return { kind: 'plan', plan: plan! };
  return { kind: 'days', plan: plan!, days: countOf(values, 'days', 0, mostDays) };
}

function giftText(gift: CodeGift): string {
  if (gift.kind === 'balance') return `${formatUsd(gift.amount)} USD`;
  return gift.kind === 'plan' ? `plan ${gift.plan}` : `${gift.days} days of plan ${gift.plan}`;
}

/** All codes, or those of one batch. Throws for an unknown batch. */
async function codesIn(lists: CodeLists, values: Values): Promise<CodeView[]> {
  const batch = textOf(values, 'batch');
  const found = await lists.list(batch);
  if (batch !== undefined && found.length === 0)
    throw new GatewayError('not_found', `There is no batch "${batch}".`, { field: 'batch' });
  return found;
}

function stateOf({ revokedAt, expiresAt, uses, maxUses }: CodeView, now: number): string {
  if (uses >= maxUses) return 'used';
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : 'open';
}

function viewOf(code: CodeView, now: number) {
  return {
    id: code.id,
    prefix: code.prefix,
    batch: code.batch,
    gift: giftText(code.gift),
    state: stateOf(code, now),
    uses: code.uses,
    max_uses: code.maxUses,
    once_per_account: code.oncePerAccount,
    created_at: timeText(code.createdAt, ''),
    expires_at: timeText(code.expiresAt, ''),
    revoked_at: timeText(code.revokedAt, ''),
  };
}

function listCodes(list: readonly CodeView[], now: number): CommandResult {
  const json = list.map((code) => viewOf(code, now));
  const rows = json.map((code) => [
    `${code.prefix}…`,
    code.batch,
    code.gift,
    code.state,
    `${code.uses}/${code.max_uses}`,
    code.expires_at || 'never',
    code.id,
  ]);
  return { json, text: columns(['CODE', 'BATCH', 'GIVES', 'STATE', 'USES', 'EXPIRES', 'ID'], rows) };
}

/** CSV (RFC 4180) without the codes themselves, which are shown only once, when they are made. */
function exportCodes(list: readonly CodeView[], now: number): CommandResult {
  const json = list.map((code) => viewOf(code, now));
  const cell = (value: unknown) => {
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const heading = 'id,prefix,batch,gift,state,uses,max_uses,once_per_account,created_at,expires_at,revoked_at';
  return { json, text: [heading, ...json.map((code) => Object.values(code).map(cell).join(','))].join('\n') };
}

async function revokeCodes({ codes, host }: CodeTools, values: Values): Promise<CommandResult> {
  const named = textOf(values, 'code') ?? '';
  const revoked = await endCodes({ codes, clock: host.clock }, named);
  if (revoked === 0) {
    throw new GatewayError('not_found', 'There is no open code or batch of this name.', { field: 'code' });
  }
  return { json: { revoked }, text: `Revoked: ${revoked}.` };
}

async function redeem({ accounts, shop }: CodeTools, values: Values): Promise<CommandResult> {
  const account = await accountOf(accounts, values);
  const { amount, plan, endsAt, balance } = await shop.redeem(account.id, textOf(values, 'code') ?? '');
  const ends = timeText(endsAt, 'never');
  const given = amount === undefined ? `plan ${plan}, which ends: ${ends}` : `${formatUsd(amount)} USD`;
  return {
    json: {
      account: account.name,
      amount: amount === undefined ? null : formatUsd(amount),
      plan: plan ?? null,
      ends: plan === undefined ? null : ends,
      balance: formatUsd(balance),
    },
    text: `${account.name} was given ${given}; the balance is ${formatUsd(balance)} USD.`,
  };
}
