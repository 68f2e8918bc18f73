/** Which target comes first: the listed order, the draw by weight, the client's protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { upstreamAdmin } from '../../../plugins/common/domain/admin/upstreams.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import routePlugin from '../../../plugins/route/index.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';
import { bench, credentials, modelWith, ok, unreachable } from './helpers.ts';

const weighted = (provider: string, weight: number) => ({ provider, model: 'm', weight });

test('without weights the listed order applies, every time', async () => {
  const { go } = await bench();
  for (let round = 0; round < 20; round++) {
    const trip = await go(modelWith('b', 'a'), [ok]);
    assert.equal(trip.targets[0]!.provider, 'b');
  }
});

test('weights distribute the first tries', async () => {
  const { go } = await bench();
  const entry = modelWith(weighted('a', 3), weighted('b', 1));
  let first = 0;
  for (let round = 0; round < 2_000; round++) {
    if ((await go(entry, [ok])).targets[0]!.provider === 'a') first++;
  }
  assert.ok(first > 1_400 && first < 1_600, `${first} of 2000 instead of about 1500`);
});

test('a target without a weight is a fallback of those that have one', async () => {
  const { go } = await bench(
    { breaker: { failures: 32 } },
    {
      a: { keys: 'one', speaks: { chat: 'https://a.example' } },
      b: { keys: 'one', speaks: { chat: 'https://b.example' } },
      c: { keys: 'one', speaks: { chat: 'https://c.example' } },
    },
  );
  const entry = modelWith('a', weighted('b', 1), weighted('c', 1));
  const seen = new Set<string>();
  for (let round = 0; round < 30; round++) {
    const trip = await go(entry, [unreachable, unreachable, unreachable]);
    seen.add(trip.targets.map((target) => target.provider).join(''));
  }
  assert.deepEqual([...seen].sort(), ['bca', 'cba']);
});

test("only targets with the client's protocol are tried", async () => {
  const { go } = await bench();
  const trip = await go(modelWith('a', 'c', 'b'), [unreachable, unreachable], { protocol: 'messages' });
  assert.deepEqual(credentials(trip), ['c#1', 'b#1']);
  assert.equal(trip.targets[0]!.protocol, 'messages');
  assert.equal(trip.targets[0]!.baseUrl, 'https://c.example');
});

test('the error of a model without a vendor in this protocol names the endpoints by which it can be called', async () => {
  const { go } = await bench();
  const trip = await go(modelWith('c', 'b', 'gone'), [], { protocol: 'gemini' });
  assert.ok(trip.error instanceof GatewayError);
  const { status, field, code, message } = trip.error;
  assert.deepEqual([status, field, code], [422, 'model', 'protocol_unsupported']);
  assert.equal(
    message,
    'The model `m` cannot be called with gemini. It can be called with: chat (/v1/chat/completions), messages (/v1/messages).',
  );
});

test('a target with an unconfigured provider is skipped', async () => {
  const { go } = await bench();
  const trip = await go(modelWith('gone', 'b'), [ok]);
  assert.deepEqual(credentials(trip), ['b#1']);
});

test('a key that one protocol sends in its own way is sent so to the target', async () => {
  const { go } = await bench(
    {},
    {
      a: {
        keys: 'one',
        speaks: { chat: 'https://a.example/v1', messages: 'https://a.example' },
        auth: { messages: { header: 'authorization', value: 'Bearer {key}' } },
        timeouts: { connect: '2s' },
      },
    },
  );
  const chat = await go(modelWith('a'), [ok]);
  assert.equal(chat.targets[0]!.upstream.auth, undefined);
  const messages = await go(modelWith('a'), [ok], { protocol: 'messages' });
  assert.deepEqual(messages.targets[0]!.upstream.auth, { header: 'authorization', value: 'Bearer {key}' });
  assert.equal(messages.targets[0]!.upstream.connectTimeoutMs, 2_000);
});

test('the route applies to endpoints that set a call, and to no other', async () => {
  const host = fakeHost();
  await setUp(providersPlugin, host, {});
  const part = await setUp(routePlugin, host);
  const endpoint = { method: 'POST', path: '/x', operation: 'x' } as const;
  assert.equal(part.applies!({ ...endpoint, setsOnOpen: [call] }), true);
  assert.equal(part.applies!(endpoint), false);
});

test('a disabled target is as if absent: its share goes to the others, and without others the answer is 503', async () => {
  const { go, host } = await bench();
  const admin = host.get(upstreamAdmin);
  const entry = modelWith(weighted('a', 98), weighted('b', 1), 'c');
  await admin.setDisabled('a', undefined, true);
  for (let round = 0; round < 20; round++) assert.deepEqual(credentials(await go(entry, [ok])), ['b#1']);
  await admin.setDisabled('b', undefined, true);
  const { error } = await go(modelWith('a', 'b'), [ok]);
  assert.deepEqual([(error as GatewayError).status, (error as GatewayError).code], [503, 'model_out_of_service']);
  await admin.setDisabled('a', undefined, false);
  await admin.setDisabled('a', 'a#1', true);
  for (let round = 0; round < 4; round++) assert.deepEqual(credentials(await go(modelWith('a'), [ok])), ['a#2']);
});

test('targets that accept the media of a request precede the others, and requests are searched for media only where targets differ', async () => {
  const { go } = await bench();
  const blind = { provider: 'a', model: 'm', weight: 1, traits: { inputs: [] } };
  const listener = { provider: 'a', model: 'ears', weight: 0, traits: { inputs: ['audio' as const] } };
  const all = { provider: 'b', model: 'm', weight: 0 };
  let read = 0;
  const media =
    (...kinds: string[]) =>
    () => {
      read++;
      return new Set(kinds);
    };
  const firstOf = async (...[entry, options]: [Parameters<typeof go>[0], Parameters<typeof go>[2]]) =>
    (await go(entry, [ok], options)).targets.map(({ provider, model }) => `${provider} ${model}`)[0];
  assert.equal(await firstOf(modelWith(blind, all), { media: media('image') }), 'b m');
  assert.equal(await firstOf(modelWith(blind, listener, all), { media: media('audio') }), 'a ears');
  assert.equal(await firstOf(modelWith(blind, listener, all), { media: media('audio', 'image') }), 'b m');
  assert.equal(await firstOf(modelWith(blind, all), { media: media() }), 'a m');
  const session = { session: 'kept', media: media() };
  assert.equal(await firstOf(modelWith(blind, all), session), 'a m');
  assert.equal(await firstOf(modelWith(blind, all), { ...session, media: media('image') }), 'b m');
  assert.equal(read, 6);
  assert.equal(await firstOf(modelWith('a', all), { media: media('image') }), 'a a-m');
  assert.equal(await firstOf(modelWith(blind), { media: media('image') }), 'a m');
  const trip = await go(modelWith(blind, all), [unreachable, ok], { media: media('image') });
  assert.deepEqual(credentials(trip), ['b#1', 'a#1']);
});
