/** Dry runs of gateway files by a process that does not serve them: nothing is opened, written or sent. */

import { GatewayError } from '../contract/errors.ts';
import type { Log } from '../contract/host-tools.ts';
import { boot } from '../gateway/boot.ts';
import { ConfigError } from '../gateway/config.ts';
import { createLog } from '../gateway/log.ts';

/** The files that cannot run; logs their problems. */
export async function findInvalidFiles(files: readonly string[], log: Log): Promise<string[]> {
  const refused: string[] = [];
  for (const file of files) {
    try {
      const gateway = await boot(file, { mode: 'check', log: createLog('silent') });
      await gateway.stop(0);
    } catch (error) {
      refused.push(file);
      const fields = error instanceof ConfigError ? { file, problems: error.problems } : { file, error };
      log.error(fields, 'the changed files are refused; the running configuration stays');
    }
  }
  return refused;
}

/** Throws a GatewayError or a ConfigError unless several processes can serve each of the gateways. */
export async function refuseSingleProcess(files: readonly string[]): Promise<void> {
  for (const file of files) {
    const gateway = await boot(file, { mode: 'check', log: createLog('silent') });
    const reason = gateway.singleProcess();
    await gateway.stop(0);
    if (reason !== undefined)
      throw new GatewayError('unsupported', `${file} cannot be served with --workers: ${reason}`);
  }
}
