/** The storage plugin's section and its part: what an operator may write, and what is said of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { z } from 'zod';
import { database } from '../../../plugins/common/domain/database.ts';
import { describeUrl } from '../../../plugins/storage/connect.ts';
import storage from '../../../plugins/storage/index.ts';
import { databaseUrl, embeddedDirectory } from '../../helpers/database.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

const schema = storage.config as unknown as z.ZodType;
const problemsOf = (section: unknown) =>
  schema.safeParse(section).error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`);

/** What is not written. */
const usual = {
  counters: 'memory',
  counters_within: 50,
  start_timeout: 60_000,
  bridge: 120_000,
  start_empty: false,
  replica: '',
  distributed: false,
  replica_lag: 10_000,
};

test('an empty section means an embedded database', () => {
  assert.deepEqual(schema.parse({}), { database: 'embedded', ...usual, pool: 10 });
});

test('a Postgres URL and a number as text are accepted', () => {
  const url = 'postgresql://user:secret@db.example:5432/gateway?sslmode=require';
  assert.deepEqual(schema.parse({ database: url, pool: '20' }), { database: url, ...usual, pool: 20 });
  const cluster = 'rediss://:secret@one:6379,rediss://:secret@two:6379';
  assert.deepEqual(schema.parse({ counters: cluster, counters_within: '1s' }), {
    database: 'embedded',
    ...usual,
    counters: cluster,
    counters_within: 1_000,
    pool: 10,
  });
});

test('an unusable section is refused with a sentence that shows no secret', () => {
  assert.deepEqual(problemsOf({ database: 'mysql://user:secret@db/x' }), [
    'database must be "embedded" or a URL such as postgres://user:password@host:5432/name',
  ]);
  assert.deepEqual(problemsOf({ database: 'postgres://' }), problemsOf({ database: 'Embedded' }));
  assert.deepEqual(problemsOf({ counters: 'http://:secret@cache:6379' }), [
    'counters must be "memory", or a URL such as redis://host:6379; those of a cluster are separated by commas',
  ]);
  assert.deepEqual(problemsOf({ replica: 'http://:secret@replica' }), [
    'replica must be a URL such as postgres://user:password@host:5432/name',
  ]);
  assert.deepEqual(problemsOf({ pool: 0 }), ['pool must be between 1 and 500']);
  assert.equal(problemsOf({ url: 'x' })?.length, 1);
});

test('an embedded database with a replica is a fault of the section', async () => {
  const check = async (section: object) =>
    (await setUp(storage, fakeHost({ mode: 'check' }), section)).checks?.problems?.() ?? [];
  const replica = 'postgres://replica/x';
  assert.deepEqual(await check({ replica }), [
    {
      path: ['replica'],
      message: 'the embedded database has no replica: set storage.database to the server that it follows',
    },
  ]);
  assert.deepEqual(await check({ replica, database: 'postgres://primary/x' }), []);
});

test('no credentials in a URL are logged', () => {
  assert.equal(
    describeUrl('postgres://user:pass%2Fword@db.example:5432/gateway?password=x'),
    'postgres://db.example:5432/gateway',
  );
});

test('the plugin provides the service, is ready while statements work, and stops in order', async () => {
  const directory = databaseUrl === undefined ? await embeddedDirectory() : '/nonexistent';
  const host = fakeHost({ directory, schema: 'test_of_part' });
  const part = await setUp(storage, host, { database: databaseUrl ?? 'embedded', counters: 'redis://127.0.0.1:1' });
  const service = host.get(database);
  assert.equal(service.schema, 'test_of_part');
  assert.equal(part.health!.ready!(), true);
  assert.deepEqual(part.health!.stores!(), { database: 'ok', counters: 'away' }, 'no server of counters listens there');
  await service.orm.execute(sql`drop schema test_of_part cascade`);
  await part.lifecycle!.stop!();
  await assert.rejects(async () => service.orm.execute(sql`select 1`));
  const password = databaseUrl === undefined ? 'no password' : new URL(databaseUrl).password || 'no password';
  assert.doesNotMatch(JSON.stringify(host.lines), new RegExp(password));
});

test('an unreachable server fails a command soon and a start in its time, each with one sentence', async () => {
  const database = 'postgres://missing:secret@127.0.0.1:1/none';
  const began = performance.now();
  await assert.rejects(setUp(storage, fakeHost({ mode: 'command' }), { database }), {
    message: 'The database postgres://127.0.0.1:1/none did not answer: the connection is refused.',
  });
  assert.ok(performance.now() - began < 3_000);
  await assert.rejects(setUp(storage, fakeHost(), { database, start_timeout: '1s' }), {
    message:
      'The database postgres://127.0.0.1:1/none did not answer within 1 s (storage.start_timeout): the connection is refused.',
  });
  assert.deepEqual(problemsOf({ start_timeout: '500ms' }), ['start_timeout must be from 1s to 1h']);
});

test('a dry run opens nothing and refuses statements', async () => {
  const host = fakeHost({ mode: 'check' });
  await setUp(storage, host, {});
  const service = host.get(database);
  await service.migrate('any', new URL('file:///nonexistent/'));
  await service.announce('key', 'a');
  await assert.rejects(async () => service.orm.execute(sql`select 1`));
  assert.equal(service.healthy(), true);
});
