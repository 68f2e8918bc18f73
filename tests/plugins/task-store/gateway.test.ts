/** Tasks as clients have them: a whole gateway, real adapters, a vendor on a socket, and a receiver of callbacks. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { type Client, clientOf, ended, mp4, png } from './clients.ts';

interface Seen {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

/** What the vendor does with prompts that begin with a word of its own. */
class Vendor {
  readonly seen: Seen[] = [];
  readonly calls: { headers: IncomingMessage['headers']; body: string }[] = [];
  readonly polls = new Map<string, number>();
  callbackFailures = 0;
  readonly #server: Server = createServer((incoming, outgoing) => void this.#answer(incoming, outgoing));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const url = incoming.url ?? '';
    const report = (status: number, body: unknown, headers: Record<string, string> = {}) => {
      outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
      outgoing.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    };
    if (url === '/callback') {
      this.calls.push({ headers: incoming.headers, body: text });
      this.callbackFailures -= 1;
      return report(this.callbackFailures >= 0 ? 500 : 200, {});
    }
    if (url.startsWith('/file')) return report(200, mp4, { 'content-type': 'video/mp4' });
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    this.seen.push({ path: url, body });
    if (url === '/v1/images/generations') return this.#paint(body, report, outgoing);
    if (url === '/v1/videos/generations') return report(200, { request_id: `v-${this.seen.length}` });
    const looks = (this.polls.get(url) ?? 0) + 1;
    this.polls.set(url, looks);
    if (looks < 2) return report(202, {});
    return report(200, {
      status: 'done',
      video: { url: `http://${incoming.headers.host}/file.mp4`, duration: 3 },
      model: 'm',
    });
  }

  #paint(
    body: Record<string, unknown>,
    report: (status: number, body: unknown) => void,
    outgoing: ServerResponse,
  ): void {
    const prompt = String(body['prompt']);
    if (prompt.startsWith('reset')) {
      outgoing.destroy();
      return;
    }
    if (prompt.startsWith('bad')) {
      report(400, { error: { code: 'moderation_blocked', type: 'image_generation_user_error', message: 'no' } });
      return;
    }
    const data = Array.from({ length: Number(body['n'] ?? 1) }, () => ({ b64_json: png.toString('base64') }));
    const answer = { created: 1, data, size: '1024x1024', quality: 'low', output_format: 'png' };
    if (prompt.startsWith('slow')) setTimeout(() => report(200, answer), 1_500);
    else report(200, answer);
  }
}

const vendor = new Vendor();
let origin = '';
let gateway: TestGateway;
let main: Client;

const yamlOf = (vendorOrigin: string, more = '') => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, idempotency, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  painter: { keys: vendor-key-1, speaks: { openai-images: "${vendorOrigin}/v1", xai-videos: "${vendorOrigin}/v1" } }
  unreachable: { keys: vendor-key-1, speaks: { xai-videos: "http://127.0.0.1:1/v1" } }
models:
  paint: { owned_by: tests, kind: image, targets: [painter/p1], price: { image: 0.01 } }
  write: { owned_by: tests, kind: image, targets: [painter/p1], price: { image: 0.01, output: 0 } }
  film: { owned_by: tests, kind: video, targets: [painter/f1], price: { second: 0.05 } }
  away: { owned_by: tests, kind: video, targets: [unreachable/f1], price: { second: 0.05 } }
files: { fetch: { allow_private: true } }
task-store:
  poll: { first: 50ms, longest: 100ms }
  callbacks: { allow_private: true, pause: 50ms, secret: [the newer of the two, the older of the two] }
${more}
`;

before(async () => {
  origin = await vendor.listen();
  gateway = await startGateway(yamlOf(origin));
  main = await clientOf(gateway, 'alice');
});
after(async () => {
  await gateway?.stop();
  await vendor.close();
});

test('an image task: submitted, completed, charged once, and its file can be opened by its address', async () => {
  const before = await main.balance();
  const { status, json } = await main.send('POST', '/v1/images/generations', { model: 'paint', prompt: 'a cat', n: 2 });
  assert.equal(status, 200);
  assert.deepEqual(json, { code: 200, data: { id: json.data.id, status: 'submitted' } });
  const reported = await ended(main, `/v1/tasks/${json.data.id}`);
  assert.equal(reported.data.progress, 100);
  assert.equal(reported.data.result.images.length, 2);
  const file = await fetch(reported.data.result.images[0].url[0]);
  assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'image/png']);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), png);
  await main.hasPaid(before, parseUsd('0.02'));
});

test('a video task is ordered and read in both of its protocols', async () => {
  const content = [{ type: 'text', text: 'waves' }];
  const before = await main.balance();
  const { json } = await main.send('POST', '/v1/contents/generations/tasks', { model: 'film', content, duration: 5 });
  assert.equal(json.status, 'queued');
  const reported = await ended(main, `/v1/contents/generations/tasks/${json.id}`);
  assert.equal(reported.status, 'succeeded');
  const file = await fetch(reported.content.video_url);
  assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'video/mp4']);
  await file.arrayBuffer();
  await main.hasPaid(before, parseUsd('0.15'));
  const official = await main.send('GET', `/v1/videos/${json.id}`);
  assert.deepEqual([official.json.object, official.json.status], ['video', 'completed']);
});

test('an SVG by a language model is refused by its field where the price names no text', async () => {
  const [before, seen] = [await main.balance(), vendor.seen.length];
  const order = { model: 'paint', prompt: 'a cat', output_format: 'svg' };
  const { status, json } = await main.send('POST', '/v1/images/generations', order);
  assert.deepEqual([status, json.error?.param, json.error?.code], [400, 'output_format', 'tool_not_priced']);
  assert.equal(vendor.seen.length, seen);
  await main.hasPaid(before, 0n);
  const { json: sold } = await main.send('POST', '/v1/images/generations', { ...order, model: 'write' });
  assert.equal((await ended(main, `/v1/tasks/${sold.data.id}`)).data.status, 'completed');
});

test('an order that a vendor refuses or breaks off fails and costs nothing', async () => {
  const before = await main.balance();
  for (const prompt of ['bad thing', 'reset']) {
    const { json } = await main.send('POST', '/v1/images/generations', { model: 'paint', prompt });
    const reported = await ended(main, `/v1/tasks/${json.data.id}`);
    assert.equal(reported.data.status, 'failed');
    assert.equal(typeof reported.data.error, 'string');
  }
  await main.hasPaid(before, 0n);
});

test('a client that waits gets the official answer, with addresses or bytes, and errors as errors', async () => {
  const order = { model: 'paint', prompt: 'a dog' };
  const bytes = await main.send('POST', '/v1/images/generations', order, { prefer: 'wait' });
  assert.deepEqual(Buffer.from(bytes.json.data[0].b64_json, 'base64'), png);
  const urls = await main.send('POST', '/v1/images/generations', { ...order, response_format: 'url' });
  assert.equal((await fetch(urls.json.data[0].url)).status, 200);
  const bad = await main.send('POST', '/v1/images/generations', { ...order, prompt: 'bad', response_format: 'url' });
  assert.deepEqual([bad.status, bad.json.error.code], [400, 'moderation_blocked']);
});

test('the same Idempotency-Key gives the same task and one charge', async () => {
  // Nothing of an earlier order is set aside for this one.
  const keyed = await clientOf(gateway, 'keyed');
  const before = await keyed.balance();
  const order = { model: 'paint', prompt: 'keyed' };
  const headers = { 'idempotency-key': 'key-1' };
  const first = await keyed.send('POST', '/v1/images/generations', order, headers);
  await ended(keyed, `/v1/tasks/${first.json.data.id}`);
  const second = await keyed.send('POST', '/v1/images/generations', order, headers);
  assert.deepEqual(second.json, first.json);
  await keyed.hasPaid(before, parseUsd('0.01'));
});

test("another account's task cannot be seen, listed, cancelled or opened: always the same 404", async () => {
  const bob = await clientOf(gateway, 'bob');
  const { json } = await main.send('POST', '/v1/images/generations', { model: 'paint', prompt: 'mine' });
  const unknown = await bob.send('GET', `/v1/tasks/task_${'0'.repeat(32)}`);
  assert.equal(unknown.status, 404);
  for (const [method, path] of [
    ['GET', `/v1/tasks/${json.data.id}`],
    ['DELETE', `/v1/tasks/${json.data.id}`],
    ['GET', '/v1/tasks/nonsense'],
    ['GET', `/v1/contents/generations/tasks/${json.data.id}`],
    ['GET', `/v1/videos/${json.data.id}/content`],
  ] as const) {
    const reply = await bob.send(method, path);
    assert.deepEqual([reply.status, reply.json], [404, unknown.json], path);
  }
  assert.deepEqual((await bob.send('GET', '/v1/tasks')).json.data, []);
  const film = { model: 'film', content: [{ type: 'text', text: 'mine' }], duration: 2 };
  const { id } = (await main.send('POST', '/v1/contents/generations/tasks', film)).json;
  for (const query of ['', `?filter.task_ids=${id}`]) {
    const { json: listed } = await bob.send('GET', `/v1/contents/generations/tasks${query}`);
    assert.deepEqual(listed, { total: 0, items: [] });
  }
  assert.deepEqual((await bob.send('GET', `/v1/tasks?after=${id}`)).json.data, []);
});

test('a list has pages and filters', async () => {
  const page = await main.send('GET', '/v1/tasks?limit=2&kind=image&status=completed');
  assert.equal(page.json.data.length, 2);
  assert.equal(page.json.has_more, true);
  const next = await main.send('GET', `/v1/tasks?limit=2&kind=image&status=completed&after=${page.json.last_id}`);
  const ids = [...page.json.data, ...next.json.data].map(({ data }: { data: { id: string } }) => data.id);
  assert.equal(new Set(ids).size, ids.length);
  assert.equal((await main.send('GET', '/v1/tasks?status=nonsense')).status, 400);
  assert.equal((await main.send('GET', '/v1/tasks?limit=0')).status, 400);
});

test("videos are listed in their protocol's form: numbered pages, the total, filters, a reason of a failure", async () => {
  const carol = await clientOf(gateway, 'carol');
  const tasks = '/v1/contents/generations/tasks';
  const content = [{ type: 'text', text: 'waves' }];
  const ids: string[] = [];
  for (const text of ['one', 'two', 'three']) {
    const order = { model: 'film', content: [{ type: 'text', text }], duration: 2 };
    ids.push((await carol.send('POST', tasks, order)).json.id);
  }
  const image = await carol.send('POST', '/v1/images/generations', { model: 'paint', prompt: 'no video' });
  for (const id of ids) await ended(carol, `${tasks}/${id}`);
  await ended(carol, `/v1/tasks/${image.json.data.id}`);
  const far = await carol.send('POST', tasks, { model: 'away', content });
  // Refused only while a try to reach the vendor is under way.
  const takeBack = () => carol.send('DELETE', `${tasks}/${far.json.id}`);
  await until('the end of what is cancelled', async () => ((await takeBack()).status === 200 ? true : undefined));

  const first = (await carol.send('GET', `${tasks}?page_num=1&page_size=3`)).json;
  const second = (await carol.send('GET', `${tasks}?page_num=2&page_size=3`)).json;
  assert.deepEqual([first.total, second.total, first.items.length], [4, 4, 3]);
  const reported = [...first.items, ...second.items] as { id: string; status: string }[];
  assert.deepEqual(
    reported.map(({ id }) => id),
    [far.json.id, ...ids.toReversed()],
  );
  const failure = { code: 'cancelled', message: 'The task was cancelled.' };
  assert.deepEqual(Object.keys(first.items[0]), [
    'id',
    'model',
    'status',
    'created_at',
    'updated_at',
    'failure_reason',
  ]);
  assert.deepEqual([first.items[0].status, first.items[0].failure_reason], ['failed', failure]);
  assert.match(first.items[1].content.video_url, /^http/);

  const found = async (query: string) => {
    const { json } = await carol.send('GET', `${tasks}?${query}`);
    const listed = (json.items as { id: string }[]).map(({ id }) => id);
    assert.equal(json.total, listed.length, query);
    return listed;
  };
  assert.deepEqual(await found('filter.status=succeeded&filter.model=film'), ids.toReversed());
  assert.deepEqual(await found('filter.status=cancelled'), [far.json.id]);
  assert.deepEqual(await found('filter.status=expired'), []);
  assert.deepEqual(await found('filter.model=away'), [far.json.id]);
  assert.deepEqual(await found('filter.service_tier=flex'), []);
  assert.equal((await found('filter.service_tier=default')).length, 4);
  assert.deepEqual(await found(`filter.task_ids=${ids[0]}&filter.task_ids=${ids[2]}`), [ids[2], ids[0]]);
  assert.deepEqual(await found(`filter.task_ids=${ids[0]},${ids[1]},nonsense`), [ids[1], ids[0]]);
  assert.deepEqual(await found(`filter.task_ids=${image.json.data.id}`), []);
  for (const query of ['page_num=0', 'page_num=501', 'page_size=0', 'page_size=x', 'filter.status=nonsense']) {
    const refused = await carol.send('GET', `${tasks}?${query}`);
    assert.deepEqual([refused.status, refused.json.error.param], [400, query.split('=')[0]]);
  }
});

test('a begun task cannot be cancelled, and bad input is refused before anything is held', async () => {
  const before = await main.balance();
  const slow = await main.send('POST', '/v1/images/generations', { model: 'paint', prompt: 'slow' });
  await until('the departure', async () => vendor.seen.find(({ body }) => body['prompt'] === 'slow'));
  const refused = await main.send('DELETE', `/v1/tasks/${slow.json.data.id}`);
  assert.deepEqual([refused.status, refused.json.error.code], [409, 'task_not_cancellable']);
  await ended(main, `/v1/tasks/${slow.json.data.id}`);
  await main.hasPaid(before, parseUsd('0.01'));
  const bad = await main.send('POST', '/v1/images/generations', { model: 'paint', prompt: 'x', n: 11 });
  assert.deepEqual([bad.status, bad.json.error.param], [400, 'n']);
  const kind = await main.send('POST', '/v1/images/generations', { model: 'film', prompt: 'x' });
  assert.equal(kind.status, 400);
});

test('an order without money is a 402, and no task', async () => {
  const poor = await clientOf(gateway, 'poor');
  // No one makes it, so that nothing is given back meanwhile.
  const content = [{ type: 'text', text: 'waves' }];
  const orders = await Promise.all(
    Array.from({ length: 15 }, () =>
      poor.send('POST', '/v1/contents/generations/tasks', { model: 'away', content, duration: 15 }),
    ),
  );
  assert.equal(orders.filter(({ status }) => status === 200).length, 13);
  assert.equal(orders.filter(({ status }) => status === 402).length, 2);
  assert.equal((await poor.send('GET', '/v1/tasks')).json.data.length, 13);
});

test('a callback is signed for its account, and sent until it is accepted', async () => {
  vendor.callbackFailures = 2;
  const order = { model: 'paint', prompt: 'call me', callback_url: `${origin}/callback` };
  const { json } = await main.send('POST', '/v1/images/generations', order);
  await until('the third callback', async () => (vendor.calls.length >= 3 ? true : undefined));
  const { headers, body } = vendor.calls.at(-1)!;
  const command = gateway.gateway.commands.find(({ name }) => name === 'callbacks secret')!;
  const shown = (await command.run({ account: 'alice' })).json as { secret: string; others: string[] };
  assert.deepEqual(
    [shown.secret, ...shown.others].map((one) => one.slice(0, 6)),
    ['whsec_', 'whsec_'],
  );
  assert.ok(
    new Webhook(shown.others[0]!).verify(body, headers as Record<string, string>),
    'also for who has not changed',
  );
  const event = new Webhook(shown.secret).verify(body, headers as Record<string, string>) as {
    type: string;
    data: { data: { id: string } };
  };
  assert.equal(event.type, 'task.completed');
  assert.equal(event.data.data.id, json.data.id);
  assert.equal(new Set(vendor.calls.map((call) => call.headers['webhook-id'])).size, 1);
});
