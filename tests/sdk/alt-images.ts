/** Images by the official OpenAI client before the second gateway: painted, billed and paid twice over. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { startDemo } from './demo.ts';

const model = 'gpt-image-2';
let demo: Awaited<ReturnType<typeof startDemo>>;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

function client(key = demo.keys.good): OpenAI {
  return new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
}

test('images are generated, and the received ones are paid and billed', async () => {
  const call = await demo.settled(async () => {
    const answer = await client().images.generate({ model, prompt: 'A cat', n: 3, size: '1024x1536', quality: 'low' });
    assert.equal(answer.data!.length, 3);
    assert.ok(answer.data!.every((image) => image.b64_json!.length > 0));
    assert.equal(answer.usage!.output_tokens, 3 * 408);
  }, ['1024x1536', 'low']);
  assert.deepEqual(call.usage, call.entry.usage);
  assert.equal(call.usage.image, 3);
  assert.equal(call.paid, call.due);
  assert.ok(!call.estimated && call.paid > 0n);
});

test('a stream is paid and billed like any image; one that breaks raises with the code of the shape, and is not paid', async () => {
  const usual = { model, stream: true, size: '1024x1024', quality: 'low', partial_images: 2 } as const;
  const call = await demo.settled(async () => {
    const types: string[] = [];
    const events = await client().images.generate({ ...usual, prompt: 'A cat' });
    for await (const event of events) types.push(event.type.replace('image_generation.', ''));
    assert.deepEqual(types, ['partial_image', 'partial_image', 'completed']);
  }, ['1024x1024', 'low']);
  assert.deepEqual(call.usage, call.entry.usage);
  assert.deepEqual([call.usage.image, call.usage.output_image, call.paid], [1, 472, call.due]);
  const broken = async () => {
    const events = await client().images.generate({ ...usual, prompt: 'A cat [[sandbox: cut_after=1]]' });
    for await (const event of events) assert.equal(event.type, 'image_generation.partial_image');
  };
  await assert.rejects(broken, (error) => error instanceof OpenAI.APIError && error.code === 'UPSTREAM_ERROR');
});

test("every failure raises the client's own error class with the code of the shape, and none is billed", async () => {
  const billed = await demo.billed();
  const cases: readonly [body: object, status: number, code: string, key?: string][] = [
    [{ prompt: '[[sandbox: status=400]]' }, 400, 'INVALID_REQUEST'],
    [{ prompt: 'A cat', size: 'huge' }, 400, 'INVALID_REQUEST'],
    [{ prompt: 'A cat', n: 11 }, 400, 'INVALID_REQUEST'],
    [{ prompt: 'A cat', model: 'gpt-5.4-mini' }, 400, 'INVALID_REQUEST'],
    [{ prompt: 'A cat' }, 401, 'INVALID_API_KEY', 'sk-unknown'],
    [{ prompt: 'A cat' }, 402, 'INSUFFICIENT_BALANCE', demo.keys.broke],
    [{ prompt: 'A cat' }, 403, 'FORBIDDEN', demo.keys.narrow],
    [{ prompt: 'A cat', model: 'no-such-model' }, 404, 'MODEL_NOT_FOUND'],
    [{ prompt: '[[sandbox: status=503]]' }, 503, 'UPSTREAM_ERROR'],
    [{ prompt: '[[sandbox: status=429]]' }, 429, 'RATE_LIMITED'],
  ];
  for (const [body, status, code, key] of cases) {
    const request = { model, ...body } as OpenAI.ImageGenerateParamsNonStreaming;
    await assert.rejects(client(key).images.generate(request), (error) => {
      assert.ok(error instanceof OpenAI.APIError, String(error));
      assert.deepEqual([error.status, error.code], [status, code]);
      return true;
    });
  }
  assert.equal(await demo.billed(), billed);
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
