import assert from 'node:assert/strict';
import { test } from 'node:test';
import { totalTokens, type Usage } from '../../../plugins/common/domain/usage.ts';
import { fc } from '../../helpers/properties.ts';
import { recording } from '../../helpers/recordings.ts';
import { cutAt, readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const paths = {
  chat: ['/v1/chat/completions', { model: 'm', messages: [] }],
  responses: ['/v1/responses', { model: 'm', input: 'x' }],
  messages: ['/v1/messages', { model: 'm', max_tokens: 9, messages: [] }],
  gemini: ['/v1beta/models/m:generateContent', { contents: [] }],
} as const;

async function metered(protocol: keyof typeof paths, body: object) {
  const [path, request] = paths[protocol];
  return (await relay({ path, body: request }, wholeAnswer(JSON.stringify(body)))).report!;
}
const usageOf = async (protocol: keyof typeof paths, body: object) => (await metered(protocol, body)).usage;

const count = fc.nat(100_000);
const maybe = fc.option(count, { nil: undefined });

test('chat classes add up to the vendor’s total, whatever its details say', async () => {
  await fc.assert(
    fc.asyncProperty(count, count, maybe, maybe, maybe, maybe, maybe, maybe, async (prompt, completion, ...details) => {
      const [cached_tokens, cache_write_tokens, audio_tokens, image_tokens, reasoning_tokens, audio] = details;
      const usage = {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        prompt_tokens_details: { cached_tokens, cache_write_tokens, audio_tokens, image_tokens },
        completion_tokens_details: { reasoning_tokens, audio_tokens: audio },
      };
      const metered = await usageOf('chat', { choices: [{}], usage });
      assert.equal(totalTokens(metered), prompt + completion);
      assertSane(metered);
    }),
  );
});

test('responses classes add up to the vendor’s total', async () => {
  await fc.assert(
    fc.asyncProperty(count, count, maybe, maybe, maybe, async (input, output, cached, written, reasoning) => {
      const usage = {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input + output,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
        output_tokens_details: { reasoning_tokens: reasoning },
      };
      const metered = await usageOf('responses', { output: [], usage });
      assert.equal(totalTokens(metered), input + output);
      assertSane(metered);
    }),
  );
});

test('messages classes add up to the vendor’s four counters', async () => {
  await fc.assert(
    fc.asyncProperty(count, count, count, count, maybe, maybe, async (input, read, written, output, hour, thinking) => {
      const usage = {
        input_tokens: input,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        cache_creation: { ephemeral_1h_input_tokens: hour },
        output_tokens: output,
        output_tokens_details: { thinking_tokens: thinking },
      };
      const metered = await usageOf('messages', { content: [], usage });
      assert.equal(totalTokens(metered), input + read + written + output);
      assertSane(metered);
    }),
  );
});

test('generate-content classes add up to the vendor’s total', async () => {
  await fc.assert(
    fc.asyncProperty(
      count,
      count,
      maybe,
      maybe,
      maybe,
      maybe,
      async (prompt, candidates, thoughts, tools, cached, audio) => {
        const total = prompt + candidates + (thoughts ?? 0) + (tools ?? 0);
        const usageMetadata = {
          promptTokenCount: prompt,
          candidatesTokenCount: candidates,
          thoughtsTokenCount: thoughts,
          toolUsePromptTokenCount: tools,
          cachedContentTokenCount: cached,
          totalTokenCount: total,
          promptTokensDetails: [{ modality: 'AUDIO', tokenCount: audio }],
        };
        const metered = await usageOf('gemini', { candidates: [], usageMetadata });
        assert.equal(totalTokens(metered), total);
        assertSane(metered);
      },
    ),
  );
});

function assertSane(usage: Usage): void {
  for (const [name, value] of Object.entries(usage)) assert.ok(Number.isSafeInteger(value) && value >= 0, name);
}

test('absurd counts never reach arithmetic, and digits in strings count', async () => {
  await fc.assert(
    fc.asyncProperty(fc.anything(), async (odd) => {
      const usage = { prompt_tokens: '12', completion_tokens: 3, prompt_tokens_details: { cached_tokens: odd } };
      assertSane(await usageOf('chat', { choices: [{}], usage: JSON.parse(JSON.stringify(usage)) }));
    }),
  );
  const usage = { prompt_tokens: -1, completion_tokens: 1.5 };
  const report = await metered('chat', { choices: [{}], usage });
  assert.equal(report.estimated, true);
});

test('reasoning that a vendor counts beside its output is output all the same', async () => {
  const usage = {
    prompt_tokens: 470,
    completion_tokens: 68,
    total_tokens: 723,
    completion_tokens_details: { reasoning_tokens: 185 },
  };
  assert.deepEqual(await usageOf('chat', { choices: [{}], usage }), { input: 470, reasoning: 185, output: 68 });
});

test('a cache that claims more than the prompt is cut to it', async () => {
  const usage = { prompt_tokens: 347, completion_tokens: 18, prompt_tokens_details: { cached_tokens: 403 } };
  assert.deepEqual(await usageOf('chat', { choices: [{}], usage }), { cache_read: 347, input: 0, output: 18 });
});

test('cache writes are split by how long they are kept', async () => {
  const usage = {
    input_tokens: 1,
    output_tokens: 2,
    cache_creation_input_tokens: 30,
    cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    server_tool_use: { web_search_requests: 3 },
  };
  assert.deepEqual(await usageOf('messages', { content: [], usage }), {
    input: 1,
    cache_write_1h: 20,
    cache_write_5m: 10,
    output: 2,
    web_search: 3,
  });
});

test('sound and images are classes of their own', async () => {
  const usageMetadata = {
    promptTokenCount: 100,
    cachedContentTokenCount: 20,
    candidatesTokenCount: 50,
    totalTokenCount: 150,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 40 },
      { modality: 'AUDIO', tokenCount: 60 },
    ],
    cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 50 }],
  };
  assert.deepEqual(await usageOf('gemini', { candidates: [], usageMetadata }), {
    cache_read: 20,
    input_audio: 40,
    input: 40,
    output_image: 50,
    output: 0,
  });
});

test('a reported zero stays zero; an unreported count is estimated', async () => {
  const zero = await metered('chat', {
    choices: [{ message: { content: 'Hello there' } }],
    usage: { prompt_tokens: 0, completion_tokens: 0 },
  });
  assert.deepEqual([zero.usage, zero.estimated], [{ input: 0, output: 0 }, false]);
  const none = await metered('chat', { choices: [{ message: { content: 'x'.repeat(300) } }] });
  assert.equal(none.estimated, true);
  assert.equal(none.usage.output, 100);
  assert.ok(none.usage.input! > 0);
});

const chatStream = { path: '/v1/chat/completions', body: { model: 'm', messages: [], stream: true } };
async function streamed(frames: readonly object[], tail = 'data: [DONE]\n\n') {
  const text = `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}${tail}`;
  const relayed = await relay(chatStream, streamAnswer([text]));
  await readBody(relayed.answer.body);
  return relayed.report!;
}
const piece = (content: string, usage?: object) => ({
  choices: [{ index: 0, delta: { content } }],
  ...(usage === undefined ? {} : { usage }),
});

test('reports in every chunk replace one another and are never summed', async () => {
  const report = await streamed([
    piece('a', { prompt_tokens: 8, completion_tokens: 1 }),
    piece('b', { prompt_tokens: 8, completion_tokens: 2 }),
    piece('', { prompt_tokens: 8, completion_tokens: 5 }),
    piece('', { prompt_tokens: 0, completion_tokens: 0 }),
  ]);
  assert.deepEqual([report.usage, report.estimated], [{ input: 8, output: 5 }, false]);
});

test('a stream that reports as it goes and is cut is charged what it last reported, plus the text since', async () => {
  const long = 'x'.repeat(30);
  const report = await streamed([piece(long, { prompt_tokens: 8, completion_tokens: 4 }), piece(long)], '');
  assert.deepEqual([report.usage, report.estimated, report.terminal], [{ input: 8, output: 14 }, true, false]);
});

test('text in reasoning, tool arguments and lists of parts is seen, escapes and all', async () => {
  const report = await streamed([
    { choices: [{ delta: { content: null, reasoning_content: 'r'.repeat(30) } }] },
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"quote":"\\""}' } }] } }] },
    { choices: [{ delta: { content: [{ type: 'text', text: 't'.repeat(30) }] } }] },
    { choices: [{ delta: { content: 'say "content": "no"' } }] },
  ]);
  const bytes =
    30 + JSON.stringify('{"quote":"\\""}').length - 2 + 30 + JSON.stringify('say "content": "no"').length - 2;
  assert.equal(report.usage.output, Math.ceil(bytes / 3));
});

test('a cut answer is metered the same however it arrived', async () => {
  const recorded = recording('messages', 'anthropic-claude-sonnet-4-20250514-tools-thinking-stream-ce2c').response;
  const half = recorded.subarray(0, Math.floor(recorded.length / 2));
  const request = { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: [], stream: true } };
  const usageAt = async (chunks: Uint8Array[]) => {
    const relayed = await relay(request, streamAnswer(chunks));
    await readBody(relayed.answer.body);
    return relayed.report!.usage;
  };
  const expected = await usageAt([half]);
  assert.equal(expected.input, 424);
  assert.ok(expected.output! > 1);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(half.length), { maxLength: 40 }), async (offsets) => {
      assert.deepEqual(await usageAt(cutAt(half, offsets)), expected);
    }),
    { numRuns: 50 },
  );
});

test('the report names the upstream’s id and how the answer finished', async () => {
  const { upstreamId, finish } = await streamed([
    { id: 'c9', choices: [{ index: 0, delta: { content: 'a' } }] },
    { id: 'c9', choices: [{ index: 0, delta: {}, finish_reason: 'length' }] },
  ]);
  assert.deepEqual([upstreamId, finish], ['c9', 'length']);
});

test('several choices have all to finish before a stream without [DONE] is complete', async () => {
  const end = (index: number) => ({ choices: [{ index, delta: {}, finish_reason: 'stop' }] });
  const request = { ...chatStream, body: { ...chatStream.body, n: 2 } };
  const text = (frames: object[]) => frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
  for (const [frames, terminal] of [
    [[end(0)], false],
    [[end(0), end(1)], true],
  ] as const) {
    const relayed = await relay(request, streamAnswer([text([piece('a'), ...frames])]));
    await readBody(relayed.answer.body);
    assert.equal(relayed.report!.terminal, terminal);
  }
});
