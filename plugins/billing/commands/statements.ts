/** The operator's commands on statements: what there is, and a statement as a file. */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from '../../../core/contract/commands.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { formatUsd } from '../../common/domain/money.ts';
import { type StatementForm, statementForms } from '../../common/domain/organizations/statements.ts';
import { readCount } from '../../common/domain/usage.ts';
import { countOf, textOf, type Values } from '../../common/kit/commands/arguments.ts';
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
      summary: 'Writes a sealed statement to a file, a line for each movement',
      arguments: ['<account>', '<number>'],
      options: {
        '--as <form>':
          'json, which "statements verify" reads (default); csv; or focus: what calls cost, in the columns of FOCUS 1.3',
        '--out <file>': 'The file; it must not be there yet',
      },
      run: (values) => exportOne(tools, values),
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
  async function* texts(form: StatementForm) {
    for await (const line of statements.file(account.id, number, form)) {
      lines += 1;
      yield line;
    }
  }
  const file = createWriteStream(out, { flags: 'wx' });
  await pipeline(Readable.from(texts(formOf(values))), file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw invalid(`${out} is there already.`, 'out');
    throw error;
  });
  return { json: { account: account.id, number, lines, file: out }, text: `${lines} lines were written to ${out}.` };
}

function formOf(values: Values): StatementForm {
  const name = textOf(values, 'as') ?? 'json';
  const form = statementForms.find((one) => one === name);
  if (form === undefined) throw invalid(`--as is one of ${statementForms.join(', ')}.`, 'as');
  return form;
}
