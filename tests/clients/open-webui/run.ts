/**
 * `npm run test:open-webui`: installs Open WebUI, then has it chat and paint through the gateway.
 * Exit 1: a test failed. Exit 77: it could not be installed, and nothing was tested.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { NotInstalled } from '../install.ts';
import { installOpenWebUi } from './install.ts';

const notTested = 77;

try {
  const environment = { ...process.env, OPEN_WEBUI_BINARY: await installOpenWebUi() };
  const words = ['--test', '--test-timeout=600000', join(import.meta.dirname, 'turns.ts')];
  const child = spawn(process.execPath, words, { stdio: 'inherit', env: environment });
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exitCode = code ?? 1;
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`${error.message}\nNothing was tested.`);
  process.exitCode = notTested;
}
