/** What is refused before the body is read: accounts that can pay nothing, and calls beyond the slots; and what is not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { pool } from '../../plugins/common/domain/ledger.ts';
import { type DialectName, dialectNames, dialects } from './dialects.ts';
import { type Customer, startTestbed, type Testbed, until } from './testbed.ts';

let testbed: Testbed;
const sockets = new Set<Socket>();
before(async () => {
  testbed = await startTestbed({
    offers: { single: { price: 0, limits: { concurrency: 1 } }, open: { price: 0, limits: {} } },
  });
});
after(async () => {
  for (const socket of sockets) socket.destroy();
  await testbed.stop();
});

const hello = { model: 'sandbox', prompt: 'Hello' };

/** Heads whose bodies may cost much; of none of them a byte of the body is sent. */
const costly: Record<string, string> = {
  large: 'content-length: 20000000',
  chunked: 'transfer-encoding: chunked',
  'small but packed': 'content-length: 500\r\ncontent-encoding: gzip',
  'large, with 100-continue': 'content-length: 20000000\r\nexpect: 100-continue',
};

const paths: Record<DialectName, string> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/sandbox:generateContent',
};

function open(customer: Customer, dialect: DialectName, head: string, path = paths[dialect]): Socket {
  const socket = connect(Number(new URL(testbed.origin).port), '127.0.0.1');
  sockets.add(socket);
  socket.on('error', () => {});
  const key = Object.entries(dialects[dialect].key(customer.key)).map(([name, value]) => `${name}: ${value}`);
  const lines = [`POST ${path} HTTP/1.1`, 'host: a', 'content-type: application/json', ...key, head];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

/** The first status that comes; undefined: none within the time. */
async function statusOf(socket: Socket, withinMs = 60_000): Promise<number | undefined> {
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  for (const end = Date.now() + withinMs; Date.now() < end && !socket.destroyed && !/^HTTP\/1\.1 \d{3}/m.test(text); )
    await pause(10);
  return /^HTTP\/1\.1 (\d{3})/.exec(text) === null ? undefined : Number(/^HTTP\/1\.1 (\d{3})/.exec(text)![1]);
}

for (const dialect of dialectNames) {
  test(`an account without money is refused before a body that may cost much is read (${dialect})`, async () => {
    const poor = await testbed.customer({ nanoUsd: 0n });
    for (const [name, head] of Object.entries(costly))
      assert.equal(await statusOf(open(poor, dialect, head)), 402, name);
    const rich = await testbed.customer();
    const waiting = open(rich, dialect, costly['large']!);
    assert.equal(await statusOf(waiting, 300), undefined, 'a body that can be paid is waited for');
    waiting.destroy();
  });

  test(`a call beyond the slots of the plan is refused before its body is read (${dialect})`, async () => {
    const customer = await testbed.customer({ plan: 'single' });
    for (const [name, head] of Object.entries(costly)) {
      if (name.includes('100')) continue;
      // Either may be read first: the one slot is that of the other.
      const both = [open(customer, dialect, head), open(customer, dialect, costly['large']!)];
      const refused = await Promise.race(both.map(async (socket) => ({ socket, status: await statusOf(socket) })));
      assert.equal(refused.status, 429, name);
      assert.equal((await testbed.call(customer, dialect, hello)).status, 429, 'small ones count the same slots');
      const kept = both.find((socket) => socket !== refused.socket)!;
      assert.equal(kept.bytesRead, 0, `${name}: its body is waited for`);
      for (const socket of both) socket.destroy();
      await once(kept, 'close');
      await until('the slot is free', async () => (await testbed.call(customer, dialect, hello)).status === 200);
      await until('its slot is free too', () => testbed.gateway.gateway.inFlight === 0);
    }
  });
}

test('counting tokens is free, and its body is read without money', async () => {
  const poor = await testbed.customer({ nanoUsd: 0n });
  const counting: [DialectName, string][] = [
    ['messages', '/v1/messages/count_tokens'],
    ['responses', '/v1/responses/input_tokens'],
    ['gemini', '/v1beta/models/sandbox:countTokens'],
  ];
  for (const [dialect, path] of counting) {
    const socket = open(poor, dialect, costly['large']!, path);
    assert.equal(await statusOf(socket, 300), undefined, path);
    socket.destroy();
  }
});

test('a small body is read before the balance is checked, so that its faults are reported first', async () => {
  const poor = await testbed.customer({ nanoUsd: 0n });
  const answer = await testbed.call(poor, 'chat', hello, {
    body: '{"model":"unknown","messages":[{"role":"user","content":"x"}]}',
  });
  assert.equal(answer.status, 404);
  assert.equal((await testbed.call(poor, 'chat', hello)).status, 402);
});

test('large and compressed bodies of an account with money are answered and charged as usual', async () => {
  const customer = await testbed.customer({ plan: 'single' });
  const body = JSON.stringify({
    model: 'sandbox',
    messages: [{ role: 'user', content: `Hello ${'word '.repeat(40_000)}` }],
  });
  assert.equal((await testbed.call(customer, 'chat', hello, { body })).status, 200);
  await until('its slot is free', () => testbed.gateway.gateway.inFlight === 0);
  const packed = await fetch(`${testbed.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...dialects.chat.key(customer.key), 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: new Uint8Array(gzipSync(body)),
  });
  assert.equal(packed.status, 200, await packed.text());
  assert.equal((await testbed.records(customer, 2)).ends.length, 2);
});

test('a repetition with an Idempotency-Key is answered again, also without money', async () => {
  const customer = await testbed.customer();
  const body = JSON.stringify({
    model: 'sandbox',
    messages: [{ role: 'user', content: `Hello ${'word '.repeat(40_000)}` }],
  });
  const headers = {
    ...dialects.chat.key(customer.key),
    'content-type': 'application/json',
    'idempotency-key': 'again',
  };
  const send = () => fetch(`${testbed.origin}/v1/chat/completions`, { method: 'POST', headers, body });
  const first = await send();
  const reply = await first.text();
  assert.equal(first.status, 200, reply);
  await testbed.records(customer, 1);
  const rest = await testbed.balance(customer);
  await testbed.gateway.gateway.find(pool)!.debit(customer.accountId, rest, { reason: 'test', reference: 'all of it' });
  const again = await send();
  assert.equal(again.status, 200);
  assert.equal(await again.text(), reply);
});

test('the ledger passes its audit at the end', () => testbed.audit());
