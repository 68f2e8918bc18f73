/** config/main.yaml itself before its vendors: every image model and the video model, asked as each vendor wants it; and the limits on them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { catalog } from '../../plugins/common/domain/models.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { type RunningVendor, startVendor } from '../../plugins/sandbox/vendor.ts';
import { endpointsOf, type Rooms } from '../../plugins/task-store/orders/endpoints.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type Client, clientOf, ended, png } from '../plugins/task-store/clients.ts';

/** Each vendor under a name of its own; behind it the sandbox, which knows the protocols by other paths. */
const paths: Readonly<Record<string, string>> = {
  '/openai/v1': '/v1',
  '/google/v1beta': '/v1beta',
  '/xai/v1': '/imagine/v1',
  '/ark/api/v3': '/api/v3',
};
interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
let requests: ReceivedRequest[] = [];
let sandbox: RunningVendor;
const front = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const { method, headers, url: path = '' } = incoming;
  if (!path.startsWith('/files/')) requests.push({ path, headers, body: body.toString('latin1') });
  const base = Object.keys(paths).find((each) => path.startsWith(`${each}/`));
  const onward = base === undefined ? path : paths[base] + path.slice(base.length);
  request(sandbox.origin + onward, { method: method!, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(outgoing);
  }).end(body);
});

let gateway: TestGateway;
let alice: Client;
before(async () => {
  sandbox = await startVendor();
  await once(front.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const yaml = `include: config/main.yaml
providers:
  openai: { speaks: { openai-images: "${origin}/openai/v1" } }
  google: { speaks: { gemini-images: "${origin}/google/v1beta" } }
  xai: { speaks: { xai-images: "${origin}/xai/v1", xai-videos: "${origin}/xai/v1" } }
  ark: { speaks: { ark-images: "${origin}/ark/api/v3", ark-videos: "${origin}/ark/api/v3" } }
plans:
  offers:
    free: { limits: { rpm: 10000, tpm: 100M, concurrency: 50 } }
    tight: { price: 0, limits: { rpm: 3 } }
task-store: { poll: { first: 50ms, longest: 100ms } }
`;
  const keys = { OPENAI_API_KEY: 'key-of-openai', GEMINI_API_KEY: 'key-of-google', XAI_API_KEY: 'key-of-xai' };
  gateway = await startGateway(yaml, { environment: { ...keys, ARK_API_KEY: 'key-of-ark' } });
  alice = await clientOf(gateway, 'alice');
  // What the plan brings comes with the first order.
  await made({ model: 'grok-imagine-image', prompt: 'The first' });
});
after(async () => {
  await gateway?.stop();
  front.closeAllConnections();
  front.close();
  await sandbox?.close();
});

const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
const bearer = (vendor: string) => ['authorization', `Bearer key-of-${vendor}`] as const;

interface Offer {
  readonly text: string;
  readonly edit: string;
  readonly key: readonly [header: string, value: string];
  readonly upstream: string;
  /** Price of one image without settings; official prices in models.yaml. */
  readonly price: string;
}
const openai = { text: '/openai/v1/images/generations', edit: '/openai/v1/images/edits', key: bearer('openai') };
const xai = { text: '/xai/v1/images/generations', edit: '/xai/v1/images/edits', key: bearer('xai') };
const ark = { text: '/ark/api/v3/images/generations', edit: '/ark/api/v3/images/generations', key: bearer('ark') };
const gemini = '/google/v1beta/models/gemini-3-pro-image-preview:generateContent';
const google = { text: gemini, edit: gemini, key: ['x-goog-api-key', 'key-of-google'] as const };
const offers: Record<string, Offer> = {
  'gpt-image-2': { ...openai, upstream: 'gpt-image-2', price: '0.053' },
  'gemini-3-pro-image-preview': { ...google, upstream: 'gemini-3-pro-image-preview', price: '0.134' },
  'grok-imagine-image-pro': { ...xai, upstream: 'grok-imagine-image-pro', price: '0.07' },
  'grok-imagine-image': { ...xai, upstream: 'grok-imagine-image', price: '0.02' },
  'grok-imagine-image-lite': { ...xai, upstream: 'grok-imagine-image', price: '0.02' },
  'doubao-seedream-5-0-260128': { ...ark, upstream: 'doubao-seedream-5-0-260128', price: '0.035' },
  'doubao-seedream-4-5-251128': { ...ark, upstream: 'doubao-seedream-4-5-251128', price: '0.04' },
};

test('the list has these image models and the video model', () => {
  const models = gateway.gateway.find(catalog)!.list();
  const named = (kind: string) => models.filter((model) => model.kind === kind).map(({ id }) => id);
  assert.deepEqual(named('image').sort(), Object.keys(offers).sort());
  assert.deepEqual(named('video'), ['grok-imagine-video']);
});

async function made(body: object): Promise<void> {
  const { status, json } = await alice.send('POST', '/v1/images/generations', body);
  assert.equal(status, 200, JSON.stringify(json));
  const { data } = await ended(alice, `/v1/tasks/${json.data.id}`);
  assert.equal(data.status, 'completed', data.error);
  const file = await fetch(data.result.images[0].url[0]);
  assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'image/png']);
  await file.arrayBuffer();
}

for (const [model, { text, edit, key, upstream, price }] of Object.entries(offers)) {
  test(`${model}: text to image and image to image use its vendor's path, its key and its price`, async () => {
    const before = await alice.balance();
    requests = [];
    await made({ model, prompt: 'A lighthouse' });
    await made({ model, prompt: 'A lighthouse at night', image_urls: [dataUrl, dataUrl] });
    assert.deepEqual(
      requests.map(({ path }) => path),
      [text, edit],
    );
    for (const { path, headers, body } of requests) {
      assert.equal(headers[key[0]], key[1]);
      assert.ok(path.includes(upstream) || body.includes(upstream), upstream);
    }
    const shown = png.toString('base64');
    const sees = (body: string) => body.includes(shown) || body.includes(png.toString('latin1'));
    assert.deepEqual(
      requests.map(({ body }) => sees(body)),
      [false, true],
    );
    await alice.hasPaid(before, 2n * parseUsd(price));
  });
}

test('grok-imagine-video accepts one text and one image, and lists the parameters that it ignores', async () => {
  const before = await alice.balance();
  requests = [];
  const image = { type: 'image_url', image_url: { url: 'https://images.example.com/a.png' }, role: 'reference_image' };
  const clip = { type: 'video_url', video_url: { url: 'https://images.example.com/a.mp4' }, role: 'reference_video' };
  const sound = { type: 'audio_url', audio_url: { url: 'https://images.example.com/a.mp3' }, role: 'reference_audio' };
  const content = [{ type: 'text', text: 'Waves' }, image, clip, sound];
  const order = { model: 'grok-imagine-video', content, duration: 4, generate_audio: true, watermark: true };
  for (const ratio of ['16:9', '21:9', 'adaptive']) {
    const { status, json, headers } = await alice.send('POST', '/v1/contents/generations/tasks', { ...order, ratio });
    assert.equal(status, 200, JSON.stringify(json));
    const clamped = ratio === '21:9' ? ['ratio'] : [];
    assert.deepEqual(Object.keys(json), ['id', 'model', 'status', 'created_at', 'updated_at', ...clamped]);
    assert.deepEqual([json.model, json.status], ['grok-imagine-video', 'queued']);
    const ignored = ['watermark', 'generate_audio', 'content[2].video_url.url', 'content[3].audio_url.url'];
    assert.equal(headers.get('x-gateway-dropped'), [...clamped, ...ignored].join(', '));
    const end = await ended(alice, `/v1/contents/generations/tasks/${json.id}`);
    assert.equal(end.status, 'succeeded', end.error);
    const file = await fetch(end.content.video_url);
    assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'video/mp4']);
    await file.arrayBuffer();
  }
  const created = requests
    .filter(({ path }) => path === '/xai/v1/videos/generations')
    .map(({ body }) => JSON.parse(body));
  const common = { model: 'grok-imagine-video', prompt: 'Waves', duration: 4, resolution: '480p' };
  const shown = { image: { url: 'https://images.example.com/a.png' } };
  assert.deepEqual(created, [
    { ...common, aspect_ratio: '16:9', ...shown },
    { ...common, ...shown },
    { ...common, ...shown },
  ]);
  for (const { headers } of requests) assert.equal(headers.authorization, 'Bearer key-of-xai');
  await alice.hasPaid(before, 3n * parseUsd('0.202'));
});

test("image orders and task queries count towards the plan's limit; the model list does not", async () => {
  const bob = await clientOf(gateway, 'bob', 'tight');
  const before = await bob.balance();
  const order = { model: 'grok-imagine-image', prompt: 'A cat' };
  const { json } = await bob.send('POST', '/v1/images/generations', order);
  await bob.send('GET', `/v1/tasks/${json.data.id}`);
  await bob.send('GET', `/v1/tasks/${json.data.id}`);
  for (const [method, path, body] of [
    ['GET', `/v1/tasks/${json.data.id}`, undefined],
    ['GET', '/v1/tasks', undefined],
    ['POST', '/v1/images/generations', order],
    ['POST', '/v1/images/edits', { ...order, images: [dataUrl] }],
  ] as const) {
    const refused = await bob.send(method, path, body);
    assert.deepEqual([refused.status, refused.json.error.code], [429, 'rate_limit_exceeded'], path);
    assert.ok(Number(refused.headers.get('retry-after')) > 0, path);
  }
  assert.equal((await bob.send('GET', '/v1/models')).status, 200);
  assert.equal((await bob.send('GET', '/v1/contents/generations/tasks')).status, 200);
  assert.ok(before - (await bob.balance()) <= parseUsd('0.02'));
});

test('a request without a key or with a wrong one is a 401, and one for a task of another account a 404', async () => {
  for (const [method, path] of [
    ['POST', '/v1/images/generations'],
    ['POST', '/v1/images/edits'],
    ['GET', '/v1/tasks/task_1'],
    ['POST', '/v1/contents/generations/tasks'],
    ['GET', '/v1/contents/generations/tasks/task_1'],
    ['GET', '/v1/contents/generations/tasks'],
  ] as const) {
    const answer = await fetch(gateway.origin + path, { method, body: method === 'POST' ? '{}' : null });
    const { error } = (await answer.json()) as { error: { code: string } };
    assert.deepEqual([answer.status, error.code], [401, 'invalid_api_key'], path);
    const wrong = await alice.send(method, path, method === 'POST' ? {} : undefined, { authorization: 'Bearer sk-x' });
    assert.equal(wrong.status, 401);
    if (method === 'POST' || path.endsWith('tasks')) continue;
    const reply = await alice.send(method, path);
    assert.deepEqual([reply.status, reply.json.error.code], [404, 'task_not_found'], path);
  }
});

test('task queries have 60 seconds, and orders as long as a client may wait', () => {
  const config = { expose: ['images', 'videos'], mode: 'asynchronous', wait: 540_000, streams: 1 };
  const endpoints = endpointsOf({ config } as unknown as Rooms);
  const timeouts = Object.fromEntries(endpoints.map(({ method, path, timeoutMs }) => [`${method} ${path}`, timeoutMs]));
  for (const path of ['/v1/tasks', '/v1/contents/generations/tasks', '/v1/videos']) {
    for (const name of [`GET ${path}`, `GET ${path}/:id`, `DELETE ${path}/:id`])
      assert.equal(timeouts[name], 60_000, name);
  }
  assert.equal(timeouts['POST /v1/images/generations'], 550_000);
});
