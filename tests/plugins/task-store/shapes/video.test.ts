/** The video task and the OpenAI videos shape: every bound of the interface, and every state as clients read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task } from '../../../../plugins/task-store/contract.ts';
import { openaiVideos, videoTask } from '../../../../plugins/task-store/orders/shapes/index.ts';
import { fc } from '../../../helpers/properties.ts';
import { png, read, refusal, task, videoOrder } from '../orders.ts';

const url = 'https://example.com/a.png';
const text = { type: 'text', text: 'A cat walks' };
const image = { type: 'image_url', image_url: { url }, role: 'reference_image' };
const body = { model: 'grok-imagine-video', content: [text, image] };
const fieldOf = (over: object) => refusal(() => read(videoTask, { ...body, ...over })).field;

test('a text and an image are an order of one video', () => {
  const { order, ...rest } = read(videoTask, body);
  assert.deepEqual(rest, { waits: false, form: 'url', callbackUrl: undefined });
  const { fields, ...members } = order;
  assert.deepEqual(members, {
    kind: 'video',
    model: 'grok-imagine-video',
    prompt: 'A cat walks',
    count: 1,
    references: [{ role: 'image', field: 'content[1].image_url.url', source: { url } }],
    extra: {},
  });
  assert.equal(fields!.seconds, 'duration');
});

test('model and content are required, content with at least one item', () => {
  for (const model of [undefined, null, '', 7]) assert.equal(fieldOf({ model }), 'model');
  for (const content of [undefined, null, 'A cat', {}, []]) assert.equal(fieldOf({ content }), 'content');
  assert.equal(fieldOf({ content: Array.from({ length: 33 }, () => image) }), 'content');
});

test('ratio is one of seven; adaptive leaves it to the model', () => {
  for (const ratio of ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'])
    assert.equal(read(videoTask, { ...body, ratio }).order.ratio, ratio);
  assert.equal(read(videoTask, { ...body, ratio: 'adaptive' }).order.ratio, undefined);
  for (const ratio of ['2:1', '16/9', 'auto', 7, '']) assert.equal(fieldOf({ ratio }), 'ratio');
});

test('duration is 1 to 60 whole seconds; -1 or none leaves it to the model', () => {
  for (const duration of [1, 15, 60]) assert.equal(read(videoTask, { ...body, duration }).order.seconds, duration);
  for (const duration of [-1, null, undefined])
    assert.equal(read(videoTask, { ...body, duration }).order.seconds, undefined);
  for (const duration of [0, 61, -2, 1.5, '5', true]) assert.equal(fieldOf({ duration }), 'duration');
});

test('generate_audio and watermark are true or false, resolution one of three', () => {
  const { order } = read(videoTask, { ...body, generate_audio: false, watermark: true, resolution: '720p' });
  assert.deepEqual([order.generateAudio, order.watermark, order.resolution], [false, true, '720p']);
  assert.equal(fieldOf({ generate_audio: 'yes' }), 'generate_audio');
  assert.equal(fieldOf({ watermark: 1 }), 'watermark');
  assert.equal(fieldOf({ resolution: '2k' }), 'resolution');
});

test('each item is checked by its type, and a fault names its place', () => {
  const at1 = (item: unknown) => fieldOf({ content: [text, item] });
  assert.equal(at1('text'), 'content[1]');
  assert.equal(at1({ type: 'draft_task', draft_task: { id: 'x' } }), 'content[1].type');
  assert.equal(at1({ image_url: { url } }), 'content[1].type');
  assert.equal(at1({ type: 'image_url' }), 'content[1].image_url.url');
  assert.equal(at1({ type: 'image_url', image_url: url }), 'content[1].image_url.url');
  assert.equal(at1({ type: 'image_url', image_url: { url: 'asset://x' } }), 'content[1].image_url.url');
  assert.equal(
    at1({ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } }),
    'content[1].video_url.url',
  );
  assert.equal(at1({ type: 'audio_url', audio_url: {} }), 'content[1].audio_url.url');
  assert.equal(at1({ ...image, role: 'reference_video' }), 'content[1].role');
  assert.equal(at1({ ...image, role: 'constructor' }), 'content[1].role');
  assert.equal(at1(text), 'content[1]');
  for (const empty of [undefined, '', '  ', 7])
    assert.equal(fieldOf({ content: [{ type: 'text', text: empty }] }), 'content[0].text');
});

test('roles name the use of a reference; a single image without one is the first frame', () => {
  const rolesOf = (...items: object[]) =>
    read(videoTask, { ...body, content: [text, ...items] }).order.references.map(({ role }) => role);
  const plain = { type: 'image_url', image_url: { url } };
  assert.deepEqual(rolesOf(plain), ['first_frame']);
  assert.deepEqual(rolesOf(plain, plain), ['image', 'image']);
  assert.deepEqual(rolesOf({ ...plain, role: 'first_frame' }, { ...plain, role: 'last_frame' }), [
    'first_frame',
    'last_frame',
  ]);
  const clip = { type: 'video_url', video_url: { url }, role: 'reference_video' };
  const sound = { type: 'audio_url', audio_url: { url } };
  assert.deepEqual(rolesOf(image, clip, sound), ['image', 'video', 'audio']);
  const [data] = read(videoTask, {
    ...body,
    content: [{ ...plain, image_url: { url: `data:image/png;base64,${png}` } }],
  }).order.references;
  assert.deepEqual(data!.source, { base64: png, mediaType: 'image/png' });
});

test('any body is decoded or refused by name', () => {
  const names = ['content', 'ratio', 'duration', 'generate_audio', 'watermark', 'resolution', 'callback_url'];
  const item = fc.record({
    type: fc.constantFrom('text', 'image_url', 'video_url', 'x'),
    text: fc.jsonValue(),
    image_url: fc.jsonValue(),
  });
  const value = fc.oneof(fc.jsonValue(), fc.array(item), fc.integer({ min: -5, max: 70 }));
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), value), (over) => {
      try {
        const { order } = read(videoTask, { ...body, ...over });
        assert.ok(order.seconds === undefined || (order.seconds >= 1 && order.seconds <= 60));
      } catch (error) {
        const { field } = refusal(() => {
          throw error;
        });
        assert.ok(field !== undefined && names.includes(field.replace(/[[.].*$/, '')), String(field));
      }
    }),
    { numRuns: 300 },
  );
});

const video = (over: Partial<Task> = {}) =>
  task({ kind: 'video', model: 'grok-imagine-video', order: videoOrder(), ...over });
const head = { id: 'task_1', model: 'grok-imagine-video', created_at: 1_700_000_000, updated_at: 1_700_000_005 };

test('each state of a video task has its name', () => {
  assert.deepEqual(videoTask.submitted(video()), { ...head, status: 'queued' });
  assert.deepEqual(videoTask.render(video({ state: 'running' })), { ...head, status: 'running' });
  const results = [
    { url: 'https://g/last.png', mediaType: 'image/png' },
    { url: 'https://g/v.mp4', mediaType: 'video/mp4' },
  ];
  assert.deepEqual(videoTask.render(video({ state: 'succeeded', results })), {
    ...head,
    status: 'succeeded',
    content: { video_url: 'https://g/v.mp4' },
  });
  const error = { code: 'content_policy', message: 'Not allowed.' };
  assert.deepEqual(videoTask.render(video({ state: 'failed', error })), {
    ...head,
    status: 'failed',
    error: 'Not allowed.',
  });
  assert.equal(videoTask.render(video({ state: 'expired' }))['status'], 'failed');
  assert.equal(videoTask.render(video({ state: 'cancelled' }))['error'], 'The task was cancelled.');
});

const sora = { model: 'm', prompt: 'A cat walks' };
const soraField = (over: object) => refusal(() => read(openaiVideos, { ...sora, ...over })).field;

test('the OpenAI videos shape reads seconds, size and one reference', () => {
  const { order } = read(openaiVideos, {
    ...sora,
    seconds: '8',
    size: '720x1280',
    input_reference: { image_url: url },
  });
  assert.deepEqual([order.seconds, order.size, order.resolution], [8, { width: 720, height: 1280 }, '720p']);
  assert.deepEqual(order.references, [{ role: 'first_frame', field: 'input_reference.image_url', source: { url } }]);
  assert.equal(read(openaiVideos, { ...sora, seconds: 4 }).order.seconds, 4);
  assert.deepEqual(read(openaiVideos, { ...sora, input_reference: url }).order.references[0]!.source, { url });
  for (const seconds of ['0', '61', 'x', 1.5, 0]) assert.equal(soraField({ seconds }), 'seconds');
  for (const size of ['16:9', '4000x3000', 7]) assert.equal(soraField({ size }), 'size');
  assert.equal(soraField({ prompt: '' }), 'prompt');
  assert.equal(soraField({ input_reference: { file_id: 'x' } }), 'input_reference.image_url');
});

test('each state of a video has its name in the OpenAI shape', () => {
  const order = videoOrder({ seconds: 8, size: { width: 1280, height: 720 } });
  const report = (over: Partial<Task>) => openaiVideos.render(video({ order, ...over }));
  assert.deepEqual(report({ state: 'running', progress: 33.4 }), {
    id: 'task_1',
    object: 'video',
    model: 'grok-imagine-video',
    status: 'in_progress',
    progress: 33,
    created_at: 1_700_000_000,
    completed_at: null,
    expires_at: null,
    prompt: 'A cat walks',
    seconds: '8',
    size: '1280x720',
    remixed_from_video_id: null,
    error: null,
  });
  const done = report({ state: 'succeeded', completedAtMs: 1_700_000_009_000 });
  assert.deepEqual([done['status'], done['progress'], done['completed_at']], ['completed', 100, 1_700_000_009]);
  assert.deepEqual(report({ state: 'expired' })['error'], {
    code: 'expired',
    message: 'The task was not done in time.',
  });
  assert.equal(openaiVideos.submitted(video())['status'], 'queued');
});

test('a task whose request was clamped has the made duration and ratio from the submission on', () => {
  const clamped = { seconds: 15, ratio: 'adaptive' };
  for (const state of ['queued', 'running', 'succeeded', 'failed'] as const) {
    const own = task({ kind: 'video', state, order: { ...videoOrder(), clamped } });
    for (const shown of [videoTask.submitted(own), videoTask.render(own)] as Record<string, unknown>[])
      assert.deepEqual([shown['duration'], shown['ratio']], [15, 'adaptive'], state);
    const plain = videoTask.render(task({ kind: 'video', state, order: videoOrder() })) as Record<string, unknown>;
    assert.deepEqual(['duration' in plain, 'ratio' in plain], [false, false], state);
  }
});
