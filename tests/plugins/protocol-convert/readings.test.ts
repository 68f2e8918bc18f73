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
  const answer = protocol === 'chat' ? { choices: [{}], usage } : { output: [], usage };
  const request = { path: paths[protocol], body, ...(isSold ? { sold } : {}) };
  const { report } = await relay(request, wholeAnswer(JSON.stringify(answer)));
  return report!;
}

/** The same usage in the words of either protocol. */
function encoded(protocol: Protocol, counts: Partial<Record<'input' | 'output' | 'total' | 'reasoning', number>>) {
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
    const report = await metered(protocol, encoded(protocol, { input: 26, output: 10, reasoning: 96 }));
    assert.deepEqual([report.usage, report.estimated], [{ input: 26, reasoning: 96, output: 10 }, true], protocol);
    const cost = (26 * 0.3 + 106 * 0.5) / 1e6;
    for (const reported of [{ cost }, { cost: { total_cost: cost } }, { cost_in_usd_ticks: Math.round(cost * 1e10) }]) {
      const usage = { ...encoded(protocol, { input: 26, output: 10, total: 36, reasoning: 96 }), ...reported };
      for (const isSold of [true, false]) {
        const proved = await metered(protocol, usage, isSold);
        // A cost that no price confirms adds nothing to the total.
        const expected = isSold ? { input: 26, reasoning: 96, output: 10 } : { input: 26, reasoning: 10, output: 0 };
        assert.deepEqual(
          [proved.usage, proved.estimated],
          [expected, true],
          JSON.stringify([protocol, reported, isSold]),
        );
      }
    }
  }
});

test('a cost that proves the smaller reading decides for it', async () => {
  for (const protocol of protocolNames) {
    for (const output of [10, 96]) {
      const cost = (26 * 0.3 + output * 0.5) / 1e6;
      const usage = { ...encoded(protocol, { input: 26, output: 10, reasoning: 96 }), cost };
      const report = await metered(protocol, usage, true);
      assert.equal(totalTokens(report.usage), 26 + output, `${protocol} ${output}`);
      assert.equal(report.estimated, true);
    }
  }
});

test('a cost that fits no price leaves reasoning within the total, whatever it is', async () => {
  for (const protocol of protocolNames) {
    const usage = encoded(protocol, { input: 500, output: 14, total: 514, reasoning: 553 });
    for (const reported of [{ cost: 0.7 }, { cost: 1e-7 }, { cost: { total_cost: '0.2' } }, { cost_in_usd_ticks: 5 }]) {
      const report = await metered(protocol, { ...usage, ...reported }, true);
      assert.deepEqual([totalTokens(report.usage), report.estimated], [514, true], JSON.stringify(reported));
    }
  }
});

test('the parts of a cost decide by their ratio, at whatever prices the vendor sells', async () => {
  for (const protocol of protocolNames) {
    const usage = encoded(protocol, { input: 500, output: 14, total: 514, reasoning: 553 });
    for (const [output, markup] of [
      [14, 1.7],
      [567, 1.7],
      [567, 0.4],
      [553, 1],
    ] as const) {
      const [prompt, completion] = [(500 * 0.3 * markup) / 1e6, (output * 0.5 * markup) / 1e6];
      for (const reported of [
        {
          cost: prompt + completion,
          cost_details: { upstream_inference_prompt_cost: prompt, upstream_inference_completions_cost: completion },
        },
        {
          cost_details: { upstream_inference_input_cost: prompt, upstream_inference_output_cost: completion },
          cost: (prompt + completion) / 20,
        },
        {
          cost: { input_tokens_cost: prompt, output_tokens_cost: completion, total_cost: prompt + completion + 0.005 },
        },
      ]) {
        const report = await metered(protocol, { ...usage, ...reported }, true);
        assert.equal(totalTokens(report.usage), 500 + output, JSON.stringify([protocol, reported]));
      }
    }
  }
  const behind = { cost: 1e-9, cost_details: { upstream_inference_cost: (500 * 0.3 + 567 * 0.5) / 1e6 } };
  const own = { ...encoded('chat', { input: 500, output: 14, total: 514, reasoning: 553 }), ...behind };
  assert.equal(totalTokens((await metered('chat', own, true)).usage), 1_067, 'a key of the customer: the cost behind');
});

test('no cost makes a reading exceed the total, unless it proves one that does', async () => {
  const cost = fc.oneof(fc.double({ min: 0, max: 2, noNaN: true }), fc.constantFrom('0.1', null, -1, 'x'));
  await fc.assert(
    fc.asyncProperty(count, count, count, cost, cost, cost, async (input, output, reasoning, all, one, other) => {
      const details = { upstream_inference_prompt_cost: one, upstream_inference_completions_cost: other };
      const usage = {
        ...encoded('chat', { input, output, total: input + output, reasoning }),
        ...{ cost: all, cost_details: details },
      };
      const sum = totalTokens((await metered('chat', usage, true)).usage);
      if (sum === input + output) return;
      const ofInput = input * 0.3;
      const ofOutput = (sum - input) * 0.5;
      const near = (a: number, b: number) => Math.abs(a - b) <= Math.max(b * 0.0101, 0.2);
      const isProved = near(ofInput + ofOutput, Number(all) * 1e6);
      const hasRatio = near(ofOutput * Number(one) * 1e9, ofInput * Number(other) * 1e9);
      assert.ok(isProved || hasRatio, JSON.stringify({ sum, usage }));
    }),
    { numRuns: 200 },
  );
});

test('tokens that were read from the cache and written to it are counted once', async () => {
  const cached = (input: number, cached_tokens: number, cache_write_tokens: number, reported = {}) =>
    metered(
      'chat',
      {
        ...encoded('chat', { input, output: 1, total: input + 1 }),
        ...{ prompt_tokens_details: { cached_tokens, cache_write_tokens } },
        ...reported,
      },
      true,
    );
  const classes = async (...given: Parameters<typeof cached>) => {
    const { input, cache_read: read, cache_write_5m: written } = (await cached(...given)).usage;
    return [input, read, written];
  };
  assert.deepEqual(await classes(10_000, 9_000, 4_000), [1_000, 5_000, 4_000]);
  assert.deepEqual(await classes(10_000, 4_000, 9_000), [1_000, 4_000, 5_000]);
  assert.deepEqual(await classes(10_000, 9_900, 9_900), [100, 0, 9_900]);
  assert.deepEqual(await classes(10_000, 6_000, 3_000), [1_000, 6_000, 3_000], 'they fit beside one another');
});

test('a total that leaves reasoning out decides where no cost is reported, and the reading is marked', async () => {
  for (const protocol of protocolNames) {
    const report = await metered(protocol, encoded(protocol, { input: 26, output: 10, total: 36, reasoning: 96 }));
    assert.deepEqual([totalTokens(report.usage), report.estimated], [36, true]);
  }
});

test('thinking that appears in the total alone is reasoning', async () => {
  for (const protocol of protocolNames) {
    const report = await metered(protocol, encoded(protocol, { input: 35, output: 12, total: 109 }));
    assert.deepEqual([report.usage, report.estimated], [{ input: 35, reasoning: 62, output: 12 }, false], protocol);
  }
  const frames = [
    { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] },
    { choices: [{}], usage: { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 } },
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
    ...encoded('chat', { input: 10, output: 20, total: 35, reasoning: 5 }),
    prompt_tokens_details: { audio_tokens: 5 },
  };
  const report = await metered('chat', usage);
  assert.deepEqual([totalTokens(report.usage), report.estimated], [35, true]);
  const unexplained = await metered('chat', encoded('chat', { input: 10, output: 20, total: 90, reasoning: 5 }));
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
      const report = await metered('chat', encoded('chat', { input, output, total }));
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
