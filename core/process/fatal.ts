/** What the command line says of an error that ends it: one sentence for what an operator can mend; all details of a bug. */
import { GatewayError } from '../contract/errors.ts';
import { unwritableSentence } from '../contract/unwritable.ts';
import { ConfigError } from '../gateway/config.ts';
import { describeError } from '../gateway/log.ts';

export function reportFatalError(error: unknown): string {
  if (error instanceof GatewayError || error instanceof ConfigError) return error.message;
  const { code, port } = error as { code?: string; port?: number };
  if (code === 'EADDRINUSE')
    return `Port ${port} is in use: set PORT (the second gateway's: ALT_PORT), or "listen" in the file, to another one.`;
  const unwritable = unwritableSentence(error);
  if (unwritable !== undefined) return unwritable;
  // Errors of the language, of Node and of most packages have a name or a code of their own.
  const deliberate =
    error instanceof Error && error.name === 'Error' && code === undefined && error.cause === undefined;
  return deliberate ? error.message : JSON.stringify(describeError(error), undefined, 2);
}
