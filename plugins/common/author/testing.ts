/** `model-gateway/testing`: boots a gateway from YAML on a free port, with a replaying vendor and a clock that is set by hand. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { Service } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { boot, type Gateway } from '../../../core/gateway/boot.ts';
import { ConfigError } from '../../../core/gateway/config.ts';
import { createLog } from '../../../core/gateway/log.ts';

export { chatAnswer, chatStream, type Received, type Script, startVendor, type Vendor } from './vendor.ts';

/** How a test's gateway is started. */
interface StartOptions {
  /** The folder that `./paths` of plugins begin at: `import.meta.dirname`. Default: the working directory. */
  readonly from?: string;
  /** Absent: the system's. */
  readonly clock?: Clock;
  /** Values of `${NAME}` in the YAML. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A gateway that serves on a free port of loopback, until `stop`. */
export interface TestGateway extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** Log lines so far, as objects. */
  readonly lines: readonly Record<string, unknown>[];
  /** Posts JSON to a path. */
  post(path: string, body: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** The value of a service that a plugin provides. */
  find<T>(service: Service<T>): T | undefined;
  /** Runs a command of a plugin as the command line does, with its arguments and options by name. */
  run(command: string, values?: Readonly<Record<string, string | boolean | undefined>>): Promise<unknown>;
  /** Resolves with the first log line with this message, which may be written only later. */
  logged(message: string): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

/**
 * Boots a gateway: `yaml` is a whole file or the same as an object. Its data is in a temporary directory that `stop` removes. A
 * plugin that is not built in and reads a context value which it does not declare gets an error.
 */
export async function startGateway(yaml: string | object, options: StartOptions = {}): Promise<TestGateway> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  const lines: Record<string, unknown>[] = [];
  try {
    const gateway = await bootIn(directory, yaml, options, lines);
    const port = await gateway.serve().catch(async (error: unknown) => {
      await gateway.stop(0);
      throw error;
    });
    return running(gateway, `http://127.0.0.1:${port}`, directory, lines);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** The problems that `check` finds in the file, one sentence each. */
export async function checkGateway(yaml: string | object, options: StartOptions = {}): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-test-'));
  try {
    const gateway = await bootIn(directory, yaml, options);
    await gateway.stop(0);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ message }) => message);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** `lines` absent: the gateway is checked and not served. */
async function bootIn(
  directory: string,
  yaml: string | object,
  { from = '.', clock, environment }: StartOptions,
  lines?: Record<string, unknown>[],
): Promise<Gateway> {
  const given = (typeof yaml === 'string' ? parse(yaml) : yaml) as { plugins?: readonly string[] };
  const plugins = given.plugins?.map((name) => (/^\.{1,2}\//.test(name) ? resolve(from, name) : name));
  const file = join(directory, 'gateway.yaml');
  await writeFile(file, JSON.stringify({ gateway: 'test', listen: '127.0.0.1:0', ...given, plugins }));
  return boot(file, {
    mode: lines === undefined ? 'check' : 'serve',
    guardsContext: true,
    environment: { DATA_DIR: directory, ...environment },
    log: lines === undefined ? createLog('silent') : createLog('debug', (line) => void lines.push(JSON.parse(line))),
    ...(clock === undefined ? {} : { clock }),
  });
}

function running(
  gateway: Gateway,
  origin: string,
  directory: string,
  lines: readonly Record<string, unknown>[],
): TestGateway {
  const stop = async () => {
    await gateway.stop(0);
    await rm(directory, { recursive: true, force: true });
  };
  return {
    origin,
    lines,
    post: (path, body, headers = {}) =>
      fetch(origin + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    find: (service) => gateway.find(service),
    async run(name, values = {}) {
      const command = gateway.commands.find((known) => known.name === name);
      if (command === undefined) throw new Error(`no plugin of the list has the command "${name}"`);
      return (await command.run(values)).json;
    },
    async logged(message) {
      for (let tries = 0; tries < 3000; tries++) {
        const line = lines.find(({ msg }) => msg === message);
        if (line !== undefined) return line;
        await new Promise((done) => setTimeout(done, 10));
      }
      throw new Error(`nothing was logged with the message "${message}"`);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A clock that moves only when a test advances it. Timers of `host.every` use the system's. */
interface ManualClock extends Clock {
  advance(milliseconds: number): void;
}

/** A clock that stands at `start` (wall-clock milliseconds; default: the beginning of 2030). */
export function manualClock(start = Date.UTC(2030, 0, 1)): ManualClock {
  let passed = 0;
  return {
    now: () => start + passed,
    monotonic: () => passed,
    advance(milliseconds) {
      passed += milliseconds;
    },
  };
}
