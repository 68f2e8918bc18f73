/** The embedded database's life: started, shared, restarted, refused to a second gateway, and gone with its gateway. */
import assert from 'node:assert/strict';
import { ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { type OpenedDatabase, openDatabase } from '../../../plugins/storage/database.ts';
import { keepEmbeddedProcesses, useEmbedded } from '../../../plugins/storage/embedded/keeper.ts';
import { readOwner } from '../../../plugins/storage/embedded/lock.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { until } from '../../helpers/until.ts';

// As gateways have it.
keepEmbeddedProcesses(false);

const gatewayProcess = fileURLToPath(new URL('./gateway-process.ts', import.meta.url));

async function newDirectory(context: TestContext, name = ''): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const directory = join(root, name);
  await fillDirectory(directory);
  return directory;
}

async function open(
  context: TestContext,
  directory: string,
  options: { schema?: string; mode?: 'serve' | 'command' } = {},
): Promise<OpenedDatabase & { host: ReturnType<typeof fakeHost> }> {
  const host = fakeHost({ directory, ...options });
  const database = await openDatabase(host, { database: 'embedded', maxConnections: 3 });
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= database.close();
    return closing;
  };
  context.after(close);
  return { ...database, close, host };
}

/** A process of its own that inserts numbers; `committed` holds the numbers whose commit was acknowledged. */
async function startGateway(context: TestContext, directory: string, first = 0) {
  const child = spawn(process.execPath, [gatewayProcess, directory, String(first)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  context.after(() => child.kill('SIGKILL'));
  const committed: number[] = [];
  const lines = createInterface({ input: child.stdout });
  const ended = once(lines, 'close');
  const ready = new Promise<void>((resolve) => {
    lines.on('line', (line) => (line === 'ready' ? resolve() : committed.push(Number(line))));
  });
  await Promise.race([ready, once(child, 'exit').then(() => assert.fail('the gateway did not start'))]);
  return { child, committed, ended };
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const ping = (database: OpenedDatabase) => database.orm.execute(sql`select 1 as one`);

test('a first start makes the database, and an interrupted one is begun again', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  mkdirSync(join(directory, 'postgres'));
  writeFileSync(join(directory, 'postgres', 'PG_VERSION'), '18\n');
  writeFileSync(join(directory, 'postgres.incomplete'), '');
  const database = await open(context, directory);
  assert.equal(existsSync(join(directory, 'postgres.incomplete')), false);
  await ping(database);
});

test('gateways of one process share one database process, which ends with the last of them', async (context) => {
  const directory = await newDirectory(context);
  const [main, alt] = await Promise.all([
    open(context, directory, { schema: 'main' }),
    open(context, directory, { schema: 'alt' }),
  ]);
  const { pid } = readOwner(directory)!;
  await main.close();
  await ping(alt);
  assert.equal(readOwner(directory)!.pid, pid);
  await alt.close();
  assert.equal(isAlive(pid), false);
  const again = await open(context, directory, { schema: 'main' });
  await ping(again);
});

test('a second gateway on the directory waits a while and is then refused with one sentence', async (context) => {
  const directory = await newDirectory(context);
  const { child } = await startGateway(context, directory);
  const began = performance.now();
  const refusal = await useEmbedded(directory, 'serve', fakeHost().log, 1_000).then(
    () => assert.fail('it was let in'),
    (error: Error) => error,
  );
  assert.ok(performance.now() - began > 1_000);
  assert.equal(
    refusal.message,
    `The embedded database in ${directory} is in use by the gateway with process id ${child.pid}: stop that first, or give this one its own data directory or a DATABASE_URL.`,
  );
});

test('a gateway that starts while the previous one stops waits for it', async (context) => {
  const directory = await newDirectory(context);
  const { child } = await startGateway(context, directory);
  setTimeout(() => child.kill('SIGKILL'), 300);
  await ping(await open(context, directory));
});

test('a command uses the database of the gateway that runs beside it', async (context) => {
  const directory = await newDirectory(context);
  await startGateway(context, directory);
  const { pid } = readOwner(directory)!;
  const database = await open(context, directory, { mode: 'command' });
  await ping(database);
  await database.close();
  assert.equal(readOwner(directory)!.pid, pid);
  assert.equal(isAlive(pid), true);
});

test('a command without a gateway has its own database process while it runs', async (context) => {
  const directory = await newDirectory(context);
  const database = await open(context, directory, { mode: 'command' });
  const { pid } = readOwner(directory)!;
  await ping(database);
  await database.close();
  assert.equal(isAlive(pid), false);
});

test('a command after a killed gateway ignores the files that it left', async (context) => {
  const directory = await newDirectory(context);
  const { child } = await startGateway(context, directory);
  const { pid } = readOwner(directory)!;
  child.kill('SIGKILL');
  process.kill(pid, 'SIGKILL');
  await until('both are gone', () => !isAlive(pid));
  assert.equal(existsSync(join(directory, 'postgres.lock')), true);
  await ping(await open(context, directory, { mode: 'command' }));
});

test('a path that is too long for a socket works all the same', async (context) => {
  const directory = await newDirectory(context, 'a-long-name-'.repeat(12));
  const database = await open(context, directory);
  await ping(database);
  const { address } = readOwner(directory)!;
  assert.ok(address.startsWith(tmpdir()) && address.length < 100);
  await database.close();
  assert.equal(existsSync(address), false);
});

test('when the database process dies, statements fail soon, health shows it, and it is restarted by itself', async (context) => {
  const directory = await newDirectory(context);
  const database = await open(context, directory);
  await database.orm.execute(sql`create table test.kept (id int)`);
  await database.orm.execute(sql`insert into test.kept values (1)`);
  const { pid } = readOwner(directory)!;
  const asleep = database.orm.transaction(async (transaction) => {
    await transaction.execute(sql`insert into test.kept values (2)`);
    process.kill(pid, 'SIGKILL');
    await transaction.execute(sql`insert into test.kept values (3)`);
  });
  await assert.rejects(asleep);
  await until('health is bad', () => !database.healthy(), 10_000);
  const began = performance.now();
  const outcome = await ping(database).then(
    () => 'answered',
    () => 'failed',
  );
  assert.ok(performance.now() - began < 5_000, outcome);
  await until('it is back', () =>
    ping(database).then(
      () => database.healthy(),
      () => false,
    ),
  );
  const rows = await database.orm.execute(sql`select id from test.kept`);
  assert.deepEqual(
    Array.from(rows as Iterable<object>, (row) => ({ ...row })),
    [{ id: 1 }],
  );
  assert.notEqual(readOwner(directory)!.pid, pid);
  assert.ok(database.host.lines.some(({ message }) => message === 'the database does not answer'));
});

test('no database process survives a gateway that was killed', async (context) => {
  const directory = await newDirectory(context);
  const { child } = await startGateway(context, directory);
  const { pid } = readOwner(directory)!;
  child.kill('SIGKILL');
  await until('the database process has ended', () => !isAlive(pid));
});

test('signals to the whole process group leave the database to its gateway', async (context) => {
  const directory = await newDirectory(context);
  const database = await open(context, directory);
  const { pid } = readOwner(directory)!;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
  await sleep(50);
  await ping(database);
  assert.equal(readOwner(directory)!.pid, pid);
});

test('a process that is kept for the next database has no listeners of the one before', async (context) => {
  keepEmbeddedProcesses(true);
  const spied = context.mock.method(ChildProcess.prototype, 'unref');
  const directory = await newDirectory(context);
  const found: (readonly [number | undefined, number])[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await (await open(context, directory)).close();
    const child = spied.mock.calls.at(-1)!.this as unknown as ChildProcess;
    found.push([child.pid, child.listenerCount('exit')]);
  }
  keepEmbeddedProcesses(false);
  assert.deepEqual(found, Array(3).fill(found[0]));
});

test('committed rows are there after kill -9 of the gateway, of the database, or of both', {
  timeout: 300_000,
}, async (context) => {
  const directory = await newDirectory(context);
  const committed = new Set<number>();
  let first = 0;
  for (let loop = 0; loop < 5; loop += 1) {
    const gateway = await startGateway(context, directory, first);
    const { pid } = readOwner(directory)!;
    await until('some rows are committed', () => gateway.committed.length > 60);
    killSome(loop, gateway.child, pid);
    await gateway.ended;
    await until('the database process has ended', () => !isAlive(pid));
    for (const value of gateway.committed) committed.add(value);
    first = Math.max(...committed) + 100;
  }
  const database = await open(context, directory);
  const rows = (await database.orm.execute(sql`select value from test.numbers`)) as { value: number }[];
  const found = new Set(rows.map(({ value }) => value));
  assert.deepEqual(
    [...committed].filter((value) => !found.has(value)),
    [],
  );
  assert.ok(committed.size > 300);
});

function killSome(loop: number, gateway: ChildProcess, databasePid: number): void {
  if (loop % 3 !== 0) process.kill(databasePid, 'SIGKILL');
  gateway.kill('SIGKILL');
}
