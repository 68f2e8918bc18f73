/** Connections that break: what ran on them fails, nothing runs twice or elsewhere, and the next ones are good. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { type ConnectOptions, connect } from '../../../plugins/storage/connect.ts';
import { openLocalDriver } from '../../../plugins/storage/driver.ts';
import { readOwner } from '../../../plugins/storage/embedded/lock.ts';
import { Pool, type Statement } from '../../../plugins/storage/pool.ts';
import { databaseUrl, embeddedDirectory, openDatabase, type TestDatabase } from '../../helpers/database.ts';

const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
let database: TestDatabase;
let line: Line;

/** A line to the database that can be cut, or made to swallow everything. */
class Line {
  /** Where it begins. */
  target: ConnectOptions['target'] = { socketPath: '' };
  mode: 'open' | 'dead' | 'refusing' = 'open';
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => {
    this.#sockets.add(near);
    near.on('error', () => undefined).on('close', () => this.#sockets.delete(near));
    if (this.mode === 'refusing') return void near.end();
    const far = this.#connectFar();
    near.on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.on('data', (chunk) => this.mode === 'open' && far.write(chunk));
    far.on('data', (chunk) => this.mode === 'open' && near.write(chunk));
  });
  #connectFar: () => Socket = () => assert.fail();

  async listen(): Promise<void> {
    if (databaseUrl === undefined) {
      const { address } = readOwner(await embeddedDirectory())!;
      this.#connectFar = () => connectSocket(address);
      const socketPath = join(directory, 'line.sock');
      this.#server.listen(socketPath);
      this.target = { socketPath };
    } else {
      const url = new URL(databaseUrl);
      const [port, host] = [Number(url.port || 5432), url.hostname];
      this.#connectFar = () => connectSocket(port, host);
      this.#server.listen(0, '127.0.0.1');
      await once(this.#server, 'listening');
      url.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
      this.target = { url: url.href };
    }
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

before(async () => {
  database = await openDatabase();
  line = new Line();
  await line.listen();
});

after(async () => {
  line.close();
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function throughLine(maxConnections = 1) {
  return connect({ target: line.target, maxConnections, applicationName: 'test', threaded: true });
}

async function newTable(name: string) {
  const table = sql`${sql.identifier(database.schema)}.${sql.identifier(name)}`;
  await database.orm.execute(sql`create table ${table} (id int)`);
  const ids = async () =>
    ((await database.orm.execute(sql`select id from ${table} order by id`)) as { id: number }[]).map(({ id }) => id);
  return { table, ids };
}

test('a transaction whose connection breaks between two statements is rolled back, and none of its rest runs', async () => {
  const { orm, close } = throughLine();
  const { table, ids } = await newTable('between');
  const broken = orm.transaction(async (transaction) => {
    await transaction.execute(sql`insert into ${table} values (${1})`);
    line.cut();
    await sleep(20);
    const others = orm.execute(sql`insert into ${table} values (${10})`).execute();
    await transaction.execute(sql`insert into ${table} values (${2})`).catch(() => undefined);
    await others.catch(() => undefined);
    await transaction.execute(sql`insert into ${table} values (${3})`).catch(() => undefined);
  });
  await assert.rejects(broken, { code: 'CONNECTION_LOST' });
  assert.deepEqual(await ids(), [10]);
  await orm.execute(sql`insert into ${table} values (${11})`);
  assert.deepEqual(await ids(), [10, 11]);
  await close();
});

test('a connection that breaks during a statement fails it alone, many times in a row', async () => {
  const { orm, close } = throughLine(3);
  const { table, ids } = await newTable('under');
  await database.orm.execute(sql`insert into ${table} values (0)`);
  for (let round = 0; round < 10; round += 1) {
    await database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`lock table ${table} in access exclusive mode`);
      const waiting = [1, 2, 3].map((n) =>
        orm.transaction(async (inner) => {
          await inner.execute(sql`update ${table} set id = ${round * 10 + n}`);
        }),
      );
      let settled = false;
      const outcomes = Promise.allSettled(waiting).finally(() => {
        settled = true;
      });
      for (await sleep(round); !settled; await sleep(5)) line.cut();
      assert.deepEqual(
        (await outcomes).map(({ status }) => status),
        ['rejected', 'rejected', 'rejected'],
      );
    });
    const answer = (await orm.execute(sql`select ${round}::int as round`)) as { round: number }[];
    assert.equal(answer[0]!.round, round);
  }
  assert.deepEqual(await ids(), [0]);
  await close();
});

const select: Statement = { text: 'select $1::int as value', parameters: [1], prepare: true, asArrays: false };

function poolThroughLine(options: { waitMs?: number; deadlineMs?: number; openDeadlineMs?: number }) {
  return new Pool({
    open: (onClose) => openLocalDriver({ target: line.target, applicationName: 'test' }, onClose),
    maxConnections: 1,
    waitMs: 5_000,
    deadlineMs: 5_000,
    openDeadlineMs: 5_000,
    ...options,
  });
}

test('a network that drops everything fails statements at their deadline, and the connections are replaced afterwards', async () => {
  const pool = poolThroughLine({ deadlineMs: 150, openDeadlineMs: 300 });
  assert.equal((await pool.run(select)).length, 1);
  line.mode = 'dead';
  const began = performance.now();
  await assert.rejects(pool.run(select), {
    message: 'The connection to the database was lost: it gave no answer in time.',
  });
  await assert.rejects(pool.run(select), { code: 'CONNECTION_LOST' });
  assert.ok(performance.now() - began < 5_000);
  line.mode = 'open';
  assert.equal((await pool.run(select)).length, 1);
  await pool.close();
});

test('a server that accepts connections and drops them fails statements, which do not hang', async () => {
  const pool = poolThroughLine({ openDeadlineMs: 300 });
  line.mode = 'refusing';
  await assert.rejects(pool.run(select), { code: 'CONNECTION_LOST' });
  line.mode = 'open';
  assert.equal((await pool.run(select)).length, 1);
  await pool.close();
});

test('a too long wait for a free connection is an error; the others get connections in order', async ({ mock }) => {
  const pool = poolThroughLine({ waitMs: 150 });
  await pool.run(select);
  mock.timers.enable({ apis: ['setTimeout'] });
  const order: number[] = [];
  const others: Promise<unknown>[] = [];
  await pool.transaction(async () => {
    const late = assert.rejects(pool.run(select), { message: 'No connection to the database became free in time.' });
    mock.timers.tick(100);
    for (const turn of [1, 2, 3]) others.push(pool.run(select).then(() => order.push(turn)));
    mock.timers.tick(80);
    await late;
  });
  await Promise.all(others);
  assert.deepEqual(order, [1, 2, 3]);
  await pool.close();
});

test('a closed pool accepts no statement', async () => {
  const pool = poolThroughLine({});
  await pool.run(select);
  await pool.close();
  await assert.rejects(pool.run(select), { message: 'The database connection is closed.' });
});
