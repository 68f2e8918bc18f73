/** Gateways of tasks as processes that are killed and started again, on one database; and what their ledger say in the end. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { boot, type Gateway } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { databaseUrl } from '../helpers/database.ts';
import { fillMigrated } from '../helpers/migrated.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { dropSchema } from './testbed.ts';

/** One embedded database is one process's; a server is for several. */
const nodeCount = databaseUrl === undefined ? 1 : 2;

export class Node {
  readonly #file: string;
  readonly environment: Record<string, string>;
  readonly origin: string;
  /** What it has logged since its last start. */
  lines: string[] = [];
  #child: ChildProcess | undefined;

  constructor(file: string, directory: string, origin: string) {
    this.#file = file;
    this.origin = origin;
    this.environment = { DATA_DIR: directory };
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['core/process/main.ts', 'serve', this.#file], {
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    const lines: string[] = [];
    this.lines = lines;
    createInterface(child.stdout).on('line', (line) => void lines.push(line));
    for (let tries = 0; tries < 1_000; tries += 1) {
      assert.equal(child.exitCode, null, 'the gateway ended at its start');
      const ready = await fetch(`${this.origin}/readyz`).catch(() => undefined);
      if (ready?.status === 200) return;
      await pause(100);
    }
    throw new Error('the gateway is not ready');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
    // The process of its embedded database sees that it is alone, and ends a moment later.
    if (databaseUrl === undefined) await pause(500);
  }

  /** Looks into the ledger while it does not serve. */
  async runAsCommand<T>(work: (gateway: Gateway) => Promise<T>): Promise<T> {
    const gateway = await boot(this.#file, {
      mode: 'command',
      environment: this.environment,
      log: createLog('silent'),
    });
    try {
      return await work(gateway);
    } finally {
      await gateway.stop(0);
    }
  }
}

/** The plugins of tasks with their usual money and plan; `more` names providers, models and the pace of tasks. */
async function newNode(schema: string, more: string): Promise<{ node: Node; directory: string }> {
  const directory = temporaryDirectory('task-node-');
  const probe = createServer();
  await once(probe.listen(0, '127.0.0.1'), 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const file = join(directory, 'gateway.yaml');
  const head = `
gateway: tasks
schema: ${schema}
listen: 127.0.0.1:${port}
log: warn
plugins: [storage, auth, plans, providers, models, billing, route, files, task-store]
storage: { database: "${databaseUrl ?? 'embedded'}" }
auth: { secret: "${'s'.repeat(43)}" }
plans: { default: free, offers: { free: { price: 0 } } }
files: { fetch: { allow_private: true } }
`;
  await writeFile(file, head + more);
  if (databaseUrl === undefined) await fillMigrated(directory, schema);
  return { node: new Node(file, directory, `http://127.0.0.1:${port}`), directory };
}

export interface Nodes {
  readonly nodes: readonly Node[];
  /** Key of an account with a hundred dollars. */
  readonly key: string;
  /** Kills what runs, and leaves nothing. */
  close(): Promise<void>;
}

/** As many as the database allows; none is started yet. */
export async function openNodes(schema: string, more: string): Promise<Nodes> {
  const made: { node: Node; directory: string }[] = [];
  for (let index = 0; index < nodeCount; index += 1) made.push(await newNode(schema, more));
  const nodes = made.map(({ node }) => node);
  const key = await nodes[0]!.runAsCommand(async (gateway) => {
    const { id } = await gateway.find(accounts)!.create('alice', 'free');
    const entry = { kind: 'top-up', reason: 'test', reference: 'first' };
    await gateway.find(ledger)!.credit(id, parseUsd('100'), entry);
    return (await gateway.find(accounts)!.createKey(id, { name: 'test' })).key;
  });
  return {
    nodes,
    key,
    async close() {
      await Promise.all(nodes.map((node) => node.kill()));
      await Promise.all(made.map(({ directory }) => rm(directory, { recursive: true, force: true })));
      await dropSchema(schema);
    },
  };
}

export interface End {
  readonly id: string;
  readonly prompt: string;
  readonly model: string;
  readonly state: string;
  /** How its calls have ended: there is one. */
  readonly kinds: string[];
  /** In nano-USD: what the client has paid, and what the operator bears. */
  readonly cost: string;
  readonly absorbed: string;
}

/** Every task with its calls, and what they cost by the ledger. */
export const endsIn = (gateway: Gateway) => {
  const store = gateway.find(database)!;
  const table = (name: string) => sql`${sql.identifier(store.schema)}.${sql.identifier(name)}`;
  const calls = sql`from ${table('calls')} as calls where calls.id = tasks.request_id`;
  return store.orm.execute(sql`
    select id, order_head->>'prompt' as prompt, model, state, (select array_agg(case when settled then 'charged' else 'free' end) ${calls}) as kinds,
      (select coalesce(sum(revenue), 0)::text from ${table('movements')} as ledger where ledger.request_id = tasks.request_id) as cost,
      (select coalesce(sum(absorbed), 0)::text ${calls}) as absorbed
    from ${table('tasks')} as tasks`) as unknown as Promise<End[]>;
};

export async function violationsIn(gateway: Gateway): Promise<unknown[]> {
  const audit = gateway.commands.find(({ name }) => name === 'audit')!;
  return ((await audit.run({})).json as { violations: unknown[] }).violations;
}
