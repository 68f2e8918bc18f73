/** Keys that wait for images, over each vendor protocol: what their orders are answered with, as official clients and the AI SDK read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { generateImage } from 'ai';
import OpenAI from 'openai';
import { accountAdmin } from '../../../plugins/common/domain/admin/accounts.ts';
import { mediaGateway, png } from './clients.ts';

const { gateway, alice } = await mediaGateway(
  (origin) => `
providers:
  openai: { keys: vendor-key, speaks: { openai-images: "${origin}/v1" } }
  google: { keys: vendor-key, speaks: { gemini-images: "${origin}/v1beta" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${origin}/imagine/v1", xai-videos: "${origin}/imagine/v1" } }
  ark: { keys: vendor-key, speaks: { ark-images: "${origin}/api/v3" } }
models:
  gpt-image-2: { owned_by: tests, kind: image, targets: [openai], price: { image: 0.01 } }
  google: { owned_by: tests, kind: image, targets: [google], price: { image: 0.01 } }
  xai: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.01 } }
  ark: { owned_by: tests, kind: image, targets: [ark], price: { image: 0.01 } }
  film: { owned_by: tests, kind: video, targets: [xai], price: { second: 0.01 } }
task-store: { callbacks: { allow_private: true } }
`,
);

const waiting = (
  await gateway.gateway.find(accountAdmin)!.createKey(alice.accountId, { name: 'waits', images: 'wait' })
).key;
const isPng = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1', 1, 4) === 'PNG';
const order = { model: 'gpt-image-2', prompt: 'a cat' };

async function answerOf(body: object, headers: Record<string, string> = {}, path = '/v1/images/generations') {
  const sent = { ...order, ...body };
  return (await alice.send('POST', path, sent, { authorization: `Bearer ${waiting}`, ...headers })).json;
}

for (const model of ['gpt-image-2', 'google', 'xai', 'ark'])
  test(`${model}: an order of a key that waits is answered with the images, also to an official client`, async () => {
    const answer = await answerOf({ model });
    assert.ok(Number.isInteger(answer.created));
    assert.ok(isPng(Buffer.from(answer.data[0].b64_json, 'base64')));
    const client = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: waiting });
    const { data } = await client.images.generate({ model, prompt: 'a cat' });
    assert.ok(isPng(Buffer.from(data![0]!.b64_json!, 'base64')));
  });

test('a request that states its form of answer gets that form, whatever its key has', async () => {
  assert.match((await answerOf({ response_format: 'url' })).data[0].url, /^http/);
  assert.equal((await answerOf({}, { prefer: 'respond-async' })).data.status, 'submitted');
  assert.equal((await answerOf({}, { prefer: 'wait, respond-async' })).data.length, 1);
  const edit = { images: [{ image_url: `data:image/png;base64,${png.toString('base64')}` }] };
  assert.equal((await answerOf(edit, { prefer: 'respond-async' }, '/v1/images/edits')).data.status, 'submitted');
});

test('an order with a callback, a video and another key of the account are answered with their task', async () => {
  assert.equal((await answerOf({ callback_url: 'http://127.0.0.1:1/done' })).data.status, 'submitted');
  const film = { model: 'film', content: [{ type: 'text', text: 'waves' }] };
  assert.equal((await answerOf(film, {}, '/v1/contents/generations/tasks')).status, 'queued');
  assert.equal((await alice.send('POST', '/v1/images/generations', order)).json.data.status, 'submitted');
});

test('the AI SDK gets its images by the key, and by "Prefer: wait" with a key of the specification', async () => {
  const of = (apiKey: string) => createOpenAI({ baseURL: `${gateway.origin}/v1`, apiKey }).image(order.model);
  const { prompt } = order;
  assert.ok(isPng((await generateImage({ model: of(waiting), prompt })).image.uint8Array));
  const headers = { prefer: 'wait' };
  assert.ok(isPng((await generateImage({ model: of(alice.key), prompt, headers })).image.uint8Array));
});

test('an error of the vendor is an error of the answer, and costs nothing', async () => {
  const before = await alice.balance();
  const answer = await answerOf({ prompt: 'x [[sandbox: status=400]]' });
  assert.equal(typeof answer.error.message, 'string');
  await alice.hasPaid(before, 0n);
});
