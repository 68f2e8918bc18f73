/** The commands of billing that need neither a gateway nor its database: everybody who has a statement's file can check it. */
import { stat } from 'node:fs/promises';
import type { Command } from '../../core/contract/commands.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { linesIn } from './statements/lines.ts';
import { verifyStatement } from './statements/verify.ts';

export default [
  {
    name: 'statements verify',
    summary: 'Adds up a statement by its file alone, and names the first line that differs; exit code 1 if one does',
    arguments: ['<file>'],
    run: async ({ file: path }) => {
      const isFile = typeof path === 'string' && (await stat(path).catch(() => undefined))?.isFile() === true;
      if (!isFile) throw new GatewayError('not_found', `There is no file "${path ?? ''}".`, { field: 'file' });
      const verdict = await verifyStatement(linesIn(path));
      return { json: verdict, text: verdict.text, exitCode: verdict.ok ? 0 : 1 };
    },
  },
] satisfies readonly Command[];
