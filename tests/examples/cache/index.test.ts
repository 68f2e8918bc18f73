/** The cache in gateways of its own: what is asked again, what has ended, what is never kept, and what a hit is charged. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { ledger, ledgerQueries } from 'model-gateway/domain';
import {
  chatAnswer,
  chatStream,
  manualClock,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from 'model-gateway/testing';

const clock = manualClock();
let vendor: Vendor;
let gateway: TestGateway;

before(async () => {
  vendor = await startVendor();
  gateway = await startGateway(
    {
      plugins: ['providers', 'models', './index.ts', 'route', 'protocol-convert'],
      cache: { keep: '1m', memory: '1000' },
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: 'free' } },
    },
    { from: import.meta.dirname, clock },
  );
});
after(async () => {
  await gateway?.stop();
  await vendor.stop();
});

const send = (content: string, more = {}) =>
  gateway.post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content }], ...more });

test('the second of two equal requests is answered without the vendor, until a minute has passed', async () => {
  vendor.play(chatAnswer('One'));
  const first = await (await send('a')).text();
  const again = await send('a');
  assert.equal(again.headers.get('x-cache'), 'hit');
  assert.equal(await again.text(), first);
  assert.equal(vendor.requests.length, 1);
  clock.advance(60_001);
  assert.equal((await send('a')).headers.get('x-cache'), null);
  assert.equal(vendor.requests.length, 2);
});

test('a whole stream is answered from the cache, and a broken one is not', async () => {
  vendor.play(chatStream('Th', 'ree'));
  const first = await (await send('c', { stream: true })).text();
  const again = await send('c', { stream: true });
  assert.equal(again.headers.get('x-cache'), 'hit');
  assert.equal(again.headers.get('content-type')?.startsWith('text/event-stream'), true);
  assert.equal(await again.text(), first);
  const whole = chatStream('Fo', 'ur');
  vendor.play({ ...whole, body: String(whole.body).replace('data: [DONE]\n\n', '').replace('"stop"', 'null') });
  for (let times = 0; times < 2; times++) {
    const broken = await send('cut', { stream: true });
    assert.equal(broken.headers.get('x-cache'), null);
    assert.match(await broken.text(), /"error"/);
  }
});

test('another request and an error are not answered from the cache', async () => {
  vendor.play(chatAnswer('Two'));
  assert.equal((await send('b')).headers.get('x-cache'), null);
  vendor.play({ status: 400, body: '{"error":{"message":"no"}}' });
  for (let times = 0; times < 2; times++) assert.equal((await send('d')).status, 400);
});

test('the oldest answers are dropped where their memory is used up', async () => {
  vendor.play(chatAnswer('x'.repeat(300)));
  for (const content of ['e', 'f', 'g']) await send(content);
  assert.equal((await send('g')).headers.get('x-cache'), 'hit');
  assert.equal((await send('e')).headers.get('x-cache'), null);
});

/** Its row is written a moment after the answer. */
async function chargeOf(from: TestGateway, requestId: string) {
  for (const until = Date.now() + 60_000; Date.now() < until; await setTimeout(50)) {
    const charge = await from.find(ledgerQueries)!.charge(requestId, undefined);
    if (charge !== undefined) return charge;
  }
  throw new Error(`${requestId} was not charged`);
}

test('with billing in the list a hit is charged by its price, without an attempt, and once', async () => {
  await using priced = await startGateway(
    {
      plugins: ['storage', 'auth', 'providers', 'models', 'billing', './index.ts', 'route', 'protocol-convert'],
      cache: { percent: 25 },
      providers: { vendor: { keys: 'vendor-key', speaks: { chat: `${vendor.origin}/v1` } } },
      models: { m: { owned_by: 'vendor', targets: ['vendor'], price: { input: 1000, output: 1000 } } },
    },
    { from: import.meta.dirname },
  );
  const { id } = (await priced.run('accounts create', { name: 'ada', credit: '10' })) as { id: string };
  const { key } = (await priced.run('keys create', { account: 'ada', name: 'test' })) as { key: string };
  const post = () =>
    priced.post(
      '/v1/chat/completions',
      { model: 'm', messages: [{ role: 'user', content: 'x' }] },
      { authorization: `Bearer ${key}` },
    );
  const balance = () => priced.find(ledger)!.balance(id);
  vendor.play(chatAnswer('Five'));
  const before = await balance();
  const first = await post();
  assert.equal(first.status, 200, await first.clone().text());
  await first.text();
  const middle = await balance();
  const sent = vendor.requests.length;
  const hit = await post();
  assert.equal(hit.headers.get('x-cache'), 'hit');
  await hit.text();
  const after = await balance();
  assert.equal(vendor.requests.length, sent);
  assert.ok(before > middle);
  assert.equal((middle - after) * 4n, before - middle);
  const charge = await chargeOf(priced, hit.headers.get('x-request-id')!);
  assert.equal(charge.servedBy, 'cache');
  assert.deepEqual(charge.attempts, []);
});
