/** Which counts of a vendor are possible for a call, and what is charged for the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from '../../../plugins/common/domain/calls.ts';
import { totalTokens, type Usage, usageClasses } from '../../../plugins/common/domain/usage.ts';
import { possibleUsage, type RequestedUsage, unknownSize } from '../../../plugins/common/wire/possible-usage.ts';
import { fc } from '../../helpers/properties.ts';
import { families, recordings } from '../../helpers/recordings.ts';
import { errorsIn200 } from '../../helpers/relay-rules.ts';
import { requestFor } from '../../helpers/replay.ts';
import { open, readBody, relay, streamAnswer, wholeAnswer } from '../protocol-convert/harness.ts';

const requested: RequestedUsage = { inputTokens: 40, maxOutputTokens: 100, choices: 1 };
const size = { contextTokens: 200_000, maxOutputTokens: 64_000 };
const fiveWords = { bytes: 25, tokens: 9 };

const table: [title: string, usage: Usage, expected: Usage, change?: Partial<RequestedUsage>][] = [
  ['billions of output tokens', { input: 20, output: 4_000_000_000 }, { input: 20, output: 9 }],
  ['output beyond the bound of the request', { input: 20, output: 9_000 }, { input: 20, output: 9 }],
  ['reasoning beyond what the model can produce', { output: 5, reasoning: 300_000 }, { output: 9 }],
  ['spoken output beyond the bound of the request', { output_audio: 9_000 }, { output: 9 }],
  ['a prompt far above its bytes', { input: 150_000, output: 5 }, { input: 40, output: 5 }],
  ['a cached prompt far above its bytes', { cache_read: 150_000, output: 5 }, { input: 40, output: 5 }],
  ['a prompt above the context', { input: 900_000 }, { input: 90_000 }, { inputTokens: 90_000 }],
  [
    'an input that is read more often than there are questions',
    { input: 300_000 },
    { input: 40_000 },
    { inputTokens: 40_000, choices: 4, kind: 'decision' },
  ],
  ['searches that were not asked for', { web_search: 4_000_000 }, { web_search: 1 }],
  ['one search more than a model makes by itself', { output: 5, web_search: 257 }, { output: 5, web_search: 1 }],
  ['more pictures than were ordered', { image: 100 }, { image: 2 }, { images: 2 }],
  ['more seconds than were ordered', { second: 90_000 }, { second: 5 }, { seconds: 5 }],
  ['more characters than were sent', { character: 9e9 }, { character: 12 }, { counted: { character: 12 } }],
];
for (const [title, usage, expected, change] of table)
  test(`${title}: the estimate is charged`, () => {
    assert.deepEqual(possibleUsage(usage, { ...requested, ...change }, size, fiveWords), expected);
  });

const kept: [title: string, usage: Usage, change?: Partial<RequestedUsage>, bytes?: number][] = [
  ['a few tokens above the bound', { output: 103 }],
  ['as many tokens as bytes have passed', { output: 9_000 }, {}, 9_000],
  ["hidden reasoning within the model's longest answer", { output: 90, reasoning: 60_000 }],
  ['an answer without a bound of the request', { output: 64_000 }, { maxOutputTokens: undefined }],
  [
    'an input that is read with each question of decisions',
    { input: 199_000 },
    { inputTokens: 40_000, choices: 4, kind: 'decision' },
  ],
  ['several choices', { output: 800 }, { choices: 8 }],
  ['searches that a model makes by itself', { output: 5, web_search: 256 }],
  ['results of searches in the prompt', { input: 90_000, web_search: 8 }, { toolCalls: 8 }],
  ['a document that the vendor fetched', { input: 180_000 }, { inputTokens: 20_040 }],
];
for (const [title, usage, change, bytes = 25] of kept)
  test(`${title}: the reported usage is charged`, () => {
    assert.equal(possibleUsage(usage, { ...requested, ...change }, size, { bytes, tokens: 9 }), usage);
  });

const anyUsage = fc
  .dictionary(fc.constantFrom(...usageClasses), fc.oneof(fc.nat(5_000), fc.nat(10 ** 9)), { noNullPrototype: true })
  .map((counts): Usage => ({ ...counts }));
const anyRequested = fc.record({
  inputTokens: fc.nat(300_000),
  maxOutputTokens: fc.option(fc.nat(200_000), { nil: undefined }),
  choices: fc.integer({ min: 1, max: 8 }),
});

test('whatever is reported, the charged tokens are bounded by request, model and bytes', () => {
  const seen = fc.record({ bytes: fc.nat(100_000), tokens: fc.nat(30_000) });
  fc.assert(
    fc.property(anyUsage, anyRequested, fc.constantFrom(size, unknownSize), seen, (usage, request, model, text) => {
      const possible = possibleUsage(usage, request, model, text);
      const { contextTokens = 2_000_000, maxOutputTokens = contextTokens } = model;
      const output = Math.max(text.bytes, text.tokens, request.choices * maxOutputTokens * 2.5 + 514);
      const prompt = contextTokens * 1.25 + 257 + 2 * request.inputTokens;
      assert.ok(totalTokens(possible) <= prompt + output);
      for (const name of usageClasses) assert.ok((possible[name] ?? 0) >= 0, name);
    }),
    { numRuns: 2_000 },
  );
});

test('a prompt of at most the request’s estimate is charged as reported, whatever the model', () => {
  fc.assert(
    fc.property(anyRequested, fc.constantFrom(size, unknownSize), fc.nat(1_000), (request, model, less) => {
      const usage: Usage = { input: Math.max(0, request.inputTokens - less) };
      assert.equal(possibleUsage(usage, request, model, { bytes: 0, tokens: 0 }), usage);
    }),
  );
});

test('no reported usage of the recordings is impossible', async () => {
  let checked = 0;
  for (const family of families)
    for (const recording of recordings(family)) {
      if (recording.request === undefined || recording.status >= 400 || errorsIn200.has(recording.name)) continue;
      const request = requestFor(recording);
      // Kept content of a vendor's is refused by the gateway.
      if (request.body !== recording.request.toString() || request.body.includes('cachedContent')) continue;
      const { response, status, headers } = recording;
      const upstream = recording.isStream ? streamAnswer([response]) : wholeAnswer(response, status, headers);
      const { answer, report } = await relay(request, upstream);
      await readBody(answer.body);
      const { usage, seen } = report!;
      const opened = open(request).exchange.get(call);
      assert.equal(possibleUsage(usage, opened, unknownSize, seen ?? { bytes: 0, tokens: 0 }), usage, recording.name);
      checked += 1;
    }
  assert.ok(checked > 90, String(checked));
});
