/** Providers that change while the gateway serves: keys that stay keep their names and rests, and nothing else sees a change before its time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { type Providers, providers } from '../../../plugins/common/domain/upstreams.ts';
import plugin from '../../../plugins/providers/index.ts';
import { fakeHost, prepare, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

const speaks = { chat: 'https://vendor.example/v1' };

async function open(section: unknown) {
  const host = fakeHost();
  const part = await setUp(plugin, host, section);
  return { host, part, service: host.get(providers) };
}

const keyOf = (service: Providers, credential: string) => service.findKey('a', credential)?.key.reveal();

test('the service stays the same object and has the new vendors after a reload', async () => {
  const { host, part, service } = await open({ a: { keys: 'one', speaks } });
  const commit = await prepare(plugin, part, {
    b: { keys: 'two', speaks: { messages: 'https://other.example' }, timeouts: { idle: '5s' } },
    idle: { keys: '', speaks },
  });
  assert.deepEqual([service.find('a')?.name, service.find('b')], ['a', undefined]);
  assert.deepEqual(part.checks!.notices!(), []);
  commit();
  assert.equal(host.get(providers), service);
  assert.deepEqual([service.find('a'), service.find('b')?.speaks['messages']], [undefined, 'https://other.example']);
  assert.deepEqual(service.acquireKey('a', 'm'), { retryAfterMs: 0 });
  assert.deepEqual(part.checks!.notices!(), [
    { level: 'warning', path: ['idle', 'keys'], text: 'provider "idle" has no key and is left out' },
  ]);
});

test('keys that stay keep their names and cooldowns, and new keys get unused names', async () => {
  const { host, part, service } = await open({ a: { keys: ['one', 'two'], speaks } });
  service.coolDown('a#2', undefined, 30_000, 'refused');
  const commit = await prepare(plugin, part, { a: { keys: ['two', 'three'], speaks } });
  service.coolDown('a#2', 'm', 60_000, 'between the two');
  commit();
  assert.deepEqual([keyOf(service, 'a#1'), keyOf(service, 'a#2'), keyOf(service, 'a#3')], [undefined, 'two', 'three']);
  assert.equal(service.findKey('a', 'a#2', 'm')?.restsMs, 60_000);
  host.advance(30_000);
  assert.equal(service.findKey('a', 'a#2')?.restsMs, 0);
  service.coolDown('a#1', undefined, 30_000, 'of a key that is gone');
  for (const section of [{ a: { keys: '', speaks } }, {}, { a: { keys: ['one'], speaks } }])
    (await prepare(plugin, part, section))();
  assert.deepEqual([keyOf(service, 'a#1'), keyOf(service, 'a#4')], [undefined, 'one']);
});

test('an invalid section is refused, and one that is not applied leaves no trace', async () => {
  const { part, service } = await open({ a: { keys: ['one'], speaks } });
  await assert.rejects(prepare(plugin, part, { a: { keys: ['one'], speaks: { chat: 'ftp://vendor.example' } } }));
  await prepare(plugin, part, { a: { keys: ['two'], speaks } });
  assert.equal(keyOf(service, 'a#1'), 'one');
  (await prepare(plugin, part, { a: { keys: ['one', 'three'], speaks } }))();
  assert.equal(keyOf(service, 'a#2'), 'three');
});

test('with any lists of keys, no two keys ever have one name', async () => {
  const keys = fc.array(fc.constantFrom('one', 'two', 'three', 'four'), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.array(keys, { minLength: 2, maxLength: 8 }), async (lists) => {
      const { part, service } = await open({ a: { keys: lists[0], speaks } });
      const owners = new Map<string, string>();
      for (const list of lists) {
        (await prepare(plugin, part, { a: { keys: list, speaks } }))();
        const named = Array.from({ length: 60 }, (_, index) => `a#${index + 1}`).flatMap((credential) => {
          const text = keyOf(service, credential);
          return text === undefined ? [] : [{ credential, text }];
        });
        assert.deepEqual(named.map(({ text }) => text).sort(), [...list].sort());
        for (const { credential, text } of named) {
          assert.equal(owners.get(credential) ?? text, text);
          owners.set(credential, text);
        }
      }
    }),
    { numRuns: 100 },
  );
});

test('a bound on concurrent requests applies from the reload on; running and waiting requests keep their place', async () => {
  const section = (concurrency?: number) => ({
    a: { keys: 'one', speaks, ...(concurrency === undefined ? {} : { concurrency }) },
  });
  const { part, service, host } = await open(section(1));
  const { gate } = service.find('a')!;
  assert.ok(gate!.tryAcquire());
  const never = new AbortController().signal;
  const waiting = [gate!.acquire(never), gate!.acquire(never)];
  const commit = await prepare(plugin, part, section(2));
  const room = () => host.get(upstreamAdmin).list()[0]!.room;
  assert.deepEqual(room(), { limit: 1, queue: 100, inFlight: 1, waiting: 2 }, 'nothing holds before the commit');
  commit();
  assert.equal(service.find('a')!.gate, gate);
  assert.equal(await waiting[0], true);
  assert.deepEqual(room(), { limit: 2, queue: 100, inFlight: 2, waiting: 1 });
  (await prepare(plugin, part, section()))();
  assert.equal(await waiting[1], true);
  assert.deepEqual([service.find('a')!.gate, room()], [undefined, undefined]);
});
