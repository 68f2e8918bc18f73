/** The forms that a sealed statement is given in, each made of the lines that were sealed: JSON, CSV, FOCUS. Pure. */
import { formatUsd } from '../../common/domain/money.ts';
import type { StatementForm } from '../../common/domain/organizations/statements.ts';
import { csvLine } from '../../common/kit/pages/csv.ts';
import { creditKind } from '../grants/credit-rows.ts';
import { focusColumns, focusDue, focusRow } from './focus.ts';
import type { Due, Head, Row, Summary } from './format.ts';

const columns = [
  ...['account', 'statement', 'month', 'seq', 'at', 'kind', 'of', 'corrects', 'project', 'person', 'model', 'usage'],
  ...['ratio', 'price_version', 'tier', 'reason', 'usd', 'balance_usd', 'request', 'reference'],
  ...['due_month', 'due_usd', 'due_at'],
];

/** `lines`: those of its file, the head first and the sums last. With line ends. */
export async function* inForm(
  lines: AsyncIterable<string>,
  form: StatementForm,
  issuer: string,
): AsyncGenerator<string> {
  if (form !== 'json') return yield* tableOf(lines, form, issuer);
  for await (const line of lines) yield `${line}\n`;
}

async function* tableOf(lines: AsyncIterable<string>, form: 'csv' | 'focus', issuer: string): AsyncGenerator<string> {
  const rowsOf = form === 'csv' ? csvRows : focusRows(issuer);
  let head: Head | undefined;
  let balance = 0n;
  for await (const line of lines) {
    const value = JSON.parse(line) as Head | Row | Summary;
    if (head === undefined) {
      head = value as Head;
      balance = BigInt(head.opening);
      yield csvLine(form === 'csv' ? columns : focusColumns);
      continue;
    }
    if ('amount' in value) balance += BigInt(value.amount);
    for (const cells of rowsOf(head, value as Row | Summary, balance)) yield csvLine(cells);
  }
}

/** `balance`: behind the movement. */
type Rows = (head: Head, value: Row | Summary, balance: bigint) => unknown[][];

const csvRows: Rows = (head, value, balance) =>
  'lines' in value ? (value.credit ?? []).map((due) => dueCells(head, due)) : [cellsOf(head, value, balance)];

const focusRows = (issuer: string): Rows => {
  return (head, value) => {
    if ('lines' in value) return (value.credit ?? []).map((due) => focusDue(head, due, issuer));
    const cells = focusRow(head, value, issuer);
    return cells === undefined ? [] : [cells];
  };
};

function cellsOf({ account, number, month }: Head, row: Row, balance: bigint): unknown[] {
  const { usage, amount, request, reference } = row;
  return [
    ...[account, number, month, row.seq, row.at, row.kind, row.of, row.corrects, row.project, row.person, row.model],
    ...[usage && JSON.stringify(usage), row.ratio, row.price_version, row.tier, row.reason],
    ...[formatUsd(BigInt(amount)), formatUsd(balance), request, reference],
  ];
}

/** It moves no money, so that its amount stands in a column of its own. */
function dueCells({ account, number, month }: Head, { month: dueMonth, due, due_at: dueAt }: Due): unknown[] {
  const cells: Partial<Record<string, unknown>> = {
    ...{ account, statement: number, month, kind: 'DUE', of: creditKind },
    ...{ due_month: dueMonth, due_usd: formatUsd(BigInt(due)), due_at: dueAt },
  };
  return columns.map((name) => cells[name]);
}
