/** What is metered where a vendor's counters, its total and its cost do not agree. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UsageReport } from '../../../plugins/common/domain/calls.ts';
import type { Model } from '../../../plugins/common/domain/models.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { totalTokens } from '../../../plugins/common/domain/usage.ts';
import { fc } from '../../helpers/properties.ts';
import { readBody, relay, streamAnswer, wholeAnswer } from './harness.ts';

const paths = { chat: '/v1/chat/completions', responses: '/v1/responses' } as const;
type Protocol = keyof typeof paths;

/** USD per million tokens as nano-USD: 0.30 for the prompt, 0.50 for the answer. */
const price = { input: 300_000_000n, output: 500_000_000n };
const sold: Model = {
  id: 'm',
  ownedBy: 'vendor',
  created: 0,
  displayName: 'm',
  kind: 'chat',
  targets: [],
  contextTokens: undefined,
  maxOutputTokens: undefined,
  prices: flatBook(price, 'test'),
};

async function metered(protocol: Protocol, usage: object, isSold = false): Promise<UsageReport> {
  const body = protocol === 'chat' ? { model: 'm', messages: [] } : { model: 'm', input: 'x' };
  const answer = protocol === 'chat' ? { choices: [], usage } : { output: [], usage };
  const asked = { path: paths[protocol], body, ...(isSold ? { sold } : {}) };
  const { report } = await relay(asked, wholeAnswer(JSON.stringify(answer)));
  return report!;
}

/** The same usage in the words of either protocol. */
function worded(protocol: Protocol, counts: Partial<Record<'input' | 'output' | 'total' | 'reasoning', number>>) {
  const { input, output, total, reasoning } = counts;
  return protocol === 'chat'
    ? {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: total,
        completion_tokens_details: { reasoning_tokens: reasoning },
      }
    : {
        input_tokens: input,
        output_tokens: output,
        total_tokens: total,
        output_tokens_details: { reasoning_tokens: reasoning },
      };
}
const protocolNames = ['chat', 'responses'] as const;

test('reasoning beside an output that is smaller than it is metered, without a total and by a cost', async () => {
  for (const protocol of protocolNames) {
    const report = await metered(protocol, worded(protocol, { input: 26, output: 10, reasoning: 96 }));
    assert.deepEqual([report.usage, report.estimated], [{ input: 26, reasoning: 96, output: 10 }, true], protocol);
    const cost = (26 * 0.3 + 106 * 0.5) / 1e6;
    for (const told of [{ cost }, { cost: { total_cost: cost } }, { cost_in_usd_ticks: Math.round(cost * 1e10) }]) {
      const usage = { ...worded(protocol, { input: 26, output: 10, total: 36, reasoning: 96 }), ...told };
      for (const isSold of [true, false]) {
        const proved = await metered(protocol, usage, isSold);
        assert.deepEqual(
          [proved.usage, proved.estimated],
          [{ input: 26, reasoning: 96, output: 10 }, true],
          JSON.stringify([protocol, told, isSold]),
        );
      }
    }
  }
});

test('a cost that proves the smaller reading decides for it', async () => {
  for (const protocol of protocolNames) {
    for (const output of [10, 96]) {
      const cost = (26 * 0.3 + output * 0.5) / 1e6;
      const usage = { ...worded(protocol, { input: 26, output: 10, reasoning: 96 }), cost };
      const report = await metered(protocol, usage, true);
      assert.equal(totalTokens(report.usage), 26 + output, `${protocol} ${output}`);
      assert.equal(report.estimated, true);
    }
  }
});

test('a total that leaves reasoning out decides where no cost is reported, and the reading is marked', async () => {
  for (const protocol of protocolNames) {
    const report = await metered(protocol, worded(protocol, { input: 26, output: 10, total: 36, reasoning: 96 }));
    assert.deepEqual([totalTokens(report.usage), report.estimated], [36, true]);
  }
});

test('thinking that appears in the total alone is reasoning', async () => {
  for (const protocol of protocolNames) {
    const report = await metered(protocol, worded(protocol, { input: 35, output: 12, total: 109 }));
    assert.deepEqual([report.usage, report.estimated], [{ input: 35, reasoning: 62, output: 12 }, false], protocol);
  }
  const frames = [
    { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] },
    { choices: [], usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 } },
  ];
  const text = `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`;
  const body = { model: 'm', messages: [], stream: true };
  const streamed = await relay({ path: paths.chat, body }, streamAnswer([text]));
  await readBody(streamed.answer.body);
  assert.deepEqual(
    [streamed.report!.usage, streamed.report!.estimated],
    [{ input: 35, reasoning: 62, output: 12 }, false],
  );
  const usageMetadata = { promptTokenCount: 35, candidatesTokenCount: 12, totalTokenCount: 109 };
  const path = '/v1beta/models/m:generateContent';
  const gemini = await relay(
    { path, body: { contents: [{ parts: [{ text: 'x' }] }] } },
    wholeAnswer(JSON.stringify({ candidates: [{ finishReason: 'STOP' }], usageMetadata })),
  );
  assert.deepEqual(gemini.report!.usage, { input: 35, output: 12, reasoning: 62 });
});

test('sound beside the prompt is metered where the total includes it', async () => {
  const sum = { prompt_tokens: 11, completion_tokens: 15, total_tokens: 401 };
  for (const usage of [
    { ...sum, prompt_tokens_details: { audio_tokens: 375 } },
    { ...sum, prompt_token_details: { audio_tokens: 375 } },
    { ...sum, prompt_audio_seconds: 30 },
  ]) {
    const report = await metered('chat', usage);
    assert.deepEqual([report.usage, report.estimated], [{ input_audio: 375, input: 11, output: 15 }, false]);
  }
});

test('where several details explain the total, all of its tokens are metered and the reading is marked', async () => {
  const usage = {
    ...worded('chat', { input: 10, output: 20, total: 35, reasoning: 5 }),
    prompt_tokens_details: { audio_tokens: 5 },
  };
  const report = await metered('chat', usage);
  assert.deepEqual([totalTokens(report.usage), report.estimated], [35, true]);
  const unexplained = await metered('chat', worded('chat', { input: 10, output: 20, total: 90, reasoning: 5 }));
  assert.deepEqual([totalTokens(unexplained.usage), unexplained.estimated], [90, true]);
});

const count = fc.nat(10_000);
const maybe = fc.option(count, { nil: undefined });

test('the metered total is the largest that the vendor’s own total supports', async () => {
  const details = fc.tuple(maybe, maybe, maybe, maybe, maybe, maybe, maybe);
  await fc.assert(
    fc.asyncProperty(count, count, maybe, details, fc.nat(127), async (input, output, odd, counts, chosen) => {
      const [cached, written, audioIn, imageIn, reasoning, audioOut, imageOut] = counts;
      const beside = counts.reduce<number>((sum, one, at) => sum + ((chosen >> at) & 1 ? (one ?? 0) : 0), 0);
      const total = input + output + beside + (odd ?? 0);
      const usage = {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: total,
        prompt_tokens_details: {
          cached_tokens: cached,
          cache_write_tokens: written,
          audio_tokens: audioIn,
          image_tokens: imageIn,
        },
        completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: audioOut, image_tokens: imageOut },
      };
      const report = await metered('chat', usage);
      assert.equal(totalTokens(report.usage), total);
      const contradicts = total === input + output && (reasoning ?? 0) > output;
      if (contradicts) assert.equal(report.estimated, true);
      if (total === input + output && !contradicts) assert.equal(report.estimated, false);
      if (beside > 0 && odd === undefined && (chosen & (chosen - 1)) === 0) {
        const names = ['cache_read', 'cache_write_5m', 'input_audio', 'input_image'] as const;
        const name = [...names, 'reasoning', 'output_audio', 'output_image'][Math.log2(chosen)]!;
        // Exactly this detail stands beside the sums, unless others add up to the same.
        if (!report.estimated) assert.equal(report.usage[name as 'reasoning'], beside, name);
      }
    }),
    { numRuns: 300 },
  );
});

test('a total below the sum of its sides changes neither', async () => {
  await fc.assert(
    fc.asyncProperty(count, count, fc.nat(100), async (input, output, total) => {
      fc.pre(total < input + output);
      const report = await metered('chat', worded('chat', { input, output, total }));
      assert.equal(totalTokens(report.usage), input + output);
    }),
    { numRuns: 50 },
  );
});

test('a blocked prompt consumes what the vendor reports of it', async () => {
  const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } };
  const snake = { prompt_feedback: { block_reason: 'SAFETY' } };
  const request = { contents: [{ parts: [{ text: 'x'.repeat(300) }] }] };
  for (const [answer, expected] of [
    [
      { ...blocked, usageMetadata: null },
      { input: 0, output: 0 },
    ],
    [
      { ...blocked, usageMetadata: {} },
      { input: 0, output: 0 },
    ],
    [
      { ...snake, usage_metadata: {} },
      { input: 0, output: 0 },
    ],
    [
      { ...blocked, usageMetadata: { serviceTier: 'standard' } },
      { input: 0, output: 0 },
    ],
    [
      { ...blocked, usageMetadata: { promptTokenCount: 9, totalTokenCount: 9 } },
      { input: 9, output: 0 },
    ],
    [
      { ...blocked, usageMetadata: { promptTokenCount: 9 } },
      { input: 9, output: 0 },
    ],
  ] as const) {
    const whole = await relay(
      { path: '/v1beta/models/m:generateContent', body: request },
      wholeAnswer(JSON.stringify(answer)),
    );
    const streamed = await relay(
      { path: '/v1beta/models/m:streamGenerateContent?alt=sse', body: request },
      streamAnswer([`data: ${JSON.stringify(answer)}\n\n`]),
    );
    await readBody(streamed.answer.body);
    // Without any report, nothing is charged either, and the row says that the vendor reported nothing.
    const isEstimated = 'usageMetadata' in answer && answer.usageMetadata === null;
    for (const { report } of [whole, streamed])
      assert.deepEqual([report!.usage, report!.estimated], [expected, isEstimated], JSON.stringify(answer));
  }
});
