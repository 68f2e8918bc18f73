/** Ids that vendors issued: kept by account, for a time, within bounds, found by other processes, and renewed by use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import { caller } from '../../../../plugins/common/domain/accounts.ts';
import { opened } from '../../../../plugins/common/wire/protocols.ts';
import { IdGuard } from '../../../../plugins/protocol-convert/state/id-guard.ts';
import { IssuedIds } from '../../../../plugins/protocol-convert/state/issued-ids.ts';
import type { IssuedId } from '../../../../plugins/protocol-convert/state/issued-rows.ts';
import { openDatabase, type TestDatabase } from '../../../helpers/database.ts';
import { fakeExchange, fakeHost } from '../../../helpers/fakes.ts';

const host = fakeHost();
const now = host.clock.now();

const issued = (id: string, more: Partial<IssuedId> = {}): IssuedId => ({
  accountId: 'anna',
  id,
  provider: 'vendor',
  credential: 'vendor#1',
  createdAt: now,
  expiresAt: now + 60_000,
  ...more,
});
const ids = async (store: IssuedIds, account: string, ...wanted: string[]) =>
  [...(await store.find(account, new Set(wanted))).keys()].toSorted();

function withDatabase(database: TestDatabase, mostPerAccount = 100): IssuedIds {
  const store = new IssuedIds({ clock: host.clock, log: host.log, memoryBytes: 1_000_000, mostPerAccount });
  store.useDatabase(database);
  return store;
}

test('an id is found by its account alone, at once here and after it was written elsewhere, until it expires', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const [one, two] = [withDatabase(database), withDatabase(database)];
  for (const record of [issued('file-1'), issued('old', { expiresAt: now }), issued('file-2', { accountId: 'bert' })])
    one.put(record);
  assert.deepEqual(await ids(one, 'anna', 'file-1', 'old', 'file-2', 'none'), ['file-1']);
  assert.deepEqual(await ids(two, 'anna', 'file-1'), []);
  await one.flush();
  assert.deepEqual(await ids(two, 'anna', 'file-1', 'old', 'file-2'), ['file-1']);
  assert.deepEqual((await two.find('anna', new Set(['file-1']))).get('file-1'), issued('file-1'));
  assert.deepEqual(await ids(two, 'bert', 'file-1', 'file-2'), ['file-2']);
});

test('an id that is issued once more is kept longer; expired ones, and the oldest of too many, are deleted', async () => {
  await using database = await openDatabase({ plugins: ['protocol-convert'] });
  const store = withDatabase(database, 3);
  for (let index = 0; index < 6; index++) store.put(issued(`file-${index}`, { expiresAt: now + 1_000 * (index + 1) }));
  store.put(issued('old', { accountId: 'bert', expiresAt: now - 1 }));
  store.put(issued('other', { accountId: 'bert' }));
  await store.flush();
  store.put(issued('file-0', { expiresAt: now + 60_000, credential: 'vendor#2' }));
  await store.flush();
  await store.deleteExpired();
  const fresh = withDatabase(database);
  const all = ['file-0', 'file-1', 'file-2', 'file-3', 'file-4', 'file-5'];
  assert.deepEqual(await ids(fresh, 'anna', ...all), ['file-0', 'file-4', 'file-5']);
  assert.equal((await fresh.find('anna', new Set(['file-0']))).get('file-0')!.credential, 'vendor#2');
  assert.deepEqual(await ids(fresh, 'bert', 'old', 'other'), ['other']);
});

test('memory is bounded where there is no database', async () => {
  const store = new IssuedIds({ clock: host.clock, log: host.log, memoryBytes: 10_000 });
  for (let index = 0; index < 1_000; index++) store.put(issued(`file-${index}`));
  assert.deepEqual(await ids(store, 'anna', 'file-0', 'file-999'), ['file-999']);
});

test('a database that is away is reported as such, not as an id that is not there', async () => {
  const store = new IssuedIds({ clock: host.clock, log: host.log, memoryBytes: 10_000 });
  const away = { execute: () => Promise.reject(new Error('connection refused at 10.0.0.1')) };
  store.useDatabase({ schema: 's', orm: away } as never);
  await assert.rejects(
    store.find('anna', new Set(['file-1'])),
    (error: GatewayError) => error.kind === 'overloaded' && !error.message.includes('10.0.0.1'),
  );
});

test('ids that are used stay known; a request that names none waits for nothing', async () => {
  const store = new IssuedIds({ clock: host.clock, log: host.log, memoryBytes: 10_000 });
  const keepMs = 100_000;
  const guard = new IdGuard({ store, providers: () => undefined, clock: host.clock, keepMs });
  store.put(issued('conv_1', { expiresAt: now + 10_000 }));
  const exchange = fakeExchange({ facts: [[caller, { accountId: 'anna', keyId: 'k', plan: 'p', models: undefined }]] });
  const protocol = { codec: { conversation: 'input' } };
  const request = { protocol, json: { input: 'x', conversation: 'conv_1' } } as never;
  exchange.set(opened, request);
  await guard.check(exchange, request, undefined);
  assert.deepEqual([...exchange.get(opened).vendorIds!.known], ['conv_1']);
  assert.equal((await store.find('anna', new Set(['conv_1']))).get('conv_1')!.expiresAt, now + keepMs);
  assert.equal(guard.check(exchange, { json: { input: 'x' } } as never, undefined), undefined);
});
