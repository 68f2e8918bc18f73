/** Stored keys of vendors: sealed, taken up by every process, replaced with an overlap, never shown, and no obstacle where they cannot be opened. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import { type UpstreamHealth, upstreamAdmin, upstreamHealth } from '../../../plugins/common/domain/admin/upstreams.ts';
import { type VendorSecrets, vendorSecrets } from '../../../plugins/common/domain/admin/vendor-secrets.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { type Providers, providers } from '../../../plugins/common/domain/upstreams.ts';
import plugin from '../../../plugins/providers/index.ts';
import { secretCommands } from '../../../plugins/providers/secrets/commands.ts';
import { openDatabase, type TestDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeHost, prepare, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { until } from '../../helpers/until.ts';

const speaks = { chat: 'https://vendor.example/v1' };
const first = 'sk-first-0123456789abcdef';
const second = 'sk-second-0123456789abcdef';

interface Node {
  readonly host: FakeHost;
  readonly part: PluginInstance;
  readonly service: Providers;
  readonly secrets: VendorSecrets;
}

interface Opening {
  readonly directory?: string;
  readonly mode?: 'serve' | 'check';
  readonly health?: UpstreamHealth;
  readonly schema?: string;
}

async function open(store: TestDatabase | undefined, section: unknown, options: Opening = {}): Promise<Node> {
  const { directory = temporaryDirectory('secrets-'), mode = 'serve', health, schema = store?.schema } = options;
  const host = fakeHost({ directory, mode, ...(schema === undefined ? {} : { schema }) });
  if (store !== undefined) host.provide(database, store);
  if (health !== undefined) host.provide(upstreamHealth, health);
  const part = await setUp(plugin, host, section);
  return { host, part, service: host.get(providers), secrets: host.get(vendorSecrets) };
}

/** The texts of the provider's keys, in turn. */
function keysOf({ service }: Node, provider = 'a'): string[] {
  const found = new Map<string, string>();
  for (let turn = 0; turn < 5; turn++) {
    const taken = service.acquireKey(provider, 'm');
    if ('key' in taken) found.set(taken.credential, taken.key.reveal());
  }
  return [...found.values()].sort();
}

const notices = ({ part }: Node) => part.checks!.notices!().map(({ text }) => text);
const every = ({ host }: Node, name: string) => host.intervals.find((one) => one.name.includes(name))!.work();

test('a key that is stored is used at once here and in another process, also in a list and a header', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const section = {
    a: { keys: ['literal-key', 'secret:one'], speaks },
    b: { keys: 'secret:one', speaks, headers: { 'x-account': 'secret:two' } },
    idle: { keys: 'secret:three', speaks },
  };
  const directory = temporaryDirectory('secrets-');
  const here = await open(store, section, { directory });
  assert.deepEqual([keysOf(here), here.service.find('b')], [['literal-key'], undefined]);
  assert.match(
    notices(here)[0]!,
    /^providers without a key are left out: b, idle; "gateway providers secret set NAME"/,
  );
  const other = await openDatabase({ schema: store.schema });
  const there = await open(other, section, { directory });
  await here.secrets.set('one', `${first}\n`, 'Olga', 0);
  assert.deepEqual([keysOf(here), keysOf(here, 'b')], [['literal-key', first], []], 'b lacks its header');
  await here.secrets.set('two', 'account-17', 'Olga', 0);
  assert.deepEqual([keysOf(here, 'b'), here.service.find('b')!.traits.headers['x-account']], [[first], 'account-17']);
  await other.poll();
  await until('the stored keys are taken up', () => keysOf(there, 'b').length === 1);
  assert.deepEqual(keysOf(there), ['literal-key', first]);
  await assert.rejects(there.secrets.remove('one'), /^GatewayError: The settings of a, b name "secret:one"/);
  await (await open(other, {}, { directory })).secrets.remove('one');
  await store.poll();
  await until('the removed key is gone', () => here.service.find('b') === undefined);
  assert.deepEqual(keysOf(here), ['literal-key']);
  await other.close();
});

test('a stored secret shows its name, last four characters and a fingerprint, and its text nowhere', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const node = await open(store, { a: { keys: 'secret:one', speaks } });
  const view = await node.secrets.set('one', first, 'Olga', 0);
  assert.deepEqual(
    { ...view, fingerprint: view.fingerprint.length },
    {
      ...{ name: 'one', state: 'stored', lastFour: 'cdef', fingerprint: 12, setAt: 1_800_000_000_000 },
      ...{ setBy: 'Olga', usedBy: ['a'], older: [] },
    },
  );
  assert.equal((await node.secrets.set('short', 'pass', 'Olga', 0)).lastFour, '');
  assert.equal((await node.secrets.set('file', '{"private_key": "x",\n "type": "t"}', 'Olga', 0)).lastFour, '');
  const rows = await store.orm.execute(sql`select * from ${sql.identifier(store.schema)}.vendor_secrets`);
  const seen = [rows, node.secrets.list(), node.host.lines, node.host.get(upstreamAdmin).list(), notices(node)];
  assert.doesNotMatch(
    inspect([seen, node.service.find('a'), JSON.stringify(node.secrets.list())], { depth: 9 }),
    /sk-first|private_key/,
  );
  for (const file of ['secrets.key', `vendor-secrets.${store.schema}.json`]) {
    const path = join(node.host.commonDirectory, file);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(path, 'utf8'), /sk-first/);
  }
});

test('a replaced key is used beside the new one until its time, or until the new one has answered', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const answered = new Set<string>();
  const keys = () =>
    [...answered].map((credential) => ({ credential, answered: 1, firstByteMs: 5, wholeMs: undefined }));
  const health = { targets: () => [{ keys: keys() }] } as unknown as UpstreamHealth;
  const node = await open(store, { a: { keys: 'secret:one', speaks } }, { health });
  await node.secrets.set('one', first, 'Olga', 0);
  node.service.coolDown('a#1', undefined, 60_000, 'refused');
  await node.secrets.set('one', second, 'Olga', 10_000);
  assert.deepEqual(keysOf(node), [second], 'the earlier one still cools down');
  assert.equal(node.service.findKey('a', 'a#1')?.restsMs, 60_000);
  node.host.advance(9_999);
  await every(node, 'replaced keys');
  assert.equal(node.service.findKey('a', 'a#1')?.key.reveal(), first);
  node.host.advance(1);
  await every(node, 'replaced keys');
  assert.equal(node.service.findKey('a', 'a#1'), undefined);
  await node.secrets.set('one', `${first}-3`, 'Olga', 'worked');
  assert.deepEqual(keysOf(node), [`${first}-3`, second].sort());
  answered.add('a#2');
  await every(node, 'replaced keys');
  assert.equal(node.secrets.list()[0]!.older.length, 1, 'the earlier one has answered, not the new one');
  answered.add('a#3');
  await every(node, 'replaced keys');
  assert.deepEqual([keysOf(node), node.secrets.list()[0]!.older], [[`${first}-3`], []]);
  for (const turn of [4, 5, 6, 7]) await node.secrets.set('one', `${first}-${turn}`, 'Olga', 86_400_000);
  assert.equal(keysOf(node).length, 3, 'not more than three at once');
});

test('a secret under another key, another name or another version is not opened, and the rest is served', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const section = { a: { keys: ['secret:one', 'literal-key'], speaks }, b: { keys: 'secret:two', speaks } };
  const directory = temporaryDirectory('secrets-');
  const node = await open(store, section, { directory });
  await node.secrets.set('one', first, 'Olga', 0);
  await node.secrets.set('two', second, 'Olga', 0);
  const table = sql`${sql.identifier(store.schema)}.vendor_secrets`;
  const stranger = await open(store, section);
  assert.deepEqual([keysOf(stranger), stranger.service.find('b')], [['literal-key'], undefined]);
  const said = notices(stranger);
  assert.equal(said.filter((text) => /cannot be decrypted/.test(text)).length, 2);
  assert.match(
    said.join('\n'),
    /provider "a": the secret "one" cannot be decrypted, its other keys are used: set GATEWAY/,
  );
  assert.deepEqual(Object.keys(stranger.part.health!.refuses!()), ['vendor secrets']);
  await assert.rejects(stranger.secrets.set('three', first, 'Olga', 0), { code: 'secrets_key_missing' });
  assert.throws(() => statSync(join(stranger.host.commonDirectory, 'secrets.key')));
  await store.orm.execute(sql`update ${table} set sealed = case name
    when 'one' then (select sealed from ${table} where name = 'two') else (select sealed from ${table} where name = 'one') end`);
  const swapped = await open(store, section, { directory });
  assert.deepEqual([keysOf(swapped), swapped.service.find('b')], [['literal-key'], undefined]);
  await every(node, 'read the keys');
  assert.deepEqual(keysOf(node), ['literal-key'], 'the running process takes no other text either');
  await store.orm.execute(sql`update ${table} set version = version + 1`);
  assert.equal((await open(store, section, { directory })).service.find('b'), undefined);
});

test('where the key file is gone, a running process serves on, a new one says so, and the file put back mends it', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const section = { a: { keys: 'secret:one', speaks } };
  const directory = temporaryDirectory('secrets-');
  const node = await open(store, section, { directory });
  await node.secrets.set('one', first, 'Olga', 0);
  const file = join(directory, 'secrets.key');
  const key = readFileSync(file, 'utf8');
  rmSync(file);
  await every(node, 'read the keys');
  assert.deepEqual(keysOf(node), [first]);
  await assert.rejects(node.secrets.set('one', second, 'Olga', 0), { code: 'secrets_key_missing' });
  const restarted = await open(store, section, { directory });
  assert.deepEqual([restarted.secrets.list()[0]!.state, keysOf(restarted)], ['unreadable', []]);
  writeFileSync(file, key);
  await every(restarted, 'read the keys');
  assert.deepEqual(keysOf(restarted), [first]);
  writeFileSync(file, 'short');
  await assert.rejects(open(store, section, { directory }), /a key must have at least 32 characters/);
});

test('with a new key in front, rotating seals all again, and the earlier key can be removed', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const section = { a: { keys: 'secret:one', speaks } };
  const directory = temporaryDirectory('secrets-');
  const node = await open(store, section, { directory });
  await node.secrets.set('one', first, 'Olga', 0);
  const file = join(directory, 'secrets.key');
  writeFileSync(file, `${'n'.repeat(40)}\n${readFileSync(file, 'utf8')}`);
  const [rotated] = node.part.commandLine!.secrets!();
  assert.equal(rotated!.secrets, 2);
  assert.deepEqual(await rotated!.rotate(false), { done: 1, left: 0, advice: 'the others can be removed' });
  writeFileSync(file, 'n'.repeat(40));
  assert.deepEqual(keysOf(await open(store, section, { directory })), [first]);
});

test('check names the missing secrets without a database, knows those that are stored, and says where it cannot know them', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const section = { a: { keys: 'secret:one', speaks }, b: { keys: ['literal-key', 'secret:two'], speaks } };
  const directory = temporaryDirectory('secrets-');
  const { schema } = store;
  const checked = async () => notices(await open(undefined, section, { directory, mode: 'check', schema }));
  const leftOut = 'provider "a" has no key and is left out: "gateway providers secret set one" stores it';
  const [missing, unknown] = await checked();
  assert.deepEqual([missing, unknown?.split(' (')[0]], [leftOut, 'which secrets are stored is not known here']);
  const node = await open(store, section, { directory });
  assert.deepEqual(await checked(), [
    leftOut,
    'provider "b": there is no secret "two", its other keys are used: "gateway providers secret set two" stores it',
  ]);
  await node.secrets.set('one', first, 'Olga', 0);
  await node.secrets.set('two', second, 'Olga', 0);
  assert.deepEqual(await checked(), []);
});

test('a secret that changes while a section is prepared is in force after the commit', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const node = await open(store, { a: { keys: 'secret:one', speaks } });
  const commit = await prepare(plugin, node.part, { a: { keys: ['secret:one', 'literal-key'], speaks } });
  await node.secrets.set('one', first, 'Olga', 0);
  commit();
  assert.deepEqual(keysOf(node), ['literal-key', first]);
});

test('commands take the text from standard input, replace it with an overlap, list it and delete it', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const { secrets } = await open(store, { a: { keys: 'secret:one', speaks } });
  const run = (name: string, input: string, values: Record<string, string> = {}) =>
    secretCommands(secrets, () => Readable.from([input]) as never)
      .find((command) => command.name === `providers secret ${name}`)!
      .run(values);
  await assert.rejects(run('rotate', first, { name: 'one' }), /There is no such secret/);
  assert.match(
    (await run('set', `${first}\n`, { name: 'one' })).text,
    /^one: …cdef \([0-9a-f]{12}\), set by command line/,
  );
  await assert.rejects(run('set', second, { name: 'one' }), { code: 'secret_exists' });
  assert.match((await run('rotate', second, { name: 'one', overlap: '24h' })).text, /; also …cdef until 2027-/);
  assert.match((await run('list', '')).text, /used by a; also/);
  await assert.rejects(run('rotate', second, { name: 'one', overlap: 'soon' }), /--overlap must be a duration/);
  await assert.rejects(run('set', '', { name: 'two' }), /it is empty/);
  await assert.rejects(run('set', 'secret:one', { name: 'two' }), /must be the key itself/);
  await assert.rejects(run('set', first, { name: '../two' }), { code: 'secret_name' });
  await assert.rejects(run('delete', '', { name: 'one' }), { code: 'secret_in_use' });
  await run('set', first, { name: 'two' });
  assert.equal((await run('delete', '', { name: 'two' })).text, 'two is deleted.');
  await assert.rejects(run('delete', '', { name: 'two' }), /There is no such secret/);
});

test('any key comes back as it was given, and no sealed text is the same twice', async () => {
  await using store = await openDatabase({ plugins: ['providers'] });
  const node = await open(store, { a: { keys: 'secret:one', speaks } });
  const text = fc.stringMatching(/^k[\x21-\x7e]{1,300}$/).filter((key) => !key.startsWith('{'));
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(text, async (key) => {
      await node.secrets.set('one', key, 'Olga', 0);
      assert.deepEqual(keysOf(node), [key]);
      const rows = await store.orm.execute(sql`select sealed from ${sql.identifier(store.schema)}.vendor_secrets`);
      const [{ sealed }] = rows as unknown as [{ sealed: string }];
      assert.ok(!seen.has(sealed));
      seen.add(sealed);
    }),
    { numRuns: 15 },
  );
});
