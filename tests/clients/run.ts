/**
 * `npm run test:clients`: installs the coding clients, then runs the turns where no network but loopback exists.
 * Exit 1: a turn failed. Exit 77: a client could not be installed, so nothing was tested.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { install, NotInstalled } from './install.ts';

const notTested = 77;

try {
  const [claudeCode, codex] = await Promise.all([install('claude-code'), install('codex')]);
  process.exitCode = await runTurns({ CLAUDE_CODE_BINARY: claudeCode, CODEX_BINARY: codex });
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`${error.message}\nNothing was tested.`);
  process.exitCode = notTested;
}

async function runTurns(binaries: Record<string, string>): Promise<number> {
  const words = ['--import', 'tsx', '--test', '--test-timeout=120000', join(import.meta.dirname, 'turns.ts')];
  const isSealed = canUnshare();
  console.log(
    isSealed ? 'Network: loopback alone, in a namespace of its own.' : 'Network: watched by a proxy, not sealed.',
  );
  const [command, ...rest] = isSealed
    ? ['unshare', '-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, ...words]
    : [process.execPath, ...words];
  const child = spawn(command!, rest, { stdio: 'inherit', env: { ...process.env, ...binaries } });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

function canUnshare(): boolean {
  return spawnSync('unshare', ['-rn', 'sh', '-c', 'ip link set lo up']).status === 0;
}
