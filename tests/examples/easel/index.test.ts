/** A vendor's media API from outside: ordered, polled, cancelled, deleted, with files, a price by the second, and the vendor's errors. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accounts, ledger, parseUsd } from 'model-gateway/domain';
import {
  checkGateway,
  type Script,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

const film = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom'), Buffer.alloc(64)]);
let vendor: Vendor;
let gateway: TestGateway;
let key = '';
let accountId = '';

const yaml = (origin: string, protocol = 'easel') => ({
  plugins: [
    ...[
      'storage',
      'auth',
      'plans',
      'providers',
      'models',
      'billing',
      'route',
      'protocol-convert',
      'files',
      'task-store',
    ],
    './index.ts',
  ],
  auth: { public: [] },
  plans: { default: 'free', offers: { free: { price: 0 } } },
  providers: { easel: { keys: 'vendor-key', speaks: { [protocol]: `${origin}/v2` } } },
  models: {
    canvas: { owned_by: 'easel', kind: 'video', targets: ['easel/oil'], price: { second: 0.05 } },
  },
  files: { fetch: { allow_private: true } },
  'task-store': { poll: { first: '20ms', longest: '20ms' } },
});

before(async () => {
  vendor = await startVendor();
  gateway = await startGateway(yaml(vendor.origin), { from: import.meta.dirname });
  const book = gateway.find(accounts)!;
  accountId = (await book.create('alice', 'free')).id;
  await gateway.find(ledger)!.credit(accountId, parseUsd('10'), { kind: 'top-up', reason: 'test', reference: 'one' });
  key = (await book.createKey(accountId, { name: 'test' })).key;
});
after(async () => {
  await gateway?.stop();
  await vendor?.stop();
});

const orders = '/v1/contents/generations/tasks';
const job = (state: string, more: object = {}): Script => ({ body: JSON.stringify({ job: 'j/1', state, ...more }) });

async function send(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const answer = await fetch(gateway.origin + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await answer.json()) as object;
  return { http: answer.status, ...json };
}

const order = (duration?: number) => ({
  model: 'canvas',
  content: [{ type: 'text', text: 'Waves' }],
  ...(duration === undefined ? {} : { duration }),
});

async function become(id: unknown, ...states: string[]): Promise<Record<string, unknown>> {
  for (let tries = 0; tries < 2_400; tries += 1) {
    const seen = await send('GET', `${orders}/${id}`);
    if (states.includes(String(seen['status']))) return seen;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(
    `the task did not become ${states.join(' or ')}: ${JSON.stringify(await send('GET', `${orders}/${id}`))}`,
  );
}

/** What the account has left; a task's authorization is released a moment after its end. */
async function hasLeft(usd: string): Promise<void> {
  const balance = () => gateway.find(ledger)!.balance(accountId);
  for (let tries = 0; tries < 2_400 && (await balance()) !== parseUsd(usd); tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 25));
  assert.equal(await balance(), parseUsd(usd));
}

test('a video is ordered, polled and fetched, and its seconds are charged', async () => {
  vendor.requests.length = 0;
  const ready = job('ready', { film: { url: `${vendor.origin}/films/1.mp4`, seconds: 4 } });
  vendor.play(job('waiting'), job('drawing'), ready, { headers: { 'content-type': 'video/mp4' }, body: film });
  const { id } = await send('POST', orders, order(4));
  const task = await become(id, 'succeeded', 'failed');
  assert.equal(task['status'], 'succeeded', JSON.stringify(task));
  const { video_url: url } = task['content'] as { video_url: string };
  assert.deepEqual(Buffer.from(await (await fetch(url)).arrayBuffer()), film);
  await hasLeft('9.8');
  assert.deepEqual(
    vendor.requests.map(({ method, url: path }) => `${method} ${path}`),
    ['POST /v2/jobs', 'GET /v2/jobs/j%2F1', 'GET /v2/jobs/j%2F1', 'GET /films/1.mp4'],
  );
  const [started] = vendor.requests;
  assert.equal(started!.headers['x-easel-key'], 'vendor-key');
  assert.deepEqual(JSON.parse(started!.body.toString()), { scene: 'Waves', seconds: 4, style: 'oil' });
  assert.equal((await send('DELETE', `${orders}/${id}`))['http'], 200);
  assert.equal((await send('GET', `${orders}/${id}`))['http'], 404);
});

test('a job that waits at the vendor is cancelled there, and costs nothing', async () => {
  vendor.requests.length = 0;
  vendor.play(job('waiting'));
  const { id } = await send('POST', orders, order());
  while (!vendor.requests.some(({ method }) => method === 'GET'))
    await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await send('DELETE', `${orders}/${id}`))['http'], 200);
  assert.equal((await become(id, 'failed'))['error'], 'The task was cancelled.');
  assert.ok(vendor.requests.some(({ method, url }) => method === 'DELETE' && url === '/v2/jobs/j%2F1'));
  await hasLeft('9.8');
});

test('an order that the vendor refuses or fails is an error without a charge', async () => {
  const failures: [Script, RegExp][] = [
    [job('failed', { error: { code: 'content_policy', message: 'No.' } }), /content rules/],
    [job('failed', { error: { code: 'internal', message: 'Easel host 10.0.0.1 broke' } }), /could not make this/],
    [{ status: 400, body: JSON.stringify({ error: { code: 'safety_block', message: 'No.' } }) }, /content rules/],
  ];
  for (const [script, words] of failures) {
    vendor.play(script);
    const { id } = await send('POST', orders, order());
    const task = await become(id, 'failed', 'succeeded');
    assert.match(String(task['error']), words);
    assert.doesNotMatch(JSON.stringify(task), /10\.0\.0\.1|easel/i);
  }
  await hasLeft('9.8');
});

test("an order that the vendor cannot make is refused by the client's own field", async () => {
  const { http, error } = await send('POST', orders, order(13));
  assert.equal(http, 400);
  const { message, param } = error as { message: string; param?: string };
  assert.match(`${message} ${param ?? ''}`, /at most 12 seconds.*duration/);
});

test('check knows the protocol, and suggests it for a misspelt one', async () => {
  const options = { from: import.meta.dirname };
  assert.deepEqual(await checkGateway(yaml(vendor.origin), options), []);
  const [problem, ...others] = await checkGateway(yaml(vendor.origin, 'eazel'), options);
  assert.match(problem ?? '', /there is no protocol "eazel"; did you mean "easel"\?$/);
  assert.deepEqual(others, []);
});
