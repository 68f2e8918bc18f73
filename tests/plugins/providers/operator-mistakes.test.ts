/** Mistakes in vendors, models and plans: the whole sentence that `check` prints of each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { linesOf, soundFile, testMistakes } from '../../helpers/operator-mistakes.ts';

const beside = 'files, task-store, endpoints, websockets';
const known =
  'chat, responses, messages, gemini, completions, openai-images, gemini-images, xai-images, ark-images, xai-videos, ark-videos, openai-embeddings, gemini-embeddings, cohere-rerank, jina-rerank, voyage-rerank, openai-decisions, typesafe-systemone, openai-moderations, openai-speech, openai-transcriptions, openai-realtime, gemini-live';

/** What `check` says of a gateway that has the plugins of images and of endpoints, too. */
async function linesBeside(protocol: string, plugins = beside): Promise<string[]> {
  const file = soundFile
    .replace('shop]', `shop, ${plugins}]`)
    .replace('chat: https://api.acme.example/v1', `${protocol}: https://api.acme.example/v1`);
  return (await linesOf(file)).filter((line) => line.includes(protocol));
}

test('the known protocols are those of the plugins in the list', async () => {
  const place = 'gateway.yaml:17: providers.acme.speaks';
  assert.deepEqual(await linesBeside('openai'), [`${place}.openai: there is no protocol "openai"; known are ${known}`]);
  assert.deepEqual(await linesBeside('openai-image'), [
    `${place}.openai-image: there is no protocol "openai-image"; did you mean "openai-images"?`,
  ]);
  assert.deepEqual(await linesBeside('cohere-reranks'), [
    `${place}.cohere-reranks: there is no protocol "cohere-reranks"; did you mean "cohere-rerank"?`,
  ]);
});

test('protocols of images and endpoints are accepted where their plugins are not in the list', async () => {
  assert.deepEqual(await linesBeside('openai-images', 'endpoints, websockets'), []);
  assert.deepEqual(await linesBeside('openai-embeddings', 'files, task-store, websockets'), []);
  assert.deepEqual(await linesBeside('openai-realtime', 'files, task-store, endpoints'), []);
});

test('targets at a cloud with a protocol for each maker name their own', async () => {
  const cloud = soundFile
    .replace('shop]', 'shop, vertex]')
    .replace('chat: https://api.acme.example/v1', 'vertex-gemini: https://api.acme.example')
    .replace('messages: https', 'vertex-claude: https');
  const warning = (models: string) =>
    `warning: "acme" speaks vertex-gemini, vertex-claude, each for models of its own: write speaks for the target of ${models}`;
  assert.deepEqual(await linesOf(cloud), [warning('fast, slow')]);
  const named = cloud.replace('[acme/acme-fast]', '[{ provider: acme, speaks: vertex-gemini }]');
  assert.deepEqual(await linesOf(named), [warning('slow')]);
  assert.deepEqual(await linesOf(cloud.replace(/ +vertex-gemini.*\n/, '')), []);
});

const inProcess = soundFile
  .replace('chat: https://api.acme.example/v1', 'chat: "sandbox:/v1"')
  .replace('messages: https://api.acme.example', 'messages: "sandbox:"');

test('an address inside the process needs the plugin that runs the vendor, anywhere in the list', async () => {
  assert.deepEqual(await linesOf(inProcess), [
    'gateway.yaml:17: providers.acme.speaks.chat: "sandbox:" (and 1 more) needs the service "local upstreams", which no plugin of the list provides: add "sandbox" to the list',
  ]);
  assert.deepEqual(await linesOf(inProcess.replace('shop]', 'shop, sandbox]')), []);
  assert.deepEqual(await linesOf(inProcess.replace('shop]', 'shop, sandbox]').replace('"sandbox:"', '"sandbux:"')), [
    'gateway.yaml:18: providers.acme.speaks.messages: no vendor "sandbux" runs inside this process; did you mean "sandbox"?',
  ]);
});

for (const name of ['main', 'fleet'])
  test(`sandbox.yaml over ${name}.yaml is refused: no plugin of the list runs the sandbox`, async () => {
    const files = [name, 'sandbox'].map((file) =>
      fileURLToPath(new URL(`../../../config/${file}.yaml`, import.meta.url)),
    );
    const lines = await linesOf(`include: ${JSON.stringify(files)}\ngateway: over\n`);
    assert.equal(lines.length, 1);
    assert.match(lines[0]!, /"sandbox:" \(and \d+ more\) needs the service .*: add "sandbox" to the list$/);
  });

testMistakes([
  [
    'a key in the query of a base URL',
    'https://api.acme.example/v1\n',
    'https://api.acme.example/v1?api_key=one\n',
    'gateway.yaml:17: providers.acme.speaks.chat: must not contain credentials; write them under keys',
  ],
  [
    'a proxy without a scheme',
    '    keys:',
    '    proxy: proxy.example:3128\n    keys:',
    'gateway.yaml:15: providers.acme.proxy: must be a URL such as http://user:password@proxy.example:3128, https://… or socks5://…',
  ],
  [
    'a certificate that is no file',
    '    keys:',
    '    tls: { ca: ./nowhere.pem }\n    keys:',
    'gateway.yaml:15: providers.acme.tls.ca: the file cannot be read (ENOENT)',
  ],
  [
    'a certificate that is none',
    '    keys:',
    '    tls: { ca: "-----BEGIN CERTIFICATE-----" }\n    keys:',
    'gateway.yaml:15: providers.acme.tls.ca: is no certificate in PEM',
  ],
  [
    'a client certificate without its key',
    '    keys:',
    '    tls: { cert: "-----BEGIN CERTIFICATE-----" }\n    keys:',
    'gateway.yaml:15: providers.acme.tls.key: is missing: a certificate needs its key',
  ],
  [
    'a misspelt preset',
    '    keys:',
    '    preset: grok\n    keys:',
    'gateway.yaml:15: providers.acme.preset: there is no preset "grok"; did you mean "groq"?',
  ],
  [
    'a protocol that does not exist',
    'chat: https://api',
    'openai: https://api',
    'gateway.yaml:17: providers.acme.speaks.openai: there is no protocol "openai"; known are chat, responses, messages, gemini, completions',
  ],
  [
    'a scheme of credentials that does not exist',
    '    keys:',
    '    auth: { scheme: signature }\n    keys:',
    'gateway.yaml:15: providers.acme.auth.scheme: there is no scheme "signature"; known are header, query',
  ],
  [
    'a misspelt scheme, for one protocol',
    '    keys:',
    '    auth: { chat: { scheme: qeury, name: key } }\n    keys:',
    'gateway.yaml:15: providers.acme.auth.chat.scheme: there is no scheme "qeury"; did you mean "query"?',
  ],
  [
    'a misspelt setting of a scheme',
    '    keys:',
    '    auth: { scheme: query, nmae: key }\n    keys:',
    'gateway.yaml:15: providers.acme.auth.nmae: there is no such setting; did you mean "name"?',
  ],
  [
    'a header without a place for the key',
    '    keys:',
    '    auth: { header: x-key, value: key }\n    keys:',
    'gateway.yaml:15: providers.acme.auth.value: must contain {key}',
  ],
  [
    'no keys for a scheme that needs one',
    '    keys: "${ACME_KEY}"',
    '    auth: { scheme: query, name: key }',
    'gateway.yaml:14: providers.acme.keys: is missing: the scheme "query" needs a key',
  ],
  [
    'a protocol of a plugin that is not in the list',
    'chat: https://api.acme.example/v1',
    'ollama: https://api.acme.example',
    'gateway.yaml:17: providers.acme.speaks.ollama: "ollama" comes with the plugin "ollama": add it to the list',
  ],
  [
    'one of several protocols of a plugin that is not in the list',
    'chat: https://api.acme.example/v1',
    'vertex-claude: https://api.acme.example',
    'gateway.yaml:17: providers.acme.speaks.vertex-claude: "vertex-claude" comes with the plugin "vertex": add it to the list',
  ],
  [
    'a misspelt protocol',
    'chat: https://api.acme',
    'chats: https://api.acme',
    'gateway.yaml:17: providers.acme.speaks.chats: there is no protocol "chats"; did you mean "chat"?',
  ],
  [
    'a misspelt provider of a target',
    'targets: [acme/acme-fast]',
    'targets: [amce/acme-fast, acme]',
    'warning: gateway.yaml:23: there is no provider "amce", which fast has as a target; did you mean "acme"?',
  ],
  [
    'a target in a protocol that its provider does not speak',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, speaks: responses }]',
    'gateway.yaml:23: models.fast.targets.0.speaks: the provider "acme" does not speak "responses"; it speaks chat, messages',
  ],
  [
    'a target in a protocol that does not exist, beside one that its provider speaks',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, speaks: [chat, openai] }]',
    'gateway.yaml:23: models.fast.targets.0.speaks: there is no protocol "openai"; known are chat, responses, messages, gemini, completions',
  ],
  [
    'a target in a misspelt protocol',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, speaks: message }]',
    'gateway.yaml:23: models.fast.targets.0.speaks: there is no protocol "message"; did you mean "messages"?',
  ],
  [
    'a target in a protocol of a plugin that is not in the list',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, speaks: bedrock }]',
    'gateway.yaml:23: models.fast.targets.0.speaks: "bedrock" comes with the plugin "bedrock": add it to the list',
  ],
  [
    'a target in no protocol',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, speaks: [] }]',
    'gateway.yaml:23: models.fast.targets.0.speaks: must have at least one entry',
  ],
  [
    'an unknown provider of two models, their only target',
    'targets: [acme/acme-fast]',
    'targets: [elsewhere/acme-fast]',
    'warning: gateway.yaml:21: models without any usable target are left out: fast',
    'warning: gateway.yaml:23: there is no provider "elsewhere", which fast has as a target',
  ],
  [
    'a misspelt model of a plan',
    'models: [fast]',
    'models: [fats]',
    'warning: there is no model "fats", which the plan "pro" allows; did you mean "fast"?',
  ],
  [
    'a base URL that ends in the path of an endpoint',
    'https://api.acme.example/v1\n',
    'https://api.acme.example/v1/chat/completions\n',
    'gateway.yaml:17: providers.acme.speaks.chat: ends in "/chat/completions", which the gateway adds by itself: write https://api.acme.example/v1',
  ],
  [
    'the same for messages',
    'messages: https://api.acme.example',
    'messages: https://api.acme.example/v1/messages',
    'gateway.yaml:18: providers.acme.speaks.messages: ends in "/v1/messages", which the gateway adds by itself: write https://api.acme.example',
  ],
  [
    'a base URL as a page of documentation has it',
    'chat: https://api.acme.example/v1',
    'chat: https://RESOURCE.acme.example/v1',
    'gateway.yaml:17: providers.acme.speaks.chat: still has "RESOURCE" in https://RESOURCE.acme.example/v1: write your own there',
  ],
  [
    'a base URL with the version that the protocol adds',
    'messages: https://api.acme.example',
    'messages: https://api.acme.example/v1',
    'warning: gateway.yaml:18: providers.acme.speaks.messages: calls go to https://api.acme.example/v1/v1/messages; if "/v1" stands there once too often, write https://api.acme.example',
  ],
  [
    'a base URL without https',
    'chat: https://api',
    'chat: api',
    'gateway.yaml:17: providers.acme.speaks.chat: must be an http(s) URL, or NAME:/path for a vendor inside this process',
  ],
  [
    'a key in a base URL',
    'chat: https://api',
    'chat: https://me:secret@api',
    'gateway.yaml:17: providers.acme.speaks.chat: must not contain credentials; write them under keys',
  ],
  [
    'a base URL with a fragment',
    'api.acme.example/v1\n',
    'api.acme.example/v1#x\n',
    'gateway.yaml:17: providers.acme.speaks.chat: must not have a fragment',
  ],
  [
    'a limit that does not exist',
    '{ rpm: 60 }',
    '{ requests: 60 }',
    'gateway.yaml:9: plans.offers.free.limits.requests: there is no such setting; known are rpm, rpd, tpm, concurrency',
  ],
  [
    'a word instead of a number',
    '{ rpm: 60 }',
    '{ rpm: sixty }',
    'gateway.yaml:9: plans.offers.free.limits.rpm: must be a whole number such as 600, 40k or 2M',
  ],
  [
    'a duration in words',
    'connect: 5s',
    'connect: 5 seconds',
    'gateway.yaml:19: providers.acme.timeouts.connect: must be a duration such as 500ms, 30s, 10m, 5h or 30d',
  ],
  [
    'a duration without a unit',
    'connect: 5s',
    'connect: 5',
    'gateway.yaml:19: providers.acme.timeouts.connect: must be a duration such as 500ms, 30s, 10m, 5h or 30d',
  ],
  [
    'a model without targets',
    '    targets: [acme/acme-fast]\n',
    '',
    'gateway.yaml:21: models.fast.targets: is missing',
  ],
  [
    'a misspelt setting of a model that it needs',
    'targets: [acme/acme-fast]',
    'target: acme/acme-fast',
    'gateway.yaml:23: models.fast.target: there is no such setting; did you mean "targets"?',
  ],
  [
    'text instead of a list',
    'targets: [acme/acme-fast]',
    'targets: acme/acme-fast',
    'gateway.yaml:23: models.fast.targets: must be a list such as [one, two], not text',
  ],
  [
    'a target without the name of the model',
    'acme/acme-fast',
    'acme/',
    'gateway.yaml:23: models.fast.targets.0: must be a provider, or provider/upstream-model',
  ],
  [
    'a price that is a number',
    '{ input: 1, output: 2 }',
    '5',
    'gateway.yaml:24: models.fast.price: must be "free" or a mapping (name: value) or a list such as [one, two]',
  ],
  [
    'a misspelt class of a price',
    '{ input: 1, output: 2 }',
    '{ inputs: 1, output: 2 }',
    'gateway.yaml:24: models.fast.price.inputs: there is no such setting; did you mean "input"?',
  ],
  [
    'a price without the output',
    '{ input: 1, output: 2 }',
    '{ input: 1 }',
    'gateway.yaml:24: models.fast.price: the price of a model of the kind "chat" must name output; write 0 where nothing is owed',
  ],
  [
    'a model without a price',
    '    price: { input: 1, output: 2 }\n',
    '',
    'warning: gateway.yaml:21: models without a price are not sold: fast',
  ],
  [
    'an amount with a currency sign',
    'amount: 20',
    'amount: $20',
    'gateway.yaml:10: plans.offers.pro.grant.amount: "$20" is not an amount of USD with at most nine decimals',
  ],
  [
    'a comma in a number',
    'owned_by: acme\n',
    'owned_by: acme\n    multiplier: "1,5"\n',
    'gateway.yaml:23: models.fast.multiplier: "1,5" is not a positive ratio with at most six decimals',
  ],
  [
    'an alias that is a model',
    'owned_by: acme\n',
    'owned_by: acme\n    aliases: [slow]\n',
    'gateway.yaml:23: models.fast.aliases: "slow" is a model or an alias already',
  ],
  [
    'a misspelt default plan',
    'default: free',
    'default: fre',
    'gateway.yaml:7: plans.default: names the plan "fre", which is not among the offers; did you mean "free"?',
  ],
  [
    'windows of a plan without a grant',
    'free: { price: 0,',
    'free: { price: 0, windows: { 5h: 1 },',
    'gateway.yaml:9: plans.offers.free.windows: bounds the spending of a grant, and this plan has none: add "grant" or remove "windows"',
  ],
  [
    'a period that does not exist',
    'every: month',
    'every: months',
    'gateway.yaml:10: plans.offers.pro.grant.every: must be "day", "week" or "month"; did you mean "month"?',
  ],
  [
    'a key with the scheme of its header',
    '"${ACME_KEY}"',
    '"Bearer sk-1"',
    'gateway.yaml:15: providers.acme.keys: a key is printable ASCII without spaces, and without "Bearer" before it',
  ],
  [
    'a provider without a key',
    '"${ACME_KEY}"',
    '"${OTHER_KEY:-}"',
    'warning: gateway.yaml:15: provider "acme" has no key and is left out',
    'warning: gateway.yaml:21: models without any usable target are left out: fast, slow',
  ],
  [
    'a header of a key without the key',
    '    keys:',
    '    auth: { header: x-key, value: abc }\n    keys:',
    'gateway.yaml:15: providers.acme.auth.value: must contain {key}',
  ],
  [
    'an endpoint without a key that does not exist',
    'storage:\n',
    'auth: { public: [GET /v1/modles] }\nstorage:\n',
    'warning: gateway.yaml:4: auth.public names "GET /v1/modles", which is no endpoint of this gateway; did you mean "GET /v1/models"?',
  ],
  [
    'a limited endpoint that does not exist',
    '[chat, messages]',
    '[chats, messages]',
    'warning: gateway.yaml:12: rate-limit.endpoints names "chats", which is no endpoint of this gateway; did you mean "chat"?',
  ],
  [
    'a section without its content',
    '    speaks:\n      chat: https://api.acme.example/v1\n      messages: https://api.acme.example\n',
    '    speaks:\n',
    'gateway.yaml:16: providers.acme.speaks: has no value; it must be a mapping (name: value)',
  ],
  [
    'a dialect of an unknown protocol',
    '    keys:',
    '    dialect: { openai: { inputs: [] } }\n    keys:',
    'gateway.yaml:15: providers.acme.dialect.openai: there is no protocol "openai"; known are chat, responses, messages, gemini, completions',
  ],
  [
    'a dialect of a protocol that is not spoken',
    '    keys:',
    '    dialect: { responses: { inputs: [] } }\n    keys:',
    'warning: gateway.yaml:15: providers.acme.dialect.responses has no effect: "responses" is not under speaks',
  ],
  [
    'a misspelt trait',
    '    keys:',
    '    dialect: { chat: { reasoning_replays: true } }\n    keys:',
    'gateway.yaml:15: providers.acme.dialect.chat.reasoning_replays: there is no such setting; did you mean "reasoning_replay"?',
  ],
  [
    'a kind that does not exist',
    'owned_by: acme\n',
    'owned_by: acme\n    kind: images\n',
    'gateway.yaml:23: models.fast.kind: must be "chat", "image", "video", "embedding", "rerank", "decision", "speech", "transcription", "moderation" or "realtime"; did you mean "image"?',
  ],
  [
    'a negative weight',
    'targets: [acme/acme-fast]',
    'targets: [{ provider: acme, weight: -1 }]',
    'gateway.yaml:23: models.fast.targets.0.weight: must be at least 0',
  ],
  [
    'a name with spaces',
    '  acme:\n',
    '  acme corp:\n',
    'gateway.yaml:14: providers.acme corp: a provider name is letters, digits, dots, dashes and underscores',
  ],
  [
    'a number instead of text',
    'owned_by: acme\n',
    'owned_by: 5\n',
    'gateway.yaml:22: models.fast.owned_by: must be text: quote it, as in "5"',
  ],
  [
    'the word yes for true',
    'owned_by: acme\n',
    'owned_by: acme\n    below_cost: yes\n',
    'gateway.yaml:23: models.fast.below_cost: must be true or false, not text',
  ],
]);
