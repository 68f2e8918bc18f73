/** Usage of images: as the vendor counted, in disjoint classes that add up to its totals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { tokenClasses } from '../../../core/usage.ts';
import type { Call } from '../../../core/vocabulary.ts';
import { reportOf } from '../../../plugins/images/usage.ts';
import { recording } from '../../helpers/recordings.ts';

const call: Call = {
  protocol: 'p',
  model: 'm',
  stream: false,
  billable: true,
  inputTokens: 40,
  maxOutputTokens: 1_100,
  choices: 2,
  kind: 'image',
  images: 2,
};
const nothing = { size: undefined, quality: undefined, resolution: undefined };
const asked = { call, stated: nothing };
const image = { b64_json: 'aGVsbG8=' };

test("a recorded answer's usage is told class by class, and what was made by size and quality", () => {
  const json = JSON.parse(recording('images', 'openai-gpt-image-1-mini-image-out-fd50').response.toString());
  assert.deepEqual(reportOf(json, json.data, asked), {
    usage: { image: 1, input: 14, cache_read: 0, input_image: 0, output: 0, output_image: 272 },
    estimated: false,
    terminal: true,
    upstreamId: undefined,
    finish: undefined,
    media: ['1024x1024', 'low'],
  });
});

test('images, cached tokens and words are counted apart', () => {
  const usage = {
    input_tokens: 300,
    input_tokens_details: {
      text_tokens: 100,
      image_tokens: 200,
      cached_tokens: 80,
      cached_tokens_details: { image_tokens: 60 },
    },
    output_tokens: 415,
    output_tokens_details: { image_tokens: 272, text_tokens: 143 },
  };
  assert.deepEqual(reportOf({ usage }, [image, image], asked).usage, {
    image: 2,
    input: 80,
    cache_read: 80,
    input_image: 140,
    output: 143,
    output_image: 272,
  });
});

test('what did not come is not counted, and without the count of tokens they are estimated and marked', () => {
  const data = [image, { url: 'https://example.com/a.png' }, { error: { code: 'blocked' } }, null, {}];
  const report = reportOf({}, data, asked);
  assert.deepEqual(report.usage, { image: 2, input: 40, output_image: 2_200 });
  assert.equal(report.estimated, true);
  assert.deepEqual(reportOf({ usage: { input_tokens: -1, output_tokens: 'x' } }, [], asked).usage, {
    image: 0,
    input: 40,
    output_image: 0,
  });
});

test("what was made is told in the vendor's words, and in the client's where it says nothing", () => {
  const stated = { size: '2k', quality: 'low', resolution: '2k' };
  assert.deepEqual(reportOf({ quality: 'HIGH' }, [image], { call, stated }).media, ['2k', 'high', '2k']);
  assert.deepEqual(reportOf({ size: '1024x1024' }, [image], asked).media, ['1024x1024']);
  assert.equal(reportOf({}, [image], asked).media, undefined);
});

test("the classes add up to the vendor's totals, whatever it says of their parts", () => {
  const count = fc.oneof(fc.nat(100_000), fc.constantFrom(undefined, null, -1, 'x', Number.NaN));
  fc.assert(
    fc.property(
      fc.nat(100_000),
      fc.nat(100_000),
      fc.array(count, { minLength: 4, maxLength: 4 }),
      (input, output, parts) => {
        const usage = {
          input_tokens: input,
          input_tokens_details: {
            image_tokens: parts[0],
            cached_tokens: parts[1],
            cached_tokens_details: { image_tokens: parts[2] },
          },
          output_tokens: output,
          output_tokens_details: { text_tokens: parts[3] },
        };
        const told = reportOf({ usage }, [image], asked).usage;
        const counts = tokenClasses.map((name) => told[name] ?? 0);
        assert.ok(counts.every((value) => Number.isSafeInteger(value) && value >= 0));
        assert.equal(
          counts.reduce((sum, value) => sum + value, 0),
          input + output,
        );
      },
    ),
  );
});
