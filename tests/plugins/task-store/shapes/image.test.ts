/** The image task and the official image answer: every bound of the interface, and every state as clients read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { imageAnswer, imageTask } from '../../../../plugins/task-store/orders/shapes/index.ts';
import { fc } from '../../../helpers/properties.ts';
import { png, read, refusal, task } from '../orders.ts';

const body = { model: 'm', prompt: 'A cat' };
const fieldOf = (over: object) => refusal(() => read(imageTask, { ...body, ...over })).field;

test('a request of model and prompt alone is one image of 1k, answered with a task', () => {
  const { order, ...rest } = read(imageTask, body);
  assert.deepEqual(rest, { waits: undefined, form: 'base64', callbackUrl: undefined });
  const { fields, ...members } = order;
  assert.deepEqual(members, {
    kind: 'image',
    model: 'm',
    prompt: 'A cat',
    count: 1,
    resolution: '1k',
    references: [],
    extra: {},
  });
  assert.equal(fields!.ratio, 'size');
});

test('model and prompt must be texts that are not empty', () => {
  for (const field of ['model', 'prompt']) {
    for (const value of [undefined, null, '', 7, ['a'], {}]) assert.equal(fieldOf({ [field]: value }), field);
  }
});

test('n is a whole number from 1 to 10', () => {
  for (const n of [1, 2, 10]) assert.equal(read(imageTask, { ...body, n }).order.count, n);
  assert.equal(read(imageTask, { ...body, n: null }).order.count, 1);
  for (const n of [0, 11, -1, 1.5, '2', true, []]) assert.equal(fieldOf({ n }), 'n');
});

test('size is auto, a ratio, or pixels, which make the resolution superfluous', () => {
  const geometry = (size: string, resolution?: string) => {
    const { order } = read(imageTask, { ...body, size, resolution });
    return { size: order.size, ratio: order.ratio, resolution: order.resolution };
  };
  assert.deepEqual(geometry('auto'), { size: undefined, ratio: undefined, resolution: '1k' });
  assert.deepEqual(geometry('16:9', '2k'), { size: undefined, ratio: '16:9', resolution: '2k' });
  assert.deepEqual(geometry('1024x768', '1k'), {
    size: { width: 1024, height: 768 },
    ratio: undefined,
    resolution: undefined,
  });
  assert.throws(() => geometry('1024x768', '4k'), /name two resolutions/);
  for (const size of ['big', '16x', '0:1', '1:0', '0x10', '1024x', '99999x10', '16:9:3', '-1:1', 7, {}])
    assert.equal(fieldOf({ size }), 'size', String(size));
});

test('resolution is 1k, 2k or 4k', () => {
  for (const resolution of ['1k', '2k', '4k'])
    assert.equal(read(imageTask, { ...body, resolution }).order.resolution, resolution);
  for (const resolution of ['3k', '1K', 1, '', 'auto', '720p']) assert.equal(fieldOf({ resolution }), 'resolution');
});

test('up to 14 reference images are accepted, as addresses, data URLs or base64', () => {
  const url = 'https://example.com/a.png';
  const many = (count: number) => Array.from({ length: count }, () => url);
  assert.equal(read(imageTask, { ...body, image_urls: many(14) }).order.references.length, 14);
  assert.equal(fieldOf({ image_urls: many(15) }), 'image_urls');
  assert.equal(fieldOf({ image_urls: url }), 'image_urls');
  const sources = read(imageTask, { ...body, image_urls: [url, png, `data:image/jpeg;base64,${png}`] }).order
    .references;
  assert.deepEqual(
    sources.map(({ role, field, source }) => [role, field, source]),
    [
      ['image', 'image_urls[0]', { url }],
      ['image', 'image_urls[1]', { base64: png, mediaType: 'image/png' }],
      ['image', 'image_urls[2]', { base64: png, mediaType: 'image/png' }],
    ],
  );
  const html = Buffer.from('<html><body>no picture</body></html>').toString('base64');
  for (const bad of [
    7,
    '',
    'ftp://example.com/a',
    'file:///etc/passwd',
    'https://',
    'not base64!',
    html,
    'data:image/png,abc',
  ])
    assert.equal(fieldOf({ image_urls: [url, bad] }), 'image_urls[1]', String(bad));
});

test('every kind of image is recognised by its content', () => {
  const kinds: Record<string, string> = {
    'image/jpeg': 'ffd8ffe000104a464946',
    'image/gif': '474946383961010001',
    'image/webp': '524946460000000057454250565038',
    'image/bmp': '424d460000000000',
    'image/avif': '0000001c667479706176696600000000',
    'image/heic': '00000018667479706865696300000000',
  };
  for (const [type, hex] of Object.entries(kinds)) {
    const base64 = Buffer.from(hex.padEnd(64, '0'), 'hex').toString('base64');
    const [image] = read(imageTask, { ...body, image_urls: [base64] }).order.references;
    assert.deepEqual(image!.source, { base64, mediaType: type });
  }
});

test('a client that prefers to wait or names a form is answered with the images themselves', () => {
  const waits = (over: object, prefer?: string) =>
    read(imageTask, { ...body, ...over }, prefer === undefined ? {} : { prefer });
  assert.equal(waits({}).waits, undefined);
  assert.equal(waits({}, 'respond-async, wait=60').waits, true);
  assert.equal(waits({}, 'wait').waits, true);
  assert.equal(waits({}, 'waiting').waits, undefined);
  assert.deepEqual([waits({ response_format: 'url' }).waits, waits({ response_format: 'url' }).form], [true, 'url']);
  assert.equal(waits({ response_format: 'b64_json' }).form, 'base64');
  assert.equal(fieldOf({ response_format: 'png' }), 'response_format');
});

test('a callback is an http address, and quality and the rest are kept', () => {
  const callback = 'https://example.com/done';
  assert.equal(read(imageTask, { ...body, callback_url: callback }).callbackUrl, callback);
  for (const bad of ['example.com', 'javascript:alert(1)', 7])
    assert.equal(fieldOf({ callback_url: bad }), 'callback_url');
  const { order } = read(imageTask, { ...body, stream: false, quality: 'HIGH', watermark: true, background: 'opaque' });
  assert.deepEqual([order.quality, order.watermark, order.extra], ['high', true, { background: 'opaque' }]);
  assert.equal('quality' in read(imageTask, { ...body, quality: 'auto' }).order, false);
});

test('a stream has one image, whose client waits, with up to three previews', () => {
  const { order, waits } = read(imageTask, { ...body, stream: true, partial_images: 3 });
  assert.deepEqual([order.previews, waits], [3, true]);
  assert.equal(read(imageTask, { ...body, stream: true }).order.previews, 0);
  for (const over of [{ stream: false }, { stream: null }, {}])
    assert.equal('previews' in read(imageTask, { ...body, ...over, partial_images: 2 }).order, false);
  assert.equal(fieldOf({ stream: 'yes' }), 'stream');
  assert.equal(fieldOf({ stream: true, n: 2 }), 'n');
  for (const count of [-1, 4, 1.5, '1'])
    assert.equal(fieldOf({ stream: true, partial_images: count }), 'partial_images');
});

test('members that are charged by must not be repeated, and only a JSON object is accepted', () => {
  assert.equal(refusal(() => imageTask.read(Buffer.from('{"model":"m","prompt":"p","n":1,"n":10}'), {})).field, 'n');
  for (const text of ['', '[]', '{"model":', 'null']) refusal(() => imageTask.read(Buffer.from(text), {}));
});

test('any body is decoded or refused by name', () => {
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('16:9', '1k', 'auto', '1024x1024', png));
  const names = ['n', 'size', 'resolution', 'image_urls', 'quality', 'response_format', 'callback_url', 'watermark'];
  const bodies = fc.dictionary(fc.constantFrom(...names), value);
  fc.assert(
    fc.property(bodies, (over) => {
      try {
        const { order } = read(imageTask, { ...body, ...over });
        assert.ok(order.count >= 1 && order.count <= 10 && order.references.length <= 14);
      } catch (error) {
        const { field } = refusal(() => {
          throw error;
        });
        assert.ok(field !== undefined && names.includes(field.replace(/\[.*$/, '')), String(field));
      }
    }),
    { numRuns: 300 },
  );
});

test('a submission is answered with id and state alone', () => {
  assert.deepEqual(imageTask.submitted(task()), { code: 200, data: { id: 'task_1', status: 'submitted' } });
});

test('each state of an image task has its name', () => {
  const data = (over: Parameters<typeof task>[0]) => imageTask.render(task(over))['data'];
  const common = { id: 'task_1', progress: 0, created: 1_700_000_000, completed: 0 };
  assert.deepEqual(data({}), { ...common, status: 'submitted' });
  assert.deepEqual(data({ state: 'running', progress: 60 }), { ...common, status: 'processing' });
  const end = { completedAtMs: 1_700_000_009_999 };
  const results = ['https://g/1', 'https://g/2'].map((url) => ({ url, mediaType: 'image/png' }));
  assert.deepEqual(data({ state: 'succeeded', results, ...end }), {
    ...common,
    status: 'completed',
    progress: 100,
    completed: 1_700_000_009,
    result: { images: [{ url: ['https://g/1'] }, { url: ['https://g/2'] }] },
  });
  const error = { code: 'content_policy', message: 'Not allowed.' };
  assert.deepEqual(data({ state: 'failed', error, ...end }), {
    ...common,
    status: 'failed',
    completed: 1_700_000_009,
    error: 'Not allowed.',
  });
  assert.deepEqual(data({ state: 'cancelled', ...end }), {
    ...common,
    status: 'failed',
    completed: 1_700_000_009,
    error: 'The task was cancelled.',
  });
});

test('the official answer has bytes or addresses, and usage in its totals', () => {
  const made = {
    usage: { image: 1, input: 14, cache_read: 6, input_image: 100, output: 3, output_image: 272 },
    estimated: false,
    media: ['1024x1024', 'low', '1k'],
    background: 'transparent',
  };
  const results = [{ url: 'https://g/1', mediaType: 'image/png', base64: png }];
  const done = { state: 'succeeded', completedAtMs: 1_700_000_009_000, made } as const;
  assert.deepEqual(imageAnswer.render(task({ ...done, results })), {
    created: 1_700_000_009,
    data: [{ b64_json: png }],
    output_format: 'png',
    size: '1024x1024',
    quality: 'low',
    background: 'transparent',
    usage: {
      input_tokens: 120,
      input_tokens_details: { text_tokens: 20, image_tokens: 100, cached_tokens: 6 },
      output_tokens: 275,
      output_tokens_details: { image_tokens: 272, text_tokens: 3 },
      total_tokens: 395,
    },
  });
  const sold = { usage: { image: 1 }, estimated: false, media: [] };
  assert.deepEqual(
    imageAnswer.render(task({ ...done, made: sold, results: [{ url: 'https://g/1', mediaType: 'image/jpeg' }] })),
    {
      created: 1_700_000_009,
      data: [{ url: 'https://g/1' }],
      output_format: 'jpeg',
    },
  );
});
