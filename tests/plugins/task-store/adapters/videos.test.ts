/** What each video vendor is asked, how its tasks are read, and what they cost at most. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../../../core/contract/upstream-failures.ts';
import type { MediaAdapter, Order, Step } from '../../../../plugins/common/media/adapters.ts';
import { ownAdapters } from '../../../../plugins/task-store/adapters/index.ts';
import { fc } from '../../../helpers/properties.ts';
import { refusal, shown, targetWith, videoOrder } from '../orders.ts';

const adapters = new Map(ownAdapters.map((each) => [each.name, each]));

const [xai, ark] = ['xai-videos', 'ark-videos'].map((name) => adapters.get(name)!) as [MediaAdapter, MediaAdapter];
/** As the catalogue says of grok-imagine-video. */
const grok = targetWith({ resolutions: ['480p', '720p'], needs_image: true });
const requestToGrok = (over: Partial<Order> = {}) => xai.create(videoOrder(over), grok);
const poll = (adapter: MediaAdapter, status: number, json: unknown, order = videoOrder()): Step =>
  adapter.tasks!.readPolled({ status, json }, order, 'v1');
const code = (step: Step) => (step.state === 'failed' ? step.code : step.state);

test('one text and one image without further settings become a video of 480p', () => {
  const sent = requestToGrok();
  assert.deepEqual([sent.method, sent.path, sent.dropped], ['POST', '/videos/generations', []]);
  assert.deepEqual(sent.body, {
    model: 'vendor-model',
    prompt: 'A cat walks',
    resolution: '480p',
    image: { url: 'https://example.com/a.png' },
  });
});

test('sound, watermark, reference videos and sounds are ignored, and reported', () => {
  const clip = { ...shown, role: 'video', field: 'content[2].video_url.url' } as const;
  const sound = { ...shown, role: 'audio', field: 'content[3].audio_url.url' } as const;
  const { references } = videoOrder();
  const plain = requestToGrok();
  const sent = requestToGrok({ generateAudio: true, watermark: true, references: [...references, clip, sound] });
  assert.deepEqual(sent.body, plain.body);
  assert.deepEqual(sent.dropped, ['watermark', 'generate_audio', clip.field, sound.field]);
});

test('an order without one text and one image is refused', () => {
  assert.deepEqual(
    refusal(() => requestToGrok({ prompt: '' })),
    { field: 'content', code: 'unsupported_by_model' },
  );
  assert.deepEqual(
    refusal(() => requestToGrok({ references: [] })),
    { field: 'content', code: 'unsupported_by_model' },
  );
  const two = [shown, { ...shown, field: 'content[2].image_url.url' }];
  assert.equal(refusal(() => requestToGrok({ references: two })).field, 'content[2].image_url.url');
});

test('longer durations are shortened to 15 seconds, an unsupported ratio is left to the picture, both reported; a resolution is refused', () => {
  assert.equal(requestToGrok({ seconds: 5 }).body!['duration'], 5);
  const long = requestToGrok({ seconds: 60 });
  assert.deepEqual([long.body!['duration'], long.dropped], [15, ['duration']]);
  assert.equal(requestToGrok({ ratio: '9:16' }).body!['aspect_ratio'], '9:16');
  const wide = requestToGrok({ ratio: '21:9' });
  assert.deepEqual([wide.body!['aspect_ratio'], wide.dropped], [undefined, ['ratio']]);
  assert.deepEqual(
    refusal(() => xai.create(videoOrder({ ratio: '21:9' }), targetWith())),
    { field: 'ratio', code: 'unsupported_by_model' },
  );
  assert.deepEqual(
    refusal(() => requestToGrok({ resolution: '1080p' })),
    { field: 'resolution', code: 'unsupported_by_model' },
  );
  const size = { width: 720, height: 1280 };
  const sora = requestToGrok({ size, resolution: '720p', fields: { ratio: 'size', resolution: 'size' } }).body!;
  assert.deepEqual([sora['aspect_ratio'], sora['resolution']], ['9:16', '720p']);
});

test('other models of the protocol accept text alone, several images, a last frame and sounds', () => {
  const requestOf = (over: Partial<Order>) => xai.create(videoOrder(over), targetWith()).body!;
  assert.equal(requestOf({ references: [] })['image'], undefined);
  assert.equal((requestOf({ references: [shown, shown] })['reference_images'] as unknown[]).length, 2);
  const last = { ...shown, role: 'last_frame' } as const;
  assert.deepEqual(requestOf({ references: [last] })['last_frame'], { url: 'https://example.com/a.png' });
  assert.equal(requestOf({ generateAudio: true })['generate_audio'], true);
  assert.equal(refusal(() => requestOf({ references: [{ ...shown, role: 'video', field: 'f' }] })).field, 'f');
  assert.equal(refusal(() => requestOf({ references: Array.from({ length: 8 }, () => shown) })).field, 'content');
});

test('xAI: 202 is pending with or without a body, and an unknown state still runs', () => {
  assert.deepEqual(xai.readCreated({ status: 200, json: { request_id: 'r1' } }, videoOrder()), {
    state: 'queued',
    vendorId: 'r1',
  });
  assert.deepEqual(xai.tasks!.poll('a/b'), { method: 'GET', path: '/videos/a%2Fb' });
  const running = { state: 'running', vendorId: 'v1' };
  assert.deepEqual(poll(xai, 202, undefined), running);
  assert.deepEqual(poll(xai, 202, { status: 'pending', progress: 56 }), { ...running, progress: 56 });
  assert.deepEqual(poll(xai, 200, { status: 'pending' }), running);
  assert.deepEqual(poll(xai, 200, { status: 'rewinding', progress: 'x' }), running);
});

test('xAI: each end of a task is read', () => {
  const video = { url: 'https://v', duration: 5, respect_moderation: true };
  assert.deepEqual(poll(xai, 200, { status: 'done', video }, videoOrder({ seconds: 5, resolution: '720p' })), {
    state: 'done',
    files: [{ url: 'https://v', mediaType: 'video/mp4' }],
    made: { usage: { second: 5 }, estimated: false, media: ['720p'] },
  });
  const unreported = poll(xai, 200, { video: { url: 'https://v' } }, videoOrder({ seconds: 8 }));
  assert.deepEqual(unreported.state === 'done' && unreported.made, {
    usage: { second: 8 },
    estimated: true,
    media: ['480p'],
  });
  assert.equal(
    code(poll(xai, 200, { status: 'done', video: { ...video, respect_moderation: false } })),
    'content_policy',
  );
  assert.equal(
    code(poll(xai, 200, { status: 'failed', error: { code: 'content_moderation', message: 'x' } })),
    'content_policy',
  );
  assert.equal(
    code(poll(xai, 200, { status: 'failed', error: { code: 'internal', message: 'host-7 died' } })),
    'generation_failed',
  );
  assert.equal(code(poll(xai, 200, { status: 'failed' })), 'generation_failed');
  assert.equal(code(poll(xai, 200, { status: 'expired' })), 'expired');
  assert.throws(() => poll(xai, 200, { status: 'done' }), UpstreamRefusal);
});

test('a poll that is not found or breaks is an error, not an end', () => {
  for (const adapter of [xai, ark]) {
    for (const [status, json] of [
      [404, { error: { message: 'no' } }],
      [500, undefined],
      [200, undefined],
      [429, {}],
    ] as const)
      assert.throws(() => poll(adapter, status, json), UpstreamRefusal);
    for (const json of [undefined, {}, []]) {
      assert.throws(
        () => adapter.readCreated({ status: 200, json }, videoOrder()),
        (error) => {
          assert.ok(error instanceof UpstreamRefusal);
          assert.equal(error.mayRun, true);
          return true;
        },
      );
    }
  }
});

test("Ark is ordered in its own members, which are the client's", () => {
  const clip = { ...shown, role: 'video' } as const;
  const order = videoOrder({
    references: [shown, clip],
    ratio: '21:9',
    resolution: '1080p',
    seconds: 10,
    generateAudio: false,
    watermark: true,
    extra: { seed: 1, camera_fixed: true, draft: false, callback: 'x' },
  });
  const sent = ark.create(order, targetWith());
  const url = 'https://example.com/a.png';
  assert.equal(sent.path, '/contents/generations/tasks');
  assert.deepEqual(sent.dropped, ['draft', 'callback']);
  assert.deepEqual(sent.body, {
    model: 'vendor-model',
    content: [
      { type: 'text', text: 'A cat walks' },
      { type: 'image_url', image_url: { url }, role: 'reference_image' },
      { type: 'video_url', video_url: { url }, role: 'reference_video' },
    ],
    resolution: '1080p',
    ratio: '21:9',
    duration: 10,
    generate_audio: false,
    watermark: true,
    seed: 1,
    camera_fixed: true,
  });
  assert.equal(refusal(() => ark.create(videoOrder({ extra: { draft: true } }), targetWith())).field, 'draft');
  assert.deepEqual(ark.tasks!.cancel!('cgt-1'), { method: 'DELETE', path: '/contents/generations/tasks/cgt-1' });
});

test('Ark: each state of a task is read', () => {
  const report = (over: object) => poll(ark, 200, { id: 'v1', ...over });
  assert.equal(code(report({ status: 'queued' })), 'queued');
  assert.equal(code(report({ status: 'running' })), 'running');
  assert.equal(code(report({ status: 'reviewing' })), 'running');
  assert.equal(code(report({ status: 'cancelled' })), 'cancelled');
  assert.equal(code(report({ status: 'expired' })), 'expired');
  assert.equal(
    code(report({ status: 'failed', error: { code: 'OutputVideoSensitiveContentDetected', message: 'x' } })),
    'content_policy',
  );
  assert.deepEqual(
    report({
      status: 'failed',
      error: { code: 'InvalidParameter', message: 'The image at https://x.com/a is too small' },
    }),
    {
      state: 'failed',
      code: 'invalid_input',
      message: 'The image at *** is too small',
    },
  );
  const content = { video_url: 'https://v', last_frame_url: 'https://l' };
  const usage = { completion_tokens: 108_900, total_tokens: 108_900 };
  assert.deepEqual(report({ status: 'succeeded', content, usage, duration: 5, resolution: '720p' }), {
    state: 'done',
    files: [
      { url: 'https://v', mediaType: 'video/mp4' },
      { url: 'https://l', mediaType: 'image/png' },
    ],
    made: { usage: { output: 108_900, second: 5 }, estimated: false, media: ['720p'] },
  });
});

test('Ark: tokens are pixels times frames by 1024, and options in the prompt count', () => {
  const of = (over: Partial<Order>) => ark.bounds(videoOrder(over));
  const exact = (1280 * 720 * (24 * 5 + 1)) / 1024;
  assert.equal(exact, 108_900);
  const usual = of({ resolution: '720p', seconds: 5 });
  assert.ok(usual.outputTokens >= exact && usual.outputTokens < exact * 1.1, String(usual.outputTokens));
  assert.equal(usual.seconds, 5);
  assert.equal(of({}).seconds, 15);
  assert.equal(of({ seconds: 5, prompt: 'A cat --dur 12' }).seconds, 12);
  assert.equal(of({ seconds: 5, extra: { frames: 241 } }).seconds, 11);
  const larger = of({ resolution: '480p', seconds: 5, prompt: 'A cat --rs 1080p' });
  assert.equal(larger.outputTokens, of({ resolution: '1080p', seconds: 5 }).outputTokens);
  const clip = { ...shown, role: 'video' } as const;
  assert.ok(of({ resolution: '720p', seconds: 5, references: [clip] }).outputTokens > 3 * usual.outputTokens);
});

test("Ark: for any order, the bound covers the vendor's formula", () => {
  const sizes: Record<'480p' | '720p' | '1080p', [number, number][]> = {
    '480p': [
      [864, 480],
      [736, 544],
      [640, 640],
      [960, 416],
    ],
    '720p': [
      [1280, 720],
      [1248, 704],
      [1120, 832],
      [960, 960],
      [1504, 640],
    ],
    '1080p': [
      [1920, 1080],
      [1920, 1088],
      [1664, 1248],
      [1440, 1440],
      [2176, 928],
    ],
  };
  const resolution = fc.constantFrom(...(Object.keys(sizes) as (keyof typeof sizes)[]));
  fc.assert(
    fc.property(resolution, fc.nat({ max: 4 }), fc.integer({ min: 1, max: 60 }), (of, shape, seconds) => {
      const [width, height] = sizes[of][shape % sizes[of].length]!;
      const used = (width * height * (24 * seconds + 1)) / 1024;
      assert.ok(ark.bounds(videoOrder({ resolution: of, seconds })).outputTokens >= used);
    }),
  );
});

test('a resolution that the model makes larger is named as dropped', () => {
  for (const adapter of [xai, ark]) {
    const order = { resolution: '480p', fields: { prompt: 'content', references: 'content' } } as const;
    const dropped = (traits: object) => adapter.create(videoOrder(order), targetWith(traits)).dropped;
    assert.deepEqual(dropped({ resolutions: ['720p'] }), ['resolution'], adapter.name);
    assert.deepEqual(dropped({}), [], adapter.name);
  }
});

test('for durations and shapes that xAI lacks the order has the made ones', () => {
  const clamped = (over: object, traits = {}) => xai.create(videoOrder(over), targetWith(traits)).clamped;
  assert.deepEqual(clamped({ seconds: 30 }), { seconds: 15 });
  assert.deepEqual(clamped({ seconds: 30, ratio: '21:9' }, { needs_image: true }), { seconds: 15, ratio: 'adaptive' });
  assert.equal(clamped({ seconds: 15, ratio: '16:9' }, { needs_image: true }), undefined);
});
