/** The catalogue that is shipped: complete, priced, served, and in the demo by the sandbox alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { type Catalog, catalog } from '../../../plugins/common/domain/models.ts';
import { priceFor } from '../../../plugins/common/domain/prices.ts';
import modelsPlugin from '../../../plugins/models/index.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { withPreset } from '../../../plugins/providers/presets.ts';
import routePlugin from '../../../plugins/route/index.ts';
import { fakeHost, orderEndpoints, setUp } from '../../helpers/fakes.ts';

interface ProviderSection {
  optional?: boolean;
  keys: string;
  speaks: Record<string, string>;
}

/** A target as it is written. */
type Target = string | { provider: string; model?: string; speaks?: string; cost?: object; below_cost?: boolean };

const providerOf = (target: Target) => (typeof target === 'string' ? target.split('/')[0]! : target.provider);

/** Variables have their defaults. */
const read = (name: string) =>
  parse(readFileSync(new URL(`../../../config/${name}`, import.meta.url), 'utf8').replace(/\$\{\w+:-([^}]*)\}/g, '$1'));
const { models } = read('models.yaml') as {
  models: Record<string, { owned_by: string; kind?: string; price_source?: string; targets: Target[] }>;
};
const shared = Object.fromEntries(
  Object.entries((read('shared.yaml') as { providers: object }).providers).map(([name, section]) => [
    name,
    withPreset(section) as ProviderSection,
  ]),
);
const demo = (read('sandbox.yaml') as { providers: Record<string, ProviderSection> }).providers;
const demoVendors = Object.fromEntries(Object.entries(demo).filter(([, { keys }]) => keys !== ''));

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

test('each model has a price with a named source, an owner, a date, and sizes where it generates text', async () => {
  for (const model of (await shipped(shared)).list()) {
    const priced = priceFor(model.prices ?? [], Date.now(), {});
    assert.ok(priced !== undefined && Object.values(priced.price).some((amount) => amount > 0n), model.id);
    assert.match(models[model.id]!.price_source ?? '', /^(https:\/\/\S+|example)$/, model.id);
    assert.ok(model.created > 1_700_000_000, model.id);
    assert.ok(model.ownedBy in shared, `${model.id} is owned by a group that is a provider`);
    if (model.kind === 'chat') assert.ok(model.contextTokens! >= 100_000 && model.maxOutputTokens! >= 30_000, model.id);
  }
});

test('models of images and videos state what their vendor documents', async () => {
  for (const { id, kind, limits = {} } of (await shipped(shared)).list()) {
    if (kind !== 'image' && kind !== 'video') continue;
    assert.ok(Object.values(limits).filter((value) => value !== undefined).length > 0, id);
    if (kind === 'video') assert.ok(limits.seconds !== undefined && limits.resolutions !== undefined, id);
  }
  const find = async (id: string) => (await shipped(shared)).find(id)!.limits;
  assert.deepEqual(await find('doubao-seedream-4-5-251128'), {
    ...{ references: 14, size: '4096x4096' },
    resolutions: ['2k', '4k'],
  });
  assert.equal((await find('gpt-image-2'))!.prompt, 32_000);
  assert.equal(await find('gpt-5.5'), undefined);
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

test("every target names a provider that speaks a protocol of the model's kind", async () => {
  for (const model of (await shipped(shared)).list()) {
    for (const { provider, speaks } of model.targets) {
      const spoken = speaks ?? Object.keys(shared[provider]!.speaks);
      assert.ok(spoken.every((name) => name in shared[provider]!.speaks));
      const fits = spoken.some((name) =>
        model.kind === 'chat'
          ? ['chat', 'responses', 'messages', 'gemini', 'vertex-claude', 'bedrock'].includes(name)
          : name.endsWith(`-${model.kind}s`),
      );
      assert.ok(fits, `${model.id} at ${provider}`);
    }
  }
});

test('clouds and hosts come after the vendor of the model, and are left out where they have no key', () => {
  const later = Object.keys(shared).filter((name) => shared[name]!.optional === true);
  assert.deepEqual(later, ['deepinfra', 'novita', 'azure', 'vertex', 'bedrock']);
  for (const [id, { targets }] of Object.entries(models)) {
    const [first, ...others] = targets.map(providerOf);
    assert.ok(!later.includes(first!), id);
    assert.deepEqual(
      others.filter((name) => !later.includes(name)),
      [],
      id,
    );
  }
});

test('models that clouds and hosts sell have them as targets, each with its own cost', () => {
  const expected: Record<string, string[]> = { openai: ['azure'], anthropic: ['vertex', 'bedrock'] };
  for (const owner of ['deepseek', 'zhipu', 'qwen', 'moonshot', 'minimax']) expected[owner] = ['deepinfra', 'novita'];
  const alone = new Set(['gpt-5.3-codex-spark', 'codex-auto-review']);
  for (const [id, { owned_by: owner, kind = 'chat', targets }] of Object.entries(models)) {
    const others = targets.slice(1);
    for (const target of others) assert.ok(typeof target === 'object' && target.cost !== undefined, `${id}: no cost`);
    const wanted = kind === 'chat' && !alone.has(id) ? (expected[owner] ?? []) : [];
    assert.deepEqual(
      wanted.filter((name) => !others.map(providerOf).includes(name)),
      [],
      id,
    );
  }
});

test('with every key set no model is sold below its cost without its notice', async () => {
  const host = fakeHost({ endpoints: () => orderEndpoints });
  const keyed = Object.entries(shared).map(([name, section]) => [name, { ...section, keys: 'test' }]);
  await setUp(providersPlugin, host, Object.fromEntries(keyed));
  const part = await setUp(modelsPlugin, host, models);
  assert.deepEqual(part.checks!.problems!(), []);
  const strict = structuredClone(models);
  for (const { targets } of Object.values(strict))
    for (const target of targets) if (typeof target === 'object') delete target.below_cost;
  const faults = (await setUp(modelsPlugin, host, strict)).checks!.problems!();
  assert.deepEqual(
    [...new Set(faults.map(({ path }) => path?.[0]))],
    ['gpt-5.2', 'deepseek-v4-pro', 'deepseek-v4-flash'],
  );
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

test('in the demo each vendor speaks its real protocols, inside this process and without a real key', () => {
  assert.deepEqual(Object.keys(demo).sort(), Object.keys(shared).sort());
  for (const [name, provider] of Object.entries(demo)) {
    if (shared[name]!.optional === true) {
      assert.deepEqual(provider, { keys: '' }, 'it does not take over from the sandbox');
      continue;
    }
    assert.deepEqual(Object.keys(provider.speaks).sort(), Object.keys(shared[name]!.speaks).sort());
    for (const [protocol, address] of Object.entries(provider.speaks))
      assert.match(address, /^sandbox:(\/|$)/, `${name} ${protocol}`);
    assert.equal(provider.keys, 'sandbox');
  }
});

test('the demo serves every model', async () => {
  assert.equal((await shipped(demoVendors)).list().length, 40);
});

test('the gateways list their plugins in a valid order', () => {
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
    'google',
    'models',
    'idempotency',
    'billing',
    'shop',
    'cache',
    'route',
    'protocol-convert',
    'bedrock',
    'vertex',
    'endpoints',
    'websockets',
    'uploads',
    'batches',
    'usage',
    'organizations',
    'openapi',
    'docs',
    'task-store',
    'payments',
    'alerts',
    'notices',
    'console',
  ];
  assert.deepEqual(main.plugins, order);
  const ofClouds = ['google', 'bedrock', 'vertex'];
  const embedded = order.filter((name) => name !== 'payments' && !ofClouds.includes(name));
  const demo = [...embedded.slice(0, 7), 'sandbox', ...embedded.slice(7), 'welcome'];
  const withTools = demo
    .toSpliced(demo.indexOf('usage'), 0, 'vector-stores')
    .toSpliced(demo.indexOf('cache'), 0, 'mcp', 'web-search')
    .toSpliced(demo.indexOf('rate-limit'), 0, 'agent-loop');
  assert.deepEqual(read('demo.yaml').plugins, withTools);
  const company = order
    .filter((name) => name !== 'payments')
    .toSpliced(order.indexOf('idempotency'), 0, 'guardrails', 'prompts');
  assert.deepEqual(read('company.yaml').plugins, company);
  assert.deepEqual(read('passthrough.yaml').plugins, ['passthrough']);
});

test('the plugins accept their sections of the gateways', async () => {
  const main = read('main.yaml');
  const host = fakeHost({ endpoints: () => orderEndpoints });
  await setUp(providersPlugin, host, demoVendors);
  await setUp(routePlugin, host, main.route);
  const part = await setUp(modelsPlugin, host, models);
  const own = part.endpoints!.map((endpoint) => `${endpoint.method} ${endpoint.path}`);
  assert.deepEqual(own.sort(), [...main.auth.public].sort(), 'the model list is public, all of it');
});
