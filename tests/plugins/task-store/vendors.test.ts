/** A whole gateway and its vendors: what clients show by address, tasks that vendors take back, and clients that wait too long. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { parseUsd } from '../../../plugins/common/domain/money.ts';
import { type RunningVendor, startVendor } from '../../../plugins/sandbox/vendor.ts';
import { startGateway, type TestGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { type Client, clientOf, ended, png } from './clients.ts';

/** Where clients keep what they show. */
const fetched: string[] = [];
const shelf = createServer((incoming, outgoing) => {
  const path = incoming.url ?? '';
  fetched.push(path);
  // It says that everything is an image.
  outgoing.writeHead(path === '/gone.png' ? 404 : 200, { 'content-type': 'image/png' });
  if (path === '/page.png') outgoing.end('<!DOCTYPE html><html></html>');
  else if (path === '/large.png') outgoing.end(Buffer.concat([png, Buffer.alloc(2_000_000)]));
  else outgoing.end(png);
});

let sandbox: RunningVendor;
let shelfOrigin: string;
let guarded: TestGateway;
let open: TestGateway;
let alice: Client;

const yamlOf = (origin: string, allowPrivate: boolean) => `
gateway: test
listen: 127.0.0.1:0
plugins: [storage, request-log, auth, plans, providers, models, billing, route, files, task-store]
auth: { public: [] }
plans: { default: free, offers: { free: { price: 0 } } }
providers:
  openai: { keys: vendor-key, speaks: { openai-images: "${origin}/v1" } }
  google: { keys: vendor-key, speaks: { gemini-images: "${origin}/v1beta" } }
  xai: { keys: vendor-key, speaks: { xai-images: "${origin}/imagine/v1" } }
  ark: { keys: vendor-key, speaks: { ark-images: "${origin}/api/v3", ark-videos: "${origin}/api/v3" } }
models:
  openai: { owned_by: tests, kind: image, targets: [openai], price: { image: 0.01 } }
  google: { owned_by: tests, kind: image, targets: [google], price: { image: 0.01 } }
  xai: { owned_by: tests, kind: image, targets: [xai], price: { image: 0.01 } }
  ark: { owned_by: tests, kind: image, targets: [ark], price: { image: 0.01 } }
  film: { owned_by: tests, kind: video, targets: [ark], price: { second: 0.05 } }
task-store:
  wait: 1s
  poll: { first: 50ms, longest: 100ms }
  references: { limit: 1MB, allow_private: ${allowPrivate} }
`;

before(async () => {
  sandbox = await startVendor();
  await once(shelf.listen(0, '127.0.0.1'), 'listening');
  shelfOrigin = `http://127.0.0.1:${(shelf.address() as AddressInfo).port}`;
  guarded = await startGateway(yamlOf(sandbox.origin, false));
  open = await startGateway(yamlOf(sandbox.origin, true));
  alice = await clientOf(open, 'alice');
});
after(async () => {
  await guarded?.stop();
  await open?.stop();
  shelf.closeAllConnections();
  shelf.close();
  await sandbox?.close();
});

async function endOf(client: Client, model: string, url: string): Promise<{ status: string; error?: string }> {
  const order = { model, prompt: 'A hat', image_urls: [url] };
  const { json } = await client.send('POST', '/v1/images/generations', order);
  return (await ended(client, `/v1/tasks/${json.data.id}`)).data;
}

test('references by address are fetched only for vendors that accept bytes alone, and passed unchanged to all others', async () => {
  fetched.length = 0;
  for (const model of ['openai', 'xai', 'ark']) {
    assert.equal((await endOf(alice, model, `${shelfOrigin}/cat.png`)).status, 'completed', model);
  }
  assert.deepEqual(fetched, []);
  assert.equal((await endOf(alice, 'google', `${shelfOrigin}/cat.png`)).status, 'completed');
  assert.deepEqual(fetched, ['/cat.png']);
  assert.ok(sandbox.bill().recent.at(-1)!.usage.input_image! > 0, 'the model was shown it');
});

test("a reference that is no image, too large or gone fails the task by the client's field; nothing is sent or paid", async () => {
  const before = await alice.balance();
  const { requests } = sandbox.bill();
  for (const path of ['page.png', 'large.png', 'gone.png']) {
    const { status, error } = await endOf(alice, 'google', `${shelfOrigin}/${path}`);
    assert.equal(status, 'failed', path);
    assert.match(error!, /^The address in "image_urls\[0\]" cannot be fetched: /, path);
  }
  await alice.hasPaid(before, 0n);
  assert.equal(sandbox.bill().requests, requests);
});

test('nothing is fetched from private addresses', async () => {
  fetched.length = 0;
  const bob = await clientOf(guarded, 'bob');
  for (const host of [shelfOrigin, shelfOrigin.replace('127.0.0.1', 'localhost'), 'http://169.254.169.254']) {
    const { status, error } = await endOf(bob, 'google', `${host}/cat.png`);
    assert.equal(status, 'failed');
    assert.match(error!, /^The address in "image_urls\[0\]" cannot be fetched: its host is not a public address/);
  }
  assert.deepEqual(fetched, []);
  await bob.hasPaid(parseUsd('10'), 0n);
});

test('a callback to a private address is refused with its order, by its name', async () => {
  const carol = await clientOf(guarded, 'carol');
  for (const address of [
    shelfOrigin,
    'http://[::1]:8080/',
    'https://example.com:22/',
    'https://me:word@example.com/',
  ]) {
    const order = { model: 'xai', prompt: 'A hat', callback_url: address };
    const { status, json } = await carol.send('POST', '/v1/images/generations', order);
    assert.deepEqual([status, json.error.param], [400, 'callback_url'], address);
  }
  await carol.hasPaid(parseUsd('10'), 0n);
  assert.deepEqual((await carol.send('GET', '/v1/tasks')).json.data, []);
});

const tasks = '/v1/contents/generations/tasks';
const film = (words: string) => ({
  model: 'film',
  content: [{ type: 'text', text: `Waves [[sandbox: ${words}]]` }],
  duration: 2,
});

/** Resolves with the id when the vendor has a task of its own for it. */
async function handedOver(words: string): Promise<string> {
  const { id } = (await alice.send('POST', tasks, film(words))).json;
  await until('the handing over', async () => {
    const { json } = await alice.send('GET', `${tasks}/${id}`);
    return json.status === 'running' ? true : undefined;
  });
  return id;
}

test('a task that waits at its vendor is cancelled for good, and its money is released', async () => {
  const before = await alice.balance();
  const { requests } = sandbox.bill();
  const id = await handedOver('takes=300s');
  // Handed over is more than sent: a while later the vendor says that it waits.
  const taken = await until('the end of what is cancelled', async () => {
    const reply = await alice.send('DELETE', `${tasks}/${id}`);
    return reply.status === 200 ? reply : undefined;
  });
  assert.deepEqual([taken.json.status, taken.json.error], ['failed', 'The task was cancelled.']);
  const again = await alice.send('DELETE', `${tasks}/${id}`);
  assert.deepEqual([again.status, again.json], [200, taken.json]);
  await alice.hasPaid(before, 0n);
  assert.equal(sandbox.bill().requests, requests);
});

test('a task that its vendor has begun continues, and is paid', async () => {
  const before = await alice.balance();
  // It waits there for a fifth of this, and has the rest to be refused in.
  const id = await handedOver('takes=5s');
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const refused = await alice.send('DELETE', `${tasks}/${id}`);
  assert.deepEqual([refused.status, refused.json.error.code], [409, 'task_not_cancellable']);
  assert.equal((await ended(alice, `${tasks}/${id}`)).status, 'succeeded');
  await alice.hasPaid(before, parseUsd('0.10'));
});

test('a client that has waited the longest allowed time gets the task, which continues', async () => {
  const order = { model: 'xai', prompt: 'A cat [[sandbox: takes=2s]]' };
  for (const path of ['/v1/images/generations', '/v1/images/edits']) {
    const images = [{ image_url: `data:image/png;base64,${png.toString('base64')}` }];
    const body = path.endsWith('edits') ? { ...order, images } : order;
    const reply = await alice.send('POST', path, body, { prefer: 'wait' });
    assert.deepEqual(reply.json, { code: 200, data: { id: reply.json.data.id, status: 'submitted' } });
    assert.equal((await ended(alice, `/v1/tasks/${reply.json.data.id}`)).data.status, 'completed');
  }
});
