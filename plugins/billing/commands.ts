/** The operator's commands about the books: show an account's ledger, check the invariants. */
import type { Command, CommandResult } from '../../core/contract.ts';
import { formulaOf } from '../../core/formula.ts';
import { cost, formatUsd } from '../../core/money.ts';
import { readCount, type Usage } from '../../core/usage.ts';
import type { PoolView } from '../../core/vocabulary.ts';
import { type CommandTools, findAccount, missing, type Values } from './command-words.ts';
import { leaseCommands } from './leases/commands.ts';
import { moneyCommands } from './money-commands.ts';
import { decodePrice, decodeRatio } from './records.ts';
import type { StoredRow } from './rows.ts';

export function commandsOf(tools: CommandTools): Command[] {
  return [
    ...moneyCommands(tools),
    ...leaseCommands(tools.store),
    {
      name: 'ledger',
      summary: "Shows an account's money, what it is made of, and its last ledger rows",
      arguments: ['[name]'],
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

async function showLedger(tools: CommandTools, values: Values): Promise<CommandResult> {
  const account = await findAccount(tools.host, values['account'] ?? values['name']);
  const limit = readCount(values['limit'] ?? 50);
  if (limit === undefined || limit < 1 || limit > 10_000) {
    throw missing('limit', '--limit is a whole number from 1 to 10,000.');
  }
  // What is due is given and taken before the rows are read.
  const view = await tools.pool.view(account.id);
  const rows = (await tools.readLedger(account.id, limit)).map((row) => ({
    seq: row.seq,
    kind: row.kind,
    request: row.request_id,
    amount: formatUsd(BigInt(row.amount)),
    balance_after: formatUsd(BigInt(row.balance_after)),
    formula: chargeFormula(row.detail),
    detail: row.detail,
    created_at: row.created_at,
  }));
  const lines = rows.map((row) =>
    [row.created_at, row.kind.padEnd(6), row.amount.padStart(14), row.balance_after.padStart(14), row.formula].join(
      '  ',
    ),
  );
  const now = new Date(tools.host.clock.now()).toISOString();
  const text = [...poolLines(view, now), '', ...(lines.length > 0 ? lines : [`${account.name} has no ledger rows.`])];
  return { json: { account: account.name, ...poolJson(view), rows }, text: text.join('\n') };
}

function poolJson({ balance, spendable, held, grants, windows, term }: PoolView) {
  return {
    balance: formatUsd(balance),
    spendable: formatUsd(spendable),
    held: formatUsd(held),
    plan: term === undefined ? null : { name: term.plan, ends_at: timeOf(term.endsAt) },
    grants: grants.map(({ kind, reason, reference, amount, remaining, createdAt, expiresAt }) => ({
      kind,
      reason,
      reference,
      amount: formatUsd(amount),
      remaining: formatUsd(remaining),
      created_at: timeOf(createdAt),
      expires_at: timeOf(expiresAt),
    })),
    windows: windows.map(({ name, limit, spent, endsAt }) => {
      return { name, limit: formatUsd(limit), spent: formatUsd(spent), frees_at: timeOf(endsAt) };
    }),
  };
}

function poolLines(view: PoolView, now: string): string[] {
  const { balance, spendable, held, plan, grants, windows } = poolJson(view);
  const ends = plan?.ends_at ?? 'never';
  return [
    `balance ${balance} USD, of which ${spendable} USD can be spent now; ${held} USD are set aside for running calls`,
    ...(plan === null ? [] : [`plan ${plan.name}, ends: ${ends}`]),
    ...grants.map((each) => {
      const over = each.expires_at !== null && each.expires_at <= now;
      // Calls that began before may still be paid with it.
      const verb = over ? 'expired and lapses soon:' : 'expires';
      const end = each.expires_at === null ? 'does not expire' : `${verb} ${each.expires_at}`;
      return `${each.remaining} of ${each.amount} USD left of ${each.kind} (${each.reason}; ${each.reference}), ${end}`;
    }),
    ...windows.map(
      (each) => `${each.spent} of ${each.limit} USD spent in the window "${each.name}", which ends ${each.frees_at}`,
    ),
  ];
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

/** What a charge was made of, and what it came to: `(1200 input × 2.50) / 1M = 0.003 USD (list-2026, >200k)`; the reason of other rows. */
export function chargeFormula(detail: StoredRow['detail']): string {
  const { usage, price, ratio } = detail as { usage?: Usage; price?: Record<string, string>; ratio?: string };
  if (usage === undefined || price === undefined) return String(detail['reason'] ?? '');
  const notes = [detail['price_version'], detail['tier'], detail['estimated'] === true ? 'estimated' : undefined];
  const known = notes.filter((note) => note !== undefined).join(', ');
  const [units, factor] = [decodePrice(price), decodeRatio(ratio ?? '1/1')];
  // The row's own amount is what came back of the hold.
  return `${formulaOf(usage, units, factor)} = ${formatUsd(cost(usage, units, factor))} USD (${known})`;
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
