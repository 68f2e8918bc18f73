/** Announcements: every process hears each one once, whatever the order in which they are committed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { Orm } from '../../../plugins/common/domain/database.ts';
import { databaseUrl, openDatabase, type TestDatabase } from '../../helpers/database.ts';

/** Two processes on one schema, as far as the database can tell. */
async function openPair(): Promise<{ one: TestDatabase; other: TestDatabase; close(): Promise<void> }> {
  const one = await openDatabase();
  const other = await openDatabase({ schema: one.schema });
  return {
    one,
    other,
    async close() {
      await other.close();
      await one.close();
    },
  };
}

function heardBy(database: TestDatabase, topic = 'key'): string[] {
  const heard: string[] = [];
  database.onChange(topic, (subject) => void heard.push(subject));
  return heard;
}

test('an announcement is delivered at once here and with the next poll elsewhere, once each', async () => {
  const { one, other, close } = await openPair();
  const [here, there] = [heardBy(one), heardBy(other)];
  await one.announce('key', 'a');
  assert.deepEqual([here, there], [['a'], []]);
  for (let round = 0; round < 3; round += 1) await Promise.all([one.poll(), other.poll()]);
  assert.deepEqual([here, there], [['a'], ['a']]);
  await other.announce('key', 'b');
  for (let round = 0; round < 3; round += 1) await Promise.all([one.poll(), other.poll()]);
  assert.deepEqual(
    [here, there],
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  );
  await close();
});

test('a change and its announcement are one transaction: other processes get it with the next poll, and a failed one is not delivered', async () => {
  const { one, other, close } = await openPair();
  const [here, there] = [heardBy(one), heardBy(other)];
  const table = sql`${sql.identifier(one.schema)}.things`;
  await one.orm.execute(sql`create table ${table} (name text)`);
  const insert = (name: string) => (orm: Orm) => orm.execute(sql`insert into ${table} values (${name})`);
  await one.change('key', 'a', async (orm) => {
    await insert('a')(orm);
    // The embedded database does one transaction after another.
    if (databaseUrl !== undefined) await other.poll();
    assert.deepEqual([here, there], [[], []], 'nothing is announced before it is committed');
  });
  assert.deepEqual([here, there], [['a'], []]);
  const failed = one.change('key', 'b', async (orm) => {
    await insert('b')(orm);
    throw new Error('not done');
  });
  await assert.rejects(failed, /not done/);
  for (let round = 0; round < 3; round += 1) await Promise.all([one.poll(), other.poll()]);
  assert.deepEqual([here, there], [['a'], ['a']]);
  const rows = await one.orm.execute(sql`select name from ${table}`);
  assert.deepEqual(Array.from(rows as unknown as Iterable<unknown>), [{ name: 'a' }]);
  await close();
});

test('a listener gets its own topic alone, and all listeners of a topic get it', async () => {
  await using database = await openDatabase();
  const [keys, again, accounts] = [heardBy(database), heardBy(database), heardBy(database, 'account')];
  await database.announce('account', 'x');
  await database.announce('key', 'y');
  assert.deepEqual([keys, again, accounts], [['y'], ['y'], ['x']]);
});

test('a listener that throws is logged, and the others are called', async () => {
  await using database = await openDatabase();
  database.onChange('key', () => assert.fail('a bug'));
  const heard = heardBy(database);
  await database.announce('key', 'a');
  assert.deepEqual(heard, ['a']);
  assert.ok(database.host.lines.some(({ message }) => message === 'a listener to changes failed'));
});

test('an announcement from before the start is not delivered', async () => {
  await using one = await openDatabase();
  for (let index = 0; index < 150; index += 1) await one.announce('key', `old ${index}`);
  const other = await openDatabase({ schema: one.schema });
  const heard = heardBy(other);
  await other.poll();
  await one.announce('key', 'new');
  await other.poll();
  assert.deepEqual(heard, ['new']);
  await other.close();
});

test('each announcement is delivered once, also while polls run', async () => {
  const { one, other, close } = await openPair();
  const [here, there] = [heardBy(one), heardBy(other)];
  const subjects = Array.from({ length: 300 }, (_, index) => `s${index}`);
  let running = true;
  const polls = [one, other].map(async (database) => {
    while (running) await database.poll();
  });
  await Promise.all(subjects.map((subject, index) => (index % 2 === 0 ? one : other).announce('key', subject)));
  running = false;
  await Promise.all(polls);
  await Promise.all([one.poll(), other.poll()]);
  assert.deepEqual(here.toSorted(), subjects.toSorted());
  assert.deepEqual(there.toSorted(), subjects.toSorted());
  await close();
});

test('more announcements than one poll reads are all delivered', async () => {
  const { one, other, close } = await openPair();
  const heard = heardBy(other);
  const table = sql`${sql.identifier(one.schema)}.changes`;
  await one.orm.execute(
    sql`insert into ${table} (topic, subject) select 'key', n::text from generate_series(1, 2500) as n`,
  );
  await other.poll();
  assert.equal(new Set(heard).size, 2_500);
  assert.equal(heard.length, 2_500);
  await close();
});

test('an id that is missing for long is given up', async () => {
  const { one, other, close } = await openPair();
  const heard = heardBy(other);
  const table = sql`${sql.identifier(one.schema)}.changes`;
  const insert = (id: number) =>
    one.orm.execute(
      sql`insert into ${table} (id, topic, subject) overriding system value values (${id}, 'key', ${`at ${id}`})`,
    );
  await insert(10);
  await other.poll();
  await insert(8);
  await other.poll();
  other.host.advance(61_000);
  await other.poll();
  await insert(9);
  await insert(11);
  await other.poll();
  assert.deepEqual(heard, ['at 10', 'at 8', 'at 11']);
  await close();
});

/** An embedded database runs one transaction at a time: there is nothing to test then. */
const testOnServer: typeof test = databaseUrl === undefined ? ((() => {}) as unknown as typeof test) : test;

testOnServer('an announcement that is committed after a later one is delivered all the same', async () => {
  const { one, other, close } = await openPair();
  const heard = heardBy(other);
  const table = sql`${sql.identifier(one.schema)}.changes`;
  await one.orm.transaction(async (transaction) => {
    await transaction.execute(sql`insert into ${table} (topic, subject) values ('key', 'slow')`);
    await one.announce('key', 'fast');
    await other.poll();
    assert.deepEqual(heard, ['fast']);
  });
  await other.poll();
  await other.poll();
  assert.deepEqual(heard, ['fast', 'slow']);
  await close();
});

testOnServer('an announcement in an open transaction at the start is delivered', async () => {
  await using one = await openDatabase();
  const table = sql`${sql.identifier(one.schema)}.changes`;
  let other: TestDatabase | undefined;
  const heard: string[] = [];
  await one.orm.transaction(async (transaction) => {
    await one.announce('key', 'before');
    await transaction.execute(sql`insert into ${table} (topic, subject) values ('key', 'slow')`);
    await one.announce('key', 'after');
    other = await openDatabase({ schema: one.schema });
    other.onChange('key', (subject) => void heard.push(subject));
  });
  await other!.poll();
  assert.deepEqual(heard, ['slow']);
  await other!.close();
});

test('rows older than an hour are pruned', async () => {
  await using database = await openDatabase();
  const table = sql`${sql.identifier(database.schema)}.changes`;
  await database.orm.execute(sql`insert into ${table} (topic, subject, at) values
    ('key', 'old', now() - interval '61 minutes'), ('key', 'recent', now() - interval '59 minutes')`);
  await database.host.intervals.find(({ name }) => name === 'prune changes')!.work();
  const rows = (await database.orm.execute(sql`select subject from ${table}`)) as { subject: string }[];
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    ['recent'],
  );
});
