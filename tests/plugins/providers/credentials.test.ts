/** Credentials of vendors: forms of a key, and schemes of plugins that compute headers; what their failures do, and what they cost. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { Refreshed } from '../../../plugins/common/wire/credentials.ts';
import { dialectNames } from '../../end-to-end/dialects.ts';
import { modelAt, speaks, startTestbed, type Testbed } from '../../end-to-end/testbed.ts';

/** Gives out tickets, or an error that quotes the key. */
let issuer: Server;
let issued = 0;
let refuses = false;
let livesMs = 3_600_000;
let testbed: Testbed;

const plugins = [
  ...['storage', 'request-log', 'auth', 'plans', join(process.cwd(), 'tests/plugins/providers/ticket/index.ts')],
  ...['providers', 'models', 'billing', 'route', 'protocol-convert'],
];

before(async () => {
  issuer = createServer((request, response) => {
    const key = request.headers.authorization;
    issued += 1;
    response.setHeader('content-type', 'application/json');
    setTimeout(
      () =>
        response.end(
          JSON.stringify(refuses ? { error: `the key ${key} is locked` } : { ticket: `ticket-${issued}`, livesMs }),
        ),
      20,
    );
  }).listen(0, '127.0.0.1');
  await once(issuer, 'listening');
  const auth = { scheme: 'ticket', issuer: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/` };
  testbed = await startTestbed({
    providers: ({ replay }) => ({
      ticket: { keys: 'secret-of-the-issuer', speaks: speaks(replay), auth },
      keyless: { speaks: speaks(replay), auth },
      locked: { keys: ['locked-secret-one', 'locked-secret-two'], speaks: speaks(replay), auth },
      query: {
        keys: 'key+of/query',
        speaks: { chat: `${replay}/v1?version=2` },
        auth: { scheme: 'query', name: 'key' },
      },
      header: {
        keys: 'key-of-header',
        speaks: speaks(replay),
        auth: { scheme: 'header', header: 'X-Own', value: 'Key {key}' },
      },
    }),
    models: {
      ticket: modelAt('ticket'),
      keyless: modelAt('keyless'),
      locked: modelAt('locked', 'sandbox'),
      alone: modelAt('locked'),
      query: modelAt('query'),
      header: modelAt('header'),
    },
    more: { plugins },
  });
});
after(async () => {
  await testbed.stop();
  issuer.close();
});
beforeEach(() => {
  refuses = false;
  livesMs = 3_600_000;
  testbed.replay.play({ headers: { 'content-type': 'application/json' }, body: answer });
});

const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello.' } }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});
const sha256 = (body: Uint8Array) => createHash('sha256').update(body).digest('hex');
const last = () => testbed.replay.requests.at(-1)!;

test('a computed credential gets the final method, address and bytes, and its headers reach the vendor', async () => {
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, 'chat', { model: 'ticket', prompt: 'Hello' });
  assert.equal(reply.status, 200, reply.text);
  const { headers, url, body, method } = last();
  assert.match(String(headers['x-ticket']), /^ticket-\d+$/);
  assert.equal(headers['x-signed'], `${method} ${testbed.replay.origin}${url} ${sha256(body)}`);
  assert.equal(headers.authorization, undefined, 'the key itself does not travel');
  const { charges } = await testbed.records(customer);
  assert.equal(charges[0]!.cost, 14_000n, 'ten tokens at one, two at two dollars a million');
});

test('concurrent requests wait for one ticket, which later ones use too', async () => {
  const before = issued;
  const customer = await testbed.customer();
  const calls = Array.from({ length: 8 }, () => testbed.call(customer, 'chat', { model: 'keyless', prompt: 'Hello' }));
  assert.deepEqual(new Set((await Promise.all(calls)).map(({ status }) => status)), new Set([200]));
  await testbed.call(customer, 'chat', { model: 'keyless', prompt: 'Again' });
  assert.equal(issued - before, 1);
});

test('a refused ticket is fetched again, and the request is sent once more; a second refusal in a row is returned', async () => {
  const customer = await testbed.customer();
  await testbed.call(customer, 'chat', { model: 'ticket', prompt: 'Hello' });
  const [before, old, sent] = [issued, last().headers['x-ticket'], testbed.replay.requests.length];
  const refusal = { status: 401, body: '{"error":{"message":"expired"}}' };
  const success = { headers: { 'content-type': 'application/json' }, body: answer };
  testbed.replay.play(refusal, success);
  const reply = await testbed.call(customer, 'chat', { model: 'ticket', prompt: 'Hello' });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(issued - before, 1);
  assert.equal(testbed.replay.requests.length - sent, 2);
  assert.notEqual(last().headers['x-ticket'], old);
  const { attempts, charges } = await testbed.records(customer, 2);
  assert.equal(attempts.length, 2, 'both requests of the second call are one attempt');
  assert.deepEqual(
    charges.map(({ cost }) => cost),
    [14_000n, 14_000n],
  );
  testbed.replay.play(refusal);
  const again = await testbed.call(customer, 'chat', { model: 'ticket', prompt: 'Hello' });
  assert.notEqual(again.status, 200);
  assert.equal(testbed.replay.requests.length - sent, 3, 'the new ticket is refused: no third one is fetched at once');
  assert.equal(issued - before, 1);
});

test('a failed ticket puts every key into cooldown, charges nothing, goes to the next target, and shows no secret', async () => {
  refuses = true;
  const customer = await testbed.customer();
  const requestCount = testbed.replay.requests.length;
  const reply = await testbed.call(customer, 'chat', { model: 'locked', prompt: 'Hello [[sandbox: tokens=5]]' });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(testbed.replay.requests.length, requestCount, 'nothing is sent without a credential');
  const { attempts, charges } = await testbed.records(customer);
  assert.deepEqual(
    attempts.map(({ provider }) => provider),
    ['sandbox'],
    'what was not sent is not recorded as an attempt',
  );
  assert.equal(charges.length, 1);
  const log = testbed.gateway.lines.filter((line) => line.includes('not usable'));
  assert.equal(log.length, 2, 'one line for each key');
  assert.match(log[0]!, /the credential could not be obtained: the key \*\*\* is locked/);
  assert.doesNotMatch(testbed.gateway.lines.join('\n'), /locked-secret/);
  refuses = false;
  const before = issued;
  await testbed.call(customer, 'chat', { model: 'locked', prompt: 'Hello [[sandbox: tokens=5]]' });
  assert.equal(issued, before, 'the keys rest');
});

for (const dialect of dialectNames)
  test(`without another target the client of ${dialect} gets that in its protocol, and pays nothing`, async () => {
    refuses = true;
    const customer = await testbed.customer();
    const reply = await testbed.call(customer, dialect, { model: 'alone', prompt: 'Hello' });
    assert.ok(reply.status === 502 || reply.status === 503, reply.text);
    assert.doesNotMatch(reply.text, /locked|issuer|ticket|127\.0\.0\.1/);
    const { charges } = await testbed.records(customer);
    assert.equal(charges.length, 0);
  });

test('a key in the query is added to the query of the base URL', async () => {
  const reply = await testbed.call(await testbed.customer(), 'chat', { model: 'query', prompt: 'Hello' });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(last().url, '/v1/chat/completions?version=2&key=key%2Bof%2Fquery');
  assert.equal(last().headers.authorization, undefined);
});

test('the scheme "header" equals the setting { header, value }', async () => {
  const reply = await testbed.call(await testbed.customer(), 'chat', { model: 'header', prompt: 'Hello' });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(last().headers['x-own'], 'Key key-of-header');
  assert.equal(last().headers.authorization, undefined);
});

interface Fetch {
  readonly resolve: (value: { value: string; endsAt: number | undefined }) => void;
  readonly reject: (error: Error) => void;
}

function refreshed(options: { aheadMs?: number; timeoutMs?: number } = {}) {
  const fetches: Fetch[] = [];
  let now = 0;
  const value = new Refreshed<string>({
    clock: { now: () => now, monotonic: () => now },
    load: () => new Promise((resolve, reject) => fetches.push({ resolve, reject })),
    ...options,
  });
  const at = (time: number) => {
    now = time;
  };
  return { value, fetches, at };
}

test('a refused value is replaced once for all its users, and not again at once', async () => {
  const { value, fetches, at } = refreshed();
  const first = value.get();
  fetches[0]!.resolve({ value: 'one', endsAt: undefined });
  await first;
  assert.equal(value.refuse('one'), true);
  const second = value.get();
  fetches[1]!.resolve({ value: 'two', endsAt: undefined });
  await second;
  assert.equal(value.refuse('one'), true, 'a newer one is there');
  assert.equal(value.get(), 'two');
  assert.equal(value.refuse('two'), false);
  assert.equal(value.get(), 'two');
  at(15_000);
  assert.equal(value.refuse('two'), true);
});

test('a value is replaced ahead of its end by one fetch, while the old one is in use', async () => {
  const { value, fetches, at } = refreshed({ aheadMs: 100 });
  const first = Promise.all([value.get(), value.get()]);
  fetches[0]!.resolve({ value: 'one', endsAt: 1_000 });
  assert.deepEqual(await first, ['one', 'one']);
  assert.equal(fetches.length, 1);
  at(899);
  assert.equal(value.get(), 'one');
  assert.equal(fetches.length, 1);
  at(900);
  assert.deepEqual([value.get(), value.get()], ['one', 'one'], 'without a wait');
  assert.equal(fetches.length, 2);
  fetches[1]!.resolve({ value: 'two', endsAt: undefined });
  await new Promise(setImmediate);
  at(1_000_000);
  assert.equal(value.get(), 'two', 'it does not end');
});

test('a failure ahead of the end is not reported, and tried again after a pause; at the end it is reported to all that wait', async () => {
  const { value, fetches, at } = refreshed({ aheadMs: 60_000 });
  const first = value.get();
  fetches[0]!.resolve({ value: 'one', endsAt: 100_000 });
  await first;
  at(50_000);
  assert.equal(value.get(), 'one');
  fetches[1]!.reject(new Error('away'));
  await new Promise(setImmediate);
  assert.equal(value.get(), 'one');
  assert.equal(fetches.length, 2, 'not again at once');
  at(70_000);
  assert.equal(value.get(), 'one');
  assert.equal(fetches.length, 3);
  fetches[2]!.reject(new Error('away'));
  await new Promise(setImmediate);
  at(100_000);
  const waiting = [value.get(), value.get()].map((each) => assert.rejects(Promise.resolve(each), /away for good/));
  assert.equal(fetches.length, 4);
  fetches[3]!.reject(new Error('away for good'));
  await Promise.all(waiting);
  const again = value.get();
  fetches[4]!.resolve({ value: 'two', endsAt: undefined });
  assert.equal(await again, 'two', 'the next call tries again');
});

test('a fetch that does not end is aborted', async () => {
  const { value } = refreshed({ timeoutMs: 20 });
  await assert.rejects(Promise.resolve(value.get()), /took too long/);
});
