/** `providers import-models` against a stand-in vendor on loopback: what is asked for, read, left out and printed. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { parse } from 'yaml';
import { boot } from '../../../core/gateway/boot.ts';
import { createLog } from '../../../core/gateway/log.ts';
import { modelsSchema } from '../../../plugins/models/config.ts';
import { otherNames } from '../../../plugins/models/vendor-models.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const key = 'sk-stand-in-key-1';
let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

type Reply = { status?: number; body: unknown; headers?: Record<string, string> };

/** A vendor that answers by `reply`, and what it was asked. */
async function vendor(reply: (request: IncomingMessage, url: URL) => Reply) {
  const requests: { path: string; headers: IncomingMessage['headers'] }[] = [];
  server = createServer((request, response) => {
    requests.push({ path: request.url!, headers: request.headers });
    const { status = 200, body, headers = {} } = reply(request, new URL(request.url!, 'http://vendor.test'));
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requested: requests };
}

async function importModels(provider: string, values: Record<string, string> = {}, models = '') {
  const directory = temporaryDirectory('import-models-');
  const file = join(directory, 'gateway.yaml');
  const name = values['provider'] ?? 'acme';
  writeFileSync(
    file,
    `gateway: test\nplugins: [providers, models]\nproviders:\n  acme: ${provider}\n${models === '' ? '' : `models:\n${models}`}`,
  );
  const environment = { DATA_DIR: directory };
  const gateway = await boot(file, { mode: 'command', log: createLog('silent'), environment });
  try {
    const command = gateway.commands.find((one) => one.name === 'providers import-models')!;
    return await command.run({ ...values, provider: name });
  } finally {
    await gateway.stop(0);
  }
}

const chatList = {
  object: 'list',
  data: [
    {
      id: 'acme/large',
      object: 'model',
      created: 1_780_000_000,
      owned_by: 'Acme',
      context_window: 131_072,
      max_completion_tokens: 8_192,
    },
    { id: 'acme/small', object: 'model', owned_by: 'Acme', context_length: 32_768 },
    { id: 'acme/embed', object: 'model', type: 'embedding' },
    { id: 'bad id with spaces' },
    { id: '${HOME}' },
    { id: 5 },
    'nonsense',
  ],
};

test("a vendor's list in the chat protocol becomes configurable models, unpriced and so not sold", async () => {
  const { origin, requested } = await vendor(() => ({ body: chatList }));
  const { text, json } = await importModels(
    `{ keys: ${key}, speaks: { chat: "${origin}/v1" }, headers: { x-team: one } }`,
  );
  assert.deepEqual(
    requested.map(({ path }) => path),
    ['/v1/models'],
  );
  assert.equal(requested[0]!.headers['authorization'], `Bearer ${key}`);
  assert.equal(requested[0]!.headers['x-team'], 'one');
  assert.match(
    text,
    /^# Models of acme, as listed by the vendor on \d{4}-\d\d-\d\d\.\n# Without a price, and so not sold until they have one: 2\.\n# `--prices FILE`/,
  );
  const pasted = parse(text) as { models: Record<string, unknown> };
  assert.deepEqual(pasted.models, {
    'acme/large': {
      owned_by: 'Acme',
      targets: ['acme/acme/large'],
      context: 131_072,
      max_output: 8_192,
      created: '2026-05-28',
    },
    'acme/small': { owned_by: 'Acme', targets: ['acme/acme/small'], context: 32_768 },
  });
  assert.deepEqual((json as { models: unknown }).models, pasted.models);
  const parsed = modelsSchema.parse(pasted.models);
  assert.deepEqual(
    parsed['acme/large']!.targets.map(({ provider, model }) => [provider, model]),
    [['acme', 'acme/large']],
  );
  assert.equal(parsed['acme/large']!.price, undefined);
  assert.ok(!text.includes(key));
});

test('a public price list prices models with the same exact name', async () => {
  const { origin } = await vendor(() => ({ body: chatList }));
  const prices = join(temporaryDirectory('prices-'), 'prices.json');
  writeFileSync(
    prices,
    JSON.stringify({
      'acme/acme/large': {
        input_cost_per_token: 5e-7,
        output_cost_per_token: 0.0000015,
        source: 'https://acme.example/prices',
      },
    }),
  );
  const { text } = await importModels(`{ keys: ${key}, speaks: { chat: "${origin}/v1" } }`, { prices });
  const { models } = parse(text) as { models: Record<string, { price?: unknown; price_source?: string }> };
  assert.deepEqual(models['acme/large']!.price, { input: '0.50', output: '1.50' });
  assert.equal(models['acme/large']!.price_source, 'imported: https://acme.example/prices');
  assert.equal(models['acme/small']!.price, undefined);
  assert.match(text, /until they have one: 1\.\nmodels:/);
  assert.ok(modelsSchema.parse(models)['acme/large']!.price !== undefined);
});

test('already configured models are named and left out', async () => {
  const { origin } = await vendor(() => ({ body: chatList }));
  const own = '  acme/small: { owned_by: me, targets: [acme/acme/small] }\n';
  const { text } = await importModels(`{ keys: ${key}, speaks: { chat: "${origin}/v1" } }`, {}, own);
  assert.deepEqual(Object.keys((parse(text) as { models: object }).models), ['acme/large']);
  assert.match(text, /# Configured already, and left out: acme\/small\./);
});

test('models configured by another id, and models of other kinds by their names, are left out', async () => {
  const ids = ['acme/chat', 'acme/known', 'text-embedding-3-small', 'whisper-1', 'BAAI/bge-m3', 'gemini-3-pro-image'];
  const sized = { metadata: { context_length: 1_000, max_tokens: 500 } };
  const { origin } = await vendor(() => ({ body: { data: ids.map((id) => ({ id, ...sized })) } }));
  const own = '  known: { owned_by: me, targets: [acme/acme/known] }\n';
  const { text, json } = await importModels(`{ keys: ${key}, speaks: { chat: "${origin}/v1" } }`, {}, own);
  assert.deepEqual((parse(text) as { models: object }).models, {
    'acme/chat': { owned_by: 'acme', targets: ['acme/acme/chat'], context: 1_000, max_output: 500 },
  });
  const { configured, others } = json as { configured: string[]; others: string[] };
  assert.deepEqual(configured, ['acme/known']);
  assert.deepEqual(others, ['BAAI/bge-m3', 'gemini-3-pro-image', 'text-embedding-3-small', 'whisper-1']);
  assert.match(text, /# No chat models by their names, and left out: BAAI\/bge-m3, gemini-3-pro-image, text-/);
});

test('names of chat models are not classified as other kinds', () => {
  for (const id of [
    ...['gpt-5.5', 'claude-opus-5', 'zai-org/GLM-5.2', 'Qwen/Qwen3-VL-30B-A3B', 'gemini-2.5-flash', 'grok-4.3'],
    ...['deepseek-ai/DeepSeek-V4-Flash', 'openai/gpt-oss-120b', 'google/gemma-3-27b-it', 'MiniMaxAI/MiniMax-M2.7'],
    ...['gpt-4o-audio-preview', 'meta-llama/Llama-4-Scout-17B-16E-Instruct', 'kimi-k2.6', 'imagination-7b'],
  ])
    assert.doesNotMatch(id, otherNames, id);
});

test('pages of the messages protocol are read to the end, with its headers', async () => {
  const { origin, requested } = await vendor((_request, url) => ({
    body: url.searchParams.has('after_id')
      ? {
          data: [{ id: 'two', type: 'model', display_name: 'Two', created_at: '2026-01-02T00:00:00Z' }],
          has_more: false,
        }
      : { data: [{ id: 'one', type: 'model' }], has_more: true, last_id: 'one' },
  }));
  const { text } = await importModels(`{ keys: ${key}, speaks: { messages: "${origin}/anthropic" } }`);
  assert.deepEqual(
    requested.map(({ path }) => path),
    ['/anthropic/v1/models', '/anthropic/v1/models?after_id=one'],
  );
  assert.deepEqual(
    [requested[0]!.headers['x-api-key'], requested[0]!.headers['anthropic-version']],
    [key, '2023-06-01'],
  );
  assert.deepEqual((parse(text) as { models: Record<string, object> }).models, {
    one: { owned_by: 'acme', targets: ['acme/one'] },
    two: { owned_by: 'acme', display_name: 'Two', targets: ['acme/two'], created: '2026-01-02' },
  });
});

test('generate-content lists, bare lists and an address of its own', async () => {
  const gemini = await vendor(() => ({
    body: {
      models: [
        {
          name: 'models/flash',
          displayName: 'Flash',
          inputTokenLimit: 1_000,
          outputTokenLimit: 10,
          supportedGenerationMethods: ['generateContent'],
        },
        { name: 'models/embedding', supportedGenerationMethods: ['embedContent'] },
      ],
    },
  }));
  const first = await importModels(`{ keys: ${key}, speaks: { gemini: "${gemini.origin}/v1beta" } }`);
  assert.equal(gemini.requested[0]!.headers['x-goog-api-key'], key);
  assert.deepEqual(Object.keys((parse(first.text) as { models: object }).models), ['flash']);
  server!.close();
  const bare = await vendor(() => ({ body: [{ id: 'one', publisher: 'Somebody', type: 'chat' }] }));
  const second = await importModels(
    `{ keys: ${key}, models_url: "${bare.origin}/catalog?x=1", speaks: { chat: "${bare.origin}/v1" } }`,
  );
  assert.equal(bare.requested[0]!.path, '/catalog?x=1');
  assert.match(second.text, /owned_by: Somebody/);
});

test('a failure is one sentence with the words of the vendor, without the key or credentials', async () => {
  const cases: [Reply, RegExp][] = [
    [
      { status: 401, body: { error: { message: `bad key ${key}` } } },
      /^http:\S+\/v1\/models answered with the status 401: bad key \*\*\*\.$/,
    ],
    [{ body: '<html>' }, /answered with something other than JSON\.$/],
    [{ status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } }, /cannot be read: /],
  ];
  for (const [reply, pattern] of cases) {
    const { origin } = await vendor(() => reply);
    const error = await importModels(`{ keys: ${key}, speaks: { chat: "${origin}/v1" } }`).catch(
      (thrown) => thrown as Error,
    );
    assert.match((error as Error).message, pattern);
    assert.ok(!(error as Error).message.includes(key));
    server!.close();
  }
  const gone = await vendor(() => ({ body: chatList }));
  await new Promise((done) => server!.close(done));
  const refused = importModels(`{ keys: ${key}, speaks: { chat: "${gone.origin}/v1" } }`);
  await assert.rejects(refused, /^GatewayError: http:\/\/127\.0\.0\.1:\d+\/v1\/models cannot be read: ECONNREFUSED\.$/);
  const wrong: [string, Record<string, string>, RegExp][] = [
    [
      `{ keys: ${key}, speaks: { chat: "http://127.0.0.1:1/v1" } }`,
      { provider: 'acmee' },
      /There is no provider "acmee"; did you mean "acme"\?/,
    ],
    [`{ keys: "", speaks: { chat: "http://127.0.0.1:1/v1" } }`, {}, /The provider "acme" has no key\./],
    [
      `{ keys: ${key}, models_url: none, speaks: { chat: "http://127.0.0.1:1/v1" } }`,
      {},
      /acme has no list of models: write them by hand\./,
    ],
    [
      `{ keys: ${key}, speaks: { chat: "http://127.0.0.1:1/deployments/{model}?v=1" } }`,
      {},
      /acme gives each model an address of its own: set models_url, or write its models by hand\./,
    ],
  ];
  for (const [provider, values, pattern] of wrong) await assert.rejects(importModels(provider, values), pattern);
});
