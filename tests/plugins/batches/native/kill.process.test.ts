/** A gateway that is killed between each two steps of a vendor's batch: one order at the vendor, each line paid once. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { boot } from '../../../../core/gateway/boot.ts';
import { createLog } from '../../../../core/gateway/log.ts';
import { BatchRows } from '../../../../plugins/batches/rows.ts';
import { accounts } from '../../../../plugins/common/domain/accounts.ts';
import { database } from '../../../../plugins/common/domain/database.ts';
import { ledger, pool } from '../../../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../../../plugins/common/domain/money.ts';
import { freePort } from '../../../helpers/free-port.ts';
import { isWhole } from '../../../helpers/histories.ts';
import { fillMigrated } from '../../../helpers/migrated.ts';
import { temporaryDirectory } from '../../../helpers/temporary-directory.ts';
import { contentRoutes } from './content-vendor.ts';
import { fileRoutes } from './file-vendor.ts';
import { messageRoutes } from './message-vendor.ts';
import { BatchVendor } from './stand-in.ts';
import { Client, chatLine, gatewayFile, lineCost } from './world.ts';

const lines = 40;

/** When the process is killed: before the vendor has the request, before its answer is sent, or soon after. */
type Kill = 'before' | 'after' | 'later';
type Kills = Readonly<Record<string, readonly Kill[]>>;

/** The last kill of the steps that money depends on most: each is a start of the gateway. */
const everyday = (kills: Kills): Kills =>
  Object.fromEntries(['order', 'results'].map((step) => [step, kills[step]!.slice(-1)]));

async function openKilled(context: TestContext, all: Kills) {
  const kills = isWhole ? all : everyday(all);
  const vendor = new BatchVendor();
  vendor.add([...fileRoutes(vendor), ...messageRoutes(vendor), ...contentRoutes(vendor)]);
  await vendor.start();
  context.after(() => vendor.close());
  const directory = temporaryDirectory('native-kill-');
  const port = await freePort();
  const file = join(directory, 'gateway.yaml');
  const head = `gateway: native\nschema: test\nlisten: 127.0.0.1:${port}\ndata: ${directory}\nstorage: { database: embedded }`;
  writeFileSync(
    file,
    gatewayFile(vendor.origin, head).replace('log: debug', 'log: error').replace('lease: 2s', 'lease: 1s'),
  );
  await fillMigrated(directory, 'test');
  const inside = async <T>(work: (gateway: Awaited<ReturnType<typeof boot>>) => Promise<T>): Promise<T> => {
    const environment = process.env as Record<string, string>;
    const gateway = await boot(file, { mode: 'serve', log: createLog('error', () => {}), environment });
    await gateway.serve();
    try {
      return await work(gateway);
    } finally {
      await gateway.stop(5_000);
    }
  };
  const account = await inside(async (gateway) => {
    const { id } = await gateway.find(accounts)!.create('one', 'free');
    const grant = { kind: 'manual', reason: 'test', reference: 'one' };
    await gateway.find(ledger)!.credit(id, parseUsd('10'), grant);
    const { key, id: keyId } = await gateway.find(accounts)!.createKey(id, { name: 'one' });
    return { id, key, keyId };
  });
  const start = (): ChildProcess => {
    const words = ['--disable-warning=ExperimentalWarning', 'core/process/main.ts', 'serve', file];
    return spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] });
  };
  let gateway: ChildProcess | undefined;
  let done = 0;
  const kill = async () => {
    gateway!.kill('SIGKILL');
    await once(gateway!, 'exit');
    done += 1;
    gateway = start();
  };
  context.after(() => void gateway?.kill('SIGKILL'));
  const left = new Map(Object.entries(kills).map(([step, list]) => [step, [...list]]));
  vendor.trouble = async (step) => {
    const next = left.get(step)?.shift();
    if (next === undefined) return undefined;
    if (next !== 'later') await kill();
    else setTimeout(() => void kill(), 150);
    return next === 'later' ? undefined : next;
  };
  return {
    ...{ vendor, inside, account, client: new Client(`http://127.0.0.1:${port}`, account.key) },
    serve() {
      gateway = start();
    },
    async stop() {
      gateway!.kill('SIGTERM');
      await once(gateway!, 'exit');
    },
    /** Kills that came about, and what the ledger says in the end. */
    async settled() {
      await this.stop();
      const planned = Object.values(kills).flat().length;
      assert.equal(done, planned, `${[...left].filter(([, list]) => list.length > 0).join()} is left`);
      assert.deepEqual(vendor.faults, []);
      assert.equal(vendor.batches.size, 1);
      assert.equal(vendor.made, lines);
      await inside(async (again) => {
        const command = async (name: string, values: Record<string, string>) =>
          (await again.commands.find((one) => one.name === name)!.run(values)).json;
        assert.deepEqual(((await command('audit', {})) as { violations: unknown[] }).violations, []);
        const { rows } = (await command('ledger', { account: account.id, limit: '1000' })) as {
          rows: { kind: string }[];
        };
        assert.equal(rows.filter(({ kind }) => kind === 'CHARGE').length, lines);
        assert.equal((await again.find(pool)!.view(account.id)).held, 0n);
        const spent = parseUsd('10') - (await again.find(ledger)!.balance(account.id));
        assert.equal(spent, lineCost * BigInt(lines));
      });
    },
  };
}

const numbered = (line: (id: string) => string) => Array.from({ length: lines }, (_, index) => line(`line-${index}`));

test('a batch of files survives kills', { timeout: 280_000 }, async (context) => {
  const world = await openKilled(context, {
    upload: ['before', 'after'],
    'list files': ['before'],
    order: ['before', 'after'],
    list: ['after'],
    get: ['before', 'after'],
    results: ['before', 'later', 'after'],
    'delete file': ['before'],
  });
  world.serve();
  const batch = await world.client.ended(await world.client.order(numbered((id) => chatLine(id))));
  assert.deepEqual(batch.request_counts, { total: lines, completed: lines, failed: 0 });
  await world.settled();
});

test('a batch of messages survives kills', { timeout: 280_000 }, async (context) => {
  const world = await openKilled(context, {
    order: ['before', 'after'],
    list: ['before'],
    get: ['after'],
    results: ['later'],
    delete: ['after'],
  });
  world.serve();
  // The vendor returns the ids of the lines, which identify the owner, once the batch has ended.
  const ending = setInterval(() => {
    for (const batch of world.vendor.batches.values())
      if (batch.state === 'running') world.vendor.end(batch, 'completed');
  }, 1_000);
  context.after(() => clearInterval(ending));
  const requests = Array.from({ length: lines }, (_, index) => ({
    custom_id: `line-${index}`,
    params: { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'x' }] },
  }));
  const { id } = (await (await world.client.call('POST', '/v1/messages/batches', { requests })).json()) as {
    id: string;
  };
  for (;;) {
    const answer = await (await world.client.call('GET', `/v1/messages/batches/${id}`)).json();
    const { processing_status: status, request_counts: counts } = answer as Record<string, unknown>;
    if (status !== 'ended') await pause(100);
    else {
      assert.deepEqual(counts, { processing: 0, succeeded: lines, errored: 0, canceled: 0, expired: 0 });
      break;
    }
  }
  await world.settled();
});

test('a batch of contents survives kills', { timeout: 280_000 }, async (context) => {
  const world = await openKilled(context, {
    'begin upload': ['after'],
    upload: ['after'],
    'find file': ['before'],
    order: ['after'],
    list: ['before'],
    get: ['after'],
    results: ['later'],
    delete: ['before'],
  });
  const endpoint = '/v1beta/models/m:generateContent';
  const line = (id: string) =>
    JSON.stringify({
      ...{ custom_id: id, method: 'POST', url: endpoint },
      body: { contents: [{ role: 'user', parts: [{ text: id }] }], generationConfig: { maxOutputTokens: 50 } },
    });
  world.serve();
  const inputFile = await world.client.upload(numbered(line));
  const id = 'batch_0123456789';
  const { account } = world;
  // The process that serves holds the embedded database.
  await world.stop();
  await world.inside(async (gateway) => {
    const batch = {
      ...{ id, accountId: account.id, keyId: account.keyId, remoteAddress: '127.0.0.1', dialect: 'chat' as const },
      ...{ endpoint, headers: {}, inputFile, metadata: undefined, windowMs: 3_600_000, outputLifetimeMs: undefined },
    } as const;
    assert.ok(await new BatchRows(gateway.find(database)!).create(batch, 100));
  });
  world.serve();
  const batch = await world.client.ended(id);
  assert.deepEqual(batch.request_counts, { total: lines, completed: lines, failed: 0 });
  await world.settled();
});
