/** Providers and keys as operators see and switch them: kept, obeyed by every process, absent for new calls alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { type UpstreamAdmin, upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { type Providers, providers } from '../../../plugins/common/domain/upstreams.ts';
import plugin from '../../../plugins/providers/index.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeHost, setUp } from '../../helpers/fakes.ts';

const section = {
  one: { keys: ['secret-one', 'secret-two'], speaks: { chat: 'https://one.example/v1', messages: 'sandbox:/v1' } },
  two: { keys: ['secret-three'], speaks: { chat: 'https://two.example/v1' } },
  keyless: { keys: '', speaks: { chat: 'https://three.example/v1' } },
};

interface Node {
  readonly host: FakeHost;
  readonly part: PluginInstance;
  readonly admin: UpstreamAdmin;
  readonly service: Providers;
}

async function open(store?: TestDatabase): Promise<Node> {
  const host = fakeHost(store === undefined ? {} : { schema: store.schema });
  if (store !== undefined) host.provide(database, store);
  const part = await setUp(plugin, host, section);
  return { host, part, admin: host.get(upstreamAdmin), service: host.get(providers) };
}

function taken(service: Providers, provider: string): string | number {
  const result = service.acquireKey(provider, 'm');
  return 'key' in result ? result.credential : result.retryAfterMs;
}

test('the admin service lists protocols as written, cooldowns with their reason, and no key', async () => {
  const { admin, service, host } = await open();
  service.coolDown('one#1', undefined, 60_000, 'the upstream answered 401');
  service.coolDown('one#2', 'm', 30_000, 'the upstream answered 429');
  host.advance(10_000);
  const views = admin.list();
  assert.deepEqual(
    views.map(({ provider, protocols, disabled }) => [provider, protocols, disabled]),
    [
      ['one', { chat: 'https://one.example/v1', messages: 'sandbox:/v1' }, false],
      ['two', { chat: 'https://two.example/v1' }, false],
    ],
  );
  assert.deepEqual(views[0]!.keys, [
    { credential: 'one#1', disabled: false, restsMs: 50_000, modelRests: [], reason: 'the upstream answered 401' },
    {
      credential: 'one#2',
      disabled: false,
      restsMs: 0,
      modelRests: [{ model: 'm', restsMs: 20_000 }],
      reason: 'the upstream answered 429',
    },
  ]);
  assert.doesNotMatch(JSON.stringify(views), /secret/);
  host.advance(60_000);
  assert.deepEqual(
    admin.list()[0]!.keys.map(({ restsMs, modelRests }) => [restsMs, modelRests]),
    [
      [0, []],
      [0, []],
    ],
  );
});

test('a disabled key is not acquired, and still serves running requests', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const { admin, service } = await open(store);
  await admin.setDisabled('one', 'one#1', true);
  assert.deepEqual(
    [1, 2, 3].map(() => taken(service, 'one')),
    ['one#2', 'one#2', 'one#2'],
  );
  assert.equal(service.findKey('one', 'one#1')!.disabled, true);
  assert.equal(service.findKey('one', 'one#1')!.key.reveal(), 'secret-one');
  assert.equal(service.findKey('one', 'one#2')!.disabled, undefined);
  assert.deepEqual(
    admin.list()[0]!.keys.map(({ disabled }) => disabled),
    [true, false],
  );
  await admin.setDisabled('one', 'one#2', true);
  assert.equal(taken(service, 'one'), 0);
  await admin.setDisabled('one', 'one#1', false);
  assert.equal(taken(service, 'one'), 'one#1');
});

test('a disabled provider gives no key, in every process, and in those that start later', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const first = await open(store);
  const other = await openDatabase({ schema: store.schema });
  const second = await open(other);
  await first.admin.setDisabled('two', undefined, true);
  await first.admin.setDisabled('two', undefined, true);
  assert.equal(taken(first.service, 'two'), 0);
  await other.poll();
  for (let tries = 0; tries < 3_000 && taken(second.service, 'two') !== 0; tries++)
    await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(taken(second.service, 'two'), 0);
  assert.deepEqual([second.service.isDisabled!('two'), second.service.isDisabled!('one')], [true, false]);
  assert.notEqual(second.service.find('two'), undefined, 'it is configured all the same');
  const third = await open(store);
  assert.deepEqual(
    third.admin.list().map(({ provider, disabled }) => [provider, disabled]),
    [
      ['one', false],
      ['two', true],
    ],
  );
  await third.admin.setDisabled('two', undefined, false);
  assert.equal(taken(third.service, 'two'), 'two#1');
  await first.host.intervals.find(({ name }) => name.includes('disabled'))!.work();
  assert.equal(taken(first.service, 'two'), 'two#1', 'also when an announcement was lost');
  await other.close();
});

test('a disabled key stays so at another place of the list, and no part of it is stored', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const { admin } = await open(store);
  await admin.setDisabled('one', 'one#2', true);
  const moved = { ...section, one: { ...section.one, keys: ['another', 'secret-two', 'secret-one'] } };
  const reordered = { ...moved, one: { ...moved.one, keys: ['secret-two', 'another'] } };
  for (const [keys, disabled] of [
    [moved, [false, true, false]],
    [reordered, [true, false]],
  ] as const) {
    const host = fakeHost({ schema: store.schema });
    host.provide(database, store);
    await setUp(plugin, host, keys);
    assert.deepEqual(
      host
        .get(upstreamAdmin)
        .list()[0]!
        .keys.map((key) => key.disabled),
      disabled,
    );
  }
  const rows = await store.orm.execute(sql`select * from ${sql.identifier(store.schema)}.disabled_upstreams`);
  assert.doesNotMatch(JSON.stringify(rows), /secret/);
});

test('clearing ends the cooldowns of one provider, here and elsewhere', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const [first, other] = [await open(store), await openDatabase({ schema: store.schema })];
  const second = await open(other);
  for (const { service } of [first, second]) {
    service.coolDown('one#1', undefined, 60_000, 'x');
    service.coolDown('one#2', 'm', 60_000, 'x');
    service.coolDown('two#1', undefined, 60_000, 'x');
  }
  first.admin.clearCooldown('one');
  assert.deepEqual([taken(first.service, 'one'), taken(first.service, 'two')], ['one#1', 60_000]);
  for (let tries = 0; tries < 3_000 && taken(second.service, 'one') !== 'one#1'; tries++) {
    await other.poll();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.notEqual(taken(second.service, 'one'), 60_000);
  assert.equal(taken(second.service, 'two'), 60_000);
  await other.close();
});

test('an unknown provider or key is not found', async () => {
  const { admin } = await open();
  await assert.rejects(admin.setDisabled('missing', undefined, true), { kind: 'not_found', field: 'provider' });
  await assert.rejects(admin.setDisabled('keyless', undefined, true), { kind: 'not_found', field: 'provider' });
  await assert.rejects(admin.setDisabled('one', 'two#1', true), { kind: 'not_found', field: 'credential' });
  assert.throws(() => admin.clearCooldown('missing'), { kind: 'not_found' });
});

test('without a database a provider is disabled until the process ends', async () => {
  const { admin, service } = await open();
  await admin.setDisabled('one', undefined, true);
  assert.equal(taken(service, 'one'), 0);
  await admin.setDisabled('one', undefined, false);
  assert.equal(taken(service, 'one'), 'one#1');
});

test('the command line disables, lists and enables providers', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const { part, service } = await open(store);
  const run = (name: string, values: Record<string, string> = {}) =>
    part.commandLine!.commands!.find((command) => command.name === name)!.run(values);
  assert.equal((await run('providers disable', { provider: 'one', key: 'one#2' })).text, 'one#2 is out of use.');
  assert.equal((await run('providers disable', { provider: 'two' })).text, 'two is out of use.');
  const { text } = await run('providers list');
  assert.match(text, /^one: without one#2; 2 keys; speaks chat, messages\ntwo: disabled; 1 keys; speaks chat$/);
  await run('providers enable', { provider: 'two' });
  assert.equal(taken(service, 'two'), 'two#1');
  await assert.rejects(run('providers disable', { provider: 'three' }), { kind: 'not_found' });
});
