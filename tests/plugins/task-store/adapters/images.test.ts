/** What each image vendor is asked, and how its answers are read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../../../core/contract/upstream-failures.ts';
import type { MediaAdapter, Order, Step } from '../../../../plugins/common/media/adapters.ts';
import { ownAdapters } from '../../../../plugins/task-store/adapters/index.ts';
import { fc } from '../../../helpers/properties.ts';
import { imageOrder, png, refusal, shown, shownBytes, targetWith, without } from '../orders.ts';

const adapters = new Map(ownAdapters.map((each) => [each.name, each]));

const [openai, gemini, xai, ark] = ['openai-images', 'gemini-images', 'xai-images', 'ark-images'].map(
  (name) => adapters.get(name)!,
) as [MediaAdapter, MediaAdapter, MediaAdapter, MediaAdapter];
const imageAdapters = [openai, gemini, xai, ark];
const bodyOf = (adapter: MediaAdapter, over: Partial<Order> = {}, traits = {}) =>
  adapter.create(imageOrder(over), targetWith(traits)).body as Record<string, unknown>;
const readAs = (adapter: MediaAdapter, json: unknown, order = imageOrder(), status = 200): Step =>
  adapter.readCreated({ status, json }, order);
const pixels = (size: string): Partial<Order> => {
  const [width, height] = size.split('x').map(Number) as [number, number];
  return { size: { width, height }, resolution: undefined } as never;
};

test('an OpenAI order calls generations, and with references edits: addresses in JSON, files as a form', () => {
  const plain = openai.create(imageOrder({ count: 3, quality: 'low' }), targetWith());
  assert.deepEqual([plain.method, plain.path], ['POST', '/images/generations']);
  assert.deepEqual(plain.body, { model: 'vendor-model', prompt: 'A cat on a mat', n: 3, quality: 'low' });
  const edit = openai.create(imageOrder({ references: [shown, shownBytes] }), targetWith());
  assert.equal(edit.path, '/images/edits');
  assert.deepEqual(edit.body!['images'], [
    { image_url: 'https://example.com/a.png' },
    { image_url: `data:image/png;base64,${png}` },
  ]);
  const mask = { ...shownBytes, role: 'mask', field: 'mask' } as const;
  const masked = openai.create(imageOrder({ references: [shown, { ...shown, role: 'mask' }] }), targetWith());
  assert.deepEqual(masked.body!['mask'], { image_url: 'https://example.com/a.png' });
  const files = openai.create(imageOrder({ count: 2, references: [shownBytes, shownBytes, mask] }), targetWith());
  assert.deepEqual([files.path, files.body], ['/images/edits', undefined]);
  const file = { mediaType: 'image/png', base64: png };
  assert.deepEqual(files.form, [
    { name: 'model', text: 'vendor-model' },
    { name: 'prompt', text: 'A cat on a mat' },
    { name: 'n', text: '2' },
    { name: 'image[]', filename: 'image-0.png', ...file },
    { name: 'image[]', filename: 'image-1.png', ...file },
    { name: 'mask', filename: 'mask-2.png', ...file },
  ]);
});

test('the newest members of the official images API are sent to vendors of that API, and named where another lacks them', () => {
  const extra = {
    ...{ complexity: 'high', frame_count: 9, frame_duration_ms: 200, input_fidelity: 'high' },
    ...{ svg: { reasoning: { effort: 'low' } }, prompt_rewriter: false, safety_identifier: 'u' },
  };
  const sent = bodyOf(openai, { extra });
  for (const [name, value] of Object.entries(extra)) assert.deepEqual(sent[name], value, name);
  const { svg: _, prompt_rewriter: __, ...ofEdits } = extra;
  const edit = openai.create(imageOrder({ extra: ofEdits, references: [shownBytes] }), targetWith());
  assert.deepEqual(
    edit.form!.filter(({ name }) => name in ofEdits),
    Object.entries(ofEdits).map(([name, value]) => ({ name, text: String(value) })),
  );
  for (const adapter of [gemini, xai, ark]) {
    const { dropped = [] } = adapter.create(imageOrder({ extra }), targetWith());
    assert.deepEqual([...dropped].sort(), Object.keys(extra).sort(), adapter.name);
  }
});

test('a writer model for SVG is refused by its field unless it is the ordered one', () => {
  const order = (model: string) => imageOrder({ extra: { output_format: 'svg', svg: { model } } });
  assert.deepEqual(
    refusal(() => openai.create(order('dear'), targetWith())),
    { field: 'svg.model', code: 'other_model' },
  );
  const { model } = order('');
  assert.deepEqual(bodyOf(openai, { extra: { svg: { model } } })['svg'], { model });
});

test('the writer of an SVG is charged as text of the image model, within the hold', () => {
  const svg_usage = {
    input_tokens: 900,
    output_tokens: 5_000,
    reasoning_tokens: 3_000,
    total_tokens: 5_900,
    model: 'a',
  };
  const usage = { input_tokens: 20, output_tokens: 1_000, total_tokens: 1_020 };
  const step = readAs(openai, { data: [{ b64_json: png }], output_format: 'svg', usage, svg_usage });
  assert(step.state === 'done');
  const { image, input, output, output_image } = step.made.usage;
  assert.deepEqual([image, input, output, output_image], [1, 920, 5_000, 1_000]);
  const [plain, drawn] = [{}, { output_format: 'svg' }].map((extra) => openai.bounds(imageOrder({ extra })));
  assert(drawn!.outputTokens - plain!.outputTokens > 5_000);
});

test("the vendor's background is kept with the result", () => {
  const step = readAs(openai, { data: [{ b64_json: png }], background: 'transparent' });
  assert.equal(step.state === 'done' && step.made.background, 'transparent');
  const without = readAs(openai, { data: [{ b64_json: png }] });
  assert.equal(without.state === 'done' && 'background' in without.made, false);
});

test('only vendors with masks get one; all others refuse it by its name', () => {
  const mask = { ...shownBytes, role: 'mask', field: 'mask' } as const;
  for (const adapter of imageAdapters.filter((each) => each !== openai)) {
    assert.deepEqual(
      refusal(() => bodyOf(adapter, { references: [shownBytes, mask] })),
      { field: 'mask', code: 'unsupported_by_model' },
    );
  }
});

test('OpenAI gets sizes in pixels: multiples of 16, in its bounds', () => {
  const sizeFor = (over: Partial<Order>) => bodyOf(openai, over)['size'] as string | undefined;
  assert.equal(sizeFor({}), undefined);
  assert.equal(sizeFor({ ratio: '1:1' }), '1024x1024');
  assert.equal(sizeFor({ ratio: '3:2' }), '1536x1024');
  assert.equal(sizeFor({ ratio: '2:3' }), '1024x1536');
  assert.equal(sizeFor({ ratio: '16:9' }), '1360x768');
  assert.equal(sizeFor({ resolution: '2k' }), '2048x2048');
  assert.equal(sizeFor({ resolution: '4k' }), '2880x2880');
  assert.equal(sizeFor({ ratio: '16:9', resolution: '4k' }), '3840x2160');
  assert.equal(sizeFor(pixels('1536x1024')), '1536x1024');
  for (const size of ['1000x1000', '4096x1024', '3840x3840', '3200x1024'])
    assert.deepEqual(
      refusal(() => sizeFor(pixels(size))),
      { field: 'size', code: 'unsupported_by_model' },
    );
  assert.deepEqual(
    refusal(() => sizeFor({ ratio: '4:1' })),
    { field: 'size', code: 'unsupported_by_model' },
  );
});

test("for any ratio, OpenAI's pixels follow its rules and come near the ratio", () => {
  const side = fc.integer({ min: 1, max: 30 });
  const resolution = fc.constantFrom('1k', '2k', '4k') as fc.Arbitrary<'1k' | '2k' | '4k'>;
  fc.assert(
    fc.property(side, side, resolution, (width, height, of) => {
      fc.pre(Math.max(width / height, height / width) <= 3);
      const size = bodyOf(openai, { ratio: `${width}:${height}`, resolution: of })['size'] as unknown as string;
      const [x, y] = size.split('x').map(Number) as [number, number];
      assert.ok(x % 16 === 0 && y % 16 === 0 && Math.max(x, y) <= 3840 && x * y <= 3840 * 2160, size);
      assert.ok(Math.abs(x / y / (width / height) - 1) < 0.06, `${size} for ${width}:${height}`);
    }),
  );
});

test('further members are sent where the protocol has them; a missing required parameter is refused, a soft one is dropped', () => {
  const extra = { background: 'transparent', output_format: 'webp', style: 'vivid', mask: { image_url: 'https://m' } };
  const edit = openai.create(imageOrder({ references: [shown], extra }), targetWith());
  assert.deepEqual(edit.body!['mask'], { image_url: 'https://m' });
  assert.deepEqual(
    [edit.body!['background'], edit.body!['style'], edit.dropped],
    ['transparent', undefined, ['style']],
  );
  for (const adapter of imageAdapters) {
    assert.deepEqual(
      refusal(() => bodyOf(adapter, { extra: { mask: 'x' } })),
      { field: 'mask', code: 'unsupported_by_model' },
    );
    assert.equal(refusal(() => bodyOf(adapter, { extra: { image: 'https://a' } })).field, 'image');
    assert.deepEqual(adapter.create(imageOrder({ extra: { style: 'x' } }), targetWith()).dropped, ['style']);
  }
});

test('Gemini gets both modalities, a ratio and a size by name, and bytes of references', () => {
  const sent = gemini.create(
    imageOrder({ ratio: '16:9', resolution: '2k', references: [shownBytes], extra: { seed: 7 } }),
    targetWith(),
  );
  assert.equal(sent.path, '/models/vendor-model:generateContent');
  assert.deepEqual(sent.body, {
    contents: [
      { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: png } }, { text: 'A cat on a mat' }] },
    ],
    generationConfig: {
      responseModalities: ['TEXT', 'IMAGE'],
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
      seed: 7,
    },
  });
  assert.deepEqual(bodyOf(gemini)['generationConfig'] as object, { responseModalities: ['TEXT', 'IMAGE'] });
  assert.deepEqual(gemini.create(imageOrder({ quality: 'high' }), targetWith()).dropped, ['quality']);
  assert.deepEqual([gemini.mostPerCall, gemini.needsBytes], [1, true]);
  const [content] = bodyOf(gemini, { references: [shown] })['contents'] as { parts: object[] }[];
  assert.deepEqual(content!.parts[0], { fileData: { mimeType: 'image/png', fileUri: 'https://example.com/a.png' } });
});

test('pixels become the nearest ratio and an equally large resolution, unless no ratio is near', () => {
  const config = (size: string) =>
    (bodyOf(gemini, pixels(size))['generationConfig'] as { imageConfig: object }).imageConfig;
  assert.deepEqual(config('1024x1024'), { aspectRatio: '1:1' });
  assert.deepEqual(config('1920x1080'), { aspectRatio: '16:9', imageSize: '2K' });
  assert.deepEqual(config('4096x4096'), { aspectRatio: '1:1', imageSize: '4K' });
  assert.equal(refusal(() => config('4000x500')).field, 'size');
  assert.deepEqual(
    refusal(() => bodyOf(gemini, { ratio: '2:1' })),
    { field: 'size', code: 'unsupported_by_model' },
  );
});

test('xAI gets ratio and resolution by name, one image alone and several in a list', () => {
  const body = bodyOf(xai, { count: 2, ratio: '3:4', resolution: '2k', quality: 'high' });
  assert.deepEqual(body, {
    model: 'vendor-model',
    prompt: 'A cat on a mat',
    n: 2,
    aspect_ratio: '3:4',
    resolution: '2k',
    quality: 'high',
    response_format: 'url',
  });
  const one = xai.create(imageOrder({ references: [shown] }), targetWith());
  assert.equal(one.path, '/images/edits');
  assert.deepEqual(one.body!['image'], { type: 'image_url', url: 'https://example.com/a.png' });
  assert.equal((bodyOf(xai, { references: [shown, shownBytes] })['images'] as unknown[]).length, 2);
  assert.deepEqual(
    refusal(() => bodyOf(xai, { resolution: '4k' })),
    { field: 'resolution', code: 'unsupported_by_model' },
  );
  assert.deepEqual(
    refusal(() => bodyOf(xai, { ratio: '21:9' })),
    { field: 'size', code: 'unsupported_by_model' },
  );
  assert.equal(refusal(() => bodyOf(xai, pixels('4096x4096'))).field, 'size');
});

test('Ark gets a size by name or in pixels, never a number of pictures, and no less than the model makes', () => {
  assert.deepEqual(bodyOf(ark, { watermark: false }), {
    model: 'vendor-model',
    prompt: 'A cat on a mat',
    size: '1K',
    sequential_image_generation: 'disabled',
    response_format: 'url',
    watermark: false,
  });
  const sizeFor = (over: Partial<Order>, traits = {}) => bodyOf(ark, over, traits)['size'] as string | undefined;
  const large = { resolutions: ['2k', '4k'] };
  assert.equal(sizeFor({}, large), '2K');
  assert.equal(sizeFor({ ratio: '1:1' }, large), '2048x2048');
  assert.equal(sizeFor({ ratio: '16:9', resolution: '2k' }, large), '2720x1536');
  assert.equal(sizeFor({ ratio: '1:1', resolution: '4k' }, large), '4096x4096');
  assert.equal(sizeFor(pixels('2560x1440'), large), '2560x1440');
  assert.equal(sizeFor(pixels('1024x1024')), '1024x1024');
  for (const size of ['1024x1024', '5000x4000'])
    assert.deepEqual(
      refusal(() => sizeFor(pixels(size), large)),
      { field: 'size', code: 'unsupported_by_model' },
    );
  assert.equal(refusal(() => sizeFor({ resolution: '4k' }, { resolutions: ['2k'] })).field, 'resolution');
  assert.equal(bodyOf(ark, { references: [shown] })['image'], 'https://example.com/a.png');
  assert.equal((bodyOf(ark, { references: [shown, shownBytes] })['image'] as unknown[]).length, 2);
  const tooMany = Array.from({ length: 15 }, () => shown);
  assert.deepEqual(
    refusal(() => bodyOf(ark, { references: tooMany })),
    { field: 'image_urls', code: 'unsupported_by_model' },
  );
});

test('single pictures may fail inside a 200: the received ones are charged, and none is a failure with its reason', () => {
  const error = { code: 'OutputImageSensitiveContentDetected', message: 'no' };
  const some = readAs(ark, { data: [{ url: 'https://a', size: '2048x2048' }, { error }] }, imageOrder({ count: 2 }));
  assert.deepEqual(some, {
    state: 'done',
    files: [{ url: 'https://a' }],
    made: { usage: { image: 1 }, estimated: false, media: ['2048x2048'] },
  });
  const failedCode = (step: Step) => step.state === 'failed' && step.code;
  assert.equal(
    failedCode(readAs(ark, { data: [{ error: { code: 'InternalServiceError' } }, { error }] })),
    'content_policy',
  );
  assert.equal(failedCode(readAs(ark, { data: [{ error: { code: 'InternalServiceError' } }] })), 'generation_failed');
  assert.equal(failedCode(readAs(ark, { error })), 'content_policy');
  const blocked = { url: '', respect_moderation: false };
  const mixed = readAs(
    xai,
    { data: [{ url: 'https://a', respect_moderation: true }, blocked] },
    imageOrder({ count: 2 }),
  );
  assert.deepEqual(mixed.state === 'done' && mixed.made.usage, { image: 1 });
  assert.equal(failedCode(readAs(xai, { data: [blocked, { ...blocked, url: 'https://secret' }] })), 'content_policy');
  assert.equal(failedCode(readAs(openai, { data: [] })), 'no_image');
  assert.equal(failedCode(readAs(openai, { data: [{ error: {} }] })), 'no_image');
});

test('each reason of Gemini for a missing picture is read', () => {
  const code = (json: object) => {
    const step = readAs(gemini, json);
    return step.state === 'failed' && step.code;
  };
  for (const finishReason of [
    'SAFETY',
    'IMAGE_SAFETY',
    'PROHIBITED_CONTENT',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
    'SPII',
  ])
    assert.equal(code({ candidates: [{ finishReason }] }), 'content_policy', finishReason);
  assert.equal(code({ promptFeedback: { blockReason: 'OTHER' } }), 'content_policy');
  assert.equal(code({ candidates: [{ finishReason: 'NO_IMAGE' }] }), 'no_image');
  const words = { candidates: [{ content: { parts: [{ text: 'Sorry.' }] }, finishReason: 'STOP' }] };
  assert.equal(code(words), 'no_image');
  assert.equal(code({ candidates: [{ finishReason: 'IMAGE_OTHER' }] }), 'generation_failed');
});

test("Gemini's drafts are not shown, and its usage is reported class by class", () => {
  const parts = [
    { thought: true, inlineData: { mimeType: 'image/png', data: 'draft' } },
    { text: 'Here.' },
    { inlineData: { mimeType: 'image/jpeg', data: png } },
  ];
  const usageMetadata = {
    promptTokenCount: 300,
    cachedContentTokenCount: 20,
    candidatesTokenCount: 1_130,
    thoughtsTokenCount: 200,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 42 },
      { modality: 'IMAGE', tokenCount: 258 },
    ],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1_120 }],
  };
  assert.deepEqual(readAs(gemini, { candidates: [{ content: { parts }, finishReason: 'STOP' }], usageMetadata }), {
    state: 'done',
    files: [{ base64: png, mediaType: 'image/jpeg' }],
    made: {
      usage: { image: 1, input: 22, cache_read: 20, input_image: 258, output: 10, output_image: 1_120, reasoning: 200 },
      estimated: false,
      media: ['1k'],
    },
  });
});

test('a vendor that makes more than the order is paid for the order', () => {
  const twice = [1, 2, 3, 4].map((index) => ({ url: `https://${index}`, b64_json: png }));
  for (const adapter of [openai, xai, ark]) {
    const step = readAs(adapter, { data: twice }, imageOrder({ count: 2 }));
    assert.ok(step.state === 'done');
    assert.deepEqual([step.files.length, step.made.usage.image], [2, 2]);
  }
});

test('an error about content ends the task, with any status; others are errors of the vendor', () => {
  const said: [MediaAdapter, number, object][] = [
    [openai, 400, { error: { code: 'moderation_blocked', type: 'image_generation_user_error', message: 'x' } }],
    [openai, 400, { error: { code: null, message: 'Your request was rejected as a result of our safety system.' } }],
    [
      xai,
      403,
      { code: 'The caller does not have permission', error: 'Generated image rejected by content moderation.' },
    ],
    [xai, 400, { error: 'Content violates usage guidelines.' }],
    [ark, 400, { error: { code: 'InputTextSensitiveContentDetected', message: 'x' } }],
  ];
  for (const [adapter, status, json] of said) {
    const step = readAs(adapter, json, imageOrder(), status);
    assert.deepEqual(
      [step.state, step.state === 'failed' && step.code],
      ['failed', JSON.stringify(json).includes('moderation_blocked') ? 'moderation_blocked' : 'content_policy'],
      JSON.stringify(json),
    );
  }
  const thrown = (adapter: MediaAdapter, status: number, json: unknown): UpstreamRefusal => {
    try {
      readAs(adapter, json, imageOrder(), status);
    } catch (error) {
      assert.ok(error instanceof UpstreamRefusal, String(error));
      return error;
    }
    assert.fail('nothing was thrown');
  };
  assert.equal(thrown(openai, 401, { error: { message: 'Incorrect API key' } }).keyAtFault, true);
  assert.equal(thrown(ark, 429, { error: { code: 'RateLimitExceeded', message: 'x' } }).error.kind, 'rate_limited');
  assert.equal(thrown(xai, 500, undefined).mayRun, true);
  assert.equal(thrown(gemini, 503, {}).mayRun, false);
  for (const adapter of imageAdapters) {
    for (const json of [undefined, null, [], {}, 'text']) assert.equal(thrown(adapter, 200, json).mayRun, true);
  }
});

test('the wait that a vendor names is kept', () => {
  const answer = { status: 429, json: { error: { message: 'slow down' } }, headers: { 'retry-after': '7' }, atMs: 1 };
  assert.throws(
    () => openai.readCreated(answer, imageOrder()),
    (error) => {
      assert.ok(error instanceof UpstreamRefusal);
      assert.equal(error.retryAfterMs, 7_000);
      return true;
    },
  );
});

test('the output is known beforehand only where nothing is left to the vendor', () => {
  assert.equal(openai.bounds(imageOrder({ quality: 'low' })).media, undefined);
  assert.deepEqual(openai.bounds(imageOrder({ ...pixels('1024x1024'), quality: 'low' })).media, ['1024x1024', 'low']);
  assert.deepEqual(gemini.bounds(imageOrder({ resolution: '4k' })).media, ['4k']);
  assert.deepEqual(xai.bounds(without(imageOrder(), 'resolution')).media, ['1k']);
  assert.equal(ark.bounds(imageOrder()).media, undefined);
});

test('no vendor gets references of a kind that it does not accept', () => {
  for (const adapter of imageAdapters) {
    const clip = { ...shown, role: 'video', field: 'image_urls[0]' } as const;
    assert.equal(refusal(() => bodyOf(adapter, { references: [clip] })).field, 'image_urls[0]');
  }
});

test('a resolution of the client that the model makes larger is dropped; a default one is not', () => {
  const named = { resolution: 'resolution' } as const;
  for (const [adapter, resolutions] of [
    [ark, ['2k', '4k']],
    [gemini, ['2k', '4k']],
    [xai, ['2k']],
  ] as const) {
    const dropped = (over: Partial<Order>) =>
      adapter.create(imageOrder(over), targetWith({ resolutions: [...resolutions] })).dropped;
    assert.deepEqual(dropped({ resolution: '1k', fields: named }), ['resolution'], adapter.name);
    assert.deepEqual(dropped({ resolution: '1k', fields: { resolution: 'size' } }), ['size'], adapter.name);
    assert.deepEqual(dropped({ resolution: '1k' }), [], adapter.name);
    assert.deepEqual(dropped({ resolution: '2k', fields: named }), [], adapter.name);
  }
});
