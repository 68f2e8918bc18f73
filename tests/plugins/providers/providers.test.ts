/** The providers plugin: keys in turn and at rest, addresses, traits, secrets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { localUpstreams, type Providers, providers } from '../../../plugins/common/domain/upstreams.ts';
import plugin from '../../../plugins/providers/index.ts';
import { type FakeHost, fakeHost, setUp } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';

const speaks = { chat: 'https://vendor.example/v1/' };

async function start(section: unknown): Promise<{ host: FakeHost; service: Providers; notices: readonly object[] }> {
  const host = fakeHost();
  const part = await setUp(plugin, host, section);
  return { host, service: host.get(providers), notices: part.checks!.notices!() };
}

function taken(service: Providers, provider = 'a', model = 'm', except?: Set<string>): string | number {
  const result = service.acquireKey(provider, model, except);
  return 'key' in result ? result.credential : result.retryAfterMs;
}

async function refuses(section: unknown, pattern: RegExp): Promise<void> {
  await assert.rejects(setUp(plugin, fakeHost(), section), pattern);
}

test('keys are used in turn', async () => {
  const { service } = await start({ a: { keys: ['one', 'two', 'three'], speaks } });
  assert.deepEqual(
    [1, 2, 3, 4].map(() => taken(service)),
    ['a#1', 'a#2', 'a#3', 'a#1'],
  );
});

test('a key in cooldown for one model serves the others', async () => {
  const { host, service } = await start({ a: { keys: ['one'], speaks } });
  service.coolDown('a#1', 'm', 30_000, 'refused');
  assert.equal(taken(service, 'a', 'm'), 30_000);
  assert.equal(taken(service, 'a', 'other'), 'a#1');
  host.advance(29_999);
  assert.equal(taken(service, 'a', 'm'), 1);
  host.advance(1);
  assert.equal(taken(service, 'a', 'm'), 'a#1');
});

test('a key in cooldown for all models serves none, and the operator is warned once', async () => {
  const { host, service } = await start({ a: { keys: ['one', 'two'], speaks } });
  service.coolDown('a#1', undefined, 600_000, 'the upstream answered 401');
  service.coolDown('a#1', undefined, 600_000, 'the upstream answered 401');
  assert.deepEqual([taken(service), taken(service, 'a', 'other')], ['a#2', 'a#2']);
  const warnings = host.lines.filter((line) => line.level === 'warn');
  assert.equal(warnings.length, 1);
  assert.match(JSON.stringify(warnings[0]), /a#1.*401/);
});

test('when all keys are in cooldown, the wait is the shortest of them', async () => {
  const { service } = await start({ a: { keys: ['one', 'two'], speaks } });
  service.coolDown('a#1', 'm', 30_000, 'refused');
  service.coolDown('a#2', undefined, 20_000, 'refused');
  assert.equal(taken(service), 20_000);
});

test('a cooldown is never shortened', async () => {
  const { service } = await start({ a: { keys: ['one'], speaks } });
  service.coolDown('a#1', 'm', 30_000, 'refused');
  service.coolDown('a#1', 'm', 1_000, 'refused');
  assert.equal(taken(service), 30_000);
});

test('a credential that the caller excludes is not returned, and does not count as in cooldown', async () => {
  const { service } = await start({ a: { keys: ['one', 'two'], speaks } });
  assert.equal(taken(service, 'a', 'm', new Set(['a#1'])), 'a#2');
  assert.equal(taken(service, 'a', 'm', new Set(['a#1', 'a#2'])), 0);
});

test('the number of remembered cooldowns by model is bounded', async () => {
  const { host, service } = await start({ a: { keys: ['one'], speaks } });
  for (let index = 0; index < 1_500; index++) service.coolDown('a#1', `model-${index}`, 60_000, 'refused');
  assert.equal(taken(service, 'a', 'model-1499'), 60_000);
  assert.equal(taken(service, 'a', 'model-0'), 'a#1', 'the oldest is forgotten');
  host.advance(60_000);
  service.coolDown('a#1', 'last', 5_000, 'refused');
  assert.equal(taken(service, 'a', 'last'), 5_000);
});

test('in any sequence of cooldowns no key in cooldown is returned, nor none while one is usable', () => {
  const step = fc.record({
    key: fc.integer({ min: 1, max: 3 }),
    model: fc.constantFrom('m', 'n', undefined),
    forMs: fc.integer({ min: 1, max: 50 }),
    advance: fc.integer({ min: 0, max: 30 }),
  });
  return fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { host, service } = await start({ a: { keys: ['one', 'two', 'three'], speaks } });
      const until = new Map<string, number>();
      for (const { key, model, forMs, advance } of steps) {
        service.coolDown(`a#${key}`, model, forMs, 'refused');
        const now = host.clock.monotonic();
        for (const name of model === undefined ? ['m', 'n'] : [model]) {
          const slot = `${key}/${name}`;
          until.set(slot, Math.max(until.get(slot) ?? 0, now + forMs));
        }
        host.advance(advance);
        const waits = [1, 2, 3].map((index) => (until.get(`${index}/m`) ?? 0) - host.clock.monotonic());
        const result = taken(service, 'a', 'm');
        if (typeof result === 'string') assert.ok(waits[Number(result.slice(2)) - 1]! <= 0);
        else assert.equal(result, Math.min(...waits));
      }
    }),
    { numRuns: 50 },
  );
});

test('a provider without a key is skipped and reported to the operator; empty entries are dropped', async () => {
  const { service, notices } = await start({
    a: { keys: ['', 'one', ''], speaks },
    b: { keys: '', speaks },
    c: { speaks },
  });
  assert.deepEqual(
    service.list().map((provider) => provider.name),
    ['a'],
  );
  assert.equal(taken(service), 'a#1');
  assert.equal(service.find('b'), undefined);
  assert.deepEqual(notices, [
    { level: 'warning', path: ['b', 'keys'], text: 'providers without a key are left out: b, c' },
  ]);
});

test('a base URL loses its trailing slash; one inside the process is resolved when it is read', async () => {
  const { host, service } = await start({
    a: {
      keys: 'one',
      speaks: { chat: 'https://vendor.example/v1/', messages: 'sandbox:', gemini: 'sandbox:/v1beta/' },
    },
  });
  const provider = service.find('a')!;
  assert.deepEqual(Object.keys(provider.speaks), ['chat', 'messages', 'gemini']);
  assert.equal(provider.speaks['chat'], 'https://vendor.example/v1');
  assert.throws(() => provider.speaks['messages'], /no vendor "sandbox" runs inside this process/);
  let port = 4001;
  host.provide(localUpstreams, {
    names: ['sandbox'],
    origin: (name) => (name === 'sandbox' ? `http://127.0.0.1:${port}` : undefined),
  });
  assert.equal(provider.speaks['messages'], 'http://127.0.0.1:4001');
  port = 4002;
  assert.equal(provider.speaks['gemini'], 'http://127.0.0.1:4002/v1beta');
  assert.equal('toString' in provider.speaks, false, 'nothing is inherited that could pass for a protocol');
});

test('addresses that could send a key to another host are refused', async () => {
  const wrong = [
    'https://user:secret@vendor.example',
    'ftp://vendor.example',
    'vendor.example/v1',
    'https://vendor.example/v1?key=1',
    'https://vendor.example/#x',
    'https:/v1',
    'sandbox://elsewhere.example/v1',
    '',
  ];
  for (const address of wrong)
    await refuses({ a: { keys: 'one', speaks: { chat: address } } }, /must|query|credentials/);
});

test('unknown members, invalid header names and line breaks in headers are refused', async () => {
  await refuses({ a: { keys: 'one', speaks, kyes: 'x' } }, /kyes/);
  await refuses({ a: { keys: 'one', speaks, headers: { 'bad header': 'x' } } }, /header name/);
  await refuses({ a: { keys: 'one', speaks, headers: { fine: 'a\r\nb' } } }, /one line/);
  await refuses({ a: { keys: 'one two', speaks } }, /without spaces/);
  await refuses({ a: { keys: 'one', speaks, timeouts: { connect: '11s' } } }, /at most 10s/);
  await refuses({ a: { keys: 'one', speaks, auth: { header: 'x-key', value: 'static' } } }, /\{key\}/);
});

test('traits have defaults, and a protocol may send the key in its own way', async () => {
  const { service } = await start({
    a: { keys: 'one', speaks },
    b: {
      keys: 'one',
      speaks,
      auth: { header: 'api-key', value: '{key}' },
      headers: { 'X-Title': 'gateway' },
      drop_fields: { chat: ['store'] },
      stream_usage: false,
      timeouts: { connect: '3s', first_byte: '20s', idle: '1m' },
    },
    c: { keys: 'one', speaks, auth: { messages: { header: 'authorization', value: 'Bearer {key}' } } },
  });
  assert.deepEqual(service.find('a')!.traits, {
    auth: undefined,
    headers: {},
    dropFields: {},
    streamUsageOption: true,
    connectTimeoutMs: 10_000,
    firstByteTimeoutMs: 600_000,
    idleTimeoutMs: 300_000,
    cheapDrain: { longestMs: 60_000, maxBytes: 8 * 2 ** 20 },
  });
  assert.deepEqual(service.find('b')!.traits, {
    auth: { header: 'api-key', value: '{key}' },
    headers: { 'x-title': 'gateway' },
    dropFields: { chat: ['store'] },
    streamUsageOption: false,
    connectTimeoutMs: 3_000,
    firstByteTimeoutMs: 20_000,
    idleTimeoutMs: 60_000,
    cheapDrain: { longestMs: 60_000, maxBytes: 8 * 2 ** 20 },
  });
  const c = service.find('c')!;
  assert.equal(c.traits.auth, undefined);
  assert.deepEqual(c.protocolTraits!['messages']!.auth, { header: 'authorization', value: 'Bearer {key}' });
  assert.equal(c.protocolTraits!['chat'], undefined);
});

test('answers of disconnected clients are read to the end within bounds: where that is cheap, or always where set', async () => {
  const { service } = await start({
    a: { keys: 'one', speaks, drain: { longest: '5s' } },
    b: { keys: 'one', speaks, client_left: 'drain' },
    c: { keys: 'one', speaks, client_left: 'drain', drain: { longest: '5s', bytes: '1MB' } },
  });
  assert.equal(service.find('a')!.traits.drain, undefined);
  assert.deepEqual(service.find('a')!.traits.cheapDrain, { longestMs: 5_000, maxBytes: 8 * 2 ** 20 });
  assert.deepEqual(service.find('b')!.traits.drain, { longestMs: 60_000, maxBytes: 8 * 2 ** 20 });
  assert.deepEqual(service.find('c')!.traits.drain, { longestMs: 5_000, maxBytes: 2 ** 20 });
});

test('a key is hidden in text, JSON, inspection and log lines', async () => {
  const { host, service } = await start({ a: { keys: 'canary-key', speaks } });
  const result = service.acquireKey('a', 'm');
  assert.ok('key' in result);
  const { key } = result;
  assert.equal(key.reveal(), 'canary-key');
  const shown = [
    String(key),
    `${key}`,
    '' + key,
    JSON.stringify({ key }),
    inspect(key),
    inspect({ deep: [result] }, { depth: 9, showHidden: true }),
    JSON.stringify(result),
    JSON.stringify(service.list()),
    inspect(service, { depth: 9 }),
  ];
  service.coolDown('a#1', undefined, 1_000, 'refused');
  shown.push(JSON.stringify(host.lines));
  for (const text of shown) assert.doesNotMatch(text, /canary/);
  assert.equal(inspect(key), '***');
});
