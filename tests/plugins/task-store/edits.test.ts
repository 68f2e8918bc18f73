/** `POST /v1/images/edits` through a whole gateway, over each vendor protocol: forms and JSON, masks, the official client; paid as billed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { ended, mediaGateway, mp4, png } from './clients.ts';

const { vendor, gateway, alice } = await mediaGateway(
  (origin) => `
providers:
  openai: { keys: vendor-key, speaks: { openai-images: "${origin}/v1" } }
  google: { keys: vendor-key, speaks: { gemini-images: "${origin}/v1beta" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${origin}/imagine/v1" } }
  ark: { keys: vendor-key, speaks: { ark-images: "${origin}/api/v3" } }
models:
  openai: { owned_by: tests, kind: image, targets: [openai], price: { image: 0.01, input_image: 8, output_image: 30, input: 5 } }
  google: { owned_by: tests, kind: image, targets: [google], price: { image: 0.01 } }
  xai: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.01 } }
  ark: { owned_by: tests, kind: image, targets: [ark], price: { image: 0.01 } }
`,
);
const models = ['openai', 'google', 'xai', 'ark'];

const dataUrl = `data:image/png;base64,${png.toString('base64')}`;
const upload = new Blob([new Uint8Array(png)], { type: 'image/png' });
const isPng = (base64: string) => Buffer.from(base64, 'base64').toString('latin1', 1, 4) === 'PNG';

function formWith(model: string, images: number, more: Record<string, string> = {}): FormData {
  const form = new FormData();
  form.set('model', model);
  form.set('prompt', 'A hat for the cat');
  for (let index = 0; index < images; index += 1) form.append('image[]', upload, `cat-${index}.png`);
  for (const [name, value] of Object.entries(more)) form.set(name, value);
  return form;
}

for (const model of models) {
  test(`${model}: a form and JSON get the official answer, and are paid as the vendor bills`, async () => {
    const before = await alice.balance();
    const billed = vendor.bill().requests;
    const form = await alice.send('POST', '/v1/images/edits', formWith(model, 2));
    const body = { model, prompt: 'A hat', images: [{ image_url: dataUrl }], response_format: 'b64_json' };
    const json = await alice.send('POST', '/v1/images/edits', body);
    for (const reported of [form, json]) {
      assert.equal(reported.status, 200, JSON.stringify(reported.json));
      assert.equal(reported.json.data.length, 1);
      assert.ok(isPng(reported.json.data[0].b64_json));
    }
    const { requests, recent } = vendor.bill();
    assert.equal(requests - billed, 2);
    const due = recent.slice(-2).reduce((sum, { usage }) => {
      const micro = (tokens: number | undefined, price: number) => (model === 'openai' ? (tokens ?? 0) * price : 0);
      const { input, input_image: shown, output_image: painted } = usage;
      // Where tokens are reported and priced, the picture's own price comes on top.
      return sum + 10_000 + micro(input, 5) + micro(shown, 8) + micro(painted, 30);
    }, 0);
    await alice.hasPaid(before, parseUsd((due / 1e6).toFixed(6)));
  });

  test(`${model}: fourteen reference images are sent; fifteen are refused before anything is held`, async () => {
    const images = (count: number) => Array.from({ length: count }, () => ({ image_url: dataUrl }));
    const all = await alice.send('POST', '/v1/images/edits', { model, prompt: 'All', images: images(14) });
    assert.equal(all.status, 200, JSON.stringify(all.json));
    const form = await alice.send('POST', '/v1/images/edits', formWith(model, 14));
    assert.equal(form.status, 200, JSON.stringify(form.json));
    const before = await alice.balance();
    const many = await alice.send('POST', '/v1/images/edits', { model, prompt: 'All', images: images(15) });
    assert.deepEqual([many.status, many.json.error.param], [400, 'images']);
    await alice.hasPaid(before, 0n);
  });
}

test('the official client edits by files, with a mask where the model accepts one', async () => {
  const client = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: alice.key, maxRetries: 0 });
  const file = (name: string) => toFile(png, name, { type: 'image/png' });
  const edit = async (model: string) =>
    client.images.edit({
      model,
      prompt: 'A hat',
      image: [await file('a.png'), await file('b.png')],
      mask: await file('m.png'),
    });
  const made = await edit('openai');
  assert.ok(isPng(made.data![0]!.b64_json!));
  assert.ok(made.usage!.input_tokens_details.image_tokens > 0);
  for (const model of models.slice(1)) {
    await assert.rejects(edit(model), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, String(error));
      assert.deepEqual([error.param, error.code], ['mask', 'unsupported_by_model']);
      return true;
    });
  }
});

test('a client that prefers a task gets one', async () => {
  const reply = await alice.send('POST', '/v1/images/edits', formWith('xai', 1), { prefer: 'respond-async' });
  assert.deepEqual(reply.json, { code: 200, data: { id: reply.json.data.id, status: 'submitted' } });
  const end = await ended(alice, `/v1/tasks/${reply.json.data.id}`);
  assert.equal(end.data.status, 'completed');
});

test('a file that is no image is named as such', async () => {
  const contents: readonly [name: string, bytes: Buffer, message: RegExp][] = [
    ['a text', Buffer.from('This is a text and no image at all.'), /is not an image/],
    ['a few bytes', Buffer.from('hi'), /is not an image/],
    ['an address', Buffer.from('https://images.example.com/cat.png'), /is not an image/],
    ['a film', mp4, /is not an image/],
    ['nothing', Buffer.alloc(0), /is empty/],
  ];
  for (const field of ['image', 'mask'])
    for (const [name, bytes, message] of contents) {
      const form = formWith('openai', field === 'image' ? 0 : 1);
      form.append(field, new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'cat.png');
      const { status, json } = await alice.send('POST', '/v1/images/edits', form);
      assert.deepEqual([status, json.error.param], [400, field === 'image' ? 'image[0]' : 'mask'], name);
      assert.match(json.error.message, message, name);
      assert.doesNotMatch(json.error.message, /URL|base64/, name);
    }
});

test('an invalid form, or a wrong member of it, is a 400 that names the field', async () => {
  const send = async (body: FormData) => {
    const { status, json } = await alice.send('POST', '/v1/images/edits', body);
    return [status, json.error.param];
  };
  assert.deepEqual(await send(formWith('openai', 0)), [400, 'image']);
  assert.deepEqual(await send(formWith('openai', 1, { n: '11' })), [400, 'n']);
  assert.deepEqual(await send(formWith('openai', 1, { size: 'huge' })), [400, 'size']);
  const torn = await fetch(`${gateway.origin}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${alice.key}`, 'content-type': 'multipart/form-data; boundary=b' },
    body: '--b\r\nnothing',
  });
  assert.equal(torn.status, 400);
});
