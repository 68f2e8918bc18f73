/** Presets of vendors: every one is a valid entry, and what an entry itself says comes before its preset. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocols } from '../../../plugins/protocol-convert/protocols/index.ts';
import { type ProvidersConfig, providersSchema } from '../../../plugins/providers/config.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import { providerFaults, providerWarnings, spokenPaths } from '../../../plugins/providers/mistakes.ts';
import { presets, presetsCommand } from '../../../plugins/providers/presets.ts';
import { fakeHost, setUp } from '../../helpers/fakes.ts';

function entry(written: object): ProvidersConfig[string] {
  return providersSchema.parse({ vendor: written })['vendor']!;
}

const ofPlugins = [['bedrock', '/model/{model}/converse']] as const;
const paths = spokenPaths(new Map([...protocols.map(({ name, path }) => [name, path] as const), ...ofPlugins]));

test('there are thirty vendors and more, each with the page it was read from and the day', () => {
  assert.ok(presets().size >= 30, String(presets().size));
  for (const [name, { key, source, read, variable, provider }] of presets()) {
    assert.match(source, /^https:\/\//, name);
    assert.match(String(read), /^20\d\d-\d\d-\d\d$/, name);
    if (variable === undefined) assert.ok(key === 'none is needed' && provider['keys'] !== undefined, name);
    else assert.match(key, /^https:\/\//, name);
  }
});

for (const [name, { variable, addresses }] of presets()) {
  test(`the preset "${name}" with a key${addresses === undefined ? '' : ' and addresses'} is a whole entry`, () => {
    const more = {
      ...(variable === undefined ? {} : { keys: 'key' }),
      ...(addresses === undefined ? {} : { speaks: addresses }),
    };
    const config = { vendor: entry({ preset: name, ...more }) };
    assert.ok(Object.keys(config.vendor.speaks).length > 0 && config.vendor.keys.length === 1);
    assert.deepEqual(providerFaults(config, paths), []);
    assert.deepEqual(providerWarnings(config, paths), []);
    for (const url of Object.values(config.vendor.speaks))
      assert.match(url, variable === undefined ? /^http:\/\/127\.0\.0\.1:\d+/ : /^https:\/\//);
  });
}

test('what the entry says comes before its preset; mappings merge', () => {
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

test('addresses are replaced together, and what the preset says of protocols that are left out is left out', () => {
  const elsewhere = entry({ preset: 'groq', keys: 'key', speaks: { chat: 'https://proxy.example/v1' } });
  assert.deepEqual(elsewhere.speaks, { chat: 'https://proxy.example/v1' });
  assert.deepEqual(elsewhere.dialect, {});
  assert.deepEqual(elsewhere.drop_fields, { chat: ['logprobs', 'top_logprobs', 'logit_bias'] });
  assert.deepEqual(providerWarnings({ elsewhere }, paths), []);
});

test('an unknown preset is a problem with the near name', () => {
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

test('an entry without preset and protocols is a problem', () => {
  const parsed = providersSchema.safeParse({ vendor: { keys: 'key' } });
  assert.deepEqual(parsed.error?.issues[0]?.path, ['vendor', 'speaks']);
  assert.equal(parsed.error?.issues[0]?.message, 'is missing: name a preset, or protocols and base URLs');
});

test('an entry of a vendor whose accounts have addresses of their own is told their form', () => {
  const parsed = providersSchema.safeParse({ vendor: { preset: 'azure', keys: 'key' } });
  assert.deepEqual(parsed.error?.issues[0]?.path, ['vendor', 'speaks']);
  assert.match(
    parsed.error?.issues[0]?.message ?? '',
    /^is missing: this vendor gives every account its own base URLs, such as chat: https:\/\/RESOURCE\.openai\.azure\.com\/openai\/v1, /,
  );
});

test('images are not sent to an address that names the model', () => {
  const vendor = entry({ keys: 'key', speaks: { 'openai-images': 'https://vendor.example/{model}/v1' } });
  assert.match(providerFaults({ vendor }, paths)[0]!.message, /sent without .* \{model\}/);
});

test('the list names protocols and the page for keys', async () => {
  const part = await setUp(providersPlugin, fakeHost(), {});
  assert.ok(part.commands?.includes(presetsCommand));
  const { text, json } = await presetsCommand.run({});
  assert.match(text, /^groq +Groq: chat, responses; key: https:\/\/console\.groq\.com\/keys$/m);
  assert.equal((json as object[]).length, presets().size);
});
