/** The adapters against the sandbox over HTTP: what they read is what its bill says, and orders to fail are read as failures. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { type Usage, usageClasses } from '../../../plugins/common/domain/usage.ts';
import type {
  MadeFile,
  MediaAdapter,
  Order,
  Step,
  VendorAnswer,
  VendorRequest,
} from '../../../plugins/common/media/adapters.ts';
import { type RunningVendor, startVendor, type VendorOptions } from '../../../plugins/sandbox/vendor.ts';
import { ownAdapters } from '../../../plugins/task-store/adapters/index.ts';
import { openVendors } from '../../../plugins/task-store/engine/vendor.ts';
import { fakeHost } from '../../helpers/fakes.ts';
import { imageOrder, shownBytes, targetWith, videoOrder } from './orders.ts';

const adapters = new Map(ownAdapters.map((each) => [each.name, each]));

/** As config/sandbox.yaml has them. */
const bases: Record<string, string> = {
  'openai-images': '/v1',
  'gemini-images': '/v1beta',
  'xai-images': '/imagine/v1',
  'ark-images': '/api/v3',
  'xai-videos': '/imagine/v1',
  'ark-videos': '/api/v3',
};
const imageProtocols = Object.keys(bases).filter((name) => name.endsWith('images'));
const videoProtocols = Object.keys(bases).filter((name) => name.endsWith('videos'));

const never = new AbortController().signal;

interface Session {
  readonly vendor: RunningVendor;
  /** Moves the vendor's clock. */
  advance(milliseconds: number): void;
  send(adapter: MediaAdapter, request: VendorRequest): Promise<VendorAnswer>;
}

async function sessionFor(context: TestContext, options: VendorOptions = {}): Promise<Session> {
  let now = 1_800_000_000_000;
  const vendor = await startVendor({ now: () => now, ...options });
  context.after(() => vendor.close());
  const vendors = openVendors(fakeHost());
  context.after(() => vendors.close());
  return {
    vendor,
    advance: (milliseconds) => {
      now += milliseconds;
    },
    send: ({ name }, request) =>
      vendors.call(request, { ...targetWith(), baseUrl: vendor.origin + bases[name] }, 10_000, never),
  };
}

async function create(session: Session, protocol: string, order: Order): Promise<Step> {
  const adapter = adapters.get(protocol)!;
  return adapter.readCreated(await session.send(adapter, adapter.create(order, targetWith())), order);
}

async function poll(session: Session, protocol: string, order: Order, vendorId: string): Promise<Step> {
  const adapter = adapters.get(protocol)!;
  return adapter.tasks!.readPolled(await session.send(adapter, adapter.tasks!.poll(vendorId)), order, vendorId);
}

/** Without what is none. */
function some(usage: Usage): Usage {
  return Object.fromEntries(usageClasses.flatMap((name) => (usage[name] ? [[name, usage[name]]] : [])));
}

async function beginningOf(file: MadeFile): Promise<string> {
  if ('base64' in file) return Buffer.from(file.base64, 'base64').toString('latin1', 0, 8);
  const answer = await fetch(file.url);
  assert.equal(answer.status, 200);
  return Buffer.from(await answer.arrayBuffer()).toString('latin1', 0, 8);
}

const report = (protocol: string, words: string, over: Partial<Order> = {}): Order =>
  (protocol.endsWith('videos') ? videoOrder : imageOrder)({ prompt: `A cat [[sandbox: ${words}]]`, ...over });

for (const protocol of imageProtocols) {
  const adapter = adapters.get(protocol)!;

  test(`${protocol}: outputs of texts and images are billed, and are real pictures`, async (context) => {
    const session = await sessionFor(context);
    const wishes: Partial<Order>[] = [
      {},
      { ratio: '16:9' },
      { resolution: '2k', quality: 'high' },
      { references: [shownBytes] },
      { references: [shownBytes, shownBytes], count: Math.min(3, adapter.mostPerCall) },
    ];
    for (const wish of wishes) {
      const order = imageOrder(wish);
      const step = await create(session, protocol, order);
      assert.ok(step.state === 'done');
      assert.equal(step.files.length, order.count);
      for (const file of step.files) assert.equal(await beginningOf(file), '\x89PNG\r\n\x1a\n');
      const billed = session.vendor.bill().recent.at(-1)!;
      assert.deepEqual([some(step.made.usage), step.made.estimated], [some(billed.usage), false]);
      const { inputTokens, outputTokens, images } = adapter.bounds(order);
      const { input = 0, input_image: shown = 0, output_image: painted = 0, image = 0 } = billed.usage;
      const tokensReported = 'output_image' in billed.usage;
      assert.ok(image <= images && (!tokensReported || (input + shown <= inputTokens && painted <= outputTokens)));
    }
  });

  test(`${protocol}: every fault that can be ordered is read with its kind`, async (context) => {
    const session = await sessionFor(context);
    const moderated = await create(session, protocol, report(protocol, 'moderated'));
    const code = protocol === 'openai-images' ? 'moderation_blocked' : 'content_policy';
    assert.deepEqual(moderated.state === 'failed' && moderated.code, code);
    const failed = await create(session, protocol, report(protocol, 'failed'));
    assert.equal(failed.state, 'failed');
    assert.equal(session.vendor.bill().requests, 0);
    const refused = async (words: string) => {
      try {
        await create(session, protocol, report(protocol, words));
      } catch (error) {
        assert.ok(error instanceof UpstreamRefusal, String(error));
        return error;
      }
      assert.fail(words);
    };
    const limited = await refused('status=429 retry_after=7');
    assert.deepEqual([limited.error.kind, limited.retryAfterMs], ['rate_limited', 7_000]);
    assert.equal((await refused('status=401')).keyAtFault, true);
    assert.equal((await refused('status=503')).mayRun, false);
    assert.equal(session.vendor.bill().requests, 0);
    assert.equal((await refused('error_after=500')).mayRun, true);
    assert.equal(session.vendor.bill().requests, 1);
  });

  test(`${protocol}: an answer sent twice or without its usage is charged once`, async (context) => {
    const session = await sessionFor(context);
    const twice = await create(session, protocol, report(protocol, 'twice'));
    assert.ok(twice.state === 'done');
    assert.deepEqual([twice.files.length, twice.made.usage.image], [1, 1]);
    assert.equal(session.vendor.bill().recent.at(-1)!.usage.image, 1);
    const silent = await create(session, protocol, report(protocol, 'no_usage'));
    assert.ok(silent.state === 'done' && silent.made.usage.image === 1);
    assert.equal(silent.made.estimated, ['openai-images', 'gemini-images'].includes(protocol));
  });
}

test('pictures that failed beside others are not charged', async (context) => {
  const session = await sessionFor(context);
  for (const protocol of ['xai-images', 'openai-images']) {
    const step = await create(session, protocol, report(protocol, 'partial', { count: 3 }));
    assert.ok(step.state === 'done');
    assert.deepEqual([step.files.length, step.made.usage.image], [1, 1]);
    assert.equal(session.vendor.bill().recent.at(-1)!.usage.image, 1);
  }
});

for (const protocol of videoProtocols) {
  const adapter = adapters.get(protocol)!;
  const begun = async (session: Session, order: Order): Promise<string> => {
    const step = await create(session, protocol, order);
    assert.ok(step.state === 'queued');
    return step.vendorId;
  };

  test(`${protocol}: a task runs for its time, ends with a real video, and is billed once`, async (context) => {
    const session = await sessionFor(context);
    const order = report(protocol, 'takes=10s', { seconds: 4, resolution: '720p', ratio: '9:16' });
    const vendorId = await begun(session, order);
    assert.notEqual((await poll(session, protocol, order, vendorId)).state, 'done');
    session.advance(5_000);
    assert.equal((await poll(session, protocol, order, vendorId)).state, 'running');
    assert.deepEqual([session.vendor.bill().requests, session.vendor.bill().open], [0, 1]);
    session.advance(5_000);
    for (let times = 0; times < 3; times++) {
      const step = await poll(session, protocol, order, vendorId);
      assert.ok(step.state === 'done');
      assert.equal((await beginningOf(step.files[0]!)).slice(4), 'ftyp');
      const billed = session.vendor.bill();
      assert.deepEqual([billed.requests, billed.open], [1, 0]);
      assert.deepEqual([step.made.usage, step.made.media], [billed.recent[0]!.usage, ['720p']]);
      const { seconds, outputTokens } = adapter.bounds(order);
      assert.ok(step.made.usage.second! <= seconds && (step.made.usage.output ?? 0) <= outputTokens);
    }
  });

  test(`${protocol}: a task that is not polled is billed all the same`, async (context) => {
    const session = await sessionFor(context);
    await begun(session, report(protocol, 'takes=3s'));
    session.advance(3_000);
    assert.equal(session.vendor.bill().requests, 1);
  });

  test(`${protocol}: every end that can be ordered is read with its kind, and not billed`, async (context) => {
    const session = await sessionFor(context);
    const ends: Record<string, string> = {
      moderated: 'content_policy',
      failed: 'generation_failed',
      lapsed: 'expired',
    };
    for (const [words, code] of Object.entries(ends)) {
      const order = report(protocol, words);
      const vendorId = await begun(session, order);
      session.advance(1_000);
      const step = await poll(session, protocol, order, vendorId);
      assert.deepEqual(step.state === 'failed' && step.code, code);
    }
    const stuck = report(protocol, 'stuck');
    const vendorId = await begun(session, stuck);
    session.advance(86_400_000);
    assert.equal((await poll(session, protocol, stuck, vendorId)).state, 'running');
    assert.equal(session.vendor.bill().requests, 0);
  });

  test(`${protocol}: polls that are not found or break end, a broken create has begun, and links expire`, async (context) => {
    const session = await sessionFor(context);
    const order = report(protocol, 'takes=0ms poll_404=1 poll_500=2 link_lasts=5s');
    const vendorId = await begun(session, order);
    for (const status of [404, 500]) {
      await assert.rejects(poll(session, protocol, order, vendorId), (error) => {
        assert.ok(error instanceof UpstreamRefusal);
        assert.equal(error.status, status);
        return true;
      });
    }
    const step = await poll(session, protocol, order, vendorId);
    assert.ok(step.state === 'done');
    const [file] = step.files as { url: string }[];
    assert.equal((await fetch(file!.url)).status, 200);
    session.advance(5_000);
    assert.equal((await fetch(file!.url)).status, 403);
    await assert.rejects(create(session, protocol, report(protocol, 'takes=0ms error_after')), (error) => {
      assert.ok(error instanceof UpstreamRefusal);
      assert.equal(error.mayRun, true);
      return true;
    });
    assert.equal(session.vendor.bill().requests, 2);
  });

  test(`${protocol}: a vendor that reports the end twice gives another address, and bills once`, async (context) => {
    const session = await sessionFor(context);
    const order = report(protocol, 'takes=0ms twice');
    const vendorId = await begun(session, order);
    const steps = [];
    for (let times = 0; times < 3; times++) steps.push(await poll(session, protocol, order, vendorId));
    assert.deepEqual(
      steps.map(({ state }) => state),
      ['done', 'running', 'done'],
    );
    const addresses = steps.flatMap((step) =>
      step.state === 'done' ? (step.files as { url: string }[]).map(({ url }) => url) : [],
    );
    assert.equal(new Set(addresses).size, 2);
    assert.equal(session.vendor.bill().requests, 1);
  });
}

test('xai-videos: a 202 may have no body', async (context) => {
  const session = await sessionFor(context);
  const order = report('xai-videos', 'empty');
  const step = await create(session, 'xai-videos', order);
  assert.ok(step.state === 'queued');
  assert.deepEqual(await poll(session, 'xai-videos', order, step.vendorId), {
    state: 'running',
    vendorId: step.vendorId,
  });
});

test('ark-videos: a waiting task can be cancelled, and a running one cannot', async (context) => {
  const session = await sessionFor(context);
  const adapter = adapters.get('ark-videos')!;
  const order = report('ark-videos', 'takes=10s');
  const [waiting, running] = [await create(session, 'ark-videos', order), await create(session, 'ark-videos', order)];
  assert.ok(waiting.state === 'queued' && running.state === 'queued');
  assert.equal((await session.send(adapter, adapter.tasks!.cancel!(waiting.vendorId))).status, 200);
  const step = await poll(session, 'ark-videos', order, waiting.vendorId);
  assert.deepEqual(step.state === 'failed' && step.code, 'cancelled');
  session.advance(5_000);
  assert.equal((await session.send(adapter, adapter.tasks!.cancel!(running.vendorId))).status, 400);
  session.advance(5_000);
  assert.equal(session.vendor.bill().requests, 1);
});

test('a key is required in every protocol', async (context) => {
  const session = await sessionFor(context, { key: 'another' });
  for (const protocol of Object.keys(bases)) {
    const order = protocol.endsWith('videos') ? videoOrder() : imageOrder();
    await assert.rejects(create(session, protocol, order), (error) => {
      assert.ok(error instanceof UpstreamRefusal);
      assert.equal(error.keyAtFault, true);
      return true;
    });
  }
});
