/** The sandbox paints: what it answers, what it refuses, and that it bills whether or not somebody waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { lastEntry, openai, pause, vendorFor } from './clients.ts';

const request = { model: 'm', prompt: 'A cat on a mat' };

test('images come as ordered, with the usage that is billed', async (context) => {
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

test('what it does not take is refused and not billed', async (context) => {
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

test('who leaves before the picture is painted is billed for it', async (context) => {
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
