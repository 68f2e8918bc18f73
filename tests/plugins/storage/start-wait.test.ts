/** A start whose database does not answer yet: it waits, says so, and ends with one sentence. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openDatabase } from '../../../plugins/storage/database.ts';
import { StartWait } from '../../../plugins/storage/start-wait.ts';
import { databaseUrl } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { hasPostgres, startPostgres } from '../../helpers/postgres.ts';

const coded = (code: string, message = 'raw words') => Object.assign(new Error(message), { code });
/** As drizzle and the driver's thread hand errors on. */
const wrapped = (error: Error) => new Error('Failed query: select', { cause: error });

function newWait(limitMs: number) {
  const lines: string[] = [];
  const add = (_fields: object, message: string) => void lines.push(message);
  const log = { debug: add, info: add, warn: add, error: add, record: () => {} };
  return { lines, wait: new StartWait({ name: 'postgres://db:5432/main', limitMs, log }) };
}

test('a failure that waiting can end is tried again until the database answers', async () => {
  const failures = ['ECONNREFUSED', '57P03', 'CONNECTION_LOST', 'EAI_AGAIN'].map((code) => coded(code));
  const { wait } = newWait(10_000);
  const result = await wait.run(async () => {
    const failure = failures.shift();
    if (failure !== undefined) throw wrapped(failure);
    return 'answer';
  });
  assert.deepEqual([result, failures.length], ['answer', 0]);
});

test('a failure that an operator must fix ends the start at once with a sentence, and a bug with itself', async () => {
  for (const code of ['28P01', '3D000', '42501', '53100', '25006']) {
    const { wait } = newWait(10_000);
    await assert.rejects(
      wait.run(() => Promise.reject(wrapped(coded(code, 'password authentication failed for user "x"')))),
      (error: Error) => {
        assert.equal(
          error.message,
          'The database postgres://db:5432/main (storage.database) refuses this gateway: password authentication failed for user "x".',
        );
        return error.constructor === Error && error.cause === undefined;
      },
    );
  }
  const bug = wrapped(coded('42P01'));
  await assert.rejects(
    newWait(10_000).wait.run(() => Promise.reject(bug)),
    bug,
  );
});

test('at the end of the time the start fails with one sentence and the last reason, also during a hanging try', async () => {
  const { wait } = newWait(600);
  await assert.rejects(
    wait.run(() => Promise.reject(coded('ECONNREFUSED'))),
    {
      message:
        'The database postgres://db:5432/main did not answer within 1 s (storage.start_timeout): the connection is refused.',
    },
  );
  await assert.rejects(
    wait.run(() => new Promise<never>(() => {})),
    { message: /did not answer within 1 s \(storage\.start_timeout\): it has not answered yet\.$/ },
  );
});

test('a migration may take longer than the start waits for an answer, and the time counts again when the answer is lost', async () => {
  const { wait } = newWait(60);
  const result = await wait.run(async (answered) => {
    answered('the migration billing/001-baseline.sql runs');
    await pause(150);
    return 'done';
  });
  assert.equal(result, 'done');
  let tries = 0;
  const lost = newWait(600).wait.run(async (answered) => {
    tries++;
    if (tries > 1) throw coded('ECONNREFUSED');
    answered('the migration billing/001-baseline.sql runs');
    throw coded('CONNECTION_LOST');
  });
  await assert.rejects(lost, { message: /did not answer within 1 s .*: the connection is refused\.$/ });
});

test('a command does not wait for a database that is down', async () => {
  let tries = 0;
  const refuse = async () => {
    tries++;
    throw coded('ECONNREFUSED');
  };
  await assert.rejects(newWait(0).wait.run(refuse), {
    message: 'The database postgres://db:5432/main did not answer: the connection is refused.',
  });
  assert.equal(tries, 1);
});

test('a server without TLS ends the start at once with a sentence where the URL asks for it', async (context) => {
  const server = createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end('N')));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => server.close());
  const { port } = server.address() as { port: number };
  const opening = (mode: string, startTimeoutMs: number) =>
    openDatabase(fakeHost({ schema: 'tls', directory: '/nonexistent' }), {
      database: `postgres://user:secret-word@127.0.0.1:${port}/main?sslmode=${mode}`,
      maxConnections: 1,
      startTimeoutMs,
    });
  for (const mode of ['require', 'verify-ca', 'verify-full'])
    await assert.rejects(opening(mode, 30_000), {
      message: `The database postgres://127.0.0.1:${port}/main speaks no TLS, and storage.database (DATABASE_URL) asks for it with sslmode=${mode}: switch TLS on at the server, or write sslmode=disable where the network is trusted.`,
    });
  await assert.rejects(opening('disable', 500), /did not answer within/);
});

test('a certificate that is not trusted ends the start with a sentence', async () => {
  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])
    await assert.rejects(
      newWait(10_000).wait.run(() => Promise.reject(coded(code, 'self-signed certificate'))),
      {
        message:
          'The certificate of the database postgres://db:5432/main is not trusted, which storage.database asks for (sslmode): self-signed certificate.',
      },
    );
});

/** A server that takes connections and says nothing. */
async function silentServer(context: TestContext): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

test('a start logs every few seconds that it waits, and ends in time, without a password in its texts', async (context) => {
  const port = await silentServer(context);
  const host = fakeHost({ schema: 'waiting', directory: '/nonexistent' });
  const opening = openDatabase(host, {
    database: `postgres://user:secret-word@127.0.0.1:${port}/main`,
    maxConnections: 1,
    startTimeoutMs: 6_000,
  });
  const startedAt = performance.now();
  await assert.rejects(opening, (error: Error) => {
    assert.match(error.message, /^The database postgres:\/\/127\.0\.0\.1:\d+\/main did not answer within 6 s/);
    return true;
  });
  assert.ok(performance.now() - startedAt < 13_000);
  const said = JSON.stringify(host.lines);
  assert.match(said, /waiting for the database postgres:\/\/127\.0\.0\.1:\d+\/main for 5 s of 6 s/);
  assert.doesNotMatch(said, /secret-word/);
});

if (hasPostgres && databaseUrl !== undefined) {
  test('a gateway that starts before its PostgreSQL is ready once PostgreSQL is', async (context) => {
    const server = await startPostgres();
    context.after(() => server.close());
    await server.crash();
    const host = fakeHost({ schema: 'early', directory: '/nonexistent' });
    const opening = openDatabase(host, { database: server.url, maxConnections: 2 });
    await pause(2_000);
    await server.start();
    const database = await opening;
    assert.equal(database.healthy(), true);
    await database.close();
  });

  test('a start waits for a frozen PostgreSQL that continues after 14 s', async (context) => {
    const server = await startPostgres();
    context.after(() => server.close());
    server.freeze();
    const host = fakeHost({ schema: 'frozen', directory: '/nonexistent' });
    const opening = openDatabase(host, { database: server.url, maxConnections: 2 });
    await pause(14_000);
    server.thaw();
    const database = await opening;
    assert.equal(database.healthy(), true);
    await database.close();
  });
}
