/** Where vendors put counters beside the usual place: iterations, usage of choices, reports that leave some out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../../../plugins/common/domain/calls.ts';
import { OllamaUsageMeter } from '../../../../plugins/ollama/usage-meter.ts';
import { usageMetadata } from '../../../../plugins/protocol-convert/protocols/gemini/usage.ts';
import { GeminiUsageMeter } from '../../../../plugins/protocol-convert/protocols/gemini/usage-meter.ts';
import { fc } from '../../../helpers/properties.ts';
import { readBody, relay, streamAnswer, wholeAnswer } from '../harness.ts';

const paths = {
  chat: ['/v1/chat/completions', { model: 'm', messages: [] }],
  messages: ['/v1/messages', { model: 'm', max_tokens: 9, messages: [] }],
  gemini: ['/v1beta/models/m:generateContent', { contents: [] }],
} as const;

async function metered(protocol: keyof typeof paths, body: object) {
  const [path, request] = paths[protocol];
  return (await relay({ path, body: request }, wholeAnswer(JSON.stringify(body)))).report!;
}
const usageOf = async (protocol: keyof typeof paths, body: object) => (await metered(protocol, body)).usage;
const count = fc.nat(100_000);

/** A stream of the messages protocol with these usages: at its start, then in each `message_delta`. */
async function streamed(start: object, ...deltas: readonly object[]) {
  const frames = [
    { type: 'message_start', message: { id: 'm', content: [], usage: start } },
    ...deltas.map((usage) => ({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })),
    { type: 'message_stop' },
  ];
  const chunks = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`);
  const [path, request] = paths.messages;
  const { answer, report } = await relay({ path, body: { ...request, stream: true } }, streamAnswer(chunks));
  await readBody(answer.body);
  return report!.usage;
}

test('the usage of an answer is the sum of its iterations, whatever the counters on top include', async () => {
  const compaction = { type: 'compaction', input_tokens: 1_000, output_tokens: 100 };
  const own = { type: 'message', input_tokens: 10, output_tokens: 5 };
  for (const top of [
    { input_tokens: 10, output_tokens: 5 },
    { input_tokens: 1_010, output_tokens: 105 },
  ]) {
    const usage = { ...top, iterations: [compaction, own] };
    assert.deepEqual(await usageOf('messages', { content: [], usage }), { input: 1_010, output: 105 });
    assert.deepEqual(await streamed({ input_tokens: 10, output_tokens: 1 }, usage), { input: 1_010, output: 105 });
  }
  const advice = { type: 'advisor_message', model: 'm', input_tokens: 800, output_tokens: 90 };
  const retry = { type: 'fallback_message', model: 'm', input_tokens: 10, output_tokens: 7 };
  const all = { input_tokens: 10, output_tokens: 5, iterations: [own, advice, retry, null, 7] };
  assert.deepEqual(await usageOf('messages', { content: [], usage: all }), { input: 820, output: 102 });
});

test('tokens that a compaction read from the cache are counted once, though the start of the stream had them too', async () => {
  const start = { input_tokens: 3, cache_read_input_tokens: 5_000, cache_creation_input_tokens: 0, output_tokens: 1 };
  const iterations = [
    { type: 'compaction', input_tokens: 3, cache_read_input_tokens: 5_000, output_tokens: 400 },
    { type: 'message', input_tokens: 410, cache_read_input_tokens: 0, output_tokens: 20 },
  ];
  const end = { input_tokens: 410, cache_read_input_tokens: 0, output_tokens: 20, iterations };
  assert.deepEqual(await streamed(start, end), { input: 413, cache_read: 5_000, cache_write_5m: 0, output: 420 });
  // A later report without them keeps the larger counter.
  const grown = await streamed(
    { ...start, iterations: [{ type: 'message', input_tokens: 3, output_tokens: 1 }] },
    {
      output_tokens: 50,
    },
  );
  assert.equal(grown.output, 50);
});

const run = fc.record({
  type: fc.constantFrom('message', 'compaction', 'advisor_message', 'fallback_message'),
  input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation: fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
  output_tokens: count,
});

test('iterations at random: each of their tokens is counted once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(run, { minLength: 1, maxLength: 5 }), run, run, async (runs, start, end) => {
      const iterations = runs.map((one) => ({
        ...one,
        cache_creation_input_tokens:
          one.cache_creation.ephemeral_5m_input_tokens + one.cache_creation.ephemeral_1h_input_tokens,
      }));
      const sum = (of: (one: (typeof iterations)[number]) => number) =>
        iterations.reduce((all, one) => all + of(one), 0);
      const usage = await streamed(start, { ...end, iterations });
      assert.deepEqual(usage, {
        input: sum((one) => one.input_tokens),
        cache_read: sum((one) => one.cache_read_input_tokens),
        cache_write_5m: sum((one) => one.cache_creation.ephemeral_5m_input_tokens),
        cache_write_1h: sum((one) => one.cache_creation.ephemeral_1h_input_tokens),
        output: sum((one) => one.output_tokens),
      });
    }),
    { numRuns: 40 },
  );
});

test('usage inside a choice is read, and that of several choices added up', async () => {
  const usage = (completion: number) => ({
    prompt_tokens: 30,
    completion_tokens: completion,
    total_tokens: 30 + completion,
    cached_tokens: 10,
  });
  const one = { choices: [{ index: 0, finish_reason: 'stop', usage: usage(7) }] };
  assert.deepEqual(await usageOf('chat', one), { cache_read: 10, input: 20, output: 7 });
  const frames = [
    { choices: [{ index: 0, delta: { content: 'Hello' } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: usage(7) }] },
    { choices: [{ index: 1, delta: {}, finish_reason: 'stop', usage: usage(9) }] },
  ];
  const [path, request] = paths.chat;
  const chunks = [...frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`), 'data: [DONE]\n\n'];
  const body = { ...request, stream: true, n: 2 };
  const { answer, report } = await relay({ path, body }, streamAnswer(chunks));
  await readBody(answer.body);
  assert.deepEqual([report!.usage, report!.estimated], [{ cache_read: 10, input: 20, output: 16 }, false]);
});

test('a last report without the candidates leaves what its total has beside the others', async () => {
  const reports = [
    { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 },
    { promptTokenCount: 100, thoughtsTokenCount: 20, totalTokenCount: 160 },
  ];
  const parts = [{ text: 'Hello' }];
  const frames = reports.map((usageMetadata) => ({
    candidates: [{ content: { parts }, finishReason: 'STOP' }],
    usageMetadata,
  }));
  const path = '/v1beta/models/m:streamGenerateContent';
  const chunks = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`);
  const { answer, report } = await relay({ path, body: { contents: [] } }, streamAnswer(chunks));
  await readBody(answer.body);
  assert.deepEqual(report!.usage, { input: 100, output: 40, reasoning: 20 });
  const silent = {
    candidates: [frames[0]!.candidates[0]],
    usageMetadata: { promptTokenCount: 9, thoughtsTokenCount: 4 },
  };
  const seen = await metered('gemini', silent);
  assert.deepEqual([seen.usage, seen.estimated], [{ input: 9, output: 2, reasoning: 4 }, true], 'the text is not free');
});

test('thoughts beyond those that generate-content names are charged and marked as estimated; those of the total alone are not', async () => {
  const candidates = [{ content: { parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }];
  const counted = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 30 };
  const reported = async (usageMetadata: object) => {
    const { usage, estimated } = await metered('gemini', { candidates, usageMetadata });
    return [usage, estimated];
  };
  const usage = { input: 10, output: 5, reasoning: 15 };
  assert.deepEqual(await reported({ ...counted, thoughtsTokenCount: 3 }), [usage, true]);
  assert.deepEqual(await reported(counted), [usage, false]);
  assert.deepEqual(await reported({ ...counted, thoughtsTokenCount: 15 }), [usage, false]);
});

test('pictures of an image model are counted over the frames of a stream, with their tokens where none are reported', () => {
  const picture = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };
  const frame = (usageMetadata?: object) => ({
    candidates: [{ content: { parts: [{ text: 'x' }, picture] } }],
    ...(usageMetadata && { usageMetadata }),
  });
  const readingOf = (kind: string, last?: object) => {
    const meter = new GeminiUsageMeter({ choices: 1, kind } as Call);
    for (const payload of [frame(), frame(last)]) meter.payload(payload);
    return meter.reading.usage;
  };
  assert.equal(readingOf('image').image, 2);
  assert.ok(readingOf('image').output_image! > 0);
  const reported = readingOf('image', { promptTokenCount: 3, candidatesTokenCount: 7, totalTokenCount: 10 });
  assert.deepEqual(reported, { input: 3, output: 7, image: 2 });
  assert.equal(readingOf('chat').image, undefined);
});

test('tokens by modality name those alone that there are', () => {
  const { candidatesTokensDetails, promptTokensDetails } = usageMetadata(
    { input_audio: 4, output_image: 9 },
    undefined,
  );
  assert.deepEqual(candidatesTokensDetails, [{ modality: 'IMAGE', tokenCount: 9 }]);
  assert.deepEqual(promptTokensDetails, [{ modality: 'AUDIO', tokenCount: 4 }]);
});

test('text of an answer over several lines is reported by the last one where that counts it', () => {
  for (const [end, unreported] of [
    [{ eval_count: 3 }, 0],
    [{}, 5],
  ] as const) {
    const meter = new OllamaUsageMeter();
    meter.payload({ message: { content: 'Hello' } });
    meter.payload({ message: { content: '' }, done: true, done_reason: 'stop', ...end });
    assert.equal(meter.text.bytesUnreported, unreported);
  }
});
