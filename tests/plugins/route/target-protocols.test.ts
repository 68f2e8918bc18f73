/** Targets that name the protocols of their provider in which they can be called: which one is used for which client. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { type ModelTarget, protocolsOf } from '../../../plugins/common/domain/models.ts';
import { providers, type Translations } from '../../../plugins/common/domain/upstreams.ts';
import { candidatesFor } from '../../../plugins/route/candidates.ts';
import { HealthRegistry } from '../../../plugins/route/health.ts';
import { bench, credentials, modelWith, ok } from './helpers.ts';

const protocols = ['responses', 'chat', 'messages', 'gemini'];
const vendors = {
  one: { keys: 'a', speaks: Object.fromEntries(protocols.map((name) => [name, `https://${name}.example`])) },
  clouds: { keys: 'b', speaks: { 'vertex-gemini': 'https://v.example', 'vertex-claude': 'https://v.example' } },
};
const variants: Record<string, string> = { 'vertex-gemini': 'gemini', 'vertex-claude': 'messages' };
const translations: Translations = {
  can: () => true,
  relays: (from, to) => (variants[to] ?? to) === from,
  paths: () => new Map(),
};
const at = (provider: string, speaks?: readonly string[]): ModelTarget => ({
  ...{ provider, model: 'theirs', weight: 0 },
  ...(speaks === undefined ? {} : { speaks }),
});

/** Every list of some of the protocols, in every order. */
function* orders(left: readonly string[], taken: readonly string[] = []): Generator<readonly string[]> {
  if (taken.length > 0) yield taken;
  for (const name of left)
    yield* orders(
      left.filter((other) => other !== name),
      [...taken, name],
    );
}

test("the client's own protocol is used where the target has it, else the first that it names", async () => {
  const { host } = await bench({}, vendors);
  const registry = new HealthRegistry(host.clock);
  let seen = 0;
  for (const speaks of [undefined, ...orders(protocols)])
    for (const protocol of protocols) {
      const wanted = { protocol, convertsTo: undefined, choices: 1 };
      const entry = modelWith(at('one', speaks));
      const { native, foreign } = candidatesFor(entry, wanted, host.get(providers), translations, registry, () => []);
      const isNative = speaks === undefined || speaks.includes(protocol);
      assert.deepEqual([native.length, foreign.length], isNative ? [1, 0] : [0, 1]);
      assert.equal([...native, ...foreign][0]!.protocol, isNative ? protocol : speaks[0], `${speaks}: ${protocol}`);
      seen += 1;
    }
  assert.equal(seen, 4 * 65);
});

test('several answers are requested in the first protocol that supports them, and in the first where none does', async () => {
  const { host } = await bench({}, vendors);
  const registry = new HealthRegistry(host.clock);
  const known: Translations = { ...translations, answersOnce: (to) => to === 'responses' || to === 'messages' };
  const chosen = (speaks: readonly string[], choices: number, convertsTo?: readonly string[]) => {
    const wanted = { protocol: 'gemini', convertsTo, choices };
    const { native, foreign } = candidatesFor(
      modelWith(at('one', speaks)),
      wanted,
      host.get(providers),
      known,
      registry,
      () => [],
    );
    return [...native, ...foreign].map(({ protocol }) => protocol);
  };
  for (const speaks of orders(['responses', 'chat', 'messages'])) {
    assert.deepEqual(chosen(speaks, 1), [speaks[0]]);
    assert.deepEqual(chosen(speaks, 2), [speaks.includes('chat') ? 'chat' : speaks[0]], speaks.join());
    assert.deepEqual(chosen([...speaks, 'gemini'], 2), ['gemini']);
  }
  assert.deepEqual(chosen(['responses', 'chat'], 2, ['responses']), ['responses']);
});

test('two models of one provider are each relayed to the clients of their own protocol', async () => {
  const { host } = await bench({}, vendors);
  const registry = new HealthRegistry(host.clock);
  const entry = modelWith(at('clouds', ['vertex-claude']));
  const found = (protocol: string) => {
    const wanted = { protocol, convertsTo: undefined, choices: 1 };
    const { native, foreign } = candidatesFor(entry, wanted, host.get(providers), translations, registry, () => []);
    return [native.map((one) => one.protocol), foreign.map((one) => one.protocol)];
  };
  assert.deepEqual(found('messages'), [['vertex-claude'], []]);
  assert.deepEqual(found('gemini'), [[], ['vertex-claude']]);
});

test('the error of a protocol without a target names the endpoints of those that have one', async () => {
  const { go } = await bench({}, vendors);
  const trip = await go(modelWith(at('one', ['messages'])), [], { protocol: 'chat' });
  assert.ok(trip.error instanceof GatewayError);
  assert.equal(
    trip.error.message,
    'The model `m` cannot be called with chat. It can be called with: messages (/v1/messages).',
  );
});

test('an answer is continued only at a target that is called in its protocol', async () => {
  const { go } = await bench({}, vendors);
  const pinned = { provider: 'one', credential: 'one#1', protocol: 'responses' };
  const options = { protocol: 'responses', pinned };
  const other = at('one', ['chat']);
  const lost = await go(modelWith(other), [ok], options);
  assert.ok(lost.error instanceof GatewayError);
  assert.equal(lost.error.code, 'previous_response_not_found');
  const found = await go(modelWith(other, { ...at('one', ['responses']), model: 'second' }), [ok], options);
  assert.deepEqual(credentials(found), ['one#1']);
  assert.deepEqual([found.targets[0]!.protocol, found.targets[0]!.model], ['responses', 'second']);
});

test('a protocol that a reload removed from the provider is not used', async () => {
  const { host } = await bench({}, vendors);
  const provider = host.get(providers).find('one');
  assert.deepEqual(protocolsOf(at('one', ['gone', 'chat', 'constructor']), provider), ['chat']);
  assert.deepEqual(protocolsOf(at('one'), undefined), []);
});

test("the error names the endpoint of a plugin's protocol, and of those that can be translated to it", async () => {
  const { host } = await bench({}, { mine: { keys: 'a', speaks: { own: 'https://own.example' } } });
  const known: Translations = { can: (from, to) => from === 'chat' && to === 'own', paths: () => new Map() };
  const endpoints = () =>
    [
      ['chat', '/v1/chat/completions'],
      ['messages', '/v1/messages'],
      ['own', '/v1/own'],
    ] as const;
  const wanted = { protocol: 'openai-embeddings', convertsTo: undefined, choices: 1 };
  const registry = new HealthRegistry(host.clock);
  assert.throws(
    () => candidatesFor(modelWith(at('mine')), wanted, host.get(providers), known, registry, endpoints),
    (error: unknown) =>
      error instanceof GatewayError &&
      error.message ===
        'The model `m` cannot be called with openai-embeddings. It can be called with: chat (/v1/chat/completions), own (/v1/own).',
  );
});
