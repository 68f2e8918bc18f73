/** The forms that a sealed statement is given in, each made of the lines that were sealed: JSON, CSV, FOCUS. Pure. */
import { formatUsd } from '../../common/domain/money.ts';
import type { StatementForm } from '../../common/domain/organizations/statements.ts';
import { csvLine } from '../../common/kit/pages/csv.ts';
import { focusColumns, focusRow } from './focus.ts';
import type { Head, Row } from './format.ts';

const columns = [
  ...['account', 'statement', 'month', 'seq', 'at', 'kind', 'of', 'corrects', 'project', 'person', 'model', 'usage'],
  ...['ratio', 'price_version', 'tier', 'reason', 'usd', 'balance_usd', 'request', 'reference'],
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
  let head: Head | undefined;
  let balance = 0n;
  for await (const line of lines) {
    const value = JSON.parse(line) as Head | Row | { readonly lines: unknown };
    if (head === undefined) {
      head = value as Head;
      balance = BigInt(head.opening);
      yield csvLine(form === 'csv' ? columns : focusColumns);
    } else if (!('lines' in value)) {
      const row = value as Row;
      balance += BigInt(row.amount);
      const cells = form === 'csv' ? cellsOf(head, row, balance) : focusRow(head, row, issuer);
      if (cells !== undefined) yield csvLine(cells);
    }
  }
}

function cellsOf({ account, number, month }: Head, row: Row, balance: bigint): unknown[] {
  const { usage, amount, request, reference } = row;
  return [
    ...[account, number, month, row.seq, row.at, row.kind, row.of, row.corrects, row.project, row.person, row.model],
    ...[usage && JSON.stringify(usage), row.ratio, row.price_version, row.tier, row.reason],
    ...[formatUsd(BigInt(amount)), formatUsd(balance), request, reference],
  ];
}
