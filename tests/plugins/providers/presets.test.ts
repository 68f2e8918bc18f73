/** Presets of vendors: every one is a valid entry, and what an entry itself says comes before its preset. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { wirePaths } from '../../../plugins/endpoints/wires.ts';
import { completions } from '../../../plugins/protocol-convert/protocols/completions.ts';
import { protocols } from '../../../plugins/protocol-convert/protocols/index.ts';
import { type ProvidersConfig, providersSchema } from '../../../plugins/providers/config.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { providerFaults, providerWarnings, spokenBy } from '../../../plugins/providers/mistakes.ts';
import { presets, presetsCommand } from '../../../plugins/providers/presets.ts';
import { ownAdapters } from '../../../plugins/task-store/adapters/index.ts';
import { liveProtocols } from '../../../plugins/websockets/live/live.ts';
import { realtimeProtocol } from '../../../plugins/websockets/realtime/realtime.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

function entry(written: object): ProvidersConfig[string] {
  return providersSchema.parse({ vendor: written })['vendor']!;
}

const ofPlugins = [
  ['bedrock', '/model/{model}/converse'],
  ['bedrock-claude', '/model/{model}/invoke'],
  ['bedrock-nova', '/model/{model}/invoke'],
  ['vertex-gemini', '/publishers/google/models'],
  ['vertex-claude', '/publishers/anthropic/models'],
] as const;
const spoken = spokenBy(
  new Map([...[...protocols, completions].map(({ name, path }) => [name, path] as const), ...ofPlugins]),
  new Map(ownAdapters.map(({ name, path }) => [name, path])),
  wirePaths,
  new Map([realtimeProtocol, liveProtocols[0]!].map(({ name, base }) => [name, base])),
);

test('at least thirty vendors are listed, each with its source page and date', () => {
  assert.ok(presets().size >= 30, String(presets().size));
  for (const [name, { key, source, read, variable, provider }] of presets()) {
    assert.match(source, /^https:\/\//, name);
    assert.match(String(read), /^20\d\d-\d\d-\d\d$/, name);
    if (variable === undefined) assert.ok(key === 'none is needed' && provider['keys'] !== undefined, name);
    else assert.match(key, /^https:\/\//, name);
  }
});

/** The places of an operator's own names are filled. */
const ownAddresses = (addresses: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(addresses).map(([protocol, url]) => [protocol, url.replaceAll(/PROJECT|RESOURCE/g, 'ours')]),
  );

for (const [name, { variable, addresses }] of presets()) {
  test(`the preset "${name}" with a key${addresses === undefined ? '' : ' and addresses'} is a whole entry`, () => {
    const more = {
      ...(variable === undefined ? {} : { keys: 'key' }),
      ...(addresses === undefined ? {} : { speaks: ownAddresses(addresses) }),
    };
    const config = { vendor: entry({ preset: name, ...more }) };
    assert.ok(Object.keys(config.vendor.speaks).length > 0 && config.vendor.keys.length === 1);
    assert.deepEqual(providerFaults(config, spoken), []);
    assert.deepEqual(providerWarnings(config, spoken), []);
    for (const url of Object.values(config.vendor.speaks))
      assert.match(url, variable === undefined ? /^http:\/\/127\.0\.0\.1:\d+/ : /^https:\/\//);
  });
}

test('members of the entry override its preset; mappings merge', () => {
  const plain = entry({ preset: 'groq', keys: 'key' });
  assert.deepEqual(plain.drop_fields, { chat: ['logprobs', 'top_logprobs', 'logit_bias'] });
  const own = entry({
    preset: 'groq',
    keys: ['one', 'two'],
    drop_fields: { chat: ['user'], responses: ['store'] },
    headers: { 'x-team': 'a' },
    concurrency: 3,
  });
  assert.deepEqual(own.drop_fields, { chat: ['user'], responses: ['store'] });
  assert.deepEqual([own.speaks, own.concurrency, own.keys], [plain.speaks, 3, ['one', 'two']]);
  assert.deepEqual(own.headers, { 'x-team': 'a' });
  assert.deepEqual(entry({ preset: 'openrouter', keys: 'k', auth: { chat: { header: 'x', value: '{key}' } } }).auth, {
    chat: { scheme: 'header', header: 'x', value: '{key}' },
  });
  assert.deepEqual(entry({ preset: 'ollama', keys: 'own' }).keys, ['own']);
});

test("addresses are replaced together, and the preset's settings for omitted protocols are omitted", () => {
  const elsewhere = entry({ preset: 'groq', keys: 'key', speaks: { chat: 'https://proxy.example/v1' } });
  assert.deepEqual(elsewhere.speaks, { chat: 'https://proxy.example/v1' });
  assert.deepEqual(elsewhere.dialect, {});
  assert.deepEqual(elsewhere.drop_fields, { chat: ['logprobs', 'top_logprobs', 'logit_bias'] });
  assert.deepEqual(providerWarnings({ elsewhere }, spoken), []);
});

test('an unknown preset is a fault that suggests the near name', () => {
  const problem = (preset: string) => {
    const parsed = providersSchema.safeParse({ vendor: { preset, keys: 'key' } });
    return parsed.error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };
  assert.deepEqual(problem('grok'), ['vendor.preset: there is no preset "grok"; did you mean "groq"?']);
  assert.deepEqual(problem('acme-models'), [
    'vendor.preset: there is no preset "acme-models"; "providers presets" lists them',
  ]);
  for (const name of ['constructor', '__proto__']) assert.match(problem(name)!.join(), /there is no preset/);
});

test('an entry without preset and protocols is a fault', () => {
  const parsed = providersSchema.safeParse({ vendor: { keys: 'key' } });
  assert.deepEqual(parsed.error?.issues[0]?.path, ['vendor', 'speaks']);
  assert.equal(parsed.error?.issues[0]?.message, 'is missing: name a preset, or protocols and base URLs');
});

test("an entry of a vendor with an address for each account shows the address's form", () => {
  const parsed = providersSchema.safeParse({ vendor: { preset: 'azure', keys: 'key' } });
  assert.deepEqual(parsed.error?.issues[0]?.path, ['vendor', 'speaks']);
  assert.match(
    parsed.error?.issues[0]?.message ?? '',
    /^is missing: this vendor gives every account its own base URLs, such as chat: https:\/\/RESOURCE\.openai\.azure\.com\/openai\/v1, /,
  );
});

test('the list of presets names protocols and the page for keys', async () => {
  const part = await setUp(providersPlugin, fakeHost(), {});
  assert.ok(part.commandLine?.commands?.includes(presetsCommand));
  const { text, json } = await presetsCommand.run({});
  assert.match(text, /^groq +Groq: chat, responses; key: https:\/\/console\.groq\.com\/keys$/m);
  assert.equal((json as object[]).length, presets().size);
});

test('the entry of each preset can be pasted once the keys are set and the words in capitals are replaced', async () => {
  const entryOf = async (name: string) => String((await presetsCommand.run({ name })).text);
  for (const [name, { source, read }] of presets()) {
    const text = await entryOf(name);
    assert.ok(text.includes(`${source}, read on ${read}`), text);
    const filled = text.replaceAll(/PROJECT|RESOURCE/g, 'ours').replaceAll(/\$\{\w+(?::-)?\}/g, 'key');
    const pasted = providersSchema.parse((parse(filled) as { providers: object }).providers);
    assert.deepEqual(Object.keys(pasted), [name]);
    assert.deepEqual(providerFaults(pasted, spoken), []);
    assert.equal(pasted[name]!.keys.length, 1);
  }
  assert.match(await entryOf('bedrock'), /keys: \$\{AWS_ACCESS_KEY_ID\}:\$\{AWS_SECRET_ACCESS_KEY\}$/m);
  assert.match(await entryOf('groq'), /\n {4}keys: \$\{GROQ_API_KEY:-\}$/);
  await assert.rejects(entryOf('grok'), /^GatewayError: There is no preset "grok"; did you mean "groq"\?$/);
});
