/** Gateways that are killed while tasks are in every state: each task ends once, is paid or given back once, and is made once. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { boot, type Gateway } from '../../core/boot.ts';
import { createLog } from '../../core/log.ts';
import { parseUsd } from '../../core/money.ts';
import { accounts, database, ledger } from '../../core/vocabulary.ts';
import { databaseUrl, fillDirectory } from '../helpers/database.ts';
import { dropSchema } from './house.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const mp4 = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom'), Buffer.alloc(64)]);
/** One embedded database is one process's; a server is for several. */
const nodeCount = databaseUrl === undefined ? 1 : 2;
const kills = Number(process.env['KILLS'] ?? 4);
const tasksPerRound = 8;
const schema = `tasks_${randomBytes(6).toString('hex')}`;

// ---------------------------------------------------------------------------------------------------------------- vendor

/** Creations by prompt; the last word of a prompt is what becomes of it. */
const accepted = new Map<string, number>();
const vendor = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const url = incoming.url ?? '';
  await pause(Math.random() * 300);
  if (url.startsWith('/file')) return void outgoing.writeHead(200, { 'content-type': 'video/mp4' }).end(mp4);
  if (incoming.method === 'GET') return looked(url, incoming.headers.host!, outgoing);
  const { prompt } = JSON.parse(Buffer.concat(chunks).toString()) as { prompt: string };
  accepted.set(prompt, (accepted.get(prompt) ?? 0) + 1);
  if (prompt.endsWith('reset')) return void outgoing.destroy();
  if (url.endsWith('/videos/generations')) return told(outgoing, { request_id: prompt.replaceAll(' ', '-') });
  return told(outgoing, { created: 1, data: [{ b64_json: png }] });
});

function looked(url: string, host: string, outgoing: ServerResponse): void {
  if (Math.random() < 0.5) outgoing.writeHead(202).end();
  else told(outgoing, { status: 'done', video: { url: `http://${host}/file${url}`, duration: 2 } });
}

function told(outgoing: ServerResponse, body: object): void {
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

// ----------------------------------------------------------------------------------------------------------------- nodes

class Node {
  readonly #file: string;
  readonly environment: Record<string, string>;
  readonly origin: string;
  #child: ChildProcess | undefined;

  constructor(file: string, directory: string, origin: string) {
    this.#file = file;
    this.origin = origin;
    this.environment = { DATA_DIR: directory };
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--import', 'tsx', 'core/main.ts', 'serve', this.#file], {
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.#child = child;
    for (let tries = 0; tries < 300; tries += 1) {
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
  }

  /** Looks into the books while it does not serve. */
  async atTheDesk<T>(work: (gateway: Gateway) => Promise<T>): Promise<T> {
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

async function newNode(vendorOrigin: string): Promise<{ node: Node; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'task-node-'));
  if (databaseUrl === undefined) await fillDirectory(directory);
  const probe = createServer();
  await once(probe.listen(0, '127.0.0.1'), 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const file = join(directory, 'gateway.yaml');
  await writeFile(
    file,
    `
gateway: tasks
schema: ${schema}
listen: 127.0.0.1:${port}
log: error
plugins: [storage, auth, plans, providers, models, billing, route, files, task-store]
storage: { database: "${databaseUrl ?? 'embedded'}" }
auth: { secret: "${'s'.repeat(43)}" }
plans: { default: free, offers: { free: { price: 0 } } }
providers: { maker: { keys: vendor-key-1, speaks: { openai-images: "${vendorOrigin}/v1", xai-videos: "${vendorOrigin}/v1" } } }
models:
  paint: { owned_by: tests, kind: image, targets: [maker/p], price: { image: 0.01 } }
  film: { owned_by: tests, kind: video, targets: [maker/f], price: { second: 0.05 } }
files: { fetch: { allow_private: true } }
task-store: { lease: 1s, reconcile: 1s, poll: { first: 100ms, longest: 300ms }, retry: { first: 100ms, longest: 300ms } }
`,
  );
  return { node: new Node(file, directory, `http://127.0.0.1:${port}`), directory };
}

const directories: string[] = [];
const nodes: Node[] = [];
after(async () => {
  await Promise.all(nodes.map((node) => node.kill()));
  vendor.closeAllConnections();
  vendor.close();
  await Promise.all(directories.map((directory) => rm(directory, { recursive: true, force: true })));
  await dropSchema(schema);
});

interface End {
  readonly id: string;
  readonly prompt: string;
  readonly state: string;
  readonly kinds: string[];
  readonly cost: string;
}

const endsIn = (gateway: Gateway) => {
  const store = gateway.find(database)!;
  const table = (name: string) => sql`${sql.identifier(store.schema)}.${sql.identifier(name)}`;
  return store.orm.execute(sql`
    select id, order_head->>'prompt' as prompt, state,
      (select array_agg(kind order by seq) from ${table('ledger')} as ledger where ledger.request_id = tasks.request_id) as kinds,
      (select coalesce(sum(revenue), 0)::text from ${table('ledger')} as ledger where ledger.request_id = tasks.request_id) as cost
    from ${table('tasks')} as tasks`) as unknown as Promise<End[]>;
};

test('each task ends once, is paid or given back once, and is made at most once, however nodes are killed', async () => {
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const vendorOrigin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  for (let index = 0; index < nodeCount; index += 1) {
    const { node, directory } = await newNode(vendorOrigin);
    nodes.push(node);
    directories.push(directory);
  }
  const key = await nodes[0]!.atTheDesk(async (gateway) => {
    const { id } = await gateway.find(accounts)!.create('alice', 'free');
    const entry = { kind: 'top-up', reason: 'test', reference: 'first' };
    await gateway.find(ledger)!.credit(id, parseUsd('100'), entry);
    return (await gateway.find(accounts)!.createKey(id, { name: 'test' })).key;
  });
  for (const node of nodes) await node.start();
  const known = new Set<string>();
  const submit = async (node: Node, prompt: string) => {
    const film = prompt.endsWith('film');
    const body = film
      ? { model: 'film', content: [{ type: 'text', text: prompt }], duration: 5 }
      : { model: 'paint', prompt };
    const answer = await fetch(node.origin + (film ? '/v1/contents/generations/tasks' : '/v1/images/generations'), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200);
    const json = (await answer.json()) as { id?: string; data?: { id: string } };
    known.add((json.id ?? json.data?.id)!);
  };
  let orders = 0;
  for (let round = 0; round < kills; round += 1) {
    const node = nodes[round % nodes.length]!;
    const kinds = ['film', 'paint', 'film', 'paint', 'reset'];
    // Those that are on their way to the node that dies may be taken or not.
    const all = Promise.allSettled(
      Array.from({ length: tasksPerRound }, () => {
        orders += 1;
        return submit(nodes[orders % nodes.length]!, `order ${orders} ${kinds[orders % kinds.length]}`);
      }),
    );
    await pause(150 + Math.random() * 500);
    await node.kill();
    await all;
    await node.start();
  }
  // The nodes work it off.
  await pause(4_000);
  for (let tries = 0; tries < 100; tries += 1) {
    const listed = await fetch(`${nodes[0]!.origin}/v1/tasks?limit=100`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = (await listed.json()) as { data: { status?: string; data?: { status: string } }[] };
    const open = data.filter((task) => /queued|running|submitted|processing/.test((task.status ?? task.data?.status)!));
    if (open.length === 0) break;
    await pause(300);
  }
  await Promise.all(nodes.map((node) => node.kill()));
  await nodes[0]!.atTheDesk(async (gateway) => {
    const ends = await endsIn(gateway);
    assert.ok(ends.length >= known.size);
    for (const id of known)
      assert.ok(
        ends.some((end) => end.id === id),
        `${id} was lost`,
      );
    for (const { prompt, state, kinds, cost } of ends) {
      assert.deepEqual(kinds, ['HOLD', state === 'completed' ? 'SETTLE' : 'VOID'], `${prompt} is ${state}`);
      const due = state !== 'completed' ? '0' : prompt.endsWith('film') ? '100000000' : '10000000';
      assert.equal(cost, due, prompt);
      if (state === 'completed') assert.equal(accepted.get(prompt), 1, prompt);
    }
    for (const [prompt, times] of accepted) assert.equal(times, 1, `${prompt} was made ${times} times`);
    assert.ok(ends.filter(({ state }) => state === 'completed').length >= ends.length / 3);
    const audit = gateway.commands.find(({ name }) => name === 'audit')!;
    const { violations } = (await audit.run({})).json as { violations: unknown[] };
    assert.deepEqual(violations, []);
  });
});
