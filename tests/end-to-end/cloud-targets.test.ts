/** config/main.yaml with the keys of a vendor and of a cloud or host: it takes over, for the model's price; without its key nothing is different. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { providers } from '../../plugins/common/domain/upstreams.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type DialectName, dialects } from './dialects.ts';
import { type Customer, faces, yamlOf } from './testbed.ts';

interface Counts {
  readonly input: number;
  readonly cache_read: number;
  readonly output: number;
}

/** USD per million tokens. */
type Prices = { readonly [Name in keyof Counts]: number };
type Version = Prices & { readonly valid_from?: string; readonly valid_until?: string; readonly hours?: object };
type Later = { readonly provider: string; readonly cost: Prices };
const { models } = parse(readFileSync('config/models.yaml', 'utf8')) as {
  models: Record<string, { targets: (string | Later)[]; price: Version | Version[] }>;
};

let counts: Counts = { input: 1_000, cache_read: 5_000, output: 200 };
const seen: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
const server = createServer(async (incoming, outgoing) => {
  const path = incoming.url!;
  seen.push({ path, headers: incoming.headers, body: (await buffer(incoming)).toString() });
  const isFirst = path.startsWith('/first');
  const refusal = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } });
  outgoing.writeHead(isFirst ? 503 : 200, { 'content-type': 'application/json' });
  outgoing.end(isFirst ? refusal : answerOf(path));
});

function answerOf(path: string): string {
  const { input, cache_read: read, output } = counts;
  if (path === '/token') return JSON.stringify({ access_token: 'token-of-the-cloud', expires_in: 3_600 });
  if (path.startsWith('/bedrock')) {
    const usage = { inputTokens: input, cacheReadInputTokens: read, outputTokens: output };
    const message = { role: 'assistant', content: [{ text: 'From the cloud' }] };
    return JSON.stringify({ output: { message }, stopReason: 'end_turn', usage });
  }
  if (path.includes('rawPredict')) {
    const usage = { input_tokens: input, cache_read_input_tokens: read, output_tokens: output };
    const content = [{ type: 'text', text: 'From the cloud' }];
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
    return JSON.stringify({ ...head, content, stop_reason: 'end_turn', stop_sequence: null, usage });
  }
  const usage = {
    ...{ prompt_tokens: input + read, completion_tokens: output, total_tokens: input + read + output },
    prompt_tokens_details: { cached_tokens: read },
  };
  const choices = [{ index: 0, message: { role: 'assistant', content: 'From the cloud' }, finish_reason: 'stop' }];
  return JSON.stringify({ id: 'c-1', object: 'chat.completion', created: 1, model: 'm', choices, usage });
}

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
let origin = '';
const first = {
  ...{ ANTHROPIC_API_KEY: 'sk-anthropic', OPENAI_API_KEY: 'sk-openai', DEEPSEEK_API_KEY: 'sk-deepseek' },
  ...{ ZHIPU_API_KEY: 'sk-zhipu', DASHSCOPE_API_KEY: 'sk-qwen', MOONSHOT_API_KEY: 'sk-moonshot' },
  MINIMAX_API_KEY: 'sk-minimax',
};
const makers = ['deepseek', 'zhipu', 'qwen', 'moonshot', 'minimax'];
const clouds: Record<string, () => Record<string, string>> = {
  bedrock: () => ({ AWS_BEARER_TOKEN_BEDROCK: 'key-of-the-cloud' }),
  deepinfra: () => ({ DEEPINFRA_API_KEY: 'key-of-the-cloud' }),
  novita: () => ({ NOVITA_API_KEY: 'key-of-the-cloud' }),
  azure: () => ({ AZURE_OPENAI_API_KEY: 'key-of-the-cloud', AZURE_OPENAI_ENDPOINT: `${origin}/azure` }),
  vertex: () => ({
    VERTEX_PROJECT: 'our-project',
    VERTEX_CREDENTIALS: JSON.stringify({
      ...{ type: 'service_account', client_email: 'us@our-project.example' },
      ...{ private_key: privateKey, token_uri: `${origin}/token` },
    }),
  }),
};

before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

/** The shipped gateway; the vendors' addresses lead here. */
function boot(keys: Record<string, string>): Promise<TestGateway> {
  const project = 'projects/our-project/locations/global';
  const yaml = yamlOf({
    gateway: 'clouds',
    plans: { default: 'open', offers: { open: { price: 0 } } },
    providers: {
      anthropic: { speaks: { messages: `${origin}/first` } },
      openai: { speaks: { responses: `${origin}/first/v1`, chat: `${origin}/first/v1` } },
      bedrock: { speaks: { bedrock: `${origin}/bedrock` } },
      vertex: {
        speaks: {
          'vertex-claude': `${origin}/vertex/v1/${project}`,
          chat: `${origin}/vertex/v1/${project}/endpoints/openapi`,
        },
      },
      deepinfra: { speaks: { chat: `${origin}/deepinfra/v1` } },
      novita: { speaks: { chat: `${origin}/novita/v1` } },
      ...Object.fromEntries(
        makers.map((name) => [name, { speaks: { chat: `${origin}/first/v1`, messages: `${origin}/first` } }]),
      ),
    },
    route: { breaker: { failures: 32 } },
  });
  return startGateway(yaml, { environment: { ...first, ...keys } });
}

function due(model: string): bigint {
  const price = priceNow(models[model]!.price);
  return sumOf(price) * (price.hours !== undefined && isPeak(new Date()) ? 2n : 1n);
}

/** Cached input without a price of its own costs what input does. */
function sumOf(price: Prices): bigint {
  const nanoUsd = (name: keyof Counts) => BigInt(Math.round((price[name] ?? price.input) * 1_000));
  return (Object.keys(counts) as (keyof Counts)[]).reduce(
    (sum, name) => sum + BigInt(counts[name]) * nanoUsd(name),
    0n,
  );
}

/** DeepSeek's hours, in UTC. */
function isPeak(at: Date): boolean {
  const [day, hour] = [at.getUTCDay(), at.getUTCHours()];
  return day >= 1 && day <= 5 && ((hour >= 1 && hour < 4) || (hour >= 6 && hour < 10));
}

/** The last of the versions that hold today. */
function priceNow(price: Version | Version[]): Version {
  if (!Array.isArray(price)) return price;
  const today = new Date().toISOString().slice(0, 10);
  return price.findLast(({ valid_from: from = '', valid_until: until = '9' }) => from <= today && today < until)!;
}

/** 48-bit linear congruences: the same numbers in each run. */
function* numbers(seed: bigint): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (state * 25_214_903_917n + 11n) & ((1n << 48n) - 1n);
    yield Number(state >> 28n);
  }
}

const targetAt = (model: string, cloud: string) =>
  models[model]!.targets.find((target): target is Later => typeof target === 'object' && target.provider === cloud);

for (const [cloud, keys] of Object.entries(clouds)) {
  test(`${cloud} serves each model of the overloaded vendor, and the bill is exact`, async () => {
    const gateway = await boot(keys());
    try {
      const testbed = faces(gateway);
      const random = numbers(BigInt(cloud.length));
      const sold = Object.keys(models).filter((model) => targetAt(model, cloud) !== undefined);
      assert.ok(sold.length >= 5, sold.join());
      const client: DialectName = cloud === 'bedrock' || cloud === 'vertex' ? 'messages' : 'chat';
      const records: [string, Customer, bigint, bigint][] = [];
      for (const model of sold) {
        for (let round = 0; round < 2; round += 1) {
          // As much as a call of this size can have consumed.
          const [input, read, output] = [4_000, 4_000, 300].map((most) => random.next().value % most);
          counts = { input: input!, cache_read: read!, output: output! };
          const customer = await testbed.customer();
          seen.length = 0;
          const body = { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };
          const answer = await fetch(
            `${gateway.origin}${client === 'chat' ? '/v1/chat/completions' : '/v1/messages'}`,
            {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...dialects[client].key(customer.key) },
              body: JSON.stringify(body),
            },
          );
          const text = await answer.text();
          assert.equal(answer.status, 200, `${model}: ${text}`);
          assert.match(text, /From the cloud/);
          const called = seen.filter(({ path }) => path !== '/token').map(({ path }) => path.split('/')[1]);
          assert.deepEqual(called, ['first', cloud]);
          records.push([model, customer, due(model), sumOf(targetAt(model, cloud)!.cost)]);
        }
      }
      const last = seen.at(-1)!;
      assert.equal(
        last.headers[cloud === 'azure' ? 'api-key' : 'authorization'],
        {
          ...{ azure: 'key-of-the-cloud', vertex: 'Bearer token-of-the-cloud' },
        }[cloud] ?? 'Bearer key-of-the-cloud',
      );
      for (const [model, customer, cost, ownCost] of records) {
        const { ends, attempts, charges } = await testbed.records(customer);
        assert.deepEqual(ends, ['charged answered']);
        assert.deepEqual(
          attempts.map(({ number, provider, result }) => `${number} ${provider} ${result}`),
          [`1 ${String(models[model]!.targets[0]).split('/')[0]} refused`, `2 ${cloud} answered`],
        );
        assert.deepEqual([charges[0]!.provider, charges[0]!.cost], [cloud, cost], model);
        assert.equal(charges[0]!.own_cost, ownCost, model);
      }
      await testbed.audit();
    } finally {
      await gateway.stop();
    }
  });
}

test("a cloud without a key is neither used nor named, and the vendor's refusal is the answer", async () => {
  const gateway = await boot({});
  try {
    const testbed = faces(gateway);
    const notices = gateway.gateway.notices().map(({ text }) => text);
    assert.doesNotMatch(notices.join('\n'), /azure|vertex|bedrock|deepinfra|novita/);
    const used = gateway.gateway.find(providers)!.list();
    assert.deepEqual(used.map(({ name }) => name).sort(), ['anthropic', 'openai', ...makers].sort());
    const customer = await testbed.customer();
    seen.length = 0;
    const answer = await fetch(`${gateway.origin}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...dialects.messages.key(customer.key) },
      body: JSON.stringify({
        ...{ model: 'claude-sonnet-4-6', max_tokens: 10 },
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    });
    assert.ok(answer.status >= 500, String(answer.status));
    assert.deepEqual([...new Set(seen.map(({ path }) => path.split('/')[1]))], ['first']);
  } finally {
    await gateway.stop();
  }
});
