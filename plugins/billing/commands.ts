/** The operator's commands about money: credit an account, show its ledger, check the invariants. */
import type { Command, CommandResult, Host } from '../../core/contract.ts';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd, type Money, parseUsd, unitPrice } from '../../core/money.ts';
import { type Price, pieceClasses, readCount, type Usage, type UsageClass, usageClasses } from '../../core/usage.ts';
import { type Account, accounts, type Ledger, type Pool } from '../../core/vocabulary.ts';
import type { AuditReport } from './audit.ts';
import type { StoredRow } from './rows.ts';

export interface CommandTools {
  readonly host: Host;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly readLedger: (accountId: string, limit: number) => Promise<StoredRow[]>;
  readonly audit: () => Promise<AuditReport>;
}

export function commandsOf(tools: CommandTools): Command[] {
  return [
    {
      name: 'accounts credit',
      summary: 'Adds money to an account',
      arguments: ['<name>', '<usd>'],
      options: { '--reason <text>': 'Why, for the ledger' },
      run: (values) => credit(tools, values),
    },
    {
      name: 'ledger',
      summary: "Shows an account's last ledger rows",
      options: { '--account <name>': 'Name or id of the account', '--limit <n>': 'How many rows (50)' },
      run: (values) => showLedger(tools, values),
    },
    {
      name: 'audit',
      summary: 'Checks the invariants of money; exit code 1 on a violation',
      run: () => showAudit(tools),
    },
  ];
}

type Values = Parameters<Command['run']>[0];

async function credit({ host, ledger }: CommandTools, values: Values): Promise<CommandResult> {
  const reason = values['reason'];
  if (typeof reason !== 'string' || reason === '') throw missing('reason', '--reason says why the money is given.');
  const account = await findAccount(host, values['name']);
  const amount = readAmount(values['usd']);
  const reference = `command:${host.random.bytes(16).toString('hex')}`;
  const balance = await ledger.credit(account.id, amount, { kind: 'top-up', reason, reference });
  const json = { account: account.name, credited: formatUsd(amount), balance: formatUsd(balance) };
  return { json, text: `${account.name} was credited ${json.credited} USD; its balance is ${json.balance} USD.` };
}

function readAmount(value: unknown): Money {
  try {
    return parseUsd(String(value));
  } catch (error) {
    throw new GatewayError('invalid_request', `${(error as Error).message}.`, { field: 'usd' });
  }
}

function missing(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field });
}

async function findAccount(host: Host, name: unknown): Promise<Account> {
  if (typeof name !== 'string' || name === '') throw missing('account', 'Name an account.');
  const directory = host.find(accounts);
  if (directory === undefined) throw new GatewayError('unsupported', 'This gateway has no accounts.');
  const account = await directory.find(name);
  if (account === undefined)
    throw new GatewayError('not_found', `There is no account "${name}".`, { field: 'account' });
  return account;
}

async function showLedger(tools: CommandTools, values: Values): Promise<CommandResult> {
  const account = await findAccount(tools.host, values['account']);
  const limit = readCount(values['limit'] ?? 50);
  if (limit === undefined || limit < 1 || limit > 10_000) {
    throw missing('limit', '--limit is a whole number from 1 to 10,000.');
  }
  const rows = (await tools.readLedger(account.id, limit)).map((row) => ({
    seq: row.seq,
    kind: row.kind,
    request: row.request_id,
    amount: formatUsd(BigInt(row.amount)),
    balance_after: formatUsd(BigInt(row.balance_after)),
    formula: formulaOf(row.detail),
    detail: row.detail,
    created_at: row.created_at,
  }));
  const lines = rows.map((row) =>
    [row.created_at, row.kind.padEnd(6), row.amount.padStart(14), row.balance_after.padStart(14), row.formula].join(
      '  ',
    ),
  );
  return { json: { account: account.name, rows }, text: lines.join('\n') || `${account.name} has no ledger rows.` };
}

/** `1200 input × 2.50 + 300 output × 10.00 per million, × 8/5 (list-2026)`: what a charge was made of; '' for other rows. */
export function formulaOf(detail: StoredRow['detail']): string {
  const { usage, price, ratio } = detail as { usage?: Usage; price?: Record<string, string>; ratio?: string };
  if (usage === undefined || price === undefined) return String(detail['reason'] ?? '');
  const prices = Object.fromEntries(Object.entries(price).map(([name, text]) => [name, BigInt(text)])) as Price;
  const term = (name: UsageClass) => `${usage[name]} ${name} × ${formatUsd(unitPrice(prices, name))}`;
  const isPiece = (name: UsageClass) => pieceClasses.some((piece) => piece === name);
  const counted = usageClasses.filter((name) => (usage[name] ?? 0) > 0);
  const tokens = counted.filter((name) => !isPiece(name)).map(term);
  const pieces = counted.filter(isPiece).map(term);
  const sum = [...(tokens.length > 0 ? [`(${tokens.join(' + ')}) / 1M`] : []), ...pieces].join(' + ') || '0';
  const notes = [detail['price_version'], ...(detail['estimated'] === true ? ['estimated'] : [])].join(', ');
  return `${ratio === '1/1' ? sum : `[${sum}] × ${ratio}`} (${notes})`;
}

async function showAudit({ audit }: CommandTools): Promise<CommandResult> {
  const report = await audit();
  const seen = `${report.accounts} accounts, ${report.rows} ledger rows`;
  const lines = report.violations.map(({ rule, what, subject }) => `${rule}: ${what}: ${subject}`);
  return {
    json: report,
    text: report.ok ? `All invariants hold: ${seen}.` : [`Violations found in ${seen}:`, ...lines].join('\n'),
    exitCode: report.ok ? 0 : 1,
  };
}
