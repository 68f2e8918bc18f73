/** The process's log: pino, with everything that looks like a credential masked before it is written. */
import pino from 'pino';
import type { Log } from './contract.ts';

/** Keys as vendors and this gateway shape them, bearer tokens, and passwords inside URLs. */
const secretPattern =
  /\b(?:sk|pk|rk|xai|gsk|sess)-[A-Za-z0-9_-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|(?<=Bearer\s)[^\s"',]{8,}|(?<=:\/\/[^\s:@/]*:)[^\s@/]+(?=@)/g;

/** Replaces whatever looks like a credential by `***`. */
export function maskSecrets(text: string): string {
  return text.replace(secretPattern, '***');
}

/** `level` is pino's; `silent` writes nothing. Lines go to standard output, through `maskSecrets`. */
export function createLog(
  level: string,
  write: (line: string) => void = (line) => void process.stdout.write(line),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
    },
    { write: (line: string) => write(maskSecrets(line)) },
  );
}
