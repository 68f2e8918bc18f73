/** Images that are streamed through a whole gateway: the vendor's bytes, paid by the last event; breaks are errors and cost nothing. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import OpenAI, { toFile } from 'openai';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { type RunningVendor, startVendor } from '../../../plugins/sandbox/vendor.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { type Client, clientOf, ended, png } from './clients.ts';

const base64 = png.toString('base64');
/** As a vendor might write it: comments, both line ends, a field that no one knows. */
const script = [
  ': painting\r\n\r\n',
  `event: image_generation.partial_image\r\ndata: {"type":"image_generation.partial_image","partial_image_index":0,"b64_json":"${base64}"}\r\n\r\n`,
  `id: 7\nevent: image_generation.partial_image\ndata: {"type": "image_generation.partial_image",\ndata: "partial_image_index": 1, "b64_json": "${base64}", "né": "☃"}\n\n`,
  ': still painting\n\n',
  `event: image_generation.completed\ndata: {"type":"image_generation.completed","b64_json":"${base64}","quality":"low","size":"1024x1024","output_format":"png","usage":{"input_tokens":10,"input_tokens_details":{"text_tokens":10,"image_tokens":0},"output_tokens":472,"total_tokens":482}}\n\n`,
].join('');

/** Streams the script in pieces that respect nothing; or, of one model, answers whole. */
const scripted: Server = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { model } = JSON.parse(Buffer.concat(chunks).toString()) as { model: string };
  if (model === 'whole') {
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    return void outgoing.end(JSON.stringify({ created: 1, data: [{ b64_json: base64 }], output_format: 'png' }));
  }
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  const bytes = Buffer.from(script);
  for (let at = 0; at < bytes.length; at += 97) {
    outgoing.write(bytes.subarray(at, at + 97));
    if (at % 5 === 0) await pause(1);
  }
  outgoing.end();
});

let vendor: RunningVendor;
let gateway: TestGateway;
let alice: Client;

/** What a vendor says before its first event, and what the client receives. What is refused rests a key: each has a provider. */
const refusals = [
  ['moderated', 400, 'moderation_blocked'],
  ['status=400', 400, null],
  ['status=429', 429, 'rate_limit_exceeded'],
  ['status=503', 503, 'upstream_busy'],
  ['first_error=503', 503, 'upstream_busy'],
  ['status=500', 502, 'outcome_unknown'],
  ['no_terminal', 502, 'outcome_unknown'],
] as const;
const caseLines = (line: (index: number) => string) => refusals.map((_, index) => `  ${line(index)}`).join('\n');

const yamlOf = (sandbox: string, exact: string) => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  openai: { keys: vendor-key, speaks: { openai-images: "${sandbox}/v1" }, timeouts: { idle: 1s } }
  exact: { keys: vendor-key, speaks: { openai-images: "${exact}/v1" } }
  unreachable: { keys: vendor-key, speaks: { openai-images: "http://127.0.0.1:1/v1" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${sandbox}/imagine/v1" } }
  google: { keys: vendor-key, speaks: { gemini-images: "${sandbox}/v1beta" } }
  ark: { keys: vendor-key, speaks: { ark-images: "${sandbox}/api/v3" } }
${caseLines((index) => `case-${index}: { keys: vendor-key, speaks: { openai-images: "${sandbox}/v1" } }`)}
models:
  paint: { owned_by: tests, kind: image, targets: [unreachable, openai], price: { input: 5, input_image: 8, output_image: 30 } }
  away: { owned_by: tests, kind: image, targets: [unreachable], price: { output_image: 30 } }
  exact: { owned_by: tests, kind: image, targets: [exact], price: { input: 5, output_image: 30 } }
  whole: { owned_by: tests, kind: image, targets: [exact/whole], price: { image: 0.01 } }
  mixed: { owned_by: tests, kind: image, targets: [xai, openai], price: { image: 0.01 } }
  xai: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.01 } }
  google: { owned_by: tests, kind: image, targets: [google], price: { image: 0.01 } }
  ark: { owned_by: tests, kind: image, targets: [ark], price: { image: 0.01 } }
${caseLines((index) => `case-${index}: { owned_by: tests, kind: image, targets: [case-${index}], price: { image: 0.01 } }`)}
task-store: { streams: 4 }
`;

before(async () => {
  vendor = await startVendor();
  await new Promise<void>((resolve) => scripted.listen(0, '127.0.0.1', resolve));
  const exact = `http://127.0.0.1:${(scripted.address() as AddressInfo).port}`;
  gateway = await startGateway(yamlOf(vendor.origin, exact));
  alice = await clientOf(gateway, 'alice');
});
after(async () => {
  await gateway?.stop();
  await vendor?.close();
  scripted.closeAllConnections();
  scripted.close();
});

const streamed = (body: object, options: { headers?: Record<string, string>; signal?: AbortSignal } = {}) =>
  fetch(`${gateway.origin}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice.key}`, 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify({ prompt: 'A cat', stream: true, ...body }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });

/** What the vendor's usage comes to, in nano-USD. */
const dueFor = (usage: { input?: number; input_image?: number; output_image?: number }) =>
  BigInt((usage.input ?? 0) * 5_000 + (usage.input_image ?? 0) * 8_000 + (usage.output_image ?? 0) * 30_000);

const official = () => new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: alice.key, maxRetries: 0 });

test("a stream is the vendor's byte for byte, is paid by its last event, and its image is at the task", async () => {
  const before = await alice.balance();
  const answer = await streamed({ model: 'exact', partial_images: 2 });
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8']);
  assert.equal(await answer.text(), script);
  // Paid before the last event went out.
  assert.equal(before - (await alice.balance()), dueFor({ input: 10, output_image: 472 }));
  const reply = await alice.send('GET', `/v1/tasks/${answer.headers.get('x-gateway-task')}`);
  assert.equal(reply.json.data.status, 'completed');
  const file = await fetch(reply.json.data.result.images[0].url[0]);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), png);
});

test('the official client gets previews and the image, of a text and of an edit; the bill agrees', async () => {
  const before = await alice.balance();
  const common = { model: 'paint', prompt: 'A cat', stream: true, partial_images: 2 } as const;
  const image = [await toFile(png, 'cat.png', { type: 'image/png' })];
  const types: string[] = [];
  const made = await official().images.generate(common);
  for await (const event of made) types.push(event.type);
  const edited = await official().images.edit({ ...common, image, partial_images: 1 });
  for await (const event of edited) {
    types.push(event.type);
    assert.equal(Buffer.from(event.b64_json, 'base64').toString('latin1', 1, 4), 'PNG');
  }
  assert.deepEqual(types, [
    'image_generation.partial_image',
    'image_generation.partial_image',
    'image_generation.completed',
    'image_edit.partial_image',
    'image_edit.completed',
  ]);
  const [generation, edit] = vendor.bill().recent.slice(-2);
  assert.ok(generation!.usage.output_image! > 200 && edit!.usage.input_image! > 0);
  await alice.hasPaid(before, dueFor(generation!.usage) + dueFor(edit!.usage));
});

test('a stream of a model whose vendors stream nothing is refused, and nothing is held or sent', async () => {
  const before = await alice.balance();
  const { requests } = vendor.bill();
  for (const model of ['xai', 'google', 'ark']) {
    const answer = await streamed({ model });
    const { error } = (await answer.json()) as { error: { param: string; code: string } };
    assert.deepEqual([answer.status, error.param, error.code], [400, 'stream', 'unsupported_by_model'], model);
  }
  await alice.hasPaid(before, 0n);
  assert.equal(vendor.bill().requests, requests);
  // The target that can stream is called.
  const answer = await streamed({ model: 'mixed', partial_images: 1 });
  assert.match(await answer.text(), /image_generation\.partial_image[\s\S]*image_generation\.completed/);
});

test('a refusal before the first event is a whole answer, and not paid', async () => {
  const before = await alice.balance();
  for (const [index, [words, status, code]] of refusals.entries()) {
    const answer = await streamed({ model: `case-${index}`, prompt: `A cat [[sandbox: ${words}]]` });
    const text = await answer.text();
    assert.equal(answer.status, status, `${words}: ${text}`);
    if (code !== null) assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, code, words);
  }
  const unreachable = await streamed({ model: 'away' });
  assert.equal(unreachable.status, 503);
  await unreachable.text();
  await alice.hasPaid(before, 0n);
});

test("a stream that breaks after a preview ends with the protocol's error, is not paid, and its task has failed", async () => {
  const before = await alice.balance();
  for (const words of ['cut_after=1', 'no_terminal', 'mid_error=500', 'stall=1']) {
    const answer = await streamed({ model: 'mixed', partial_images: 2, prompt: `A cat [[sandbox: ${words}]]` });
    assert.equal(answer.status, 200, words);
    const text = await answer.text();
    const last = text.trimEnd().split('\n\n').at(-1)!;
    assert.match(text, /^event: image_generation\.partial_image/);
    assert.match(last, /^event: error\ndata: \{"type":"error","error":\{/, words);
    assert.doesNotMatch(text, /image_generation\.completed|sandbox was asked/);
    const { json } = await alice.send('GET', `/v1/tasks/${answer.headers.get('x-gateway-task')}`);
    assert.equal(json.data.status, 'failed', words);
    await assert.rejects(
      async () => {
        const prompt = `A cat [[sandbox: ${words}]]`;
        const stream = await official().images.generate({ model: 'mixed', prompt, stream: true, partial_images: 2 });
        for await (const event of stream) assert.equal(event.type, 'image_generation.partial_image');
      },
      (error) => error instanceof OpenAI.APIError,
    );
  }
  await alice.hasPaid(before, 0n);
});

test('a client that disconnects finds the image at the task, and has paid for it', async () => {
  const before = await alice.balance();
  const leaving = new AbortController();
  const prompt = 'A cat [[sandbox: chunk_delay=200ms]]';
  const answer = await streamed({ model: 'mixed', partial_images: 3, prompt }, { signal: leaving.signal });
  const reader = answer.body!.getReader();
  await reader.read();
  leaving.abort();
  await reader.read().catch(() => {});
  const end = await ended(alice, `/v1/tasks/${answer.headers.get('x-gateway-task')}`);
  assert.equal(end.data.status, 'completed');
  assert.equal((await fetch(end.data.result.images[0].url[0])).status, 200);
  await alice.hasPaid(before, parseUsd('0.01'));
});

test("the image of a vendor that answers whole all the same is the stream's last event", async () => {
  const answer = await streamed({ model: 'whole' });
  const text = await answer.text();
  const [head, data, ...rest] = text.trimEnd().split('\n');
  assert.deepEqual([head, rest], ['event: image_generation.completed', []]);
  const event = JSON.parse(data!.slice('data: '.length)) as Record<string, unknown>;
  assert.deepEqual([event['type'], event['b64_json']], ['image_generation.completed', base64]);
});

test('the same Idempotency-Key gives the same stream and one charge', async () => {
  const before = await alice.balance();
  const headers = { 'idempotency-key': 'stream-1' };
  const first = await (await streamed({ model: 'exact' }, { headers })).text();
  const again = await streamed({ model: 'exact' }, { headers });
  assert.deepEqual([await again.text(), again.headers.get('idempotent-replayed')], [first, 'true']);
  await alice.hasPaid(before, dueFor({ input: 10, output_image: 472 }));
});

test('no more images than allowed are streamed at once, and a slot is freed when one has ended', async () => {
  const prompt = 'A cat [[sandbox: chunk_delay=500ms]]';
  const open = await Promise.all(
    Array.from({ length: 4 }, () => streamed({ model: 'mixed', partial_images: 2, prompt })),
  );
  const full = await streamed({ model: 'mixed' });
  assert.deepEqual([full.status, full.headers.get('retry-after')], [503, '5']);
  await full.text();
  await Promise.all(open.map((answer) => answer.text()));
  await until('a free place', async () => {
    const next = await streamed({ model: 'exact' });
    await next.text();
    return next.status === 200 ? true : undefined;
  });
});
