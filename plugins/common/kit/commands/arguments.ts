/** Arguments of operators' commands, and rows as text. */

import type { Command } from '../../../../core/contract/commands.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { duration } from '../../../../core/contract/schema.ts';
import { invalid } from '../../../../core/json/request-body.ts';
import type { Account, Accounts } from '../../domain/accounts.ts';
import { type Money, parseUsd } from '../../domain/money.ts';
import { readCount } from '../../domain/usage.ts';

export type Values = Parameters<Command['run']>[0];

export function textOf(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export async function accountOf(accounts: Accounts, values: Values): Promise<Account> {
  const name = textOf(values, 'account');
  if (name === undefined) throw invalid('Name the account: --account NAME.', 'account');
  const account = await accounts.find(name);
  if (account === undefined)
    throw new GatewayError('not_found', `There is no account "${name}".`, { field: 'account' });
  return account;
}

export function amountOf(text: string, field: string): Money {
  try {
    const amount = parseUsd(text);
    if (amount > 0n) return amount;
  } catch {
    // Falls through to the one message.
  }
  throw invalid(`"${text}" is not an amount of USD above zero with at most nine decimals.`, field);
}

/** A whole number from 1 to `most`. */
export function countOf(values: Values, name: string, otherwise: number, most: number): number {
  const count = readCount(textOf(values, name) ?? otherwise);
  if (count !== undefined && count >= 1 && count <= most) return count;
  throw invalid(`--${name} is a whole number from 1 to ${most}.`, name);
}

/** `30d` as milliseconds. */
export function spanOf(values: Values, name: string): number | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  const span = duration().safeParse(text);
  if (span.success && span.data > 0) return span.data;
  throw invalid(`"${text}" is not a duration such as 12h or 30d.`, name);
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Milliseconds in the largest unit that is exact: `30d`. */
export function spanText(lengthMs: number): string {
  const unit = units.find(([, unitMs]) => lengthMs % unitMs === 0);
  return unit === undefined ? `${lengthMs}ms` : `${Math.round(lengthMs / unit[1])}${unit[0]}`;
}

/** Rows under a heading, in columns. */
export function columns(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]!.length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd();
  return [heading, ...rows].map(line).join('\n');
}

export function timeText(at: number | undefined, otherwise: string): string {
  return at === undefined ? otherwise : new Date(at).toISOString();
}
