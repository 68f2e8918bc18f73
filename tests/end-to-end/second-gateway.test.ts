/** Both gateways of the demo in one process on one database: nothing of one is known to the other, and the second's price and errors. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { catalog } from '../../plugins/common/domain/models.ts';
import { cost, one, parseRatio } from '../../plugins/common/domain/money.ts';
import { priceFor } from '../../plugins/common/domain/prices.ts';
import { localUpstreams } from '../../plugins/common/domain/upstreams.ts';
import type { BillReport } from '../../plugins/sandbox/bill.ts';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { talk } from './sockets.ts';
import { type Customer, dropSchema, faces, until } from './testbed.ts';

type CommandGateway = ReturnType<typeof faces>;

const schemas = { main: ownSchema('main'), alt: ownSchema('alt') };
let directory: string;
let running: TestGateway[];
let main: CommandGateway;
let alt: CommandGateway;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'second-'));
  const database = databaseUrl === undefined ? '' : `storage: { database: "${databaseUrl}" }\n`;
  const start = (file: string, schema: string, more = '') =>
    startGateway(`include: config/${file}\nschema: ${schema}\n${database}${more}`, { directory });
  // A model for each protocol whose vendor speaks it, so that nothing is translated.
  const native = (provider: string) =>
    `{ owned_by: test, targets: [${provider}], price: { input: 1, output: 2 }, context: 100k }`;
  const limited = dialectNames.map((name) => `limited-${name}: ${native('openai')}`).join(', ');
  const models = `models: { of-messages: ${native('anthropic')}, of-gemini: ${native('google')}, of-chat: ${native('openai')}, ${limited} }\n`;
  running = [
    await start('demo.yaml', schemas.main),
    await start(
      'demo-alt.yaml',
      schemas.alt,
      `${models}plans: { offers: { tight: { price: 0, multiplier: 2, limits: { rpm: 1 } } } }\nroute: { cooldown: { rate_limited: 1s } }\nauth: { failures: { per_minute: 10k } }\n`,
    ),
  ];
  [main, alt] = running.map(faces) as [CommandGateway, CommandGateway];
});

after(async () => {
  await Promise.all(running.map((gateway) => gateway.stop()));
  await rm(directory, { recursive: true, force: true });
  for (const schema of Object.values(schemas)) await dropSchema(schema);
});

const prompt = (content: string) => ({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content }] });
const post = (
  gateway: CommandGateway,
  path: string,
  key: string | undefined,
  body: unknown,
  headers: Record<string, string> = {},
) =>
  fetch(gateway.origin + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
  });

async function shape(answer: Response): Promise<[status: number, code: unknown]> {
  const body = (await answer.json()) as { code: unknown; message: unknown };
  assert.deepEqual(Object.keys(body), ['code', 'message']);
  assert.ok(typeof body.message === 'string' && body.message !== '');
  return [answer.status, body.code];
}

test('a key of one gateway is unknown to the other, in any carrier', async () => {
  const [ours, theirs] = [await alt.customer({ plan: 'payg' }), await main.customer({ plan: 'free' })];
  const carriers = (key: string) => [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }];
  for (const headers of carriers(theirs.key)) {
    assert.deepEqual(await shape(await post(alt, '/v1/chat/completions', undefined, prompt('Hi'), headers)), [
      401,
      'INVALID_API_KEY',
    ]);
    assert.equal((await post(main, '/v1/chat/completions', undefined, prompt('Hi'), headers)).status, 200);
  }
  for (const headers of carriers(ours.key)) {
    assert.equal((await post(main, '/v1/chat/completions', undefined, prompt('Hi'), headers)).status, 401);
    assert.equal((await post(alt, '/v1/chat/completions', undefined, prompt('Hi'), headers)).status, 200);
  }
  await alt.records(ours, 2);
  await main.records(theirs, 2);
});

test('every endpoint, also the model list, needs a key in the header of any family and nowhere else', async () => {
  const { key } = await alt.customer({ plan: 'payg' });
  for (const { method, path, keyless } of running[1]!.gateway.endpoints) {
    if (keyless === true) continue;
    // Some parameters are found by their form: `:file_id(^file-[0-9a-z]+$)`. Two colons are a colon in the address.
    const form = /::|:\w+\(\^([\w-]*)(?:\[|\.).*?\)|:\w+/g;
    const named = path.replace(form, (part, prefix = '') => (part === '::' ? ':' : `${prefix}x`));
    const url = alt.origin + named.replace('*', 'x');
    assert.deepEqual(await shape(await fetch(url, { method })), [401, 'INVALID_API_KEY'], `${method} ${path}`);
  }
  const list = (headers: Record<string, string>, query = '') => fetch(`${alt.origin}/v1/models${query}`, { headers });
  assert.equal((await list({ authorization: `Bearer ${key}` })).status, 200);
  assert.equal((await list({ 'x-api-key': key })).status, 200);
  assert.equal((await list({ 'x-goog-api-key': key })).status, 200);
  assert.equal((await list({}, `?key=${key}`)).status, 401);
  assert.equal((await fetch(`${main.origin}/v1/models`)).status, 200);
});

test('the second gateway sells no videos and lists none', async () => {
  const { key } = await alt.customer({ plan: 'payg' });
  const listed = async (gateway: CommandGateway) => {
    const answer = await fetch(`${gateway.origin}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
  };
  const ours = await listed(alt);
  assert.ok(ours.includes('gpt-image-2') && !ours.includes('grok-imagine-video'));
  assert.ok((await listed(main)).includes('grok-imagine-video'));
});

test("errors outside of endpoints have the gateway's shape too", async () => {
  assert.deepEqual(await shape(await fetch(`${alt.origin}/v1/nothing`)), [404, 'NOT_FOUND']);
  assert.deepEqual(await shape(await fetch(`${alt.origin}/v1/messages`)), [405, 'METHOD_NOT_ALLOWED']);
});

const cases: readonly [content: string, status: number, code: string][] = [
  ['[[sandbox: status=400]]', 400, 'INVALID_REQUEST'],
  ['[[sandbox: status=429 retry_after=3]]', 429, 'RATE_LIMITED'],
  ['[[sandbox: status=500]]', 502, 'UPSTREAM_ERROR'],
  ['[[sandbox: html]]', 502, 'UPSTREAM_ERROR'],
];
for (const dialect of dialectNames) {
  test(`before an answer every failure has its status and code (${dialect})`, async () => {
    const customer = await alt.customer({ plan: 'payg' });
    const send = async (who: Customer, question: { prompt: string; model?: string }) => {
      const { path, body } = dialects[dialect];
      const whole = { model: 'of-chat', ...question };
      return post(alt, path(whole), who.key, body(whole));
    };
    for (const [content, status, code] of cases) {
      // A model of its own is limited: its key cools down for the vendor's three seconds.
      const answer = await send(customer, {
        prompt: content,
        ...(status === 429 ? { model: `limited-${dialect}` } : {}),
      });
      if (status === 429) assert.equal(answer.headers.get('retry-after'), '3');
      assert.deepEqual(await shape(answer), [status, code], content);
    }
    const broke = await alt.customer({ plan: 'payg', nanoUsd: 0n });
    assert.deepEqual(await shape(await send(broke, { prompt: 'Hi' })), [402, 'INSUFFICIENT_BALANCE']);
    assert.deepEqual(await shape(await send(customer, { prompt: 'Hi', model: 'none' })), [404, 'MODEL_NOT_FOUND']);
    const tight = await alt.customer({ plan: 'tight' });
    assert.equal((await send(tight, { prompt: 'Hi' })).status, 200);
    const limited = await send(tight, { prompt: 'Hi' });
    assert.ok(Number(limited.headers.get('retry-after')) > 0);
    assert.deepEqual(await shape(limited), [429, 'RATE_LIMITED']);
  });
}

/** JSON of every frame or line. */
function frames(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .map((line) => line.replace(/^data: /, ''))
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const own: Record<DialectName, string> = {
  chat: 'of-chat',
  responses: 'of-chat',
  messages: 'of-messages',
  gemini: 'of-gemini',
};
const foreign: Record<DialectName, string> = {
  chat: 'of-messages',
  responses: 'of-gemini',
  messages: 'of-chat',
  gemini: 'of-chat',
};
for (const dialect of dialectNames) {
  for (const [way, models] of [
    ['relayed', own],
    ['translated', foreign],
  ] as const) {
    test(`a running stream that breaks ends with one error in the gateway's shape (${dialect}, ${way})`, async () => {
      const customer = await alt.customer({ plan: 'payg' });
      const orders = ['mid_error=500', 'mid_error=529', 'cut_after=3', 'no_terminal'];
      for (const order of orders) {
        const question = {
          model: models[dialect],
          prompt: `Go on [[sandbox: tokens=40 chunks=8 ${order}]]`,
          stream: true,
        };
        const answer = await post(
          alt,
          dialects[dialect].path(question),
          customer.key,
          dialects[dialect].body(question),
        );
        assert.equal(answer.status, 200);
        const text = await answer.text();
        assert.doesNotMatch(text, dialects[dialect].terminal, order);
        const reported = frames(text).filter((frame) => frame['code'] !== undefined && frame['message'] !== undefined);
        const last = frames(text).at(-1)!;
        assert.deepEqual([last['code'], typeof last['message']], ['UPSTREAM_ERROR', 'string'], text);
        assert.equal(reported.length, dialect === 'responses' ? 2 : 1, text);
        assert.doesNotMatch(text, /sandbox was asked/i, 'the words of the vendor are not handed on');
        const first = reported[0]! as { error?: { code?: unknown; type?: unknown }; type?: unknown };
        if (dialect === 'chat') assert.equal(first.error!.code, 'UPSTREAM_ERROR');
        if (dialect === 'messages') assert.deepEqual([first.type, first.error!.code], ['error', 'UPSTREAM_ERROR']);
        if (dialect === 'gemini') assert.ok(Number(first.error!.code) >= 500);
        if (dialect === 'responses') assert.equal(first.type, 'error');
      }
      await alt.records(customer, orders.length);
    });
  }
}

test("a stream of JSON lines that breaks ends with one error in the gateway's shape", async () => {
  const { key } = await alt.customer({ plan: 'payg' });
  for (const model of ['of-gemini', 'of-chat']) {
    const body = { contents: [{ role: 'user', parts: [{ text: 'Go on [[sandbox: chunks=6 mid_error]]' }] }] };
    const answer = await post(alt, `/v1beta/models/${model}:streamGenerateContent`, key, body);
    const lines = (await answer.text()).trim().split('\n');
    const last = JSON.parse(lines.at(-1)!) as Record<string, unknown>;
    assert.equal(last['code'], 'UPSTREAM_ERROR');
    assert.ok(lines.length > 1);
  }
});

test('a stream whose balance runs out ends with INSUFFICIENT_BALANCE', async () => {
  const customer = await alt.customer({ plan: 'payg', nanoUsd: 25_000_000n });
  const question = { model: 'of-chat', prompt: 'Go on [[sandbox: tokens=60000]]', stream: true };
  const answer = await post(alt, '/v1/chat/completions', customer.key, dialects.chat.body(question));
  const last = frames(await answer.text()).at(-1)!;
  assert.equal(last['code'], 'INSUFFICIENT_BALANCE');
  assert.equal((last['error'] as { code: unknown }).code, 'INSUFFICIENT_BALANCE');
  await alt.records(customer, 1);
});

test("a call costs exactly twice its price at the main gateway, or the plan's multiple", async () => {
  const paid = async (gateway: CommandGateway, plan: string) => {
    const customer = await gateway.customer({ plan });
    const answer = await post(
      gateway,
      '/v1/chat/completions',
      customer.key,
      prompt(`${plan.length} words and some more`),
    );
    assert.equal(answer.status, 200);
    await answer.arrayBuffer();
    const { charges, ledger } = await gateway.records(customer, 1);
    const [row] = charges;
    assert.equal((await gateway.balance(customer)) + row!.cost, 100_000_000_000n);
    assert.equal(
      ledger.reduce((sum, { amount }) => sum + amount, 0n),
      await gateway.balance(customer),
    );
    const { prices } = running[1]!.gateway.find(catalog)!.find('gpt-5.4-mini')!;
    const { price } = priceFor(prices!, Date.now(), row!.classes)!;
    return { cost: row!.cost, official: (ratio = one) => cost(row!.classes, price, ratio) };
  };
  const official = await paid(main, 'free');
  const twice = await paid(alt, 'payg');
  assert.equal(official.cost, official.official());
  assert.equal(twice.cost, 2n * official.cost);
  const saver = await paid(alt, 'saver');
  assert.equal(saver.cost, saver.official(parseRatio('1.6')));
});

// ---------------------------------------------------------------------------------------------------------------- images

const picture = (content: string, more: object = {}) => ({
  model: 'gpt-image-2',
  prompt: content,
  size: '1024x1024',
  quality: 'low',
  ...more,
});
/** By the catalogue, twice over. */
const perImage = () => {
  const { prices } = running[1]!.gateway.find(catalog)!.find('gpt-image-2')!;
  return 2n * priceFor(prices!, Date.now(), {}, { media: ['1024x1024', 'low'] })!.price.image!;
};

async function bill(): Promise<BillReport> {
  const origin = running[1]!.gateway.find(localUpstreams)!.origin('sandbox')!;
  return (await (await fetch(`${origin}/bill`)).json()) as BillReport;
}

test('images are charged by the generated number, and a failure costs nothing', async () => {
  const customer = await alt.customer({ plan: 'payg' });
  const good = await post(alt, '/v1/images/generations', customer.key, picture('A cat', { n: 4 }));
  assert.equal(good.status, 200);
  assert.equal(((await good.json()) as { data: unknown[] }).data.length, 4);
  const bad = await post(alt, '/v1/images/generations', customer.key, picture('[[sandbox: status=500]]'));
  assert.deepEqual(await shape(bad), [502, 'UPSTREAM_ERROR']);
  const { ends, charges } = await alt.records(customer, 2);
  assert.deepEqual(ends, ['charged answered', 'free unknown']);
  assert.equal(charges[0]!.cost, 4n * perImage());
  assert.equal(await alt.balance(customer), 100_000_000_000n - 4n * perImage());
});

test("a vendor's refusal of an image names the field, where the shape or the protocol has a place for it", async () => {
  const bad = picture('A cat', { quality: 'bogus', response_format: 'b64_json' });
  const [ours, theirs] = [await alt.customer({ plan: 'payg' }), await main.customer({ plan: 'free' })];
  const shaped = (await (await post(alt, '/v1/images/generations', ours.key, bad)).json()) as { message: string };
  assert.match(shaped.message, /bogus.* Field: "quality"\.$/);
  const official = await post(main, '/v1/images/generations', theirs.key, bad);
  const { error } = (await official.json()) as { error: { param: unknown } };
  assert.deepEqual([official.status, error.param], [400, 'quality']);
});

test('a client that waits for an image of a busy vendor gets retry-after, as with any other call', async () => {
  const customer = await alt.customer({ plan: 'payg' });
  // Two vendors that no other test calls: their keys are in cooldown afterwards.
  for (const [model, status, code] of [
    ['grok-imagine-image', 429, 'RATE_LIMITED'],
    ['doubao-seedream-4-5-251128', 503, 'UPSTREAM_ERROR'],
  ] as const) {
    const prompt = `[[sandbox: status=${status} retry_after=7]]`;
    const answer = await post(alt, '/v1/images/generations', customer.key, { model, prompt });
    assert.equal(answer.headers.get('retry-after'), '7', model);
    assert.deepEqual(await shape(answer), [status, code]);
  }
});

test('images are finished after their client disconnects, and charged as the vendor bills them', async () => {
  const customer = await alt.customer({ plan: 'payg' });
  const before = await bill();
  const controller = new AbortController();
  const sent = fetch(`${alt.origin}/v1/images/generations`, {
    method: 'POST',
    body: JSON.stringify(picture('A slow cat [[sandbox: delay=600ms]]', { n: 2 })),
    headers: { authorization: `Bearer ${customer.key}` },
    signal: controller.signal,
  });
  await until('the vendor paints', async () => (await bill()).open > 0);
  controller.abort();
  await assert.rejects(sent, /abort/i);
  const { ends, charges } = await alt.records(customer, 1);
  assert.deepEqual(ends, ['charged answered']);
  const entry = (await bill()).recent.at(-1)!;
  assert.equal((await bill()).requests, before.requests + 1);
  assert.equal(entry.outcome, 'complete');
  assert.equal(charges[0]!.classes.image, 2);
  assert.equal(charges[0]!.classes.output_image, entry.usage.output_image);
  assert.deepEqual([charges[0]!.cost, charges[0]!.estimated, charges[0]!.terminal], [2n * perImage(), false, true]);
});

test('images that fail after their client disconnected cost nothing', async () => {
  const customer = await alt.customer({ plan: 'payg' });
  const controller = new AbortController();
  const sent = fetch(`${alt.origin}/v1/images/generations`, {
    method: 'POST',
    body: JSON.stringify(picture('[[sandbox: delay=400ms status=500]]')),
    headers: { authorization: `Bearer ${customer.key}` },
    signal: controller.signal,
  });
  await until('the vendor paints', async () => (await bill()).open > 0);
  controller.abort();
  await assert.rejects(sent, /abort/i);
  assert.deepEqual((await alt.records(customer, 1)).ends, ['free unknown']);
  assert.equal(await alt.balance(customer), 100_000_000_000n);
});

test('many concurrent images: no more are admitted than the balance covers', async () => {
  const customer = await alt.customer({ plan: 'payg', nanoUsd: 3n * perImage() + perImage() / 2n });
  const answers = await Promise.all(
    Array.from({ length: 12 }, () =>
      post(alt, '/v1/images/generations', customer.key, picture('A cat [[sandbox: delay=200ms]]')),
    ),
  );
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, 200, 200, ...Array.from({ length: 9 }, () => 402)]);
  await alt.records(customer, 3);
  assert.equal(await alt.balance(customer), perImage() / 2n);
});

test("an unknown address is a 404 in the client's form that lists the missing support", async () => {
  const call = async (gateway: CommandGateway, path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(gateway.origin + path, { method: 'POST', body: '{}', headers });
    assert.equal(answer.status, 404, path);
    // biome-ignore lint/suspicious/noExplicitAny: errors of three shapes are asserted on
    return (await answer.json()) as Record<string, any>;
  };
  const google = { 'x-goog-api-key': 'k' };
  const claude = { 'anthropic-version': '2023-06-01' };
  const names = ['containers', 'skills', 'evals', 'fine_tuning/jobs', 'prompts', 'containers/c_1/files'];
  for (const name of names) {
    const { error } = await call(main, `/v1/${name}`);
    assert.deepEqual([error.type, error.code], ['invalid_request_error', 'unknown_url']);
    assert.match(error.message, /not offered here/);
    assert.deepEqual(Object.keys(await call(alt, `/v1/${name}`)).sort(), ['code', 'message']);
    assert.match((await call(alt, `/v1/${name}`))['message'], /not offered here/);
  }
  assert.match((await call(alt, '/v1/vector_stores'))['message'], /not offered here/);
  for (const [path, headers, offered] of [
    ['/v1beta/cachedContents', {}, false],
    ['/v1beta/interactions', google, false],
    ['/v1beta/nothing', {}, true],
    ['/v1alpha/nothing/x', {}, true],
    ['/v1/nothing', google, true],
  ] as const) {
    const { error } = await call(main, path, headers);
    assert.deepEqual([error.code, error.status], [404, 'NOT_FOUND'], path);
    assert.equal(/not offered here/.test(error.message), !offered);
  }
  for (const [path, offered] of [
    ['/v1/skills', false],
    ['/v1/agents', false],
    ['/v1/nothing', true],
  ] as const) {
    const body = await call(main, path, claude);
    assert.deepEqual([body['type'], body['error'].type], ['error', 'not_found_error']);
    assert.equal(/not offered here/.test(body['error'].message), !offered);
  }
  assert.equal((await call(main, '/v1/nothing'))['error'].type, 'invalid_request_error');
});

test('a refusal by the socket has the same shape as a refusal over HTTP', async () => {
  const customer = await alt.customer({ plan: 'payg' });
  const client = await talk(alt.origin, customer.key);
  const refused = [
    { model: 'gpt-5.4-mini', input: 'a', stream: false },
    { type: 'response.steer', input: 'a' },
    { model: 'gpt-5.4-mini', input: 'a', previous_response_id: 'resp_none', store: false, generate: false },
  ];
  for (const body of refused) {
    const [message] = await client.turn(body);
    assert.deepEqual([message.type, message.status], ['error', 400]);
    assert.deepEqual(Object.keys(message.error).sort(), ['code', 'message'], JSON.stringify(message));
    assert.equal(typeof message.error.message, 'string');
  }
  client.send('no JSON');
  assert.deepEqual(Object.keys((await client.next())[0].error).sort(), ['code', 'message']);
  await client.close();
  const ours = await talk(main.origin, (await main.customer({ plan: 'free' })).key);
  const [usual] = await ours.turn(refused[0]!);
  assert.deepEqual([usual.error.param, usual.error.type], ['stream', 'invalid_request_error']);
  await ours.close();
});

test('the ledgers of both gateways pass their audits at the end', async () => {
  await main.audit();
  await alt.audit();
});
