/** The catalogue that is shipped: complete, priced, served, and in the demo by the sandbox alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { type Catalog, catalog } from '../../../plugins/common/domain/models.ts';
import { priceFor } from '../../../plugins/common/domain/prices.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import routePlugin from '../../../plugins/route/index.ts';
import { fakeHost, orderEndpoints, setUp } from '../../helpers/fakes.ts';

interface ProviderSection {
  keys: string;
  speaks: Record<string, string>;
}

const read = (name: string) => parse(readFileSync(new URL(`../../../config/${name}`, import.meta.url), 'utf8'));
const { models } = read('models.yaml') as { models: Record<string, { price_source?: string; targets: string[] }> };
const shared = (read('shared.yaml') as { providers: Record<string, ProviderSection> }).providers;
const demo = (read('sandbox.yaml') as { providers: Record<string, ProviderSection> }).providers;

/** Section 2.2 of the interface. */
const chat =
  `gpt-5.5 gpt-5.4 gpt-5.4-mini gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra gpt-5.3-codex-spark gpt-5.3-codex gpt-5.2
  codex-auto-review claude-opus-5 claude-sonnet-5 claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 claude-opus-4-5-20251101
  claude-sonnet-4-6 claude-sonnet-4-5-20250929 claude-haiku-4-5-20251001 claude-fable-5 grok-4.20-heavy grok-4.20-expert
  grok-4.20-auto grok-4.20-fast grok-4.3-fast deepseek-v4-pro deepseek-v4-flash glm-5.2 glm-5.1 qwen3.6-35b-a3b kimi-k2.6
  minimax-m2.7`.split(/\s+/);
const image = `gpt-image-2 gemini-3-pro-image-preview grok-imagine-image-pro grok-imagine-image grok-imagine-image-lite
  doubao-seedream-5-0-260128 doubao-seedream-4-5-251128`.split(/\s+/);
const video = ['grok-imagine-video'];

async function shipped(providerSections: Record<string, ProviderSection>): Promise<Catalog> {
  const host = fakeHost({ endpoints: () => orderEndpoints });
  const keyed = Object.entries(providerSections).map(([name, section]) => [name, { ...section, keys: 'test' }]);
  await setUp(providersPlugin, host, Object.fromEntries(keyed));
  await setUp(modelsPlugin, host, models);
  return host.get(catalog);
}

test('the catalogue has the forty models of the interface, each of its kind', async () => {
  const list = (await shipped(shared)).list();
  const ofKind = (kind: string) => list.filter((model) => model.kind === kind).map((model) => model.id);
  assert.deepEqual(ofKind('chat').sort(), chat.sort());
  assert.deepEqual(ofKind('image').sort(), image.sort());
  assert.deepEqual(ofKind('video'), video);
  assert.equal(list.length, 40);
});

test('each model has a price with a named source, an owner, a date, and sizes where it writes text', async () => {
  for (const model of (await shipped(shared)).list()) {
    const priced = priceFor(model.prices ?? [], Date.now(), {});
    assert.ok(priced !== undefined && Object.values(priced.price).some((amount) => amount > 0n), model.id);
    assert.match(models[model.id]!.price_source ?? '', /^(https:\/\/\S+|example)$/, model.id);
    assert.ok(model.created > 1_700_000_000, model.id);
    assert.ok(model.ownedBy in shared, `${model.id} is owned by a group that is a provider`);
    if (model.kind === 'chat') assert.ok(model.contextTokens! >= 100_000 && model.maxOutputTokens! >= 30_000, model.id);
  }
});

test('cached input is never dearer than fresh input, and output never cheaper', async () => {
  for (const { id, kind, prices } of (await shipped(shared)).list()) {
    if (kind !== 'chat') continue;
    for (const { price, tier } of prices!.flatMap((version) => version.all())) {
      assert.ok((price.cache_read ?? price.input!) <= price.input!, `${id} ${tier}`);
      assert.ok((price.cache_write_5m ?? price.input!) >= price.input!, `${id} ${tier}`);
      assert.ok(price.output! >= price.input!, `${id} ${tier}`);
    }
  }
});

test('every target names a provider that speaks what the model needs', async () => {
  for (const model of (await shipped(shared)).list()) {
    for (const { provider } of model.targets) {
      const spoken = Object.keys(shared[provider]!.speaks);
      const fits = spoken.some((name) =>
        model.kind === 'chat'
          ? ['chat', 'responses', 'messages', 'gemini'].includes(name)
          : name.endsWith(`-${model.kind}s`),
      );
      assert.ok(fits, `${model.id} at ${provider}`);
    }
  }
});

test('open-weight models can be called with chat and with messages', async () => {
  const list = (await shipped(shared)).list();
  for (const owner of ['deepseek', 'zhipu', 'qwen', 'moonshot', 'minimax']) {
    const own = list.filter((model) => model.ownedBy === owner);
    assert.ok(own.length > 0);
    const spoken = Object.keys(shared[owner]!.speaks);
    assert.deepEqual(spoken, ['chat', 'messages']);
  }
});

test('in the demo each vendor speaks what it speaks in earnest, inside this process and without a real key', () => {
  assert.deepEqual(Object.keys(demo).sort(), Object.keys(shared).sort());
  for (const [name, provider] of Object.entries(demo)) {
    assert.deepEqual(Object.keys(provider.speaks).sort(), Object.keys(shared[name]!.speaks).sort());
    for (const [protocol, address] of Object.entries(provider.speaks))
      assert.match(address, /^sandbox:(\/|$)/, `${name} ${protocol}`);
    assert.equal(provider.keys, 'sandbox');
  }
});

test('the demo serves every model', async () => {
  assert.equal((await shipped(demo)).list().length, 40);
});

test('the gateways list their plugins in an order in which each finds what it needs', () => {
  const main = read('main.yaml');
  const order = [
    'storage',
    'telemetry',
    'request-log',
    'files',
    'auth',
    'plans',
    'rate-limit',
    'providers',
    'models',
    'idempotency',
    'billing',
    'shop',
    'route',
    'protocol-convert',
    'endpoints',
    'task-store',
    'payments',
    'console',
  ];
  assert.deepEqual(main.plugins, order);
  const embedded = order.filter((name) => name !== 'payments');
  assert.deepEqual(read('demo.yaml').plugins, [...embedded.slice(0, 7), 'sandbox', ...embedded.slice(7), 'welcome']);
  assert.deepEqual(read('passthrough.yaml').plugins, ['passthrough']);
});

test('the sections of the gateways are understood by the plugins they are for', async () => {
  const main = read('main.yaml');
  const host = fakeHost({ endpoints: () => orderEndpoints });
  await setUp(providersPlugin, host, demo);
  await setUp(routePlugin, host, main.route);
  const part = await setUp(modelsPlugin, host, models);
  const own = part.endpoints!.map((endpoint) => `${endpoint.method} ${endpoint.path}`);
  assert.deepEqual(own.sort(), [...main.auth.public].sort(), 'the model list is public, all of it');
});
