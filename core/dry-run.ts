/** Dry runs of gateway files by a process that serves none of them: nothing is opened, written or sent. */
import { boot } from './boot.ts';
import { ConfigError } from './config.ts';
import type { Log } from './contract.ts';
import { GatewayError } from './errors.ts';
import { createLog } from './log.ts';
import { database } from './vocabulary.ts';

/** Those of the files that cannot run as they are; what is wrong with them is logged. */
export async function unfit(files: readonly string[], log: Log): Promise<string[]> {
  const refused: string[] = [];
  for (const file of files) {
    try {
      const gateway = await boot(file, { mode: 'check', log: createLog('silent') });
      await gateway.stop(0);
    } catch (error) {
      refused.push(file);
      const fields = error instanceof ConfigError ? { file, problems: error.problems } : { file, error };
      log.error(fields, 'the changed files are refused, what ran goes on');
    }
  }
  return refused;
}

/** Throws a sentence, or a ConfigError, unless each of the gateways may be served by several processes. */
export async function refuseUnshared(files: readonly string[]): Promise<void> {
  for (const file of files) {
    const gateway = await boot(file, { mode: 'check', log: createLog('silent') });
    const store = gateway.find(database);
    await gateway.stop(0);
    if (store === undefined || store.shared === true) continue;
    throw new GatewayError(
      'unsupported',
      `${file} cannot be served with --workers: its embedded database belongs to one process. ` +
        'Set storage.database (DATABASE_URL) to a postgres:// URL, or serve it without --workers.',
    );
  }
}
