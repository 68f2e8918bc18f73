/** The store of conversations, in memory and in the database: what is appended once, bounds, lifetime, failures. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../../core/contract/errors.ts';
import { ConversationStore } from '../../../../plugins/protocol-convert/state/conversations/store.ts';
import { openDatabase } from '../../../helpers/database.ts';
import { fakeHost } from '../../../helpers/fakes.ts';
import { message, user } from './harness.ts';

const keepMs = 60_000;
type Options = Partial<ConstructorParameters<typeof ConversationStore>[0]>;

async function withStores(
  isStored: boolean,
  work: (open: (options?: Options) => ConversationStore, advance: (ms: number) => void) => Promise<void>,
): Promise<void> {
  const database = isStored ? await openDatabase({ plugins: ['protocol-convert'] }) : undefined;
  const host = database?.host ?? fakeHost();
  const open = (options: Options = {}) => {
    const { clock, log, random } = host;
    const store = new ConversationStore({
      ...{ clock, log, random, keepMs, maxBytes: 2_000, memoryBytes: 1_000_000 },
      ...options,
    });
    if (database !== undefined) store.useDatabase(database);
    return store;
  };
  try {
    await work(open, (ms) => host.advance(ms));
  } finally {
    await database?.close();
  }
}

const textsOf = async (store: ConversationStore, id: string) =>
  (await store.items(await store.get('anna', id))).map(({ content }) => (content as { text: string }[])[0]!.text);
const notFound = (error: GatewayError) => error.status === 404;

for (const isStored of [false, true]) {
  const place = isStored ? 'in the database' : 'in memory';

  test(`items that a call appends are there at once, together, and once however often they are written, ${place}`, () =>
    withStores(isStored, async (open) => {
      const store = open();
      const { id } = await store.create('anna', '{}', [user('start')], 'x0');
      store.append('anna', id, [user('a'), message('A')], 'x1');
      store.append('anna', id, [user('b'), message('B')], 'x2');
      assert.deepEqual(await textsOf(store, id), ['start', 'a', 'A', 'b', 'B']);
      store.append('anna', id, [user('a'), message('A')], 'x1');
      assert.deepEqual(await textsOf(store, id), ['start', 'a', 'A', 'b', 'B']);
      await assert.rejects(store.get('bert', id), notFound);
    }));

  test(`a conversation ends its lifetime after its last change, and what comes later is not kept, ${place}`, () =>
    withStores(isStored, async (open, advance) => {
      const store = open();
      const { id } = await store.create('anna', '{}', [], 'x0');
      advance(keepMs - 1);
      store.append('anna', id, [user('a')], 'x1');
      assert.deepEqual(await textsOf(store, id), ['a']);
      advance(keepMs - 1);
      assert.deepEqual(await textsOf(store, id), ['a']);
      advance(2);
      await assert.rejects(store.get('anna', id), notFound);
      store.append('anna', id, [user('b')], 'x2');
      await assert.rejects(store.get('anna', id), notFound);
      await store.deleteExpired();
      await assert.rejects(store.get('anna', id), notFound);
    }));

  test(`an item that is deleted while a call runs stays deleted, ${place}`, () =>
    withStores(isStored, async (open) => {
      const store = open();
      const made = await store.create('anna', '{}', [], 'x0');
      await store.delete(made);
      store.append('anna', made.id, [user('a')], 'x1');
      await assert.rejects(store.get('anna', made.id), notFound);
    }));

  test(`an answer may go past the bound of a conversation, up to twice of it; then nothing is begun, ${place}`, () =>
    withStores(isStored, async (open) => {
      const store = open();
      const { id } = await store.create('anna', '{}', [user('x'.repeat(1_500))], 'x0');
      store.append('anna', id, [message('y'.repeat(1_500))], 'x1');
      store.append('anna', id, [message('z'.repeat(1_500))], 'x2');
      assert.deepEqual(
        (await textsOf(store, id)).map(([first]) => first),
        ['x', 'y'],
      );
      await assert.rejects(store.begin('anna', id, []), (error: GatewayError) => error.code === 'conversation_full');
    }));

  test(`the conversations of an account have a share of their own, ${place}`, () =>
    withStores(isStored, async (open) => {
      const store = open({ maxBytes: 200 });
      const made = [];
      for (let count = 0; count < 100; count++)
        made.push(await store.create('anna', '{}', [user('x'.repeat(60))], `x${count}`).catch(() => undefined));
      const kept = made.filter((one) => one !== undefined);
      assert.ok(kept.length > 60 && kept.length < 100, String(kept.length));
      await assert.rejects(store.begin('anna', kept[0]!.id, []), (error: GatewayError) => error.status === 400);
      await store.create('bert', '{}', [user('x')], 'y0');
      for (const one of kept.slice(0, 5)) await store.delete(one);
      await store.create('anna', '{}', [], 'y1');
    }));
}

for (const isStored of [false, true]) {
  test(`calls that run at the same time do not fill more than the account's share, ${isStored ? 'in the database' : 'in memory'}`, () =>
    withStores(isStored, async (open) => {
      const store = open();
      const share = 64 * 2_000;
      const ids: string[] = [];
      for (let count = 0; count < 45; count++) ids.push((await store.create('anna', '{}', [], `x${count}`)).id);
      for (const [index, id] of ids.entries()) store.append('anna', id, [message('y'.repeat(3_500))], `y${index}`);
      await store.flush();
      let bytes = 0;
      for (const id of ids) bytes += (await store.get('anna', id)).bytes;
      assert.ok(bytes > share && bytes <= share + 4_000, `${bytes} of ${share}`);
      await assert.rejects(store.create('anna', '{}', [user('x')], 'z'), { status: 400 });
      await assert.rejects(store.add(await store.get('anna', ids.at(-1)!), [user('x')], 'z1'), { status: 400 });
      await store.create('bert', '{}', [user('x')], 'y0');
    }));
}

test('processes on one database append at the same time without mixing their blocks', () =>
  withStores(true, async (open) => {
    const stores = [open(), open(), open()];
    const { id } = await stores[0]!.create('anna', '{}', [], 'x0');
    for (let round = 0; round < 4; round++)
      for (const [index, store] of stores.entries())
        store.append(
          'anna',
          id,
          [user(`${round}-${index}`), message(`${round}-${index}`, 'msg_same')],
          `${round}-${index}`,
        );
    await Promise.all(stores.map((store) => store.flush()));
    const texts = await textsOf(stores[1]!, id);
    assert.equal(texts.length, 24);
    for (let index = 0; index < 24; index += 2) assert.equal(texts[index], texts[index + 1]);
    const ids = (await stores[2]!.items(await stores[2]!.get('anna', id))).map((item) => item['id']);
    assert.equal(new Set(ids).size, 24);
  }));

test('items wait for a database that is away, and a look-up is refused as a passing trouble', async () => {
  const { clock, log, random } = fakeHost();
  const store = new ConversationStore({ clock, log, random, keepMs, maxBytes: 2_000, memoryBytes: 1_000_000 });
  const away = () => Promise.reject(new Error('connection refused at 10.0.0.1'));
  store.useDatabase({ schema: 's', orm: { execute: away, transaction: away } } as never);
  const id = `conv_gw${'1'.repeat(32)}`;
  store.append('anna', id, [user('a')], 'x1');
  await assert.rejects(
    store.get('anna', id),
    (error: GatewayError) => error.kind === 'overloaded' && !error.message.includes('10.0.0.1'),
  );
  await assert.rejects(store.flush(), /refused/);
});

test('a gateway that keeps no answers keeps no conversations', async () => {
  const { clock, log, random } = fakeHost();
  const store = new ConversationStore({ clock, log, random, keepMs: 0, maxBytes: 2_000, memoryBytes: 1_000_000 });
  await assert.rejects(store.create('anna', '{}', [], 'x0'), (error: GatewayError) => error.kind === 'unsupported');
});
