/** Every recorded exchange with a vendor of images or videos, read as the queue would: what was made, or what is thrown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { type JsonObject, listOf, objectOf, tryParseBytes } from '../../../core/json/json.ts';
import type { Bounds, MediaAdapter, Order, Step, VendorAnswer } from '../../../plugins/common/media/adapters.ts';
import { ownAdapters } from '../../../plugins/task-store/adapters/index.ts';
import { imageTask } from '../../../plugins/task-store/orders/shapes/index.ts';
import { mediaRecordings, type Recording, recording } from '../../helpers/recordings.ts';
import { imageOrder, read, targetWith, videoOrder } from './orders.ts';

const adapters = new Map(ownAdapters.map((each) => [each.name, each]));

const adapter = (name: string): MediaAdapter => adapters.get(name)!;
const answerOf = ({
  status,
  response,
  headers,
}: Pick<Recording<string>, 'status' | 'response' | 'headers'>): VendorAnswer => ({
  status,
  json: tryParseBytes(response),
  headers,
  atMs: 0,
});

/** The order whose request was recorded; nothing is known of requests that were not kept. */
function orderOf({ request }: Pick<Recording<string>, 'request'>): Order {
  const sent = objectOf(request === undefined ? undefined : tryParseBytes(request)) ?? {};
  const images = [...listOf(sent['images']), ...listOf(sent['input_references'])].map(addressIn);
  const { prompt = 'a picture', n = 1, size, quality } = sent;
  return read(imageTask, { model: 'm', prompt, n, size, quality, image_urls: images.length === 0 ? undefined : images })
    .order;
}

function addressIn(entry: unknown): unknown {
  const { image_url: image, url } = objectOf(entry) as JsonObject;
  return url ?? objectOf(image)?.['url'] ?? image;
}

function assertWithin(step: Step, bounds: Bounds): void {
  assert.ok(step.state === 'done');
  const { usage } = step.made;
  const output = (usage.output ?? 0) + (usage.output_image ?? 0) + (usage.reasoning ?? 0);
  const input = (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.input_image ?? 0);
  assert.ok(input <= bounds.inputTokens, `${input} input tokens, at most ${bounds.inputTokens}`);
  assert.ok(output <= bounds.outputTokens, `${output} output tokens, at most ${bounds.outputTokens}`);
  assert.ok((usage.image ?? 0) <= bounds.images && (usage.second ?? 0) <= bounds.seconds);
}

/** Per recording: which protocol, and what comes of it: the usage, or the status of the refusal. */
const images: Record<string, readonly [protocol: string, outcome: object | number]> = {
  'openai-dall-e-2-err400-12b1': ['openai-images', 400],
  'openai-gpt-image-1.5-err400-2c49': ['openai-images', 400],
  'openai-gpt-image-1.5-err400-3710': ['openai-images', 400],
  'openai-gpt-image-1-mini-image-out-fd50': [
    'openai-images',
    { image: 1, input: 14, cache_read: 0, input_image: 0, output: 0, output_image: 272 },
  ],
  'openai-gpt-image-1.5-image-out-a1fe': [
    'openai-images',
    { image: 1, input: 27, cache_read: 0, input_image: 194, output: 143, output_image: 272 },
  ],
  'openai-image-out-b8cf': ['openai-images', { image: 1, input: 49, output_image: 15_500 }],
  'openrouter-gemini-3.1-flash-lite-image-image-out-image-in-usage-cost-306f': [
    'openai-images',
    { image: 1, input: 1_125, cache_read: 0, input_image: 0, output: 0, output_image: 1_120 },
  ],
  'xai-grok-imagine-image-image-out-usage-cost-56f6': ['xai-images', { image: 1 }],
  'xai-grok-imagine-image-quality-image-out-image-in-usage-cost-365f': ['xai-images', { image: 1 }],
  // A retired protocol, which no one speaks: an answer that cannot be read.
  'vertex-2e3c': ['gemini-images', 502],
  'vertex-image-out-195b': ['gemini-images', 502],
  'vertex-image-out-a64a': ['gemini-images', 502],
};

test('every recording of images is known here', () => {
  assert.deepEqual(
    mediaRecordings('images')
      .map(({ name }) => name)
      .sort(),
    Object.keys(images).sort(),
  );
});

for (const [name, [protocol, outcome]] of Object.entries(images)) {
  test(`${name}: the recorded output is read, within the bounds of its order`, () => {
    const recorded = recording('images', name);
    const order = orderOf(recorded);
    const { readCreated, bounds } = adapter(protocol);
    if (typeof outcome === 'number') {
      assert.throws(
        () => readCreated(answerOf(recorded), order),
        (error) => {
          assert.ok(error instanceof UpstreamRefusal);
          assert.deepEqual([error.status, error.mayRun], [outcome, outcome === 502]);
          assert.doesNotMatch(error.error.message, /https?:|openai|google/i);
          return true;
        },
      );
      return;
    }
    const step = readCreated(answerOf(recorded), order);
    assert.ok(step.state === 'done');
    assert.deepEqual(step.made.usage, outcome);
    assert.equal(step.files.length, 1);
    assertWithin(step, bounds(order));
  });
}

test("a recorded request equals the adapter's request for the same order", () => {
  const sent = (name: string) => JSON.parse(recording('images', name).request!.toString()) as Record<string, unknown>;
  const edit = sent('openai-gpt-image-1.5-image-out-a1fe');
  const ours = adapter('openai-images').create(
    orderOf(recording('images', 'openai-gpt-image-1.5-image-out-a1fe')),
    targetWith(),
  );
  assert.equal(ours.path, '/images/edits');
  const report = (name: string) => ours.form!.flatMap((each) => (each.name === name ? [each] : []));
  for (const name of Object.keys(edit).filter((each) => each !== 'model' && each !== 'images'))
    assert.deepEqual(report(name), [{ name, text: String(edit[name]) }]);
  assert.deepEqual(
    report('image[]').map((each) => ({ image_url: `data:image/png;base64,${'base64' in each ? each.base64 : ''}` })),
    edit['images'],
  );
  const grok = sent('xai-grok-imagine-image-quality-image-out-image-in-usage-cost-365f');
  const { body } = adapter('xai-images').create(
    orderOf(recording('images', 'xai-grok-imagine-image-quality-image-out-image-in-usage-cost-365f')),
    targetWith(),
  );
  assert.deepEqual([body!['prompt'], body!['images']], [grok['prompt'], grok['images']]);
});

const videos: Record<string, string> = {
  'xai-61eb': 'running 1',
  'xai-d37a': 'running 56',
  'xai-ca93': 'running 94',
  'xai-grok-imagine-video-b466': 'queued c84748c1-5ec7-9c62-b013-dc6e71a83de7',
  'xai-grok-imagine-video-usage-cost-89ec': 'done',
  // The file itself, and a protocol that no one speaks here.
  'xai-f298': 'thrown',
  'google-d204': 'thrown',
  'google-veo-3.1-lite-generate-preview-4c4c': 'thrown',
  'google-veo-3.1-lite-generate-preview-792a': 'running undefined',
  'google-veo-3.1-lite-generate-preview-a5e9': 'running undefined',
};

test('every recording of videos of our protocols is read', () => {
  const { readCreated, tasks, bounds } = adapter('xai-videos');
  const order = videoOrder({ seconds: 1, resolution: '480p' });
  const outcomes = mediaRecordings('video').map((recorded) => {
    const isCreation = recorded.request !== undefined;
    try {
      const step = isCreation
        ? readCreated(answerOf(recorded), order)
        : tasks!.readPolled(answerOf(recorded), order, 'v');
      if (step.state === 'done') assertWithin(step, bounds(order));
      if (step.state === 'queued') return [recorded.name, `queued ${step.vendorId}`];
      return [recorded.name, step.state === 'running' ? `running ${step.progress}` : step.state];
    } catch (error) {
      assert.ok(error instanceof UpstreamRefusal, String(error));
      return [recorded.name, 'thrown'];
    }
  });
  assert.deepEqual(Object.fromEntries(outcomes), videos);
});

test('the recorded video is read from its request to its last answer', () => {
  const { create, tasks } = adapter('xai-videos');
  const requested = JSON.parse(recording('video', 'xai-grok-imagine-video-b466').request!.toString()) as object;
  const order = videoOrder({ prompt: 'a calm ocean wave at sunset', seconds: 1, references: [] });
  assert.deepEqual({ ...create(order, targetWith()).body, model: 'grok-imagine-video' }, requested);
  const end = tasks!.readPolled(answerOf(recording('video', 'xai-grok-imagine-video-usage-cost-89ec')), order, 'v');
  assert.deepEqual(end.state === 'done' && end.made, { usage: { second: 1 }, estimated: false, media: ['480p'] });
});

const geminiNames = ['vertex-gemini-2.0-flash-exp-image-out-2d4d', 'google-finish-no-image-7c18'] as const;

test('recorded pictures of generateContent are read with their tokens, and a refusal to paint is a failure', () => {
  const { readCreated, bounds } = adapter('gemini-images');
  const [painted, none] = geminiNames.map((name) => readCreated(answerOf(recording('gemini', name)), imageOrder()));
  assert.ok(painted?.state === 'done');
  assert.deepEqual(painted.made.usage, {
    image: 1,
    input: 15,
    cache_read: 0,
    input_image: 0,
    output: 0,
    output_image: 258,
    reasoning: 0,
  });
  assertWithin(painted, bounds(imageOrder()));
  assert.deepEqual(none?.state === 'failed' && none.code, 'no_image');
});
