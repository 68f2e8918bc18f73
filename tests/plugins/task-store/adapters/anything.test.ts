/** However an answer is disfigured, an adapter says how far the vendor is or throws the vendor's error, and never charges for more than was ordered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../../../core/contract/upstream-failures.ts';
import { maxCount, usageClasses } from '../../../../plugins/common/domain/usage.ts';
import type { MediaAdapter, Step } from '../../../../plugins/common/media/adapters.ts';
import { ownAdapters } from '../../../../plugins/task-store/adapters/index.ts';
import { fc } from '../../../helpers/properties.ts';
import { imageOrder, videoOrder } from '../orders.ts';

const adapters = new Map(ownAdapters.map((each) => [each.name, each]));

const details = { text_tokens: 3, image_tokens: 4, cached_tokens: 1, cached_tokens_details: { image_tokens: 1 } };
const usage = {
  input_tokens: 7,
  input_tokens_details: details,
  output_tokens: 272,
  output_tokens_details: { text_tokens: 2, image_tokens: 270 },
};
const picture = { inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } };
const modalities = [
  { modality: 'TEXT', tokenCount: 3 },
  { modality: 'IMAGE', tokenCount: 4 },
];

/** Two good answers of each protocol, from which bad ones are made. */
const good: Record<string, object> = {
  'openai-images': {
    created: 1,
    data: [{ b64_json: 'aGVsbG8=' }, { url: 'https://v' }],
    size: '1x1',
    quality: 'low',
    usage,
  },
  'gemini-images': {
    candidates: [
      { content: { role: 'model', parts: [{ text: 'a', thought: true }, picture, picture] }, finishReason: 'STOP' },
    ],
    usageMetadata: {
      promptTokenCount: 7,
      candidatesTokenCount: 9,
      thoughtsTokenCount: 5,
      cachedContentTokenCount: 1,
      promptTokensDetails: modalities,
      candidatesTokensDetails: modalities,
    },
  },
  'xai-images': { data: [{ url: 'https://v', respect_moderation: true }, { b64_json: 'aGVsbG8=' }], usage: {} },
  'ark-images': {
    model: 'm',
    data: [{ url: 'https://v', size: '1x1' }, { error: { code: 'x' } }],
    usage: { generated_images: 1 },
  },
  'xai-videos': { status: 'done', video: { url: 'https://v', duration: 5, respect_moderation: true }, progress: 100 },
  'ark-videos': {
    id: 'cgt-1',
    status: 'succeeded',
    content: { video_url: 'https://v', last_frame_url: 'https://l' },
    usage: { completion_tokens: 100 },
    duration: 5,
    resolution: '720p',
    error: null,
  },
};

/** A good answer with another value at some of its places, or with nothing there. */
function disfigured(answer: unknown, changes: readonly (readonly [at: number, value: unknown])[]): unknown {
  let place = 0;
  const visit = (value: unknown): unknown => {
    const change = changes.find(([at]) => at === place);
    place++;
    if (change !== undefined) return change[1];
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, visit(inner)]));
  };
  return visit(answer);
}

const other = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(undefined, Number.NaN, 1e300, -1, 0.5, '7', '-7', 'SAFETY', 'failed', true, 2 ** 60),
);
const changes = fc.array(fc.tuple(fc.nat({ max: 24 }), other), { maxLength: 3 });
const status = fc.constantFrom(200, 200, 200, 202, 302, 400, 403, 404, 429, 500);

/** Whether something was made. */
function check(adapter: MediaAdapter, most: number, read: () => Step): boolean {
  let step: Step;
  try {
    step = read();
  } catch (error) {
    assert.ok(error instanceof UpstreamRefusal, String(error));
    return false;
  }
  if (step.state === 'failed') assert.match(`${step.code} ${step.message}`, /^[a-z_]+ ./);
  if (step.state !== 'done') return false;
  const { usage: used } = step.made;
  for (const of of usageClasses) {
    const count = used[of] ?? 0;
    assert.ok(Number.isSafeInteger(count) && count >= 0 && count <= maxCount, `${of}: ${count}`);
  }
  if (adapter.kind === 'image') assert.ok(used.image === step.files.length && used.image >= 1 && used.image <= most);
  for (const file of step.files) assert.ok('url' in file ? file.url !== '' : file.base64 !== '');
  return true;
}

for (const adapter of adapters.values()) {
  test(`${adapter.name}: any damaged answer is decoded or thrown as the vendor's error`, () => {
    const order = adapter.kind === 'image' ? imageOrder({ count: 2 }) : videoOrder({ seconds: 5 });
    let made = 0;
    fc.assert(
      fc.property(status, changes, (code, over) => {
        const answer = { status: code, json: disfigured(good[adapter.name], over) };
        const { tasks } = adapter;
        const polled = () =>
          tasks === undefined ? adapter.readCreated(answer, order) : tasks.readPolled(answer, order, 'v');
        if (check(adapter, order.count, polled)) made++;
        if (tasks !== undefined)
          assert.equal(
            check(adapter, order.count, () => adapter.readCreated(answer, order)),
            false,
          );
      }),
      { numRuns: 500 },
    );
    assert.ok(made > 50, `${made} of the answers were still good ones`);
  });
}
