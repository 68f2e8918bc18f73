/**
 * `npm run test:clients [-- --only chat] [--fleet] [--tools]`: installs the coding clients, then runs the turns where no network but
 * loopback exists; `--fleet`: before two gateway processes instead of one; `--tools`: turns that call a tool of the gateway.
 * Exit 1: a turn failed. Exit 77: a client could not be installed, or a store of the fleet is missing: nothing was tested.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hasPostgresPrograms } from '../helpers/postgres.ts';
import { hasRedis } from '../helpers/redis.ts';
import { clientNames, install, NotInstalled } from './install.ts';
import { protocols } from './vendor.ts';

const notTested = 77;
const withTools: readonly string[] = ['claude-code', 'codex', 'gemini-cli', 'qwen-code', 'opencode'];
const options = { only: { type: 'string' }, fleet: { type: 'boolean' }, tools: { type: 'boolean' } } as const;
const { only, fleet = false, tools = false } = parseArgs({ options }).values;
if (only !== undefined && !protocols.some((name) => name === only)) throw new Error(`there is no protocol "${only}"`);

/** PostgreSQL refuses to run as root: for a fleet the accounts inside must be those outside. */
const sealing = !fleet ? ['-rn'] : process.getuid?.() === 0 ? ['-n'] : ['-cn', '--keep-caps'];

try {
  if (fleet && !(hasPostgresPrograms && hasRedis)) throw new NotInstalled('PostgreSQL or Redis is not installed.');
  const binaries = await Promise.all(
    clientNames
      .filter((name) => (tools ? withTools.includes(name) : !fleet || name !== 'aider'))
      .map(async (name) => [`${name.toUpperCase().replace('-', '_')}_BINARY`, await install(name)] as const),
  );
  process.exitCode = await runTurns({
    ...Object.fromEntries(binaries),
    ...(fleet ? { CLIENTS_ON: 'fleet' } : {}),
    ...(only === undefined ? {} : { ONLY_PROTOCOL: only }),
  });
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`${error.message}\nNothing was tested.`);
  process.exitCode = notTested;
}

async function runTurns(environment: Record<string, string>): Promise<number> {
  const words = ['--test', join(import.meta.dirname, tools ? 'tools.ts' : 'turns.ts')];
  const isSealed = spawnSync('unshare', [...sealing, 'sh', '-c', 'ip link set lo up']).status === 0;
  console.log(
    isSealed ? 'Network: loopback alone, in a namespace of its own.' : 'Network: watched by a proxy, not sealed.',
  );
  const [command, ...rest] = isSealed
    ? ['unshare', ...sealing, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, ...words]
    : [process.execPath, ...words];
  const child = spawn(command!, rest, { stdio: 'inherit', env: { ...process.env, ...environment } });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
