/** The process's log: pino, with everything that looks like a credential masked before it is written. */
import pino from 'pino';
import type { Log } from './contract.ts';

/** Prefixed keys, long mixed tokens behind a short prefix, bearer tokens, and passwords inside URLs. */
const secretPattern =
  /\b(?:sk|pk|rk|gsk|sess)-[A-Za-z0-9_-]{8,}|\b[a-z]{2,4}-(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{24,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer\s)[^\s"',]{8,}|(?<=:\/\/[^\s:@/]*:)[^\s@/]+(?=@)/g;

/** Replaces whatever looks like a credential by `***`. */
export function maskSecrets(text: string): string {
  return text.replace(secretPattern, '***');
}

/** An error for the log: name, words, place, code, and the same of its cause. Its other members may hold values of statements. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, code, cause } = error as NodeJS.ErrnoException & { cause?: unknown };
  const stack = withoutValues(error.stack ?? '');
  return {
    name,
    message: withoutValues(error.message),
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  };
}

/** The query builder writes a failed statement's values into the message, on lines that begin with this word. */
function withoutValues(text: string): string {
  return text.replace(/^params:.*$/gm, 'params: ***');
}

const flushIntervalMs = 200;

/** Standard output, written by the page: a system call for each line is a price the hot path need not pay. */
function pagedOutput(): (line: string) => void {
  const output = pino.destination({ dest: 1, sync: false, minLength: 64 * 1024, maxWrite: 256 * 1024 } as object);
  setInterval(() => output.flush(), flushIntervalMs).unref();
  process.on('exit', () => {
    try {
      output.flushSync();
    } catch {
      // Standard output is gone; nobody reads on.
    }
  });
  return (line) => void output.write(line);
}

/** `level` is pino's; `silent` writes nothing. Lines go to standard output, or to `write`, through `maskSecrets`. */
export function createLog(level: string, write: (line: string) => void = pagedOutput()): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
    },
    { write: (line: string) => write(maskSecrets(line)) },
  );
}
