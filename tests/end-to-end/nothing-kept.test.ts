/**
 * An account of which nothing may be kept calls every address that takes a body, beside one of which everything is kept that the settings allow: no table, file,
 * line of the log or key in Redis has a word of the first, and the second one's words are found where they are kept.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Endpoint } from '../../core/contract/contract.ts';
import { isObject } from '../../core/json/json.ts';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { accountAdmin } from '../../plugins/common/domain/admin/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { wavTone } from '../../plugins/sandbox/endpoints/tones.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { hasRedis, startRedis, type TestRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { startVendor, type Vendor } from '../helpers/vendor.ts';
import { dialectNames, dialects } from './dialects.ts';
import { answers, placesOf } from './kept-words.ts';
import { talk } from './sockets.ts';
import { modelAt, speaks } from './testbed.ts';

interface Side {
  readonly accountId: string;
  readonly key: string;
  /** What it sends, and what it is answered with. */
  readonly sent: string;
  readonly answered: string;
}

let redis: TestRedis | undefined;
let vendor: Vendor;
let gateway: TestGateway;
let none: Side;
let kept: Side;

before(async () => {
  redis = hasRedis ? await startRedis(['--rdbcompression', 'no']) : undefined;
  vendor = await startVendor();
  gateway = await startGateway(yamlFor(vendor), {
    environment: redis === undefined ? {} : { REDIS_URL: redis.url },
  });
  none = await openSide('none');
  kept = await openSide('kept');
  await command('accounts retention', { name: 'none', retention: 'none' });
});
after(async () => {
  await gateway.stop();
  await vendor.stop();
  await redis?.stop();
});

const zdr = { zdr: true };
/** All of its vendors. */
const labelled = Object.fromEntries(
  [
    ...['openai', 'anthropic', 'google', 'xai', 'ark', 'deepseek', 'zhipu', 'qwen', 'moonshot', 'minimax', 'groq'],
    ...['cohere', 'jina', 'voyage', 'typesafe'],
  ].map((name) => [name, zdr]),
);

/** The demo gateway, with everything that keeps content turned on. */
const yamlFor = ({ origin }: Vendor) => `
include: config/demo.yaml
providers: ${JSON.stringify({ ...labelled, replay: { keys: 'vendor-key', zdr: true, speaks: speaks(origin) } })}
models: { replay: ${JSON.stringify(modelAt('replay'))} }
request-log: { bodies: { of: [{}] } }
cache: { store: ${hasRedis ? 'redis' : 'postgres'}, of: [{ keep: 1h, price: 0 }] }
`;

async function openSide(name: string): Promise<Side> {
  const { id } = await gateway.gateway.find(accounts)!.create(name, 'free');
  const grant = { kind: 'manual', reason: 'test', reference: `test:${name}` };
  await gateway.gateway.find(ledger)!.credit(id, parseUsd('100'), grant);
  const { key } = await gateway.gateway.find(accountAdmin)!.createKey(id, { name });
  return { accountId: id, key, sent: `sentword${name}qx`, answered: `answerword${name}qx` };
}

const command = (name: string, values: Record<string, string>) =>
  gateway.gateway.commands.find((one) => one.name === name)!.run(values);

// ------------------------------------------------------------------------------------------------------------ addresses

const takesBody = ({ method }: Endpoint) => method === 'POST' || method === 'PUT' || method === 'PATCH';

test('each address that keeps something says so in all of its versions', () => {
  const versionless = ({ method, path }: Endpoint) => `${method} ${path.replace(/\/v1(?:beta|alpha)?\//, '/v/')}`;
  for (const [name, all] of Map.groupBy(gateway.gateway.endpoints.filter(takesBody), versionless)) {
    const of = Map.groupBy(all, ({ operation }) => operation);
    for (const [operation, same] of of)
      assert.equal(new Set(same.map(({ keeps }) => keeps)).size, 1, `${operation} ${name}`);
  }
  const keeping = new Set(gateway.gateway.endpoints.flatMap(({ keeps }) => keeps ?? []));
  assert.deepEqual([...keeping].sort(), [
    'batches',
    'conversations',
    'files',
    'orders of images and videos',
    'vector stores',
  ]);
});

interface Content {
  readonly example?: Record<string, unknown>;
  readonly schema?: { readonly properties?: Record<string, { readonly format?: string }> };
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: string }[];
  readonly requestBody?: { readonly content: Record<string, Content> };
}

/** Sentences get a word more. */
function marked(value: unknown, word: string): unknown {
  if (typeof value === 'string') return value.includes(' ') ? `${value} ${word}` : value;
  if (Array.isArray(value)) return value.map((one) => marked(one, word));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, marked(one, word)]));
}

async function play(path: string, type: string, operation: Operation, side: Side): Promise<Response> {
  const content = operation.requestBody!.content[type]!;
  const parameters = operation.parameters ?? [];
  const model = parameters.find(({ name }) => name === 'model')?.example ?? '';
  const filled = path
    .replace('{model}', model)
    .replace('{bundle}', 'harbour')
    .replaceAll(/\{\w+\}/g, 'none');
  const own = parameters.flatMap((one) => (one.in === 'header' ? [[one.name, one.example!] as const] : []));
  const headers: Record<string, string> = { ...Object.fromEntries(own), authorization: `Bearer ${side.key}` };
  const body = marked(content.example ?? {}, side.sent) as Record<string, string>;
  if (type === 'application/json') {
    headers['content-type'] = type;
    headers['idempotency-key'] = `${path} of an example`;
    return fetch(gateway.origin + filled, { method: 'POST', headers, body: JSON.stringify(body) });
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) {
    const isFile = content.schema?.properties?.[name]?.format === 'binary';
    const bytes = value.endsWith('.wav') ? Buffer.from(wavTone(1)) : Buffer.from(`{"words":"${side.sent}"}\n`);
    form.set(name, isFile ? new Blob([bytes]) : value, ...(isFile ? [value] : []));
  }
  return fetch(gateway.origin + filled, { method: 'POST', headers, body: form });
}

test('an account of which nothing is kept is answered, or refused where an address keeps something', async () => {
  const { paths } = (await (await fetch(`${gateway.origin}/openapi.json`)).json()) as {
    paths: Record<string, { post?: Operation }>;
  };
  const refused = new Set<string>();
  let answered = 0;
  for (const side of [kept, none])
    for (const [path, { post }] of Object.entries(paths))
      for (const [type, { example }] of Object.entries(post?.requestBody?.content ?? {})) {
        if (example === undefined || path.startsWith('/v1/organization/')) continue;
        const answer = await play(path, type, post!, side);
        const text = await answer.text();
        if (side === kept) continue;
        if (text.includes('retention \\"none\\"')) refused.add(path);
        else if (answer.ok || (path.includes('{') && answer.status === 404)) answered += 1;
        else assert.fail(`${path}: ${answer.status} ${text}`);
      }
  assert.deepEqual([...refused].sort(), keepingPaths);
  assert.ok(answered > 20, `${answered}`);
});

const keepingPaths = [
  '/upload/v1beta/files',
  '/v1/batches',
  '/v1/contents/generations/tasks',
  '/v1/conversations',
  '/v1/conversations/{conversation_id}',
  '/v1/conversations/{conversation_id}/items',
  '/v1/files',
  '/v1/images/edits',
  '/v1/images/generations',
  '/v1/messages/batches',
  '/v1/realtime/client_secrets',
  '/v1/realtime/sessions',
  '/v1/uploads',
  '/v1/uploads/{upload_id}/complete',
  '/v1/uploads/{upload_id}/parts',
  '/v1/vector_stores',
  '/v1/vector_stores/{vector_store_id}',
  '/v1/vector_stores/{vector_store_id}/file_batches',
  '/v1/vector_stores/{vector_store_id}/files',
  '/v1/vector_stores/{vector_store_id}/files/{file_id}',
  '/v1/videos',
  '/v1beta/models/{model}:asyncBatchEmbedContent',
  '/v1beta/models/{model}:batchGenerateContent',
];

// --------------------------------------------------------------------------------------------------- calls of protocols

const json = { headers: { 'content-type': 'application/json' } };

const ask = ({ key, sent }: Side, name: (typeof dialectNames)[number], model: string, more: object = {}) =>
  fetch(gateway.origin + dialects[name].path({ model, prompt: sent }), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': `${name} ${JSON.stringify(more)}`,
      ...dialects[name].key(key),
    },
    body: JSON.stringify(dialects[name].body({ model, prompt: sent, more })),
  });

test('words of vendors, of answers and of errors, reach the client in each protocol', async () => {
  for (const side of [kept, none])
    for (const name of dialectNames) {
      vendor.play({ ...json, body: JSON.stringify(answers[name](side.answered)) });
      const answer = await ask(side, name, 'replay');
      assert.ok((await answer.text()).includes(side.answered), name);
      const error = { type: 'invalid_request_error', code: 'invalid_prompt', message: `Not so: ${side.answered}` };
      vendor.play({ ...json, status: 400, body: JSON.stringify({ error }) });
      const refusal = await ask(side, name, 'replay', { temperature: 0.5 });
      assert.equal(refusal.status, 400, name);
      await refusal.text();
      const frames = [{ ...answers.chat(''), choices: [{ index: 0, delta: { content: 'Well' } }] }, { error }];
      const body = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
      vendor.play({ headers: { 'content-type': 'text/event-stream' }, body });
      await (await ask(side, 'chat', 'replay', { stream: true, user: name })).text();
    }
});

test('a turn over WebSocket goes on from the one before it while the connection lasts', async () => {
  for (const side of [kept, none]) {
    const client = await talk(gateway.origin, side.key);
    const first = await client.turn({ model: 'claude-opus-5', input: side.sent });
    const { id } = first.at(-1)!.response;
    const second = await client.turn({ model: 'claude-opus-5', input: 'And more?', previous_response_id: id });
    assert.equal(second.at(-1)!.type, 'response.completed', JSON.stringify(second.at(-1)));
    await client.close();
  }
});

test('a request that needs storage is refused by the name of its field, and answers of responses are not stored at the vendor', async () => {
  const refusals: unknown[] = [];
  for (const [name, more] of [
    ['chat', { store: true }],
    ['responses', { store: true }],
    ['responses', { background: true }],
    ['responses', { previous_response_id: 'resp_1' }],
    ['responses', { conversation: 'conv_1' }],
    ['responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['gemini', { cachedContent: 'cachedContents/1' }],
  ] as const) {
    const answer = await ask(none, name, 'replay', more);
    const { error } = (await answer.json()) as { error: { param?: string; code: unknown; message: string } };
    refusals.push([answer.status, error.param ?? /"(\w+)" cannot/.exec(error.message)?.[1]]);
  }
  assert.deepEqual(refusals, [
    [400, 'store'],
    [400, 'store'],
    [400, 'background'],
    [400, 'previous_response_id'],
    [400, 'conversation'],
    [400, 'input'],
    [400, 'cachedContent'],
  ]);
  for (const [side, wanted] of [
    [kept, undefined],
    [none, false],
  ] as const) {
    vendor.play({ ...json, body: JSON.stringify(answers.responses(side.answered)) });
    await (await ask(side, 'responses', 'replay', { temperature: 0.25 })).text();
    assert.equal(JSON.parse(vendor.requests.at(-1)!.body.toString()).store, wanted);
  }
});

test('a call that is repeated by its key neither runs again nor is answered again', async () => {
  const before = vendor.requests.length;
  const again = await ask(none, 'chat', 'replay');
  assert.equal(again.status, 409);
  assert.equal(vendor.requests.length, before);
  const repeated = await ask(kept, 'chat', 'replay');
  assert.ok((await repeated.text()).includes(kept.answered));
});

test('lines of a batch are not sent, and an upload takes no piece, once nothing is to be kept any more', async () => {
  const { accountId, key } = await openSide('later');
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const begun = await fetch(`${gateway.origin}/upload/v1beta/files`, {
    method: 'POST',
    headers: { ...headers, 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' },
    body: '{}',
  });
  const address = new URL(begun.headers.get('x-goog-upload-url')!);
  // More lines than run at once.
  const messages = [{ role: 'user', content: 'Slowly [[sandbox: delay=2s]]' }];
  const lines = Array.from({ length: 100 }, (_, index) =>
    JSON.stringify({
      ...{ custom_id: `${index}`, method: 'POST', url: '/v1/chat/completions' },
      body: { model: 'claude-opus-5', messages, max_tokens: 9 },
    }),
  );
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([lines.join('\n')]), 'lines.jsonl');
  const authorization = { authorization: headers.authorization };
  const file = await fetch(`${gateway.origin}/v1/files`, { method: 'POST', headers: authorization, body: form });
  const { id } = (await file.json()) as { id: string };
  const order = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' };
  const ordered = await fetch(`${gateway.origin}/v1/batches`, { method: 'POST', headers, body: JSON.stringify(order) });
  const batch = (await ordered.json()) as { id: string };
  const state = async () => {
    const answer = await fetch(`${gateway.origin}/v1/batches/${batch.id}`, { headers: authorization });
    return (await answer.json()) as { status: string; request_counts: { completed: number; failed: number } };
  };
  await until('it runs', async () => (await state()).status === 'in_progress');
  await command('accounts retention', { name: accountId, retention: 'none' });
  const piece = await fetch(gateway.origin + address.pathname, {
    method: 'POST',
    headers: { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' },
    body: 'Ships pass at night.',
  });
  assert.deepEqual([piece.status, (await piece.text()).includes('retention')], [403, true]);
  const ended = await until('it has ended', async () => {
    const now = await state();
    return ['completed', 'cancelled'].includes(now.status) && now;
  });
  assert.ok(ended.request_counts.failed > 0, JSON.stringify(ended));
  const removed = await fetch(`${gateway.origin}/v1/files/${id}`, { method: 'DELETE', headers: authorization });
  assert.equal(removed.status, 200);
});

// --------------------------------------------------------------------------------------------------------------- search

test('no word of it is anywhere, where the words of the other account are kept', async () => {
  // Rows are written in the order of their calls: behind these, those of before are there.
  const last = { ...kept, sent: 'lastwordqx' };
  await (await ask(last, 'responses', 'claude-opus-5', { max_output_tokens: 30 })).text();
  await until('the last call is kept', async () => {
    const places = await placesOf({ gateway, redis }, [last.sent]);
    return ['table idempotent_calls', 'table kept_responses', 'table request_bodies'].every((place) =>
      places.includes(place),
    );
  });
  await until('the words of the other account are kept', async () => {
    const places = await placesOf({ gateway, redis }, [kept.sent, kept.answered]);
    const wanted = [
      'file',
      'table idempotent_calls',
      'table kept_conversation_items',
      'table kept_responses',
      'table request_bodies',
    ];
    return wanted.every((place) => places.includes(place)) && (redis === undefined || places.includes('redis'));
  });
  assert.deepEqual(await placesOf({ gateway, redis }, [none.sent, none.answered]), []);
});
