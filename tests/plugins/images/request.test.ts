/** What of an image request the gateway checks and knows, and the bounds that money is held by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../core/errors.ts';
import { imageTokensAtMost, promptTokensAtMost } from '../../../plugins/images/estimate.ts';
import { openRequest } from '../../../plugins/images/request.ts';
import { recording } from '../../helpers/recordings.ts';

const open = (body: unknown) => openRequest(Buffer.from(JSON.stringify(body)), 'p').call;
const least = { model: 'm', prompt: 'A cat' };

function refused(body: unknown, field: string | undefined): void {
  assert.throws(
    () => (typeof body === 'string' ? openRequest(Buffer.from(body), 'p') : open(body)),
    (error) => {
      assert.ok(error instanceof GatewayError, String(error));
      assert.deepEqual([error.kind, error.field], ['invalid_request', field], JSON.stringify(body));
      return true;
    },
  );
}

test('a request is stated as what it asks for', () => {
  const call = open({ ...least, n: 3, size: '1024x1024', quality: 'LOW', background: 'opaque' });
  assert.deepEqual(call, {
    protocol: 'p',
    model: 'm',
    stream: false,
    billable: true,
    inputTokens: promptTokensAtMost('A cat', 0),
    maxOutputTokens: 300,
    choices: 3,
    kind: 'image',
    images: 3,
    media: ['1024x1024', 'low'],
  });
  const plain = open({ ...least, n: null, size: null, stream: false });
  assert.deepEqual([plain.images, plain.choices, plain.media], [1, 1, undefined]);
  for (const chosen of [{ size: '1024x1024' }, { quality: 'high' }, { size: 'auto', quality: 'auto' }])
    assert.equal(open({ ...least, ...chosen }).media, undefined, 'what the vendor chooses is not known beforehand');
});

test('what is wrong is named by its field', () => {
  refused('', undefined);
  refused('[]', undefined);
  refused({ prompt: 'A cat' }, 'model');
  refused({ model: 'm' }, 'prompt');
  refused({ model: 'm', prompt: '' }, 'prompt');
  refused({ model: 'm', prompt: ['A cat'] }, 'prompt');
  for (const n of [0, 11, 1.5, '2', true]) refused({ ...least, n }, 'n');
  refused({ ...least, size: 1024 }, 'size');
  refused({ ...least, quality: {} }, 'quality');
  refused({ ...least, resolution: 2 }, 'resolution');
  refused({ ...least, stream: true }, 'stream');
  refused({ ...least, image_urls: 'https://example.com/a.png' }, 'image_urls');
  refused({ ...least, image_urls: Array.from({ length: 15 }, () => 'x') }, 'image_urls');
  refused({ ...least, base_url: 'http://127.0.0.1' }, 'base_url');
  for (const twice of ['"n":1,"n":10', '"model":"m","model":"dear"', '"quality":"low","quality":"high"'])
    refused(`{"prompt":"A cat",${twice.includes('model') ? '' : '"model":"m",'}${twice}}`, /"(\w+)"/.exec(twice)![1]);
});

test('the recorded requests are accepted', () => {
  for (const name of ['openai-gpt-image-1-mini-image-out-fd50', 'openai-dall-e-2-err400-12b1'])
    assert.equal(openRequest(recording('images', name).request!, 'p').call.images, 1);
});

test('bounds are never below what vendors publish, grow with the area, and are finite for any words', () => {
  const published: readonly [string, string, number][] = [
    ['low', '1024x1024', 272],
    ['low', '1024x1536', 408],
    ['medium', '1024x1024', 1_056],
    ['medium', '1536x1024', 1_568],
    ['high', '1024x1024', 4_160],
    ['high', '1024x1536', 6_240],
    ['auto', '1536x1024', 6_208],
  ];
  for (const [quality, size, tokens] of published) assert.ok(imageTokensAtMost(size, quality) >= tokens);
  assert.ok(imageTokensAtMost(undefined, undefined) >= 6_240);
  fc.assert(
    fc.property(
      fc.option(fc.string(), { nil: undefined }),
      fc.option(fc.string(), { nil: undefined }),
      (size, quality) => {
        const tokens = imageTokensAtMost(size, quality);
        assert.ok(Number.isSafeInteger(tokens) && tokens > 0 && tokens <= 16 * 8_400);
      },
    ),
  );
});
