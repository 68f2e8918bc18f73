/** Several gateway processes on one PostgreSQL, as an operator runs them: each with a port and a journal of its own. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import type { Database } from '../../plugins/common/domain/database.ts';
import { databaseUrl, openDatabase } from '../helpers/database.ts';
import { freePort } from '../helpers/free-port.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { dropSchema, faces, until, yamlOf } from './testbed.ts';

interface Node {
  readonly origin: string;
  readonly file: string;
  /** Where its journal lies, and what else is its own. */
  readonly directory: string;
  /** The running process's id. */
  readonly pid: number;
  /** Starts the process and waits until it is ready. */
  start(): Promise<void>;
  /** Ends it with this signal and waits until it has ended; resolves with how long that took. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number>;
  /** Tells it to end and does not wait. */
  signal(signal: 'SIGTERM'): void;
  ended(): Promise<void>;
  /** Takes its file up again, with these sections beside the others; does not wait until they are in force. */
  reload(more: Record<string, unknown>): Promise<void>;
}

export interface Fleet {
  readonly nodes: readonly Node[];
  readonly store: Database;
  rows<Row>(text: ReturnType<typeof sql>): Promise<Row[]>;
  table(name: string): ReturnType<typeof sql>;
  /** Works with the ledger as a command does, beside the processes that serve. */
  runAsCommand<T>(work: (gateway: ReturnType<typeof faces>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface FleetOptions {
  /** Another server than that of all tests; it is the caller's to clear away. */
  readonly database?: string;
  /** Further variables that all processes see. */
  readonly environment?: Record<string, string>;
  /** Each node is a primary with so many of them. */
  readonly workers?: number;
  /** The file over which the sections are laid; that of the main gateway if not said. */
  readonly base?: string;
}

/** Nothing runs yet. `sections` are those of the gateways' file. */
export async function gather(
  sections: Record<string, unknown>,
  count: number,
  options: FleetOptions = {},
): Promise<Fleet> {
  const database = options.database ?? databaseUrl!;
  const served = { ...options.environment, DATABASE_URL: database };
  const schema = `fleet_${randomBytes(6).toString('hex')}`;
  const directory = temporaryDirectory('fleet-');
  const children = new Set<ChildProcess>();
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      newNode({ directory, schema, index, sections, children, environment: served, options }),
    ),
  );
  const [first] = nodes;
  const environment = { ...options.environment, DATA_DIR: join(directory, 'command'), DATABASE_URL: database };
  const settle = await boot(first!.file, { mode: 'command', environment, log: createLog('silent') });
  await settle.stop(0);
  const store = await openDatabase({ schema, url: database });
  return {
    nodes,
    store,
    rows: async <Row>(statement: ReturnType<typeof sql>) => [
      ...((await store.orm.execute(statement)) as unknown as Row[]),
    ],
    table: (name) => sql`${sql.identifier(schema)}.${sql.identifier(name)}`,
    async runAsCommand(work) {
      const gateway = await boot(first!.file, { mode: 'command', environment, log: createLog('silent') });
      const stop = () => gateway.stop(0);
      try {
        const { origin } = first!;
        return await work(faces({ origin, gateway, directory, lines: [], stop, [Symbol.asyncDispose]: stop }));
      } finally {
        await stop();
      }
    },
    async close() {
      await store.close();
      const left = [...children];
      children.clear();
      for (const child of left) {
        child.kill('SIGKILL');
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      }
      await rm(directory, { recursive: true, force: true });
      if (options.database === undefined) await dropSchema(schema);
    },
  };
}

interface NodeParts {
  readonly directory: string;
  readonly schema: string;
  readonly index: number;
  readonly sections: Record<string, unknown>;
  readonly children: Set<ChildProcess>;
  readonly environment: Record<string, string>;
  readonly options: Pick<FleetOptions, 'workers' | 'base'>;
}

async function newNode({
  directory,
  schema,
  index,
  sections,
  children,
  environment,
  options: { workers, base },
}: NodeParts): Promise<Node> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const file = join(directory, `node-${index}.yaml`);
  const home = join(directory, `node-${index}`);
  const write = (more: Record<string, unknown> = {}) => {
    const named = { gateway: 'fleet', schema, listen: `127.0.0.1:${port}`, log: 'error', ...sections, ...more };
    return writeFile(file, yamlOf(named, base).replace('include: ', `include: ${process.cwd()}/`));
  };
  await write();
  const log = join(directory, `node-${index}.log`);
  let child: ChildProcess | undefined;
  let isRequested = false;
  /** What a test sees of it otherwise is that no one answers. */
  const reportEnd = (code: number | null, signal: NodeJS.Signals | null) => {
    if (isRequested || !children.has(child!)) return;
    process.stderr.write(
      `node ${index} ended by itself (${signal ?? code}):\n${readFileSync(log, 'utf8').slice(-2_000)}\n`,
    );
  };
  const isReady = async () => {
    assert.equal(child!.exitCode, null, 'the gateway ended at its start');
    // One that takes connections and does not answer must not keep the deadline from being seen.
    const answer = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
    return answer?.status === 200;
  };
  const ended = async () => {
    if (child!.exitCode === null && child!.signalCode === null) await once(child!, 'exit');
    children.delete(child!);
  };
  return {
    origin,
    file,
    directory: home,
    get pid() {
      return child!.pid!;
    },
    async start() {
      isRequested = false;
      const lines = openSync(log, 'a');
      const words = workers === undefined ? [file] : ['--workers', String(workers), file];
      child = spawn(process.execPath, ['core/process/main.ts', 'serve', ...words], {
        env: { ...process.env, ...environment, DATA_DIR: home },
        stdio: ['ignore', lines, 'inherit'],
      }).once('exit', reportEnd);
      closeSync(lines);
      children.add(child);
      await until(`gateway ${index} of ${origin} is ready`, isReady, 120_000);
    },
    signal(signal) {
      isRequested = true;
      child!.kill(signal);
    },
    ended,
    async reload(more) {
      await write(more);
      child!.kill('SIGHUP');
    },
    async end(signal) {
      const began = performance.now();
      isRequested = true;
      child!.kill(signal);
      await ended();
      return performance.now() - began;
    },
  };
}

/** An operator takes note that the database was put back to an earlier time. */
export const acceptRestore = (fleet: Fleet) =>
  fleet.runAsCommand(({ gateway }) =>
    gateway.gateway.commands.find(({ name }) => name === 'audit')!.run({ acceptRestore: true }),
  );
