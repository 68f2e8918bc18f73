/** A gateway as a process of its own, as an operator runs it, and a look into its ledger when it has ended. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { freePort } from '../helpers/free-port.ts';
import { fillMigrated } from '../helpers/migrated.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { type Customer, dropSchema, faces, modelAt, speaks, until, yamlOf } from './testbed.ts';

type CommandGateway = ReturnType<typeof faces>;

export interface Establishment {
  readonly origin: string;
  /** All that it must not lose. */
  readonly directory: string;
  readonly customers: readonly Customer[];
  readonly sandbox: RunningVendor;
  /** Starts the process and waits until it is ready. */
  start(): Promise<ChildProcess>;
  /** Does something with the gateway's ledger while no process serves. */
  runAsCommand<T>(work: (gateway: CommandGateway) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A directory, a file, a vendor and so many customers; no process yet. */
export async function establish(sections: Record<string, unknown>, customerCount: number): Promise<Establishment> {
  const sandbox = await startVendor();
  const directory = temporaryDirectory('process-');
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const file = join(directory, 'gateway.yaml');
  const schema = ownSchema('test');
  const yaml = yamlOf({
    gateway: 'test',
    schema,
    listen: `127.0.0.1:${port}`,
    plans: { default: 'open', offers: { open: { price: 0 } } },
    providers: { sandbox: { keys: 'vendor-key', speaks: speaks(sandbox.origin) } },
    models: { sandbox: modelAt('sandbox') },
    // No balancer has to notice that it stops.
    server: { drain: { grace: '50ms' } },
    ...sections,
  });
  await writeFile(file, yaml.replace('include: ', `include: ${process.cwd()}/`));
  const environment = { DATA_DIR: directory, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  if (databaseUrl === undefined) await fillMigrated(directory, schema);
  const children: ChildProcess[] = [];

  async function runAsCommand<T>(work: (gateway: CommandGateway) => Promise<T>): Promise<T> {
    const gateway = await boot(file, { mode: 'command', environment, log: createLog('silent') });
    const stop = () => gateway.stop(0);
    try {
      return await work(faces({ origin, gateway, directory, lines: [], stop, [Symbol.asyncDispose]: stop }));
    } finally {
      await stop();
    }
  }

  return {
    origin,
    directory,
    sandbox,
    customers: await runAsCommand((gateway) =>
      Promise.all(Array.from({ length: customerCount }, () => gateway.customer())),
    ),
    runAsCommand,
    async start() {
      const child = spawn(process.execPath, ['core/process/main.ts', 'serve', file], {
        env: { ...process.env, ...environment },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      children.push(child);
      await until(
        'the gateway is ready',
        async () => {
          assert.equal(child.exitCode, null, 'the gateway ended at its start');
          const answer = await fetch(`${origin}/readyz`).catch(() => undefined);
          return answer?.status === 200;
        },
        120_000,
      );
      return child;
    },
    async close() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await sandbox.close();
      await rm(directory, { recursive: true, force: true });
      await dropSchema(schema);
    },
  };
}
