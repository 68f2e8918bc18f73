/** What vendors of images and videos were recorded to answer, replayed on a socket before a whole gateway: what the client is given, and what it pays. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type Recording, recording } from '../helpers/recordings.ts';
import { type Client, clientOf, ended, png } from '../plugins/task-store/clients.ts';

type Replayed = Pick<Recording<string>, 'status' | 'contentType' | 'response'>;

/** What the vendor answers next, one for each request; what it made lies at addresses of this machine instead of its own. */
let coming: Replayed[] = [];
let requests: string[] = [];
const vendor = createServer(async (incoming, outgoing) => {
  for await (const _ of incoming);
  const { method = '', url = '' } = incoming;
  const { port } = vendor.address() as AddressInfo;
  if (url.startsWith('/xai-')) {
    const isFilm = url.endsWith('.mp4');
    return report(outgoing, { status: 200, contentType: 'application/octet-stream', response: isFilm ? film : jpeg });
  }
  requests.push(`${method} ${url}`);
  const next = coming.shift();
  assert.ok(next !== undefined, `no recording has what comes after ${url}`);
  const text = next.response
    .toString('latin1')
    .replace(/https:\/\/(?:imgen|vidgen)\.x\.ai/g, `http://127.0.0.1:${port}`);
  report(outgoing, { ...next, response: Buffer.from(text, 'latin1') });
});

function report(outgoing: ServerResponse, { status, contentType = 'application/json', response }: Replayed): void {
  outgoing.writeHead(status, { 'content-type': contentType });
  outgoing.end(response);
}

const answerOf = (family: 'images' | 'video' | 'gemini', name: string) => recording(family, name);
const painted = (name: string): Buffer =>
  Buffer.from(JSON.parse(answerOf('images', name).response.toString()).data[0].b64_json, 'base64');
const jpegName = 'openrouter-gemini-3.1-flash-lite-image-image-out-image-in-usage-cost-306f';
const jpeg = painted(jpegName);
const film = answerOf('video', 'xai-f298').response;

let gateway: TestGateway;
let alice: Client;
before(async () => {
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  gateway = await startGateway(`
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  openai: { keys: vendor-key, speaks: { openai-images: "${origin}/openai" } }
  google: { keys: vendor-key, speaks: { gemini-images: "${origin}/google" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${origin}/xai", xai-videos: "${origin}/xai" } }
models:
  tokens: { owned_by: tests, kind: image, targets: [openai], price: { input: 5, input_image: 8, output: 10, output_image: 30 } }
  gemini: { owned_by: tests, kind: image, targets: [google], price: { input: 5, output: 10, output_image: 30 } }
  pieces: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.02 } }
  film: { owned_by: tests, kind: video, targets: [xai], price: { second: 0.05 } }
files: { fetch: { allow_private: true } }
task-store: { poll: { first: 20ms, longest: 50ms } }
`);
  alice = await clientOf(gateway, 'alice');
});
after(async () => {
  await gateway?.stop();
  vendor.closeAllConnections();
  vendor.close();
});

/** Orders an image that the vendor answers with these; tells its end. */
async function imageOf(model: string, answers: readonly Replayed[], more: object = {}) {
  coming = [...answers];
  requests = [];
  const { status, json } = await alice.send('POST', '/v1/images/generations', { model, prompt: 'A picture', ...more });
  assert.equal(status, 200, JSON.stringify(json));
  const { data } = await ended(alice, `/v1/tasks/${json.data.id}`);
  assert.deepEqual(coming, [], 'all of it was asked for');
  return data;
}

async function opened(address: string): Promise<[type: string | null, bytes: Buffer]> {
  const file = await fetch(address);
  return [file.headers.get('content-type'), Buffer.from(await file.arrayBuffer())];
}

const shown = { image_urls: [`data:image/png;base64,${png.toString('base64')}`], quality: 'low' };

test('recorded pictures are returned byte for byte under their type, and paid by their recorded tokens', async () => {
  const edited = 'openai-gpt-image-1.5-image-out-a1fe';
  for (const { name, type, price, path } of [
    // 27 and 194 tokens in, 143 and 272 out.
    { name: edited, type: 'image/png', price: '0.011277', path: 'POST /openai/images/edits' },
    // 1,125 tokens in, 1,120 out.
    { name: jpegName, type: 'image/jpeg', price: '0.039225', path: 'POST /openai/images/edits' },
  ]) {
    const before = await alice.balance();
    const data = await imageOf('tokens', [answerOf('images', name)], shown);
    assert.equal(data.status, 'completed', data.error);
    assert.deepEqual(requests, [path]);
    assert.deepEqual(await opened(data.result.images[0].url[0]), [type, painted(name)]);
    await alice.hasPaid(before, parseUsd(price));
  }
});

test('a recorded picture of generateContent is kept, and paid by its tokens', async () => {
  const recorded = answerOf('gemini', 'vertex-gemini-2.0-flash-exp-image-out-2d4d');
  const before = await alice.balance();
  const data = await imageOf('gemini', [recorded]);
  assert.equal(data.status, 'completed', data.error);
  const [type, bytes] = await opened(data.result.images[0].url[0]);
  assert.match(type ?? '', /^image\//);
  assert.ok(recorded.response.includes(bytes.toString('base64').slice(0, 1_000)));
  // 15 tokens in, 258 out.
  await alice.hasPaid(before, parseUsd('0.007815'));
});

test('pictures at recorded addresses are fetched, and paid by the piece', async () => {
  for (const [name, more] of [
    ['xai-grok-imagine-image-image-out-usage-cost-56f6', {}],
    ['xai-grok-imagine-image-quality-image-out-image-in-usage-cost-365f', { image_urls: shown.image_urls }],
  ] as const) {
    const before = await alice.balance();
    const data = await imageOf('pieces', [answerOf('images', name)], more);
    assert.equal(data.status, 'completed', data.error);
    assert.deepEqual(await opened(data.result.images[0].url[0]), ['image/jpeg', jpeg]);
    await alice.hasPaid(before, parseUsd('0.02'));
  }
});

test('recorded refusals end the task with their reason; refusals and answers without a picture cost nothing', async () => {
  const before = await alice.balance();
  for (const name of [
    'openai-dall-e-2-err400-12b1',
    'openai-gpt-image-1.5-err400-2c49',
    'openai-gpt-image-1.5-err400-3710',
    // Its recorder wrote five letters where the picture was.
    'openai-gpt-image-1-mini-image-out-fd50',
  ]) {
    const data = await imageOf('tokens', [answerOf('images', name)]);
    assert.deepEqual([data.status, data.progress], ['failed', 0], name);
    assert.ok(data.error.length > 0 && !/openai|https?:/i.test(data.error), data.error);
  }
  const none = await imageOf('gemini', [answerOf('gemini', 'google-finish-no-image-7c18')]);
  assert.equal(none.status, 'failed');
  await alice.hasPaid(before, 0n);
});

test('a recorded video is ordered, polled while it runs, and returned', async () => {
  const states = ['xai-61eb', 'xai-d37a', 'xai-ca93', 'xai-grok-imagine-video-usage-cost-89ec'];
  coming = ['xai-grok-imagine-video-b466', ...states].map((name) => answerOf('video', name));
  requests = [];
  const before = await alice.balance();
  const content = [{ type: 'text', text: 'a calm ocean wave at sunset' }];
  const { json } = await alice.send('POST', '/v1/contents/generations/tasks', { model: 'film', content, duration: 1 });
  const reply = await ended(alice, `/v1/contents/generations/tasks/${json.id}`);
  assert.equal(reply.status, 'succeeded', reply.error);
  const look = 'GET /xai/videos/c84748c1-5ec7-9c62-b013-dc6e71a83de7';
  assert.deepEqual(requests, ['POST /xai/videos/generations', look, look, look, look]);
  assert.deepEqual(await opened(reply.content.video_url), ['video/mp4', film]);
  await alice.hasPaid(before, parseUsd('0.05'));
});
