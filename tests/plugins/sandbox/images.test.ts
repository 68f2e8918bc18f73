/** The sandbox paints: what it answers, what it refuses, and that it bills whether or not somebody waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { lastEntry, openai, pause, vendorFor } from './clients.ts';

const request = { model: 'm', prompt: 'A cat on a mat' };

test('images are made as ordered, with the billed usage', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await openai(vendor).images.generate({ ...request, n: 2, size: '1024x1536', quality: 'high' });
  assert.equal(answer.data!.length, 2);
  assert.equal(Buffer.from(answer.data![0]!.b64_json!, 'base64').subarray(1, 4).toString(), 'PNG');
  assert.deepEqual([answer.size, answer.quality, answer.usage!.output_tokens], ['1024x1536', 'high', 12_480]);
  const entry = await lastEntry(vendor);
  assert.deepEqual(
    [entry.protocol, entry.outcome, entry.usage],
    ['images', 'complete', { input: 4, output_image: 12_480, image: 2 }],
  );
});

test('an unsupported order is refused and not billed', async (context) => {
  const vendor = await vendorFor(context, { key: 'right' });
  const send = (body: object, key = 'right') =>
    openai(vendor, key).images.generate({ ...request, ...body } as OpenAI.ImageGenerateParamsNonStreaming);
  await assert.rejects(send({ size: '16:9' }), OpenAI.BadRequestError);
  await assert.rejects(send({ n: 11 }), OpenAI.BadRequestError);
  await assert.rejects(send({ quality: 'best' }), OpenAI.BadRequestError);
  await assert.rejects(send({ prompt: '' }), OpenAI.BadRequestError);
  await assert.rejects(send({}, 'wrong'), OpenAI.AuthenticationError);
  await assert.rejects(send({ prompt: '[[sandbox: status=429 retry_after=7]]' }), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.headers.get('retry-after'), '7');
    return true;
  });
  assert.equal(vendor.bill().requests, 0);
});

test('an answer without usage, without images, or cut in its middle is billed', async (context) => {
  const vendor = await vendorFor(context);
  const send = (order: string) => openai(vendor).images.generate({ ...request, prompt: `A cat [[sandbox: ${order}]]` });
  assert.equal((await send('no_usage')).usage, undefined);
  assert.deepEqual((await send('empty')).data, []);
  await assert.rejects(send('cut_after=0'));
  assert.equal((await lastEntry(vendor)).outcome, 'cut');
  assert.equal(vendor.bill().requests, 3);
});

test('a client that disconnects before the picture is finished is billed for it', async (context) => {
  const vendor = await vendorFor(context);
  const controller = new AbortController();
  const prompt = 'A cat [[sandbox: delay=10s]]';
  const sent = openai(vendor).images.generate({ ...request, prompt }, { signal: controller.signal });
  while (vendor.bill().open === 0) await pause(5);
  controller.abort();
  await assert.rejects(sent);
  const entry = await lastEntry(vendor);
  assert.deepEqual([entry.outcome, entry.usage.image], ['cut', 1]);
});

test('a stream has its previews and the image, and is billed for the sent part', async (context) => {
  const vendor = await vendorFor(context);
  const stream = async (order: string, previews: number) => {
    const prompt = `A cat [[sandbox: ${order}]]`;
    const types: string[] = [];
    const events = await openai(vendor).images.generate({ ...request, prompt, stream: true, partial_images: previews });
    for await (const event of events) types.push(event.type.replace('image_generation.', ''));
    return types;
  };
  assert.deepEqual(await stream('chunk_delay=1ms', 2), ['partial_image', 'partial_image', 'completed']);
  assert.deepEqual((await lastEntry(vendor)).usage, { input: 2, output_image: 1_056 + 200, image: 1 });
  assert.deepEqual(await stream('no_terminal', 1), ['partial_image']);
  await assert.rejects(stream('cut_after=1', 3));
  await assert.rejects(stream('mid_error', 2), OpenAI.APIError);
  const entry = await lastEntry(vendor);
  assert.deepEqual([entry.outcome, entry.usage], ['cut', { input: 2, output_image: 100 }]);
  assert.equal(vendor.bill().requests, 4);
  await assert.rejects(stream('first_error', 1), OpenAI.APIError);
  await assert.rejects(stream('delay=1ms', 4), OpenAI.BadRequestError);
  assert.equal(vendor.bill().requests, 4);
});

test('edits are sent as a form with files; other bodies are refused', async (context) => {
  const vendor = await vendorFor(context);
  const image = new File([Buffer.from('picture')], 'cat.png', { type: 'image/png' });
  const edited = await openai(vendor).images.edit({ ...request, image: [image, image], mask: image });
  assert.equal(edited.usage!.input_tokens_details.image_tokens, 388);
  assert.deepEqual((await lastEntry(vendor)).usage, { input: 4, input_image: 388, output_image: 1_056, image: 1 });
  const send = (form: FormData | string, type?: string) =>
    fetch(`${vendor.origin}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: 'Bearer key', ...(type === undefined ? {} : { 'content-type': type }) },
      body: form,
    });
  const without = new FormData();
  without.set('model', 'm');
  without.set('prompt', 'A cat');
  assert.equal((await send(without)).status, 400);
  without.set('image', 'no file');
  assert.equal((await send(without)).status, 400);
  assert.equal((await send('--b\r\n', 'multipart/form-data; boundary=b')).status, 400);
});
