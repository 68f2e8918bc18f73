/** The operator's commands on the ledger: show an account's rows, check the invariants. */

import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { requestSumsAudit } from '../../common/domain/admin/requests.ts';
import { formulaOf } from '../../common/domain/formula.ts';
import type { PoolView } from '../../common/domain/ledger.ts';
import { cost, formatUsd, money } from '../../common/domain/money.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import type { Values } from '../../common/kit/commands/arguments.ts';
import { type RebuildProgress, rebuildSums } from '../../common/rollups/rebuild.ts';
import commandsAlone from '../alone.ts';
import { withArchivedCalls } from '../archive/commands.ts';
import { rebuildTagSums } from '../audit/tag-rebuild.ts';
import { decodePrice, decodeRatio } from '../model/records.ts';
import type { StatementRow } from '../reports/ledger-pages.ts';
import { type CommandTools, findAccount } from './arguments.ts';
import { budgetCommands } from './budgets.ts';
import { creditCommands } from './credit-lines.ts';
import { journalCommands, movedAway } from './journal.ts';
import { leaseCommands } from './leases.ts';
import { moneyCommands } from './money.ts';
import { acceptRestore } from './restores.ts';
import { statementCommands } from './statements.ts';

export function commandsOf(tools: CommandTools): Command[] {
  return [
    ...moneyCommands(tools),
    ...leaseCommands(tools.store),
    ...journalCommands(tools),
    ...tools.archive.commands,
    ...statementCommands(tools),
    ...commandsAlone,
    ...budgetCommands(tools.host),
    ...creditCommands(tools.host),
    {
      name: 'ledger',
      summary: "Shows an account's money, what it is made of, and its last ledger rows",
      arguments: ['[name]'],
      options: { '--account <name>': 'Name or id of the account', '--limit <n>': 'How many rows (50)' },
      run: (values) => showLedger(tools, values),
    },
    {
      name: 'audit',
      summary: 'Checks the invariants of money and the rollups; exit code 1 on a violation',
      options: {
        '--sum-days <n>': 'Checks the rollups of so many days, by chance, instead of all',
        '--rebuild-sums': 'First makes the rollups again, of all rows that are there, day by day',
        '--accept-restore': 'After the database was put back: lists missing movements, and admits money again',
        '--sums-from <day>': 'With --rebuild-sums: leaves the days (UTC) before as they are, such as 2026-10-25',
      },
      run: (values) => (values['acceptRestore'] === true ? acceptRestore(tools) : showAudit(tools, values)),
    },
  ];
}

async function showLedger(tools: CommandTools, values: Values): Promise<CommandResult> {
  const account = await findAccount(tools.host, values['account'] ?? values['name']);
  const limit = readCount(values['limit'] ?? 50);
  if (limit === undefined || limit < 1 || limit > 10_000) {
    throw invalid('--limit is a whole number from 1 to 10,000.', 'limit');
  }
  // Due grants and expiries are posted before the rows are read.
  const view = await tools.pool.view(account.id);
  const rows = (await tools.statement(account.id, limit)).map((row) => ({
    seq: row.seq,
    kind: row.kind,
    request: row.requestId ?? null,
    change: formatUsd(row.change),
    balance_after: formatUsd(row.balanceAfter),
    formula: chargeFormula(row.detail),
    detail: row.detail,
    created_at: new Date(row.at).toISOString(),
  }));
  const lines = rows.map((row) =>
    [row.created_at, row.kind.padEnd(8), row.change.padStart(14), row.balance_after.padStart(14), row.formula].join(
      '  ',
    ),
  );
  const now = new Date(tools.host.clock.now()).toISOString();
  const text = [...poolLines(view, now), '', ...(lines.length > 0 ? lines : [`${account.name} has no ledger rows.`])];
  return { json: { account: account.name, ...poolJson(view), rows }, text: text.join('\n') };
}

function poolJson({ balance, spendable, held, blocked, grants, windows, term }: PoolView) {
  return {
    balance: formatUsd(money(balance + held)),
    spendable: formatUsd(spendable),
    held: formatUsd(held),
    ...(blocked > 0n ? { blocked: formatUsd(blocked) } : {}),
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
  const { balance, spendable, held, blocked, plan, grants, windows } = poolJson(view);
  const ends = plan?.ends_at ?? 'never';
  return [
    `balance ${balance} USD, of which ${held} USD are set aside for running calls; ${spendable} USD can be spent now`,
    ...(blocked === undefined
      ? []
      : [`${blocked} USD were leased by processes that no longer answer, and cannot be spent: see "gateway leases"`]),
    ...(plan === null ? [] : [`plan ${plan.name}, ends: ${ends}`]),
    ...grants.map((each) => {
      const over = each.expires_at !== null && each.expires_at <= now;
      // Calls that began earlier may still be paid with it.
      const verb = over ? 'expired, booked soon:' : 'expires';
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

/**
 * The formula and result of a charge: `(1200 input × 2.50) / 1M = 0.003 USD (list-2026, >200k)`; for other rows
 * their reason.
 */
function chargeFormula(detail: StatementRow['detail']): string {
  const { usage, price, ratio } = detail as { usage?: Usage; price?: Record<string, string>; ratio?: string };
  if (usage === undefined || price === undefined) return String(detail['reason'] ?? '');
  const notes = [detail['price_version'], detail['tier'], detail['estimated'] === true ? 'estimated' : undefined];
  const known = notes.filter((note) => note !== undefined).join(', ');
  const [units, factor] = [decodePrice(price), decodeRatio(ratio ?? '1/1')];
  return `${formulaOf(usage, units, factor)} = ${formatUsd(cost(usage, units, factor))} USD (${known})`;
}

/** Not to the output, which is the command's result. */
const printed =
  (rows: string) =>
  ({ day, done, all }: RebuildProgress) =>
    process.stderr.write(`The sums of ${rows} of ${day} are made again (${done} of ${all} days).\n`);

/** A day (UTC) in wall-clock milliseconds. */
function dayIn(text: string | boolean): number {
  const at = typeof text === 'string' && /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw invalid('--sums-from is a day such as 2026-10-25.', 'sums-from');
  return at;
}

async function showAudit(tools: CommandTools, values: Values): Promise<CommandResult> {
  const { archive, audit, host, store, watch } = tools;
  const days = values['sumDays'] === undefined ? undefined : readCount(values['sumDays']);
  if (values['sumDays'] !== undefined && (days === undefined || days < 1)) {
    throw invalid('--sum-days is a whole number from 1 on.', 'sum-days');
  }
  const from = values['sumsFrom'] === undefined ? undefined : dayIn(values['sumsFrom']);
  if (values['rebuildSums'] === true) {
    await withArchivedCalls(store.orm, store.schema, archive.reader.contents, (sums) =>
      rebuildSums(store.orm, store.schema, sums, { from, progress: printed('calls') }),
    );
    await rebuildTagSums(store.orm, store.schema, from);
    await host.find(requestSumsAudit)?.rebuild({ from, progress: printed('requests') });
  }
  await watch?.look();
  const report = await audit(days);
  const seen = `${report.accounts} accounts, ${report.rows} ledger rows`;
  const lines = report.violations.map(({ rule, what, subject }) => `${rule}: ${what}: ${subject}`);
  const notices = await movedAway(tools);
  const verdict = report.ok ? [`All invariants hold: ${seen}.`] : [`Violations found in ${seen}:`, ...lines];
  return {
    json: { ...report, ...(notices.length > 0 ? { notices } : {}) },
    text: [...verdict, ...notices].join('\n'),
    exitCode: report.ok ? 0 : 1,
  };
}
