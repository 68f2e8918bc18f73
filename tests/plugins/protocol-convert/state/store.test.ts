/** Kept answers in memory and in a real database: found at once, found by other processes, gone when they should be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import {
  type KeptResponse,
  type RelayedResponse,
  type ResponseRecord,
  sizeOf,
} from '../../../../plugins/protocol-convert/state/record.ts';
import { ResponseStore } from '../../../../plugins/protocol-convert/state/store.ts';
import { WriteQueue } from '../../../../plugins/protocol-convert/state/writes.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { fakeHost } from '../../../helpers/fakes.ts';

const now = 1_800_000_000_000;

function kept(id: string, more: Partial<KeptResponse> = {}): KeptResponse {
  const response = JSON.stringify({ id, output: [] });
  return {
    kind: 'kept',
    id,
    accountId: 'anna',
    createdAt: now,
    expiresAt: now + 60_000,
    itemIds: [`msg_${id}`],
    input: '[]',
    response,
    ...more,
  };
}

function relayed(id: string): RelayedResponse {
  const where = { provider: 'vendor', credential: 'vendor#1', protocol: 'responses', tokens: 1_234 };
  return { kind: 'relayed', id, accountId: 'anna', createdAt: now, expiresAt: now + 60_000, itemIds: [], ...where };
}

function memoryOnly(memoryBytes = 1_000_000) {
  const host = fakeHost();
  return { host, store: new ResponseStore({ clock: host.clock, log: host.log, memoryBytes }) };
}

function withDatabase(database: TestDatabase, memoryBytes = 1_000_000): ResponseStore {
  const store = new ResponseStore({ clock: database.host.clock, log: database.host.log, memoryBytes });
  store.useDatabase(database);
  return store;
}

test('in memory alone an answer is found until its lifetime is over', () => {
  const { host, store } = memoryOnly();
  store.put(kept('a'));
  assert.deepEqual(store.find('anna', 'a'), kept('a'));
  assert.equal(store.find('bert', 'a'), undefined);
  host.advance(60_000);
  assert.equal(store.find('anna', 'a'), undefined);
});

test('memory is bounded: the answers that were not asked for longest are forgotten, with their items', async () => {
  const { store } = memoryOnly(20_000);
  for (let index = 0; index < 50; index++) store.put(kept(`r${index}`, { input: JSON.stringify('x'.repeat(500)) }));
  assert.equal(store.find('anna', 'r0'), undefined);
  assert.ok(store.find('anna', 'r49') !== undefined);
  assert.equal((await store.findByItems('anna', ['msg_r0'])).size, 0);
  assert.equal((await store.findByItems('anna', ['msg_r49'])).get('msg_r49')?.id, 'r49');
  store.put(kept('huge', { input: JSON.stringify('x'.repeat(50_000)) }));
  assert.equal(store.find('anna', 'huge'), undefined);
});

test('another process finds an answer by its id and by its items once it was written', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const [one, two] = [withDatabase(database), withDatabase(database)];
  const odd = kept('odd', {
    input: JSON.stringify([{ text: 'zero \0, lone \ud800, {"quoted"}' }]),
    itemIds: ['i1', 'i2'],
  });
  const records: ResponseRecord[] = [odd, relayed('there'), { ...relayed('untold'), tokens: undefined }];
  for (const record of records) one.put(record);
  assert.equal(await two.find('anna', 'odd'), undefined);
  await one.flush();
  for (const record of records) assert.deepEqual(await two.find('anna', record.id), record);
  assert.equal(await two.find('bert', 'odd'), undefined);
  const third = withDatabase(database);
  const found = await third.findByItems('anna', ['i2', 'unknown']);
  assert.deepEqual([...found], [['i2', odd]]);
  assert.equal((await third.findByItems('bert', ['i2'])).size, 0);
});

test('an answer is found by its own process before it was written, even when memory has no room for it', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const store = withDatabase(database, 100_000);
  for (let index = 0; index < 40; index++) store.put(kept(`r${index}`, { input: JSON.stringify('x'.repeat(1_000)) }));
  for (const id of ['r0', 'r39']) assert.equal((await store.find('anna', id))?.id, id);
  assert.equal((await store.findByItems('anna', ['msg_r0'])).get('msg_r0')?.id, 'r0');
});

test('the same id twice is kept once, and the batch goes through', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const [one, two] = [withDatabase(database), withDatabase(database)];
  one.put(kept('a'));
  await one.flush();
  two.put(kept('a', { response: '{"other":true}' }));
  two.put(kept('b'));
  await two.flush();
  const third = withDatabase(database);
  assert.equal(((await third.find('anna', 'a')) as KeptResponse).response, kept('a').response);
  assert.ok((await third.find('anna', 'b')) !== undefined);
});

test('a deleted answer is gone here, in the database, and in the memory of other processes', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const [one, two] = [withDatabase(database), withDatabase(database)];
  one.put(kept('a'));
  one.put(kept('waiting'));
  await one.delete('anna', 'waiting');
  await one.flush();
  assert.equal((await two.find('anna', 'a'))?.id, 'a');
  assert.equal(await two.find('anna', 'waiting'), undefined);
  await one.delete('anna', 'a');
  assert.equal(await one.find('anna', 'a'), undefined);
  await database.poll();
  assert.equal(await two.find('anna', 'a'), undefined);
});

test('an answer that is deleted elsewhere while it is being read here is not found here again', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const one = withDatabase(database);
  one.put(kept('a'));
  await one.flush();
  // Has read, and hears of the deletion before the rows arrive.
  const underWay = Promise.withResolvers<void>();
  let reads = 0;
  const execute = async (statement: SQL) => {
    const rows = await database.orm.execute(statement);
    reads += 1;
    await underWay.promise;
    return rows;
  };
  const two = withDatabase({ ...database, orm: { execute } as unknown as TestDatabase['orm'] });
  const [byId, byItem] = [two.find('anna', 'a'), two.findByItems('anna', ['msg_a'])];
  while (reads < 2) await setImmediate();
  await one.delete('anna', 'a');
  underWay.resolve();
  assert.equal((await byId)?.id, 'a');
  assert.equal((await byItem).size, 1);
  assert.equal(await two.find('anna', 'a'), undefined);
  assert.equal((await two.findByItems('anna', ['msg_a'])).size, 0);
});

test('expired rows are deleted, others stay', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const store = withDatabase(database);
  store.put(kept('old', { expiresAt: now + 1 }));
  store.put(kept('new'));
  await store.flush();
  database.host.advance(10);
  await store.deleteExpired();
  const left = (await database.orm.execute(
    sql`select id from ${sql.identifier(database.schema)}.kept_responses`,
  )) as unknown as { rows?: { id: string }[] } & { id: string }[];
  assert.deepEqual(
    [...(left.rows ?? left)].map(({ id }) => id),
    ['new'],
  );
});

test('a database that cannot be asked is reported as a passing trouble, not as a lost answer', async () => {
  const host = fakeHost();
  const store = new ResponseStore({ clock: host.clock, log: host.log, memoryBytes: 1_000_000 });
  const away = { execute: () => Promise.reject(new Error('connection refused at 10.0.0.1')) };
  store.useDatabase({ schema: 's', orm: away, onChange() {} } as never);
  await assert.rejects(
    async () => store.find('anna', 'a'),
    (error: GatewayError) => error.kind === 'overloaded' && !error.message.includes('10.0.0.1'),
  );
});

test('writes that fail wait and are tried again, in batches, and the oldest go when there are too many', async () => {
  const { log, lines } = fakeHost();
  const written: string[][] = [];
  let away = true;
  const queue = new WriteQueue<ResponseRecord>({
    async write(records) {
      if (away) throw new Error('away');
      written.push(records.map(({ id }) => id));
    },
    sizeOf,
    what: 'kept responses',
    log,
    maxBytes: 100_000,
  });
  for (let index = 0; index < 200; index++) queue.push(`k${index}`, kept(`r${index}`));
  const size = queue.size;
  assert.ok(size > 50 && size < 200, `${size} wait`);
  await assert.rejects(queue.flush(), /away/);
  assert.equal(queue.size, size);
  assert.ok(lines.some(({ level, fields }) => level === 'error' && 'lost' in fields));
  away = false;
  await queue.flush();
  assert.deepEqual([queue.size, written.flat().length, written.flat().at(-1)], [0, size, 'r199']);
  assert.ok(written.every((batch) => batch.length <= 50));
});

test('waiting records are written in batches of a few megabytes, a larger one by itself', async () => {
  const written: number[][] = [];
  const queue = new WriteQueue<{ readonly bytes: number }>({
    write: async (records) => void written.push(records.map(({ bytes }) => bytes)),
    sizeOf: ({ bytes }) => bytes,
    what: 'records',
    log: fakeHost().log,
    maxBytes: 2 ** 30,
  });
  const mebi = 2 ** 20;
  for (const [index, bytes] of [mebi, 2 * mebi, mebi, 1, 9 * mebi, mebi].entries()) queue.push(`${index}`, { bytes });
  await queue.flush();
  assert.deepEqual(written, [[mebi, 2 * mebi, mebi], [1], [9 * mebi], [mebi]]);
});
