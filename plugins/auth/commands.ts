/** Operator commands for accounts and keys. */

import type { Command, CommandResult } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { count, duration } from '../../core/contract/schema.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { ImageAnswer, KeyCap } from '../common/domain/accounts.ts';
import type { AccountAdmin, KeyTerms } from '../common/domain/admin/accounts.ts';
import { type Ledger, ledger } from '../common/domain/ledger.ts';
import { priceFloor } from '../common/domain/models.ts';
import { formatUsd, type Money, parseRatio, parseUsd, type Ratio } from '../common/domain/money.ts';
import { type Limits, plans } from '../common/domain/plans.ts';
import { amountOf, columns, type Values } from '../common/kit/commands/arguments.ts';
import { type AccountService, noAccount } from './accounts.ts';
import { capOf } from './key-terms.ts';
import { retentionCommand } from './retention-command.ts';
import type { AccountRow, KeyRow } from './store.ts';

export function accountCommands(
  host: Host,
  accountService: AccountService,
  admin: Pick<AccountAdmin, 'rename'>,
): Command[] {
  return [
    {
      name: 'accounts create',
      summary: 'Creates an account.',
      arguments: ['<name>'],
      options: {
        '--plan <name>': 'plan of the account; without it the default plan',
        '--credit <usd>': 'USD to start with, such as 10 or 2.50',
      },
      run: (values) => createAccount(host, accountService, values),
    },
    {
      name: 'accounts list',
      summary: 'Lists the accounts.',
      run: async () => listAccounts(await accountService.list(), host.clock.now()),
    },
    {
      name: 'accounts rename',
      summary: 'Gives an account another name, by which commands and settings find it from now on.',
      arguments: ['<name>', '<new-name>'],
      run: async (values) => {
        const { id, name } = await accountNamed(accountService, text(values, 'name') ?? '');
        await admin.rename(id, text(values, 'newName') ?? '');
        const renamed = await accountNamed(accountService, id);
        return { json: renamed, text: `Account "${name}" (${id}) is now "${renamed.name}".` };
      },
    },
    switchCommand(accountService, 'accounts disable', 'Refuses every key of an account from now on.', true),
    switchCommand(accountService, 'accounts enable', 'Lets a disabled account in again.', false),
    {
      name: 'accounts multiplier',
      summary: "Sets an account's own price ratio, on top of plan and model; 1 takes it back.",
      arguments: ['<name>', '<ratio>'],
      options: { '--below-cost': 'also where models are then sold below their cost' },
      run: (values) => setMultiplier(host, accountService, values),
    },
    retentionCommand(accountService),
  ];
}

export function keyCommands(host: Host, accountService: AccountService): Command[] {
  return [
    {
      name: 'keys create',
      summary: 'Creates an API key and shows it once.',
      options: {
        '--account <name>': 'account that the key belongs to, by name or id',
        '--name <name>': 'what the key is for',
        '--project <name>': 'project that the key belongs to: its spending is summed up with that of the others',
        '--models <list>': 'models the key may call, separated by commas; without it all',
        '--tools <list>':
          'tools the key may call, as crm/search_*, a server or a bundle, separated by commas; beside these it may call the models of --models alone',
        '--expires <when>': 'date such as 2030-01-31 or duration such as 30d; without it never',
        '--addresses <list>': 'addresses and ranges it may be used from, separated by commas; without it anywhere',
        '--rpm <n>': 'requests per minute of this key alone',
        '--tpm <n>': 'tokens per minute of this key alone',
        '--cap <usd>': 'USD that it may spend, such as 20, or 5/day, 50/week, 100/month',
        '--tags <list>':
          'what its calls are for, separated by commas: team=search for all of them, env for a value that requests say',
        '--regions <list>': 'regions in which its calls may be processed, separated by commas; without it anywhere',
        '--access <what>':
          'organization: a key that administers its account below /v1/organization/, and calls nothing',
        '--images <task|wait>': 'what orders of images are answered with: their task, or after a wait the images',
      },
      run: (values) => createKey(host, accountService, values),
    },
    {
      name: 'keys list',
      summary: 'Lists keys by their prefix, never in full.',
      options: { '--account <name>': 'only the keys of this account' },
      run: (values) => listKeys(accountService, text(values, 'account')),
    },
    {
      name: 'keys project',
      summary: 'Puts a key into a project, with its calls from now on; without a name takes it out.',
      arguments: ['<key>', '[project]'],
      run: async (values) => {
        const changed = await accountService.setProject(text(values, 'key') ?? '', text(values, 'project'));
        const { prefix, project } = changed;
        return {
          json: changed,
          text: `Key ${prefix}… is in ${project === null ? 'no project' : `project "${project}"`}.`,
        };
      },
    },
    {
      name: 'keys rotate',
      summary: 'Gives a key another secret and shows it once; limits, cap, project and what it has spent stay.',
      arguments: ['<key>'],
      options: {
        '--overlap <time>':
          'how long the earlier secret works too, at most 30d; none ends it and all before. Default: 24h',
      },
      run: (values) => rotateKey(accountService, values),
    },
    {
      name: 'keys revoke',
      summary: 'Ends a key within a second.',
      arguments: ['<key>'],
      run: async (values) => {
        const revoked = await accountService.revokeKey(text(values, 'key') ?? '');
        return { json: revoked, text: `Key ${revoked.prefix}… is revoked since ${revoked.revokedAt.toISOString()}.` };
      },
    },
  ];
}

async function createAccount(host: Host, accountService: AccountService, values: Values): Promise<CommandResult> {
  const known = host.find(plans);
  const plan = text(values, 'plan') ?? known?.default ?? 'default';
  if (known !== undefined && !known.has(plan)) throw invalid(`There is no plan "${plan}".`, 'plan');
  const credit = text(values, 'credit');
  const opening = credit === undefined ? undefined : openingCredit(host, credit);
  const account = await accountService.create(text(values, 'name') ?? '', plan);
  if (opening === undefined)
    return { json: account, text: `Account "${account.name}" (${account.id}) on plan ${plan}.` };
  const balance = formatUsd(
    await opening.accountService.credit(account.id, opening.amount, {
      kind: 'top-up',
      reason: 'opening credit',
      reference: `opening:${account.id}`,
    }),
  );
  return {
    json: { ...account, balance },
    text: `Account "${account.name}" (${account.id}) on plan ${plan} with ${balance} USD.`,
  };
}

/** Checked before the account is created, so that a mistyped amount leaves no account. */
function openingCredit(host: Host, amountText: string): { accountService: Ledger; amount: Money } {
  const accountService = host.find(ledger);
  if (accountService === undefined)
    throw invalid('This gateway keeps no ledger, so an account cannot have credit.', 'credit');
  return { accountService, amount: amountOf(amountText, 'credit') };
}

function listAccounts(rows: readonly AccountRow[], now: number): CommandResult {
  const lines = rows.map((row) => [
    row.name,
    row.plan,
    endText(row.planEndsAt, now),
    row.multiplier ?? '1',
    row.disabled ? 'disabled' : 'active',
    row.id,
  ]);
  return { json: rows, text: columns(['NAME', 'PLAN', 'ENDS', 'RATIO', 'STATE', 'ID'], lines) };
}

/** An account keeps its plan's name after the plan's end, so that it can be renewed; the default plan applies then. */
function endText(endsAt: Date | null, now: number): string {
  if (endsAt === null) return 'never';
  return endsAt.getTime() <= now ? `ended ${endsAt.toISOString()}` : endsAt.toISOString();
}

function switchCommand(accountService: AccountService, name: string, summary: string, disabled: boolean): Command {
  return {
    name,
    summary,
    arguments: ['<name>'],
    run: async (values) => {
      const account = await accountNamed(accountService, text(values, 'name') ?? '');
      await accountService.setDisabled(account.id, disabled);
      const state = disabled ? 'disabled' : 'active';
      return { json: { ...account, disabled }, text: `Account "${account.name}" is ${state}.` };
    },
  };
}

async function setMultiplier(host: Host, accountService: AccountService, values: Values): Promise<CommandResult> {
  const account = await accountNamed(accountService, text(values, 'name') ?? '');
  const written = text(values, 'ratio') ?? '';
  const multiplier = readRatio(written);
  const losses = host.find(priceFloor)?.losses(multiplier) ?? [];
  if (losses.length > 0 && values['belowCost'] !== true) {
    const more = losses.length > 1 ? ` (and ${losses.length - 1} more)` : '';
    throw invalid(`With this ratio ${losses[0]}${more}; --below-cost sets it all the same.`, 'ratio');
  }
  const isOne = multiplier.numerator === multiplier.denominator;
  await accountService.setMultiplier(account.id, isOne ? undefined : written);
  const json = { ...account, multiplier: isOne ? null : written };
  return {
    json,
    text: `Account "${account.name}" pays ${isOne ? 'the price of its plan' : `its plan's price × ${written}`}.`,
  };
}

function readRatio(written: string): Ratio {
  try {
    return parseRatio(written);
  } catch (error) {
    throw invalid(`${(error as Error).message}.`, 'ratio');
  }
}

async function createKey(host: Host, accountService: AccountService, values: Values): Promise<CommandResult> {
  const owner = text(values, 'account');
  if (owner === undefined) throw invalid('Name the account that the key belongs to: --account NAME.', 'account');
  const account = await accountNamed(accountService, owner);
  const name = text(values, 'name') ?? 'default';
  const tools = listed(values, 'tools');
  const models = tools === undefined ? listed(values, 'models') : [...(listed(values, 'models') ?? []), ...tools];
  const expires = text(values, 'expires');
  const expiresAt = expires === undefined ? undefined : readExpiry(expires, host.clock.now());
  const addresses = listed(values, 'addresses');
  const limits = { ...counted(values, 'rpm'), ...counted(values, 'tpm') };
  const cap = text(values, 'cap');
  const terms = {
    name,
    project: text(values, 'project'),
    models,
    expiresAt: expiresAt?.getTime(),
    addresses,
    limits,
    cap: cap === undefined ? undefined : readCap(cap),
    images: text(values, 'images') as ImageAnswer | undefined,
    tags: listed(values, 'tags'),
    regions: listed(values, 'regions'),
    access: text(values, 'access') as KeyTerms['access'],
  };
  const created = await accountService.makeKey(account.id, terms);
  return {
    json: { ...created, account: account.name, ...terms, models: models ?? null, expiresAt: expiresAt ?? null },
    text: `${created.key}\n\nKey "${name}" of account "${account.name}". It is shown this once; keep it safe.`,
  };
}

async function rotateKey(accountService: AccountService, values: Values): Promise<CommandResult> {
  const overlap = text(values, 'overlap') ?? '24h';
  const parsed = duration().safeParse(overlap === 'none' ? '0s' : overlap);
  if (!parsed.success) throw invalid(`--overlap ${parsed.error.issues[0]!.message}, or none.`, 'overlap');
  const rotated = await accountService.rotateKey(text(values, 'key') ?? '', parsed.data);
  const { overlapEndsAt } = rotated;
  const end = overlapEndsAt === undefined ? 'has ended' : `works until ${new Date(overlapEndsAt).toISOString()}`;
  return {
    json: { ...rotated, overlapEndsAt: overlapEndsAt === undefined ? null : new Date(overlapEndsAt) },
    text: `${rotated.key}\n\nThe secret is shown this once; keep it safe. The one before ${end}.`,
  };
}

function listed(values: Values, name: string): string[] | undefined {
  return text(values, name)
    ?.split(',')
    .map((entry) => entry.trim());
}

function counted(values: Values, name: 'rpm' | 'tpm'): Limits {
  const written = text(values, name);
  if (written === undefined) return {};
  const read = count().safeParse(written);
  if (!read.success) throw invalid(`"${written}" is not a whole number such as 600 or 40k.`, name);
  return { [name]: read.data };
}

/** `20`: in total; `5/day`: per period. */
function readCap(written: string): KeyCap {
  const [amount = '', every = 'ever'] = written.split('/');
  const period = (['day', 'week', 'month', 'ever'] as const).find((name) => name === every);
  try {
    if (period !== undefined) return { amount: parseUsd(amount), every: period };
  } catch {
    // Falls through to the common error.
  }
  throw invalid(`"${written}" is not an amount of USD such as 20, 5/day, 50/week or 100/month.`, 'cap');
}

/** `30d` from now, or a date; a date without a zone is UTC. */
function readExpiry(expires: string, now: number): Date {
  const span = duration().safeParse(expires);
  const at = span.success ? new Date(now + span.data) : new Date(utc(expires));
  if (!Number.isNaN(at.getTime())) return at;
  throw invalid(`"${expires}" is neither a date such as 2030-01-31 nor a duration such as 30d.`, 'expires');
}

function utc(date: string): string {
  if (!/^\d{4}-\d\d-\d\d/.test(date)) return 'not a date';
  return /T[\d:.]+$/.test(date) ? `${date}Z` : date;
}

async function listKeys(accountService: AccountService, owner: string | undefined): Promise<CommandResult> {
  const account = owner === undefined ? undefined : await accountNamed(accountService, owner);
  const rows = await accountService.listKeys(account?.id);
  const day = (date: Date | null, otherwise: string) => date?.toISOString().slice(0, 10) ?? otherwise;
  const lines = rows.map((row) => [
    [`${row.prefix}…`, ...row.replaced.map(({ prefix, endsAt }) => `${prefix}… until ${minuteOf(endsAt)}`)].join(', '),
    row.account,
    row.name,
    row.project ?? '',
    row.models?.join(',') ?? 'all',
    boundsOf(row),
    row.revokedAt === null ? day(row.expiresAt, 'never') : `revoked ${day(row.revokedAt, '')}`,
    day(row.lastUsedAt, 'never'),
    row.id,
  ]);
  return {
    json: rows,
    text: columns(['KEY', 'ACCOUNT', 'NAME', 'PROJECT', 'MODELS', 'BOUNDS', 'EXPIRES', 'LAST USED', 'ID'], lines),
  };
}

/** `2026-11-30 08:30Z` */
const minuteOf = (at: number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}Z`;

/** `from 192.0.2.7, rpm 60, 5.00/day`; `none`. */
function boundsOf(row: KeyRow): string {
  const cap = capOf(row);
  const bounds = [
    ...(row.addresses === null ? [] : [`from ${row.addresses.join(' ')}`]),
    ...Object.entries(row.limits ?? {}).map(([name, value]) => `${name} ${value}`),
    ...(cap === undefined ? [] : [`${formatUsd(cap.amount)}${cap.every === 'ever' ? ' in all' : `/${cap.every}`}`]),
    ...(row.images === null ? [] : [`images ${row.images}`]),
  ];
  return bounds.join(', ') || 'none';
}

async function accountNamed(accountService: AccountService, nameOrId: string): Promise<AccountRow> {
  const account = await accountService.find(nameOrId);
  if (account === undefined) throw noAccount(nameOrId);
  return account;
}

function text(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}
