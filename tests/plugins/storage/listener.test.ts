/** Announcements wake the other processes of one PostgreSQL at once; without notifications they are read a moment later. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { openDatabase, type TestDatabase, testOnServer } from '../../helpers/database.ts';

const listen = ({ host }: TestDatabase) => host.intervals.find(({ name }) => name === 'listen to changes')!.work();

async function heard(
  store: TestDatabase,
  announce: () => Promise<void>,
  withinMs: number,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  store.onChange('key', resolve);
  await announce();
  const timer = new AbortController();
  void setTimeout(withinMs, undefined, { signal: timer.signal }).then(
    () => resolve(undefined),
    () => undefined,
  );
  return promise.finally(() => timer.abort());
}

testOnServer('an announcement reaches another process without a poll, also after its connection was lost', async () => {
  const schema = `listen_${randomBytes(6).toString('hex')}`;
  const [speaker, hearer] = [await openDatabase({ schema }), await openDatabase({ schema })];
  await listen(hearer);
  assert.equal(await heard(hearer, () => speaker.announce('key', 'one'), 2_000), 'one');
  await speaker.orm.execute(
    sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'model-gateway test changes'`,
  );
  const deadline = performance.now() + 60_000;
  let found: string | undefined;
  while (found === undefined && performance.now() < deadline) {
    await listen(hearer);
    found = await heard(hearer, () => speaker.announce('key', 'two'), 200);
  }
  assert.equal(found, 'two');
  await speaker.orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  await Promise.all([speaker.close(), hearer.close()]);
});

testOnServer('without a listener the next poll delivers it', async () => {
  const schema = `listen_${randomBytes(6).toString('hex')}`;
  const [speaker, hearer] = [await openDatabase({ schema }), await openDatabase({ schema })];
  assert.equal(await heard(hearer, () => speaker.announce('key', 'one'), 100), undefined);
  const subjects: string[] = [];
  hearer.onChange('key', (subject) => subjects.push(subject));
  await hearer.poll();
  assert.deepEqual(subjects, ['one']);
  await speaker.orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  await Promise.all([speaker.close(), hearer.close()]);
});

test('an announcement reaches another connection without a poll, on any database', async () => {
  const schema = `listen_${randomBytes(6).toString('hex')}`;
  const [speaker, hearer] = [await openDatabase({ schema }), await openDatabase({ schema })];
  await listen(hearer);
  assert.equal(await heard(hearer, () => speaker.announce('key', 'one'), 5_000), 'one');
  await speaker.orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  await Promise.all([speaker.close(), hearer.close()]);
});

test('where notifications arrive changes are polled seldom, until one has arrived without', async () => {
  const schema = `listen_${randomBytes(6).toString('hex')}`;
  const [speaker, hearer] = [await openDatabase({ schema }), await openDatabase({ schema })];
  const subjects: string[] = [];
  hearer.onChange('key', (subject) => subjects.push(subject));
  const write = (subject: string) =>
    speaker.orm.execute(sql`insert into ${sql.identifier(schema)}.changes (topic, subject) values ('key', ${subject})`);
  await listen(hearer);
  assert.equal(await heard(hearer, () => speaker.announce('key', 'notified'), 5_000), 'notified');
  // One by `listen`, one by the announcement: a later one would end the doubt that follows.
  while (hearer.notices() < 2) await setTimeout(5);
  await hearer.poll();
  await write('silent');
  hearer.host.advance(1_000);
  await hearer.poll();
  assert.deepEqual(subjects, ['notified']);
  hearer.host.advance(1_000);
  await hearer.poll();
  assert.deepEqual(subjects, ['notified', 'silent']);
  await write('doubted');
  hearer.host.advance(250);
  await hearer.poll();
  assert.deepEqual(subjects, ['notified', 'silent', 'doubted']);
  // Proved again.
  const { promise, resolve } = Promise.withResolvers<void>();
  hearer.onChange('key', () => resolve());
  await listen(hearer);
  await speaker.announce('key', 'again');
  await promise;
  await hearer.poll();
  await write('late');
  hearer.host.advance(1_000);
  await hearer.poll();
  assert.equal(subjects.at(-1), 'again');
  await speaker.orm.execute(sql`drop schema ${sql.identifier(schema)} cascade`);
  await Promise.all([speaker.close(), hearer.close()]);
});
