/** The embedded server: many clients on one backend, none of them disturbed by another. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { Outage, outageOf } from '../../../core/contract/outage.ts';
import { systemClock } from '../../../core/gateway/system.ts';
import { connect as connectDatabase } from '../../../plugins/storage/connect.ts';
import { type EmbeddedBackend, openBackend } from '../../../plugins/storage/embedded/backend.ts';
import { EmbeddedServer } from '../../../plugins/storage/embedded/server.ts';
import { closeStatement, parse, query, sync } from '../../../plugins/storage/embedded/wire.ts';
import { fillDirectory } from '../../helpers/template.ts';
import { until } from '../../helpers/until.ts';

const directory = mkdtempSync(join(tmpdir(), 'gateway-test-'));
const address = join(directory, 'test.sock');
const holdTimeoutMs = 400;
const broken: Error[] = [];
let backend: EmbeddedBackend;
let server: EmbeddedServer;

before(async () => {
  await fillDirectory(directory);
  backend = await openBackend(directory);
  const onBroken = (error: Error) => void broken.push(error);
  server = new EmbeddedServer({ backend, settings: backend.settings, holdTimeoutMs, onBroken });
  await server.listen(address);
});

after(async () => {
  await server.close();
  await backend.close();
  rmSync(directory, { recursive: true, force: true });
  assert.deepEqual(broken, []);
});

function client(max = 1, path = address) {
  return postgres({ path, host: 'localhost', user: 'test', database: 'test', max, onnotice: () => undefined });
}

/** Speaks the protocol by hand: sends bytes, collects the kinds of the answers. */
class RawClient {
  readonly socket: Socket = connect(address);
  #bytes = Buffer.alloc(0);

  constructor() {
    this.socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
    });
    this.socket.on('error', () => undefined);
  }

  async start(): Promise<this> {
    this.socket.write(Buffer.from('0000000800030000', 'hex'));
    await this.until('Z');
    return this;
  }

  /** Sends and waits for an answer of that kind. */
  async send(bytes: Buffer, kind = 'Z'): Promise<string> {
    this.#bytes = Buffer.alloc(0);
    this.socket.write(bytes);
    return this.until(kind);
  }

  /** Letters of the answers so far, once one of that kind is among them; a status follows `Z`. */
  async until(kind: string): Promise<string> {
    return until(`${kind} has come`, () => {
      const kinds = this.#kinds();
      return kinds.includes(kind) && kinds;
    });
  }

  text(): string {
    return this.#bytes.toString('latin1');
  }

  #kinds(): string {
    let kinds = '';
    for (let at = 0; at + 5 <= this.#bytes.length; ) {
      const length = this.#bytes.readUInt32BE(at + 1) + 1;
      if (at + length > this.#bytes.length) break;
      kinds += String.fromCharCode(this.#bytes[at]!);
      if (kinds.endsWith('Z')) kinds += String.fromCharCode(this.#bytes[at + 5]!);
      at += length;
    }
    return kinds;
  }
}

const flush = Buffer.from('4800000004', 'hex');
const bindUnnamed = Buffer.from(`420000000c${'00'.repeat(8)}`, 'hex');
const execute = Buffer.from(`4500000009${'00'.repeat(5)}`, 'hex');
const terminate = Buffer.from('5800000004', 'hex');

test('eight clients run extended queries and transactions at the same time and each gets its own answers', async () => {
  // On a slow machine a transaction of the test itself may be silent for longer than the other server allows.
  const path = join(directory, 'patient.sock');
  const patient = new EmbeddedServer({
    backend,
    settings: backend.settings,
    holdTimeoutMs: 60_000,
    onBroken: assert.fail,
  });
  await patient.listen(path);
  const clients = Array.from({ length: 8 }, () => client(1, path));
  const [first] = clients;
  await first!`create table mixed (client int, turn int, primary key (client, turn))`;
  const work = async (sql: postgres.Sql, me: number) => {
    for (let turn = 0; turn < 40; turn += 1) {
      const [unnamed] = await sql.unsafe('select $1::int as me, $2::text as text', [me, `t${turn}`]);
      assert.deepEqual({ ...unnamed }, { me, text: `t${turn}` });
      const [named] = await sql`select ${me}::int8 * 1000 + ${turn} as both`;
      assert.equal(named!['both'], String(me * 1000 + turn));
      await sql
        .begin(async (transaction) => {
          await transaction`insert into mixed values (${me}, ${turn})`;
          const rows = await transaction`select client from mixed where client = ${me} and turn = ${turn}`;
          assert.equal(rows.length, 1);
          if (turn % 4 === 3) throw new Error('undo');
        })
        .catch((error: Error) => assert.equal(error.message, 'undo'));
      if (turn % 10 === 5) await assert.rejects(sql.unsafe('select 1 / $1::int', [0]), { code: '22012' });
    }
  };
  await Promise.all(clients.map(work));
  const counts = await first!`select client, count(*)::int as rows from mixed group by client order by client`;
  assert.deepEqual(
    counts.map((row) => row['rows']),
    Array(8).fill(30),
  );
  await Promise.all(clients.map((sql) => sql.end()));
  await patient.close();
});

test('one client may send many statements without waiting', async () => {
  const sql = client();
  const rows = await Promise.all(Array.from({ length: 500 }, (_, index) => sql`select ${index}::int as value`));
  assert.deepEqual(
    rows.map(([row]) => row!['value']),
    Array.from({ length: 500 }, (_, index) => index),
  );
  await sql.end();
});

test('an open transaction is invisible to others, and they wait for its end', async () => {
  const [writer, reader] = [client(), client()];
  await writer`create table hidden (id int)`;
  const order: string[] = [];
  let reading: Promise<unknown> | undefined;
  await writer.begin(async (transaction) => {
    await transaction`insert into hidden values (1)`;
    reading = reader`select count(*)::int as rows from hidden`.then(([row]) => order.push(`read ${row!['rows']}`));
    await sleep(50);
    order.push('commit');
  });
  await reading;
  assert.deepEqual(order, ['commit', 'read 1']);
  await Promise.all([writer.end(), reader.end()]);
});

test('no other client runs between a Flush and its Sync', async () => {
  const [one, other] = [await new RawClient().start(), await new RawClient().start()];
  await one.send(Buffer.concat([parse('', "select 'one'"), flush]), '1');
  const theirs = other.send(Buffer.concat([parse('', "select 'other'"), bindUnnamed, execute, sync]));
  await sleep(30);
  await one.send(Buffer.concat([bindUnnamed, execute, sync]));
  assert.match(one.text(), /one/);
  await theirs;
  assert.match(other.text(), /other/);
  one.socket.end(terminate);
  other.socket.end(terminate);
});

test('bytes may arrive in any pieces', async () => {
  const raw = await new RawClient().start();
  const bytes = Buffer.concat([parse('', 'select 42'), bindUnnamed, execute, sync, query('select 43')]);
  for (const byte of bytes) {
    raw.socket.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  for (let tries = 0; !/42[\s\S]*43/.test(raw.text()) && tries < 6_000; tries += 1) await sleep(5);
  assert.match(raw.text(), /42[\s\S]*43/);
  raw.socket.end(terminate);
});

test('a client that dies inside a transaction leaves nothing of it', async () => {
  const sql = client();
  await sql`create table abandoned (id int)`;
  for (const lastWords of ['', 'select 1', 'select broken']) {
    const raw = await new RawClient().start();
    assert.equal(await raw.send(query('begin')), 'CZT');
    await raw.send(query('insert into abandoned values (1)'));
    if (lastWords !== '') await raw.send(query(lastWords));
    raw.socket.write(query('insert into abandoned values (2)').subarray(0, 9));
    raw.socket.destroy();
    const [row] = await sql`select count(*)::int as rows from abandoned`;
    assert.equal(row!['rows'], 0);
  }
  await sql.end();
});

test('a client that dies between a Flush and its Sync leaves nothing of it', async () => {
  const sql = client();
  await sql`create table unsynced (id int)`;
  const raw = await new RawClient().start();
  await raw.send(Buffer.concat([parse('', 'insert into unsynced values (1)'), bindUnnamed, execute, flush]), 'C');
  raw.socket.destroy();
  const [row] = await sql`select count(*)::int as rows from unsynced`;
  assert.equal(row!['rows'], 0);
  await sql.end();
});

test('messages before a Terminate are executed', async () => {
  const sql = client();
  await sql`create table goodbye (id int)`;
  const raw = await new RawClient().start();
  raw.socket.end(
    Buffer.concat([
      query('insert into goodbye values (1)'),
      query('begin'),
      query('insert into goodbye values (2)'),
      terminate,
    ]),
  );
  await once(raw.socket, 'close');
  const [row] = await sql`select array_agg(id) as ids from goodbye`;
  assert.deepEqual(row!['ids'], [1]);
  await sql.end();
});

test('a client that is silent inside a transaction is disconnected and rolled back, so that the others continue', async () => {
  const raw = await new RawClient().start();
  await raw.send(query('begin'));
  await raw.send(query('create table silent (id int)'));
  const sql = client();
  const [row] = await sql`select to_regclass('silent') as found`;
  assert.equal(row!['found'], null);
  assert.match(raw.text(), /25P03/);
  await sql.end();
});

test('waiting clients do not lengthen the time for a silent one', async () => {
  const raw = await new RawClient().start();
  await raw.send(query('begin'));
  const sql = client(4);
  const began = performance.now();
  const waiting: Promise<unknown>[] = [];
  for (let turn = 0; turn < 10; turn += 1) {
    waiting.push(sql`select ${turn}::int`);
    await sleep(holdTimeoutMs / 8);
  }
  await Promise.all(waiting);
  assert.ok(performance.now() - began < holdTimeoutMs * 2);
  await sql.end();
});

test('an error inside a transaction fails it, and the connection works afterwards', async () => {
  const sql = client();
  await assert.rejects(
    sql.begin(async (transaction) => {
      await assert.rejects(transaction`select * from nowhere`, { code: '42P01' });
      await transaction`select 1`;
    }),
    { code: '42P01' },
  );
  const [row] = await sql`select 1 as one`;
  assert.equal(row!['one'], 1);
  await sql.end();
});

test('savepoints work in transactions', async () => {
  const sql = client();
  await sql`create table saved (id int)`;
  await sql.begin(async (transaction) => {
    await transaction`insert into saved values (1)`;
    await transaction
      .savepoint(async (inner) => {
        await inner`insert into saved values (2)`;
        throw new Error('undo');
      })
      .catch(() => undefined);
  });
  const [row] = await sql`select array_agg(id) as ids from saved`;
  assert.deepEqual(row!['ids'], [1]);
  await sql.end();
});

test('a cursor reads in parts while others wait', async () => {
  const [sql, other] = [client(), client()];
  const seen: number[] = [];
  let theirs: Promise<unknown> | undefined;
  await sql`select * from generate_series(1, 10) as n`.cursor(3, (rows) => {
    theirs ??= other.unsafe('select $1::int as value', [1]);
    seen.push(...rows.map((row) => row['n'] as number));
  });
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await theirs;
  await Promise.all([sql.end(), other.end()]);
});

test('prepared statements are dropped with the client that made them', async () => {
  const raw = await new RawClient().start();
  await raw.send(
    Buffer.concat([parse('mine', 'select 1'), parse('dropped', 'select 2'), closeStatement('dropped'), sync]),
  );
  const sql = client();
  const [before] = await sql`select count(*)::int as rows from pg_prepared_statements where name = 'mine'`;
  assert.equal(before!['rows'], 1);
  raw.socket.end(terminate);
  await once(raw.socket, 'close');
  const [left] = await sql`select count(*)::int as rows from pg_prepared_statements where name = 'mine'`;
  assert.equal(left!['rows'], 0);
  await sql.end();
});

test('a driver notices that its prepared statements were dropped, and continues', async () => {
  const sql = client();
  const requestOf = () => sql`select ${1}::int as one`;
  await requestOf();
  await sql.unsafe('deallocate all');
  assert.equal((await requestOf())[0]!['one'], 1);
  await sql.end();
});

test('COPY from the client is refused, since the one backend would wait for it; COPY to the client works', async () => {
  const raw = await new RawClient().start();
  for (const bytes of [
    query('copy mixed from stdin'),
    Buffer.concat([parse('', 'COPY mixed FROM STDIN'), bindUnnamed, execute, sync]),
  ]) {
    assert.match(await raw.send(bytes), /EZI$/);
    assert.match(raw.text(), /COPY FROM STDIN is not available/);
  }
  assert.equal(await raw.send(query('copy (select 1) to stdout')), 'HdcCZI');
  raw.socket.end(terminate);
});

test('a request for encryption is declined, and a request to cancel ends its connection', async () => {
  const request = connect(address);
  request.write(Buffer.from('0000000804d2162f', 'hex'));
  assert.equal(String((await once(request, 'data'))[0]), 'N');
  request.write(Buffer.from('0000000800030000', 'hex'));
  assert.equal(String((await once(request, 'data'))[0])[0], 'R');
  request.destroy();
  const cancelling = connect(address);
  cancelling.write(Buffer.from('0000001004d2162e0000000100000002', 'hex'));
  await once(cancelling, 'close');
});

test('a query can be cancelled by the driver without harm', async () => {
  const sql = client(2);
  const running = sql`select 1 as one`.execute();
  running.cancel();
  await running.catch(() => undefined);
  assert.equal((await sql`select 2 as two`)[0]!['two'], 2);
  await sql.end();
});

test('bytes that are no message end only their own connection', async () => {
  const sql = client();
  const raw = await new RawClient().start();
  await raw.send(query('begin'));
  await raw.send(Buffer.from('!000000'), 'E');
  assert.match(raw.text(), /08P01/);
  assert.equal((await sql`select 1 as one`)[0]!['one'], 1);
  await sql.end();
});

test('work of the server itself waits for transactions and keeps clients waiting', async () => {
  const raw = await new RawClient().start();
  await raw.send(query('begin'));
  const order: string[] = [];
  const work = server.whenFree(async () => void order.push('work'));
  const reading = client();
  const read = reading`select 1`.then(() => order.push('read'));
  await sleep(30);
  order.push('commit');
  await raw.send(query('commit'));
  await Promise.all([work, read]);
  assert.deepEqual(order, ['commit', 'work', 'read']);
  raw.socket.end(terminate);
  await reading.end();
});

test('a large parameter and a large answer arrive whole', async () => {
  const sql = client();
  const text = 'ä'.repeat(4_000_000);
  const [row] = await sql`select ${text}::text as text`;
  assert.equal(row!['text'], text);
  await sql.end();
});

test('a backend that loses its place, repeats itself or does not answer is replaced', async (context) => {
  const copyInAnswer = Buffer.from('4700000007000000', 'hex');
  const errorAnswer = Buffer.from('450000000500', 'hex');
  for (const [name, answers] of [
    ['lost', [copyInAnswer]],
    ['repeating', Array(9).fill(errorAnswer)],
    ['mute', []],
  ] as const) {
    const path = join(directory, `${name}.sock`);
    const failures: string[] = [];
    const failing = new EmbeddedServer({
      backend: { run: async (_, onAnswer) => answers.forEach(onAnswer) },
      settings: {},
      holdTimeoutMs,
      onBroken: (error) => void failures.push(error.message),
    });
    await failing.listen(path);
    const socket = connect(path);
    context.after(() => socket.destroy());
    socket.write(Buffer.concat([Buffer.from('0000000800030000', 'hex'), sync]));
    for (let tries = 0; failures.length === 0 && tries < 6_000; tries += 1) await sleep(5);
    assert.match(failures[0]!, name === 'mute' ? /no answer/ : /lost its place/);
    socket.destroy();
    void failing.close();
  }
});

test('a statement that loses its connection is part of the outage, inside of a transaction too', async () => {
  const path = join(directory, 'way.sock');
  const sockets = new Set<Socket>();
  const way = createServer((socket) => {
    const onward = connect(address);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.pipe(to).on('error', () => {});
    }
  }).listen(path);
  await once(way, 'listening');
  const lose = () => {
    for (const socket of sockets) socket.destroy();
  };
  const log = { info: () => {}, error: () => {} };
  const outage = new Outage({ clock: systemClock, log, began: 'away', over: 'back', fields: {} });
  const target = { socketPath: path };
  const database = connectDatabase({ target, applicationName: 'test', maxConnections: 1, threaded: false, outage });
  const failureOf = (work: PromiseLike<unknown>) =>
    work.then(
      () => assert.fail('it was done'),
      (error: unknown) => error,
    );
  await database.orm.execute(sql`select 1`);
  const inside = await failureOf(
    database.orm.transaction(async (transaction) => {
      await transaction.execute(sql`select 1`);
      lose();
      await transaction.execute(sql`select 2`);
    }),
  );
  way.close();
  rmSync(path, { force: true });
  const outside = await failureOf(database.orm.execute(sql`select 3`));
  await database.close();
  assert.equal(outageOf(inside), outage, String(inside));
  assert.equal(outageOf(outside), outage, String(outside));
});
