/** The end of the command line by an error. */
import { GatewayError } from '../contract/errors.ts';
import { maskSecrets } from '../contract/secret.ts';
import { unwritableSentence } from '../contract/unwritable.ts';
import { ConfigError } from '../gateway/config.ts';
import { describeError } from '../gateway/log.ts';

/** Ends the process. What is wrong with the words of a command has been printed already. */
export function endBy(error: unknown): never {
  const { code, exitCode } = error as { code?: string; exitCode?: number };
  if (code?.startsWith('commander.')) process.exit(exitCode);
  process.stderr.write(`${maskSecrets(reportFatalError(error))}\n`);
  process.exit(1);
}

/** One sentence for what an operator can mend; all details of a bug. */
export function reportFatalError(error: unknown): string {
  if (error instanceof GatewayError || error instanceof ConfigError) return error.message;
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use: set PORT (the second gateway's: ALT_PORT), or "listen" in the file, to another one.`;
  const unwritable = unwritableSentence(error);
  if (unwritable !== undefined) return unwritable;
  return isDeliberate(error) ? error.message : JSON.stringify(describeError(error), undefined, 2);
}

/** Errors of the language, of Node and of most packages have a name, a code or a cause of their own. */
function isDeliberate(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'Error') return false;
  return (error as { code?: unknown }).code === undefined && error.cause === undefined;
}
