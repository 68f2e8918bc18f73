/** Models that make images, called by generateContent: relayed to a vendor that speaks it, else by an order; as Google's SDK has them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGoogle } from '@ai-sdk/google';
import { GoogleGenAI } from '@google/genai';
import { generateText, streamText } from 'ai';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { clientOf, mediaGateway, png } from './clients.ts';

const { gateway, alice } = await mediaGateway(
  (origin) => `
providers:
  google: { keys: vendor-key, speaks: { gemini: "${origin}/v1beta", gemini-images: "${origin}/v1beta" } }
  painter: { keys: vendor-key, speaks: { gemini-images: "${origin}/v1beta" } }
  openai: { keys: vendor-key, speaks: { chat: "${origin}/v1", openai-images: "${origin}/v1" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${origin}/imagine/v1" } }
  ark: { keys: vendor-key, speaks: { ark-images: "${origin}/api/v3" } }
models:
  gemini-3-image: { owned_by: tests, kind: image, targets: [google], price: { image: { default: 0.1, 4k: 0.2 } } }
  gemini-tokens: { owned_by: tests, kind: image, targets: [google/g-image], price: { input: 2, output: 12, output_image: 120 } }
  painter: { owned_by: tests, kind: image, targets: [painter], price: { image: { default: 0.1, 4k: 0.2 } } }
  openai: { owned_by: tests, kind: image, targets: [openai], price: { image: 0.1 } }
  xai: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.1 } }
  ark: { owned_by: tests, kind: image, targets: [ark], price: { image: 0.1 } }
  talk: { owned_by: tests, targets: [google], price: { input: 1, output: 1 } }
`,
  {
    plugins: 'protocol-convert, files',
    auth: '{ public: [], carriers: [bearer, x-goog-api-key] }',
  },
);
const painters = ['gemini-3-image', 'painter', 'openai', 'xai', 'ark'];

const sdk = () => new GoogleGenAI({ apiKey: alice.key, httpOptions: { baseUrl: gateway.origin } });
const isPng = (base64 = '') => Buffer.from(base64, 'base64').toString('latin1', 1, 4) === 'PNG';
const shown = { inlineData: { mimeType: 'image/png', data: png.toString('base64') } };
// biome-ignore lint/suspicious/noExplicitAny: answers are looked into.
const pictures = (answer: any) =>
  answer.candidates.flatMap(
    ({ content }: { content?: { parts: { inlineData?: { data: string }; thought?: boolean }[] } }) =>
      (content?.parts ?? []).flatMap(({ inlineData, thought }) => (inlineData && !thought ? [inlineData.data] : [])),
  );

for (const model of painters) {
  test(`${model}: Google's SDK gets the image, whole and streamed, and each is paid by its price`, async () => {
    const contents = [{ role: 'user', parts: [{ text: 'A cat' }, shown] }];
    const before = await alice.balance();
    const whole = await sdk().models.generateContent({ model, contents });
    assert.ok(isPng(pictures(whole)[0]));
    assert.ok(whole.usageMetadata?.totalTokenCount !== undefined);
    await alice.hasPaid(before, parseUsd('0.1'));
    const streamed: string[] = [];
    const config = { responseModalities: ['TEXT', 'IMAGE'] };
    for await (const chunk of await sdk().models.generateContentStream({ model, contents, config }))
      streamed.push(...pictures(chunk));
    assert.ok(isPng(streamed[0]));
    await alice.hasPaid(before, parseUsd('0.2'));
  });

  test(`${model}: the AI SDK gets the image, whole and streamed, and each is paid by its price`, async () => {
    const google = createGoogle({ apiKey: alice.key, baseURL: `${gateway.origin}/v1beta` });
    const requested = { model: google(model), prompt: 'A cat', maxRetries: 0 };
    const before = await alice.balance();
    const whole = await generateText(requested);
    assert.ok(isPng(whole.files[0]?.base64));
    const streamed = await streamText(requested).files;
    assert.ok(isPng(streamed[0]?.base64));
    await alice.hasPaid(before, parseUsd('0.2'));
  });

  test(`${model}: a refusal of the vendor has Google's form, and costs nothing`, async () => {
    const before = await alice.balance();
    const contents = [{ parts: [{ text: 'x [[sandbox: status=400]]' }] }];
    const { status, json } = await alice.send('POST', `/v1beta/models/${model}:generateContent`, { contents });
    assert.deepEqual([status, json.error.code, json.error.status], [400, 400, 'INVALID_ARGUMENT']);
    await alice.hasPaid(before, 0n);
  });
}

test('a larger image is paid by its own price, relayed and ordered', async () => {
  for (const model of ['gemini-3-image', 'painter']) {
    const before = await alice.balance();
    const generationConfig = { responseModalities: ['IMAGE'], imageConfig: { imageSize: '4K', aspectRatio: '16:9' } };
    const body = { contents: [{ parts: [{ text: 'A cat' }] }], generationConfig };
    const { json } = await alice.send('POST', `/v1beta/models/${model}:generateContent`, body);
    assert.equal(pictures(json).length, 1);
    await alice.hasPaid(before, parseUsd('0.2'));
  }
});

test("a model with token prices is paid by the vendor's reported tokens", async () => {
  const before = await alice.balance();
  const contents = [{ parts: [{ text: 'A cat' }] }];
  const { json } = await alice.send('POST', '/v1beta/models/gemini-tokens:generateContent', { contents });
  const { promptTokenCount, candidatesTokenCount } = json.usageMetadata;
  await alice.hasPaid(before, BigInt(promptTokenCount * 2_000 + candidatesTokenCount * 120_000));
});

test('an impossible order is refused by its field, and unsupported settings are named', async () => {
  const send = (more: object, query = '') =>
    alice.send('POST', `/v1beta/models/openai:generateContent${query}`, {
      contents: [{ parts: [{ text: 'A cat' }] }],
      ...more,
    });
  const refusals: [object, RegExp][] = [
    [{ tools: [{ googleSearch: {} }] }, /tools/],
    [{ generationConfig: { responseModalities: ['TEXT'] } }, /images/],
    [{ contents: [] }, /contents/],
    [{ contents: [{ parts: [{ text: 'x' }, { functionCall: { name: 'f' } }] }] }, /functionCall/],
    [{ generationConfig: { imageConfig: { imageSize: '9K' } } }, /4K/],
  ];
  for (const [more, message] of refusals) {
    const { status, json } = await send(more);
    assert.deepEqual([status, message.test(json.error.message)], [400, true], JSON.stringify(json));
  }
  const reply = await send({ generationConfig: { temperature: 1 }, safetySettings: [{ category: 'X' }] });
  assert.equal(reply.headers.get('x-gateway-dropped'), 'safetySettings, generationConfig.temperature');
  assert.ok(isPng(pictures(reply.json)[0]));
});

test('a flat request is answered in the form of the specification, an official one in camelCase, ordered and relayed', async () => {
  for (const model of ['gemini-3-image', 'openai']) {
    const contents = [{ parts: [{ text: 'A cat' }] }];
    const address = `/v1beta/models/${model}:generateContent`;
    const flat = await alice.send('POST', address, { contents, candidate_count: 1 });
    const [candidate] = flat.json.candidates;
    const inline = candidate.content.parts.find((part: object) => 'inline_data' in part).inline_data;
    assert.ok(isPng(inline.data));
    assert.deepEqual([inline.mime_type, candidate.finish_reason], ['image/png', 'STOP']);
    assert.equal(typeof flat.json.model_version, 'string');
    assert.ok(Number.isSafeInteger(flat.json.created));
    assert.ok(flat.json.usage_metadata.total_token_count >= 0);
    assert.doesNotMatch(Object.keys(flat.json).join(), /[A-Z]/);
    const official = await alice.send('POST', address, { contents, generationConfig: { candidateCount: 1 } });
    assert.equal(pictures(official.json).length, 1);
    assert.equal(official.json.created, undefined);
  }
});

test('the list names generateContent for models that are relayed and for those that are ordered', async () => {
  const { json } = await alice.send('GET', '/v1beta/models', undefined, { 'x-goog-api-key': alice.key });
  for (const model of painters) {
    const listed = json.models.find(({ name }: { name: string }) => name === `models/${model}`);
    assert.deepEqual(listed.supportedGenerationMethods, ['generateContent'], model);
  }
});

test('each of several candidates is held before it is generated', async () => {
  for (const model of ['gemini-3-image', 'openai']) {
    const poor = await clientOf(gateway, `poor-${model}`, 'free', '0.35');
    const contents = [{ parts: [{ text: 'A cat' }] }];
    const send = (candidateCount: number) =>
      poor.send('POST', `/v1beta/models/${model}:generateContent`, { contents, generationConfig: { candidateCount } });
    const refused = await send(4);
    assert.equal(refused.status, 402, JSON.stringify(refused.json));
    assert.equal((await send(3)).status, 200);
  }
});

test('models of conversations are answered as before, and an unknown one is not found', async () => {
  const contents = [{ parts: [{ text: 'Hello' }] }];
  const talk = await alice.send('POST', '/v1beta/models/talk:generateContent', { contents });
  assert.match(talk.json.candidates[0].content.parts[0].text, /\w/);
  assert.equal((await alice.send('POST', '/v1beta/models/none:generateContent', { contents })).status, 404);
  const messages = [{ role: 'user', content: 'Hello' }];
  const chat = await alice.send('POST', '/v1/chat/completions', { model: 'openai', messages });
  assert.deepEqual([chat.status, chat.json.error.code], [400, 'model_kind']);
});
