/** Orders, targets and tasks for tests of the task store's pure rooms. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Traits } from '../../../plugins/common/domain/traits.ts';
import type { Target } from '../../../plugins/common/domain/upstreams.ts';
import type { Order, Reference } from '../../../plugins/common/media/adapters.ts';
import type { Shape, Submission, Task } from '../../../plugins/task-store/contract.ts';

export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==';

export const shown: Reference = { role: 'image', field: 'image_urls[0]', source: { url: 'https://example.com/a.png' } };
export const shownBytes: Reference = {
  role: 'image',
  field: 'image_urls[0]',
  source: { base64: png, mediaType: 'image/png' },
};

export function imageOrder(over: Partial<Order> = {}): Order {
  return {
    kind: 'image',
    model: 'm',
    prompt: 'A cat on a mat',
    count: 1,
    resolution: '1k',
    references: [],
    extra: {},
    fields: { references: 'image_urls', ratio: 'size' },
    ...over,
  };
}

export function videoOrder(over: Partial<Order> = {}): Order {
  return {
    kind: 'video',
    model: 'm',
    prompt: 'A cat walks',
    count: 1,
    references: [{ ...shown, role: 'first_frame', field: 'content[1].image_url.url' }],
    extra: {},
    fields: { prompt: 'content', references: 'content', seconds: 'duration', generateAudio: 'generate_audio' },
    ...over,
  };
}

/** The order without its resolution, which clients of `/images/generations` always have. */
export function without<Member extends keyof Order>(order: Order, member: Member): Order {
  const { [member]: _, ...rest } = order;
  return rest as unknown as Order;
}

export function targetWith(traits: Traits = {}): Target {
  return {
    provider: 'vendor',
    model: 'vendor-model',
    protocol: 'p',
    baseUrl: 'http://127.0.0.1:1',
    key: { reveal: () => 'secret' },
    credential: 'vendor#1',
    upstream: {
      auth: undefined,
      headers: {},
      dropFields: {},
      streamUsageOption: false,
      connectTimeoutMs: 1_000,
      firstByteTimeoutMs: 1_000,
      idleTimeoutMs: 1_000,
    },
    traits,
  };
}

export function task(over: Partial<Task> = {}): Task {
  return {
    id: 'task_1',
    kind: 'image',
    model: 'm',
    state: 'queued',
    progress: 0,
    createdAtMs: 1_700_000_000_900,
    updatedAtMs: 1_700_000_005_100,
    completedAtMs: undefined,
    error: undefined,
    results: [],
    order: imageOrder(),
    made: undefined,
    ...over,
  };
}

export function read(shape: Shape, body: unknown, headers: Record<string, string> = {}): Submission {
  return shape.read(Buffer.from(JSON.stringify(body)), headers);
}

/** The field and code that a refusal names. */
export function refusal(work: () => unknown): {
  readonly field: string | undefined;
  readonly code: string | undefined;
} {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.status, 400, error.message);
    return { field: error.field, code: error.code };
  }
  assert.fail('nothing was refused');
}
