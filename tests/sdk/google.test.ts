/** The official Google client as a black box before the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiError, FunctionCallingConfigMode, type GenerateContentParameters, GoogleGenAI } from '@google/genai';
import { watchDelay } from '../helpers/delay.ts';
import { type Demo, failing, limited, longPrompt, model, shaped, slowPrompt, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

function client(key = demo.keys.good, apiVersion = 'v1beta'): GoogleGenAI {
  return new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: demo.origin, apiVersion } });
}

const requestOf = (contents: string): GenerateContentParameters => ({ model, contents });
const config = {
  tools: [
    {
      functionDeclarations: [
        {
          name: 'get_weather',
          parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      ],
    },
  ],
  thinkingConfig: { thinkingBudget: 1_024 },
};

for (const version of ['v1', 'v1beta']) {
  test(`a whole answer is relayed, and its usage is paid and billed (${version})`, async () => {
    const call = await demo.settled(async () => {
      const answer = await client(undefined, version).models.generateContent(requestOf('How are you?'));
      assert.match(answer.text!, /How are you\?/);
      assert.equal(answer.modelVersion, model);
    });
    assert.deepEqual(call.usage, call.entry.usage);
    assert.equal(call.paid, call.due);
    assert.ok(!call.estimated && call.paid > 0n);
  });
}

test('a stream with thoughts is relayed, and its usage is paid and billed', async () => {
  const call = await demo.settled(async () => {
    let text = '';
    let thoughts = '';
    const request = { ...requestOf('Think'), config: { thinkingConfig: { includeThoughts: true } } };
    for await (const chunk of await client().models.generateContentStream(request)) {
      for (const part of chunk.candidates![0]!.content!.parts!) {
        if (part.thought) thoughts += part.text;
        else text += part.text;
      }
    }
    assert.match(text, /Think/);
    assert.notEqual(thoughts, '');
  });
  assert.deepEqual(call.usage, call.entry.usage);
  assert.ok(call.usage.reasoning! > 0);
  assert.equal(call.paid, call.due);
});

test('functions are called and their results read, with signatures in between', async () => {
  const forced = { ...config, toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } } };
  const first = await client().models.generateContent({ ...requestOf('Weather?'), config: forced });
  const [call] = first.functionCalls!;
  assert.deepEqual(call!.args, { city: 'sample city' });
  const { content } = first.candidates![0]!;
  assert.ok(content!.parts!.some((part) => part.thoughtSignature !== undefined));
  const contents = [
    { role: 'user', parts: [{ text: 'Weather?' }] },
    content!,
    { role: 'user', parts: [{ functionResponse: { name: 'get_weather', response: { output: 'Sunny' } } }] },
  ];
  const second = await client().models.generateContent({ model, contents, config });
  assert.match(second.text!, /get_weather answered: Sunny/);
});

test("images and cached prompts cost the vendor's bill, in every class", async () => {
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
  const contents = [{ role: 'user', parts: [{ text: 'See?' }, image] }];
  const request = { model, contents, config: { systemInstruction: longPrompt } };
  const first = await demo.settled(() => client().models.generateContent(request));
  const second = await demo.settled(() => client().models.generateContent(request));
  assert.ok(second.usage.cache_read! >= 1_024);
  for (const call of [first, second]) {
    assert.deepEqual(call.usage, call.entry.usage);
    assert.equal(call.paid, call.due);
  }
});

test('counting tokens is free', async () => {
  const billed = await demo.billed();
  assert.equal((await client().models.countTokens({ model, contents: 'Count me' })).totalTokens, 2);
  assert.equal(await demo.billed(), billed);
});

test('leaving a stream stops the vendor within 100 ms, and the received part is paid', async () => {
  let leftAt = 0;
  let watch = watchDelay();
  const call = await demo.settled(async () => {
    const controller = new AbortController();
    const request = { ...requestOf(slowPrompt), config: { abortSignal: controller.signal } };
    const stream = await client().models.generateContentStream(request);
    let chunks = 0;
    await assert.rejects(async () => {
      for await (const _ of stream) {
        if (++chunks !== 4) continue;
        watch = watchDelay();
        leftAt = Date.now();
        controller.abort();
      }
    }, /abort/i);
  });
  assert.equal(call.entry.outcome, 'cut');
  assert.ok(
    call.entry.endedAt - leftAt <= watch.allowedMs(100),
    `the vendor knew after ${call.entry.endedAt - leftAt} ms`,
  );
  assert.ok(call.usage.output! > 0 && call.usage.output! < 500);
  assert.equal(call.paid, call.due);
});

/** How the gateway words an error: as the protocol does, or by the code of its own shape. */
const encoded = (word: RegExp, code: string) => (shaped ? new RegExp(code) : word);

/** The client's one error class tells failures apart by their status. */
async function assertFails(sent: Promise<unknown>, status: number, word: RegExp): Promise<void> {
  await assert.rejects(sent, (error) => {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.status, status, error.message);
    assert.match(error.message, word);
    return true;
  });
}

test("every failure raises the client's own error class, and none is billed", async () => {
  const billed = await demo.billed();
  const send = (contents: string, key?: string, name = model) =>
    client(key).models.generateContent({ model: name, contents });
  await assertFails(send('[[sandbox: status=400]]'), 400, encoded(/INVALID_ARGUMENT/, 'INVALID_REQUEST'));
  await assertFails(send('Hello', 'sk-unknown'), 401, encoded(/UNAUTHENTICATED/, 'INVALID_API_KEY'));
  await assertFails(send('Hello', demo.keys.broke), 402, /balance/);
  await assertFails(send('Hello', demo.keys.narrow), 403, encoded(/PERMISSION_DENIED/, 'FORBIDDEN'));
  await assertFails(send('Hello', undefined, 'no-such-model'), 404, encoded(/NOT_FOUND/, 'MODEL_NOT_FOUND'));
  assert.equal(await demo.billed(), billed);
});

test('a rate limit is reported with retry-after', async () => {
  await client(demo.keys.tight).models.generateContent(requestOf('First'));
  const second = client(demo.keys.tight).models.generateContent(requestOf('Second'));
  await assertFails(second, 429, encoded(/RESOURCE_EXHAUSTED.*retryDelay/s, 'RATE_LIMITED'));
});

test("a vendor's own rate limit reaches the client as one", async () => {
  const request = { model: limited.model, contents: `[[sandbox: status=${limited.status}]]` };
  await assertFails(client().models.generateContent(request), 429, encoded(/RESOURCE_EXHAUSTED/, 'RATE_LIMITED'));
});

for (const { status, model: name } of failing) {
  const [reported, word] =
    status === 500 ? [502, encoded(/error/, 'UPSTREAM_ERROR')] : [503, encoded(/UNAVAILABLE/, 'UPSTREAM_ERROR')];
  test(`a vendor that fails with ${status} is reported as ${reported}`, async () => {
    const request = { model: name, contents: `[[sandbox: status=${status}]]` };
    await assertFails(client().models.generateContent(request), reported as number, word as RegExp);
    await assertFails(client().models.generateContentStream(request), reported as number, word as RegExp);
  });
}

test('an error inside a stream is raised by the client', async () => {
  const stream = await client().models.generateContentStream(requestOf('[[sandbox: mid_error=503]]'));
  await assertFails(
    (async () => {
      for await (const _ of stream);
    })(),
    503,
    /UNAVAILABLE/,
  );
});

test('the ledger passes its audit at the end', async () => {
  assert.deepEqual((await demo.audit()).violations, []);
});
