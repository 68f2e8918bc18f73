/** The three stores: what is put is found, bounds in bytes hold for all and for each account, and one of several processes makes an answer. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { decodeEntry, type Entry, encodeHead } from '../../../plugins/cache/entry.ts';
import { MemoryStore } from '../../../plugins/cache/stores/memory.ts';
import { PostgresStore } from '../../../plugins/cache/stores/postgres.ts';
import { RedisStore } from '../../../plugins/cache/stores/redis.ts';
import type { EntryStore } from '../../../plugins/cache/stores/store.ts';
import { cacheReport } from '../../../plugins/common/domain/admin/cache.ts';
import { counters } from '../../../plugins/common/domain/counters.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { type OpenedCounters, openCounters } from '../../../plugins/storage/counters.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { hasRedis, startRedis, type TestRedis } from '../../helpers/redis.ts';
import { answered, exchangeOf, type Requested, servedOf, startNode } from './world.ts';

const bounds = { bytes: 8_000, accountBytes: 3_000 };

function entryOf(key: string, size = 10): Entry {
  const body = Buffer.alloc(size, key);
  return { key, headers: { 'content-type': 'a' }, body, form: '', isStream: false, usage: { input: 3 }, storedAt: 5 };
}

const steps = fc.array(
  fc.record({
    account: fc.constantFrom('ada', 'bob', 'eve', 'fay'),
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    size: fc.integer({ min: 0, max: 2_600 }),
  }),
  { minLength: 1, maxLength: 25 },
);

function storeTests(name: string, open: () => Promise<EntryStore>, numRuns: number): void {
  test(`${name}: an entry is found by its account and key, with every byte, until it has ended`, async () => {
    const store = await open();
    const entry = { ...entryOf('a'), body: Buffer.from([0, 10, 255, 13]) };
    await store.put('ada', entry, 60_000);
    const { entry: found } = await store.find({ accountId: 'ada', key: 'a' });
    assert.deepEqual({ ...found, body: [...found!.body] }, { ...entry, body: [0, 10, 255, 13] });
    assert.equal((await store.find({ accountId: 'bob', key: 'a' })).entry, undefined);
    await store.put('ada', entryOf('short'), 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (name !== 'memory') assert.equal((await store.find({ accountId: 'ada', key: 'short' })).entry, undefined);
  });

  test(`${name}: all entries and those of each account keep within their bytes, and the newest stays`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const store = await open();
        const accounts = new Set<string>();
        for (const { account, key, size } of list) {
          accounts.add(account);
          await store.put(account, entryOf(key, size), 60_000);
          let sum = 0;
          for (const one of accounts) {
            const bytes = await store.bytes(one);
            assert.ok(bytes >= 0 && bytes <= bounds.accountBytes, `${one}: ${bytes}`);
            sum += bytes;
          }
          assert.equal(await store.bytes(), sum);
          assert.ok(sum <= bounds.bytes);
          const { entry } = await store.find({ accountId: account, key });
          if (size < 1_500) assert.equal(entry?.body.length, size);
        }
      }),
      { numRuns },
    );
  });

  test(`${name}: the newest answers of a group are compared, of one account alone`, async () => {
    const store = await open();
    const neighbour = (x: number) => ({ group: 'g', vector: Float32Array.of(x, 0.5) });
    for (const [index, key] of ['a', 'b', 'c'].entries())
      await store.put('ada', entryOf(key), 60_000, neighbour(index));
    const near = await store.near('ada', 'g', 2);
    assert.deepEqual(near.map(({ key, vector }) => [key, ...vector]).toSorted(), [
      ['b', 1, 0.5],
      ['c', 2, 0.5],
    ]);
    assert.deepEqual(await store.near('bob', 'g', 2), []);
    assert.deepEqual(await store.near('ada', 'h', 2), []);
  });
}

describe('memory', () => {
  storeTests('memory', async () => new MemoryStore(fakeHost().clock, bounds), 100);
});

describe('postgres', () => {
  let opened: TestDatabase;
  before(async () => {
    opened = await openDatabase({ plugins: ['cache'] });
  });
  after(() => opened.close());
  const empty = async () => {
    for (const table of ['cache_entries', 'cache_bytes', 'cache_flights'])
      await opened.orm.execute(`delete from "${opened.schema}".${table}`);
  };
  storeTests(
    'postgres',
    async () => {
      await empty();
      return new PostgresStore(opened, bounds);
    },
    4,
  );

  test('two processes on one database: equal calls at both reach the model once, another account, policy, price or target, and project or key as the scope says, is no hit, and sums are written', async () => {
    await empty();
    await twoNodes('postgres', (host) => host.provide(database, opened));
    const host = fakeHost();
    host.provide(database, opened);
    await startNode({}, host);
    const [sums] = await host.get(cacheReport).sums({ from: 0, until: host.clock.now(), accountId: 'ada' });
    assert.deepEqual([sums?.hits, sums?.misses], [39, 1]);
    await askOthers('postgres', (each) => each.provide(database, opened));
  });
});

if (hasRedis)
  describe('redis', () => {
    let server: TestRedis;
    let opened: OpenedCounters;
    before(async () => {
      server = await startRedis();
      opened = openCounters(server.url, fakeHost(), 10_000);
      while (!opened.healthy()) await new Promise((resolve) => setTimeout(resolve, 5));
    });
    after(async () => {
      await opened.close();
      await server.stop();
    });
    let count = 0;
    storeTests('redis', async () => new RedisStore(opened, `test${count++}`, bounds), 10);

    test('two processes on one server: equal calls at both reach the model once, and another account, policy, price or target, and project or key as the scope says, is no hit', async () => {
      await twoNodes('redis', (host) => host.provide(counters, opened));
      await askOthers('redis', (host) => host.provide(counters, opened));
    });
  });

const others: Readonly<Record<string, Requested>> = {
  account: { account: 'bob' },
  policies: { policies: 'mild' },
  price: { price: 2_000n },
  'price version': { version: 'v2' },
  target: { target: 'other' },
  project: { project: 'shop' },
  key: { key: 'k2' },
};

/** One process keeps the answer, and another is asked. */
async function askOthers(store: string, provide: (host: ReturnType<typeof fakeHost>) => void): Promise<void> {
  for (const scope of ['account', 'project', 'key'] as const) {
    const [keeps, asks] = await Promise.all(
      [1, 2].map(async () => {
        const host = fakeHost();
        provide(host);
        return startNode({ store, scope }, host);
      }),
    );
    const own: Requested = { project: 'search', policies: 'strict', body: { model: 'm', input: `of ${scope}` } };
    assert.equal(await keeps!.send(exchangeOf(own)), 'miss');
    for (const [what, other] of Object.entries(others)) {
      const isShared = (what === 'project' || what === 'key') && what !== scope;
      const how = await asks!.send(exchangeOf({ ...own, ...other }));
      assert.equal(how, isShared ? 'hit' : 'miss', `scope ${scope}, another ${what}`);
    }
  }
}

/** Forty equal calls at two processes. */
async function twoNodes(store: string, provide: (host: ReturnType<typeof fakeHost>) => void): Promise<void> {
  const nodes = await Promise.all(
    [1, 2].map(async () => {
      const host = fakeHost();
      provide(host);
      const node = await startNode({ store }, host);
      return node;
    }),
  );
  const exchanges = Array.from({ length: 40 }, () => exchangeOf());
  const all = await Promise.all(
    exchanges.map((exchange, index) =>
      nodes[index % 2]!.send(exchange, async () => {
        await new Promise((resolve) => setTimeout(resolve, 60));
        return answered(exchange);
      }),
    ),
  );
  assert.equal(nodes[0]!.made() + nodes[1]!.made(), 1);
  assert.equal(all.filter((how) => how === 'hit').length, 39);
  assert.equal(exchanges.filter((exchange) => servedOf(exchange) !== undefined).length, 39);
  for (const { host } of nodes)
    for (const { name, work } of host.intervals) if (name.startsWith('write sums')) await work();
}

test('an entry of another key, and one that was changed, is not read', () => {
  const entry = entryOf('a');
  const head = encodeHead(entry);
  assert.deepEqual(decodeEntry('a', head, entry.body), entry);
  assert.equal(decodeEntry('b', head, entry.body), undefined);
  for (const [from, to] of [
    ['"input":3', '"input":-3'],
    ['"input"', '"gold"'],
    ['"content-type":"a"', '"content-type":1'],
    ['{"key"', '["key"'],
  ])
    assert.equal(decodeEntry('a', head.replace(from!, to!), entry.body), undefined);
});
