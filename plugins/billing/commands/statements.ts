/** The operator's commands on statements: what there is, a statement as a file, and whether a file is as it was sealed. */
import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { readCount } from '../../common/domain/usage.ts';
import { countOf, textOf, type Values } from '../../common/kit/commands/arguments.ts';
import { linesIn } from '../statements/lines.ts';
import { verifyStatement } from '../statements/verify.ts';
import { type CommandTools, findAccount } from './arguments.ts';

const mostListed = 10_000;

export function statementCommands(tools: Pick<CommandTools, 'host' | 'statements'>): Command[] {
  return [
    {
      name: 'statements list',
      summary: 'Lists sealed statements, newest first: account, number, month, balances, digest',
      arguments: ['[account]'],
      options: { '--limit <n>': 'How many (50)' },
      run: (values) => list(tools, values),
    },
    {
      name: 'statements export',
      summary: 'Writes a sealed statement to a file, a line of JSON for each movement',
      arguments: ['<account>', '<number>'],
      options: { '--out <file>': 'The file; it must not be there yet' },
      run: (values) => exportOne(tools, values),
    },
    {
      name: 'statements verify',
      summary: 'Adds up a statement by its file alone, and names the first line that differs; exit code 1 if one does',
      arguments: ['<file>'],
      run: verify,
    },
  ];
}

async function list({ host, statements }: Pick<CommandTools, 'host' | 'statements'>, values: Values) {
  const name = textOf(values, 'account');
  const account = name === undefined ? undefined : await findAccount(host, name);
  const found = await statements.list(account?.id, countOf(values, 'limit', 50, mostListed));
  const listed = found.map(({ accountId, number, month, zone, opening, closing, digest }) => ({
    ...{ account: accountId, number, month, zone },
    ...{ opening: formatUsd(BigInt(opening)), closing: formatUsd(BigInt(closing)), digest },
  }));
  const lines = listed.map(
    ({ account: id, number, month, opening, closing, digest }) =>
      `${id}  ${number}  ${month}  ${opening} → ${closing} USD  ${digest}`,
  );
  return { json: listed, text: lines.length === 0 ? 'No statements are sealed.' : lines.join('\n') };
}

async function exportOne({ host, statements }: Pick<CommandTools, 'host' | 'statements'>, values: Values) {
  const account = await findAccount(host, values['account']);
  const number = readCount(values['number']) ?? 0;
  if (number < 1) throw invalid('The number of a statement is a whole one from 1.', 'number');
  const out = textOf(values, 'out');
  if (out === undefined) throw invalid('--out names the file.', 'out');
  let lines = 0;
  async function* texts() {
    for await (const line of statements.lines(account.id, number)) {
      lines += 1;
      yield `${line}\n`;
    }
  }
  const file = createWriteStream(out, { flags: 'wx' });
  await pipeline(Readable.from(texts()), file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw invalid(`${out} is there already.`, 'out');
    throw error;
  });
  return { json: { account: account.id, number, lines, file: out }, text: `${lines} lines were written to ${out}.` };
}

async function verify(values: Values): Promise<CommandResult> {
  const path = textOf(values, 'file');
  const isFile = path !== undefined && (await stat(path).catch(() => undefined))?.isFile() === true;
  if (!isFile) throw new GatewayError('not_found', `There is no file "${path ?? ''}".`, { field: 'file' });
  const verdict = await verifyStatement(linesIn(path));
  return { json: verdict, text: verdict.text, exitCode: verdict.ok ? 0 : 1 };
}
