/** The end of the command line by an error. */
import { GatewayError } from '../contract/errors.ts';
import { maskSecrets } from '../contract/secret.ts';
import { ConfigError } from '../gateway/config.ts';
import { describeError } from '../gateway/log.ts';
import { unwritableSentence } from '../tools/unwritable.ts';

/** Ends the process. Faults in the arguments of a command have been printed already. */
export function endBy(error: unknown): never {
  const { code, exitCode } = error as { code?: string; exitCode?: number };
  if (code?.startsWith('commander.')) process.exit(exitCode);
  process.stderr.write(`${maskSecrets(reportFatalError(error))}\n`);
  process.exit(1);
}

/** Ends a process that was to serve: where its log is not read at a terminal, by a line of the log, in JSON. */
export function endServing(error: unknown): never {
  if (process.stdout.isTTY === true) endBy(error);
  const sentence = sentenceOf(error);
  const record =
    error instanceof ConfigError
      ? { problems: error.problems, msg: 'the configuration cannot be served' }
      : sentence === undefined
        ? { error: describeError(error), msg: 'a bug ended the start' }
        : { msg: sentence };
  const line = JSON.stringify({ level: 'fatal', time: new Date().toISOString(), ...record });
  process.stderr.write(`${maskSecrets(line)}\n`);
  process.exit(1);
}

/** One sentence for what an operator can mend; all details of a bug. */
export function reportFatalError(error: unknown): string {
  return sentenceOf(error) ?? JSON.stringify(describeError(error), undefined, 2);
}

/** undefined: it is a bug. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof GatewayError || error instanceof ConfigError) return error.message;
  return unwritableSentence(error) ?? (isDeliberate(error) ? error.message : undefined);
}

/** Errors of the language, of Node and of most packages have a name, a code or a cause of their own. */
function isDeliberate(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'Error') return false;
  return (error as { code?: unknown }).code === undefined && error.cause === undefined;
}
