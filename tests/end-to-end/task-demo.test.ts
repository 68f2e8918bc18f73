/** The demo gateway makes images of every model, and a video, that a person can open. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { catalog } from '../../plugins/common/domain/models.ts';
import { freePort } from '../helpers/free-port.ts';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { type Customer, faces } from './testbed.ts';

let running: TestGateway;
let customer: Customer;
let metrics: string;
before(async () => {
  metrics = `127.0.0.1:${await freePort()}`;
  running = await startGateway('include: config/demo.yaml\ntask-store: { poll: { first: 50ms, longest: 200ms } }\n', {
    environment: { METRICS_LISTEN: metrics },
  });
  customer = await faces(running).customer();
});
after(() => running?.stop());

async function send(path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(running.origin + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${customer.key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text) as Record<string, unknown>;
}

async function opened(url: string): Promise<[string | null, Buffer]> {
  const file = await fetch(url);
  assert.equal(file.status, 200);
  return [file.headers.get('content-type'), Buffer.from(await file.arrayBuffer())];
}

test('every offered image model makes an image', async () => {
  const models = running.gateway.find(catalog)!.list();
  const names = models.filter(({ kind }) => kind === 'image').map(({ id }) => id);
  assert.ok(names.length >= 7);
  for (const model of names) {
    const prompt = 'A lighthouse';
    const { data: submitted } = (await send('/v1/images/generations', { model, prompt })) as { data: { id: string } };
    type Reply = { data: { status: string; error?: string; result?: { images: { url: string[] }[] } } };
    let reply = (await send(`/v1/tasks/${submitted.id}`)) as Reply;
    for (let looks = 0; looks < 100 && !/completed|failed/.test(reply.data.status); looks += 1) {
      await pause(50);
      reply = (await send(`/v1/tasks/${submitted.id}`)) as Reply;
    }
    assert.equal(reply.data.status, 'completed', `${model}: ${reply.data.error ?? ''}`);
    const [type, bytes] = await opened(reply.data.result!.images[0]!.url[0]!);
    assert.match(type ?? '', /^image\//, model);
    assert.ok(bytes.length > 50);
  }
});

test('the offered video model makes a video', async () => {
  const content = [
    { type: 'text', text: 'Waves at a lighthouse' },
    { type: 'image_url', image_url: { url: 'https://images.example.com/lighthouse.png' }, role: 'reference_image' },
  ];
  const order = { model: 'grok-imagine-video', content, duration: 3 };
  const { id } = (await send('/v1/contents/generations/tasks', order)) as { id: string };
  type Reply = { status: string; error?: string; content?: { video_url: string } };
  let reply = (await send(`/v1/contents/generations/tasks/${id}`)) as Reply;
  for (let looks = 0; looks < 200 && !/succeeded|failed/.test(reply.status); looks += 1) {
    await pause(50);
    reply = (await send(`/v1/contents/generations/tasks/${id}`)) as Reply;
  }
  assert.equal(reply.status, 'succeeded', reply.error ?? '');
  const [type, bytes] = await opened(reply.content!.video_url);
  assert.equal(type, 'video/mp4');
  assert.equal(bytes.toString('latin1', 4, 8), 'ftyp');
});

test('their charges are counted by model and upstream, to the nano-USD', async () => {
  const { charges } = await faces(running).records(customer, 8);
  const cost = charges.reduce((sum, row) => sum + row.cost, 0n);
  assert.ok(cost > 0n);
  const page = await (await fetch(`http://${metrics}/metrics`)).text();
  const samples = Array.from(page.matchAll(/^gateway_charged_nano_usd_total\{(.*)\} (\S+)$/gm));
  assert.equal(
    samples.reduce((sum, [, , value]) => sum + BigInt(value!), 0n),
    cost,
  );
  const ofVideos = samples.find(([, labels]) => labels!.includes('gen_ai_request_model="grok-imagine-video"'));
  assert.match(ofVideos![1]!, /gen_ai_provider_name="xai"/);
});
