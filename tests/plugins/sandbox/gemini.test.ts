/** generateContent of the sandbox as the official client sees it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FunctionCallingConfigMode, type FunctionDeclaration, type GenerateContentResponse } from '@google/genai';
import { google, lastEntry, longText, vendorFor, weatherSchema } from './clients.ts';

const requestOf = (contents: string) => ({ model: 'any-model', contents });
const weather: FunctionDeclaration = { name: 'get_weather', parametersJsonSchema: weatherSchema };

async function collect(stream: AsyncIterable<GenerateContentResponse>): Promise<GenerateContentResponse[]> {
  const chunks: GenerateContentResponse[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

test('a whole answer refers to the prompt, and its usage is on the bill', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await google(vendor).models.generateContent(requestOf('How tall is the tower?'));
  assert.match(answer.text!, /How tall is the tower\?.*any-model/);
  assert.equal(answer.candidates![0]!.finishReason, 'STOP');
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.input, answer.usageMetadata!.promptTokenCount);
  assert.equal(usage.output, answer.usageMetadata!.candidatesTokenCount);
});

test('a stream has the same text, with usage that grows to the whole', async (context) => {
  const vendor = await vendorFor(context);
  const whole = await google(vendor).models.generateContent(requestOf('Twice'));
  const chunks = await collect(await google(vendor).models.generateContentStream(requestOf('Twice')));
  assert.equal(chunks.map((chunk) => chunk.text ?? '').join(''), whole.text);
  assert.deepEqual(chunks.at(-1)!.usageMetadata, whole.usageMetadata);
  assert.equal(chunks.at(-1)!.candidates![0]!.finishReason, 'STOP');
  const counts = chunks.map((chunk) => chunk.usageMetadata!.candidatesTokenCount!);
  assert.deepEqual(
    counts,
    counts.toSorted((one, other) => one - other),
  );
});

test('events have CRLF line ends; without alt=sse the stream is a JSON array', async (context) => {
  const vendor = await vendorFor(context);
  const post = (query: string) =>
    fetch(`${vendor.origin}/v1beta/models/any-model:streamGenerateContent${query}`, {
      method: 'POST',
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Frames' }] }] }),
    }).then((answer) => answer.text());
  const events = await post('?alt=sse');
  assert.match(events, /^(data: \{"candidates": \[.*\}\r\n\r\n)+$/);
  const array = JSON.parse(await post('')) as unknown[];
  assert.equal(array.length, events.split('\r\n\r\n').length - 1);
});

test('requested thoughts are shown, signed, and counted apart', async (context) => {
  const vendor = await vendorFor(context);
  const request = {
    ...requestOf('Think'),
    config: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } },
  };
  const answer = await google(vendor).models.generateContent(request);
  const parts = answer.candidates![0]!.content!.parts!;
  assert.equal(parts[0]!.thought, true);
  assert.ok(parts[1]!.thoughtSignature !== undefined);
  const { usage } = await lastEntry(vendor);
  assert.equal(usage.reasoning, answer.usageMetadata!.thoughtsTokenCount);
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount, totalTokenCount } = answer.usageMetadata!;
  assert.equal(totalTokenCount, promptTokenCount! + candidatesTokenCount! + thoughtsTokenCount!);
  const chunks = await collect(await google(vendor).models.generateContentStream(request));
  assert.deepEqual(chunks.at(-1)!.usageMetadata, answer.usageMetadata);
});

test("a forced function is called, its result is read, and only the vendor's own signatures are accepted", async (context) => {
  const client = google(await vendorFor(context));
  const config = {
    tools: [{ functionDeclarations: [weather] }],
    thinkingConfig: { thinkingBudget: 1024 },
    toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } },
  };
  const first = await client.models.generateContent({ ...requestOf('Weather?'), config });
  const [call] = first.functionCalls!;
  assert.deepEqual(call!.args, { city: 'sample city', unit: 'celsius' });
  const [streamed] = (
    await collect(await client.models.generateContentStream({ ...requestOf('Weather?'), config }))
  ).flatMap((chunk) => chunk.functionCalls ?? []);
  assert.deepEqual(streamed!.args, call!.args);
  const { toolConfig: _, ...free } = config;
  const contents = [
    { role: 'user', parts: [{ text: 'Weather?' }] },
    first.candidates![0]!.content!,
    { role: 'user', parts: [{ functionResponse: { name: call!.name!, response: { output: 'Fog' } } }] },
  ];
  const second = await client.models.generateContent({ model: 'any-model', contents, config: free });
  assert.match(second.text!, /get_weather answered: Fog/);
  first.candidates![0]!.content!.parts![0]!.thoughtSignature = 'Zm9yZWlnbg==';
  await assert.rejects(client.models.generateContent({ model: 'any-model', contents, config: free }), /Corrupted/);
});

test('an answer follows its schema in either dialect', async (context) => {
  const client = google(await vendorFor(context));
  for (const config of [{ responseJsonSchema: weatherSchema }, { responseSchema: weatherSchema }]) {
    const answer = await client.models.generateContent({
      ...requestOf('JSON'),
      config: { responseMimeType: 'application/json', ...config } as object,
    });
    assert.deepEqual(JSON.parse(answer.text!), { city: 'sample city', unit: 'celsius' });
  }
});

test('candidates, bounds and stop sequences are followed', async (context) => {
  const client = google(await vendorFor(context));
  const several = await client.models.generateContent({ ...requestOf('Choose'), config: { candidateCount: 2 } });
  assert.equal(several.candidates!.length, 2);
  const short = await client.models.generateContent({ ...requestOf('Long'), config: { maxOutputTokens: 5 } });
  assert.equal(short.candidates![0]!.finishReason, 'MAX_TOKENS');
  assert.equal(short.usageMetadata!.candidatesTokenCount, 5);
  const stopped = await client.models.generateContent({
    ...requestOf('alpha beta'),
    config: { stopSequences: ['beta'] },
  });
  assert.ok(stopped.text!.endsWith('alpha '));
});

test('a long prefix is read from the cache the second time', async (context) => {
  const vendor = await vendorFor(context);
  const request = (contents: string) => ({ model: 'any-model', contents, config: { systemInstruction: longText } });
  const first = await google(vendor).models.generateContent(request('One?'));
  const second = await google(vendor).models.generateContent(request('Two?'));
  assert.equal(first.usageMetadata!.cachedContentTokenCount, undefined);
  assert.ok(second.usageMetadata!.cachedContentTokenCount! >= 1024);
  assert.equal((await lastEntry(vendor)).usage.cache_read, second.usageMetadata!.cachedContentTokenCount);
});

test('images are acknowledged and counted by modality', async (context) => {
  const vendor = await vendorFor(context);
  const parts = [{ text: 'See?' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }];
  const answer = await google(vendor).models.generateContent({
    model: 'any-model',
    contents: [{ role: 'user', parts }],
  });
  assert.match(answer.text!, /I also see 1 image/);
  const image = answer.usageMetadata!.promptTokensDetails!.find(({ modality }) => modality === 'IMAGE')!;
  assert.equal((await lastEntry(vendor)).usage.input_image, image.tokenCount);
});

test('a blocked prompt has feedback and no candidates', async (context) => {
  const vendor = await vendorFor(context);
  const answer = await google(vendor).models.generateContent(requestOf('[[sandbox: refuse]]'));
  assert.equal(answer.candidates, undefined);
  assert.equal(answer.promptFeedback!.blockReason, 'SAFETY');
  const chunks = await collect(await google(vendor).models.generateContentStream(requestOf('[[sandbox: refuse]]')));
  assert.equal(chunks[0]!.promptFeedback!.blockReason, 'SAFETY');
  assert.equal((await lastEntry(vendor)).usage.output, undefined);
});

test('members in snake_case are accepted, and unknown ones are refused by name', async (context) => {
  const vendor = await vendorFor(context);
  const post = (body: object) =>
    fetch(`${vendor.origin}/v1/models/any-model:generateContent?key=anything`, {
      method: 'POST',
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Snake' }] }], ...body }),
    });
  const snake = await post({ generation_config: { max_output_tokens: 2 } });
  assert.match(await snake.text(), /MAX_TOKENS/);
  const unknown = await post({ stream: true });
  assert.equal(unknown.status, 400);
  assert.match(await unknown.text(), /Unknown name \\"stream\\"/);
});

test('counting tokens agrees with the usage of the answer and is not billed', async (context) => {
  const vendor = await vendorFor(context);
  const counted = await google(vendor).models.countTokens(requestOf('Count me'));
  assert.equal(vendor.bill().requests, 0);
  const answer = await google(vendor).models.generateContent(requestOf('Count me'));
  assert.equal(counted.totalTokens, answer.usageMetadata!.promptTokenCount);
});

test('an abort in mid-stream is billed for the sent part', async (context) => {
  const vendor = await vendorFor(context);
  const controller = new AbortController();
  const stream = await google(vendor).models.generateContentStream({
    ...requestOf('Slow [[sandbox: chunk_delay=20ms tokens=500]]'),
    config: { abortSignal: controller.signal },
  });
  let chunks = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) if (++chunks === 3) controller.abort();
  }, /abort/i);
  const entry = await lastEntry(vendor);
  assert.equal(entry.outcome, 'cut');
  assert.ok(entry.usage.output! > 0 && entry.usage.output! < 500);
});
