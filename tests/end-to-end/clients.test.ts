/** Clients that dawdle, leave, pipeline or wait, and what becomes of their calls and their money. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { watchDelay } from '../helpers/delay.ts';
import { dialectNames, dialects, type Question } from './dialects.ts';
import { type Customer, readReply, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    offers: {
      single: { price: 0, limits: { concurrency: 1 } },
    },
    more: { server: { timeout: '2500ms', stall_timeout: '1s', idle_frame: '500ms', request_timeout: '1s' } },
  });
});
after(() => testbed.stop());

/** One request as it stands on the wire. */
function written(customer: Customer, question: Question, more = ''): string {
  const body = JSON.stringify(dialects.chat.body(question));
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${customer.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;
}

function dial(): Socket {
  const socket = connect(Number(new URL(testbed.origin).port), '127.0.0.1');
  socket.on('error', () => {});
  return socket;
}

/** Collects what comes. */
function listen(socket: Socket): { text: string } {
  const heard = { text: '' };
  socket.on('data', (chunk) => {
    heard.text += chunk;
  });
  return heard;
}

const ids = (text: string) => text.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0;

test('a client that disconnects during the look-up of its key leaves nothing in flight', async () => {
  for (const cut of [0, 10]) {
    const customers = await Promise.all(Array.from({ length: 10 }, () => testbed.customer()));
    for (const customer of customers) {
      const text = written(customer, { model: 'sandbox', prompt: 'Hello' });
      dial().end(text.slice(0, text.length - cut));
    }
    await pause(50);
    await until('all are gone', () => testbed.gateway.gateway.inFlight === 0);
  }
});

test('a client that disconnects or stalls in the middle of its body holds no money and no slot', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const whole = written(customer, { model: 'sandbox', prompt: 'Hello' });
  for (let round = 0; round < 5; round++) {
    const socket = dial();
    socket.write(whole.slice(0, -10));
    await until('it is in flight', () => testbed.gateway.gateway.inFlight > 0);
    socket.destroy();
    await until('it is gone', () => testbed.gateway.gateway.inFlight === 0);
  }
  const socket = dial();
  const heard = listen(socket);
  socket.write(whole.slice(0, -10));
  await once(socket, 'close');
  assert.match(heard.text, /^HTTP\/1\.1 408 /);
  await until('it is gone', () => testbed.gateway.gateway.inFlight === 0);
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Hello' })).status, 200);
  assert.equal((await testbed.records(customer, 1)).ends.length, 1);
});

test('concurrent requests on one connection are answered in their order, each with its own charge', async () => {
  const customer = await testbed.customer();
  const socket = dial();
  const heard = listen(socket);
  const prompts = ['[[sandbox: delay=150ms]] First', 'Second', '[[sandbox: delay=50ms]] Third'];
  socket.write(prompts.map((prompt) => written(customer, { model: 'sandbox', prompt })).join(''));
  await until('three answers came', () => ids(heard.text) === 3 && heard.text.includes('Third'));
  const order = ['First', 'Second', 'Third'].map((word) => heard.text.indexOf(word));
  assert.deepEqual(
    [...order].sort((one, other) => one - other),
    order,
  );
  socket.destroy();
  assert.deepEqual(new Set((await testbed.records(customer, 3)).ends), new Set(['charged answered']));
});

test('a client that sends Expect: 100-continue may send its body', async () => {
  const customer = await testbed.customer();
  const socket = dial();
  const heard = listen(socket);
  const text = written(customer, { model: 'sandbox', prompt: 'Hello' }, 'expect: 100-continue\r\n');
  const at = text.indexOf('\r\n\r\n') + 4;
  socket.write(text.slice(0, at));
  await until('it may go on', () => heard.text.startsWith('HTTP/1.1 100'));
  socket.write(text.slice(at));
  await until('the answer came', () => ids(heard.text) === 1);
  socket.destroy();
  await testbed.records(customer, 1);
});

for (const name of dialectNames) {
  test(`the vendor sees a disconnection within 100 ms, the client pays for the received part, and its slot is free (${name})`, async () => {
    for (const when of ['before the head', 'in mid-stream'] as const) {
      const customer = await testbed.customer({ plan: 'single' });
      const { open } = testbed.sandbox.bill();
      const prompt = when === 'before the head' ? '[[sandbox: delay=9s]]' : '[[sandbox: chunk_delay=10ms tokens=2000]]';
      const leaving = new AbortController();
      const pending = testbed.call(
        customer,
        name,
        { model: 'sandbox', prompt, stream: true },
        { signal: leaving.signal },
      );
      pending.catch(() => {});
      await until('the vendor has the request', () => testbed.sandbox.bill().open > open);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const watch = watchDelay();
      const leftAt = Date.now();
      leaving.abort();
      await until('the vendor is free again', () => testbed.sandbox.bill().open === open);
      const knewAfterMs = Date.now() - leftAt;
      assert.ok(knewAfterMs <= watch.allowedMs(150), `${when}: the vendor knew after ${knewAfterMs} ms`);
      const records = await testbed.records(customer);
      assert.deepEqual(records.ends, ['charged client_left'], when);
      const [row] = records.charges;
      const reported = name === 'gemini' && when === 'in mid-stream';
      assert.deepEqual([row!.estimated, row!.terminal], [!reported, false], when);
      assert.ok(row!.classes.input! > 0);
      if (when === 'in mid-stream') assert.ok(row!.classes.output! > 0 && row!.classes.output! < 500);
      const next = await testbed.call(customer, name, { model: 'sandbox', prompt: 'Again' });
      assert.equal(next.status, 200, `${when}: ${next.text}`);
    }
  });
}

// A client that ends its side is seldom waiting: nearly always its process is gone, and the next write would tell.
test('a client that closes its side of the connection is disconnected', async () => {
  const customer = await testbed.customer();
  const open = testbed.sandbox.bill().open;
  const socket = connect({ port: Number(new URL(testbed.origin).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.write(written(customer, { model: 'sandbox', prompt: '[[sandbox: delay=30s]] Hello' }));
  await until('the vendor works', () => testbed.sandbox.bill().open > open);
  socket.end();
  await until('the vendor is free again', () => testbed.sandbox.bill().open === open);
  assert.deepEqual((await testbed.records(customer, 1)).ends, ['charged client_left']);
  socket.destroy();
});

test('a client that reads nothing is disconnected, and the generated part is settled', async () => {
  const customer = await testbed.customer({ plan: 'single', nanoUsd: 10n ** 12n });
  const open = testbed.sandbox.bill().open;
  const socket = dial();
  socket.pause();
  socket.write(written(customer, { model: 'sandbox', prompt: '[[sandbox: tokens=30000]]', stream: true }));
  await until('the vendor works', () => testbed.sandbox.bill().open > open || testbed.gateway.gateway.inFlight > 0);
  await until('it is given up', () => testbed.gateway.gateway.inFlight === 0);
  const records = await testbed.records(customer, 1);
  assert.match(records.ends[0]!, /^charged (?:client_left|answered|cut)$/);
  assert.ok(records.charges[0]!.cost > 0n);
  socket.destroy();
  assert.equal((await testbed.call(customer, 'chat', { model: 'sandbox', prompt: 'Hello' })).status, 200);
});

// Each waits for the deadline.
describe('a vendor that is silent until the deadline', { concurrency: true }, () => {
  for (const dialect of dialectNames) {
    test(`in mid-stream: frames that clients skip fill the time, then the stream ends with its protocol's end (${dialect})`, async () => {
      const customer = await testbed.customer();
      const prompt = '[[sandbox: chunks=8 stall=3]]';
      const answer = await testbed.call(customer, dialect, { model: 'sandbox', prompt, stream: true });
      assert.equal(answer.status, 200);
      // Google's clients end at a comment: they skip empty lines.
      assert.match(answer.text, dialect === 'gemini' ? /(?:\r?\n){4}/ : /^:/m);
      assert.match(answer.text, dialects[dialect].streamError);
      assert.doesNotMatch(answer.text, dialects[dialect].terminal);
      assert.equal(answer.broken, false);
      const records = await testbed.records(customer);
      assert.deepEqual(records.ends, ['charged cut']);
      assert.ok(records.charges[0]!.classes.output! > 0);
    });

    test(`before its head: a 504 without a charge (${dialect})`, async () => {
      const customer = await testbed.customer();
      const answer = await testbed.call(customer, dialect, { model: 'sandbox', prompt: '[[sandbox: delay=9s]]' });
      assert.equal(answer.status, 504, answer.text);
      assert.equal(answer.headers.get('x-should-retry'), 'false');
      assert.ok(dialects[dialect].errorType(JSON.parse(answer.text)));
      assert.deepEqual((await testbed.records(customer)).ends, ['free unknown']);
    });
  }
});

test("streams of generate-content without events end with their protocol's end too", async () => {
  const customer = await testbed.customer();
  const send = async (path: string, order: string, more: object = {}) => {
    const body = { contents: [{ role: 'user', parts: [{ text: `[[sandbox: ${order}]]` }] }], ...more };
    const headers = { ...dialects.gemini.key(customer.key), 'content-type': 'application/json' };
    return readReply(await fetch(testbed.origin + path, { method: 'POST', headers, body: JSON.stringify(body) }));
  };
  const path = '/v1beta/models/sandbox:streamGenerateContent';
  for (const [at, more] of [
    [path, {}],
    ['/v1beta/models/sandbox:generateContent', { stream: true }],
  ] as const) {
    const good = await send(at, 'chunks=5', more);
    const objects = good.text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line.replace(/^data: /, '')));
    assert.ok(objects.length >= 5);
    const finish = objects.at(-1).candidates[0];
    assert.equal(finish.finishReason ?? finish.finish_reason, 'STOP');
    for (const order of ['chunks=8 mid_error', 'chunks=8 chunk_delay=5ms cut_after=3', 'chunks=8 no_terminal']) {
      const bad = await send(at, order, more);
      assert.equal(bad.status, 200);
      const last = bad.text.trim().split('\n').at(-1)!;
      assert.ok(JSON.parse(last.replace(/^data: /, '')).error, `${order}: ${last}`);
      assert.doesNotMatch(bad.text, /finish_?[rR]eason":\s?"STOP/);
    }
  }
  const records = await testbed.records(customer, 8);
  assert.equal(records.ends.filter((end) => end === 'charged cut').length, 6);
});

test('the ledger passes its audit and nothing is left in flight', async () => {
  await until(
    'nothing is in flight',
    () => testbed.gateway.gateway.inFlight === 0 && testbed.sandbox.bill().open === 0,
  );
  await testbed.audit();
});
