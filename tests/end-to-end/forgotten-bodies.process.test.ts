/** A request's body is in memory until its answer begins, as its budget says, however long the answer then takes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { talk } from './sockets.ts';
import { type Customer, modelAt, startTestbed, type Testbed, until } from './testbed.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const bodyBytes = 3_000_000;
const streams = 6;
/** What a silent stream may hold beside its body; some of it is the client's, which is in this process too. */
const keptBytes = 300_000;

const event = JSON.stringify({
  ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'silent' },
  choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }],
});
/** Reads what it is sent, tells one event and says nothing more. */
const vendor = createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => {
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    outgoing.write(`data: ${event}\n\n`);
  });
});

let testbed: Testbed;
let customer: Customer;
const sockets: Socket[] = [];
before(async () => {
  vendor.listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  testbed = await startTestbed({
    providers: () => ({ silent: { keys: 'k', speaks: { chat: `${origin}/v1` } } }),
    models: { silent: { ...modelAt('silent'), context: '10M' } },
  });
  customer = await testbed.customer({ nanoUsd: 10n ** 15n });
});
after(async () => {
  for (const socket of sockets) socket.destroy();
  await pause(200);
  vendor.closeAllConnections();
  vendor.close();
  await testbed.stop();
});

const text = 'a word '.repeat(bodyBytes / 7);
const more = { model: 'silent', stream: true };
const requests: Record<string, { path: string; body: object }> = {
  chat: { path: '/v1/chat/completions', body: { ...more, messages: [{ role: 'user', content: text }] } },
  messages: { path: '/v1/messages', body: { ...more, max_tokens: 9, messages: [{ role: 'user', content: text }] } },
  responses: { path: '/v1/responses', body: { ...more, store: false, input: text } },
  'responses that are too large to be stored': { path: '/v1/responses', body: { ...more, input: text + text } },
  gemini: {
    path: '/v1beta/models/silent:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text }] }] },
  },
};

/** Resolves when the first event has come. */
async function open(path: string, body: Buffer): Promise<void> {
  const { port, hostname } = new URL(testbed.origin);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${customer.key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  let answer = '';
  while (!answer.includes('data:')) {
    answer += String((await once(socket, 'data'))[0]);
    assert.match(answer, /^HTTP\/1.1 200/);
  }
}

/** The least of some measurements: a thread of V8's gives buffers back after a collection, late on a busy machine. */
async function usedBytes(isEnough: (bytes: number, round: number) => boolean): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 1; round <= 25; round++) {
    await pause(200);
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    least = Math.min(least, heapUsed + arrayBuffers);
    if (isEnough(least, round)) break;
  }
  return least;
}

/** Bytes that each of `streams` further calls of `open` holds; waits for less than `atMost` of them. */
async function heldBytes(open: () => Promise<unknown>, atMost: number): Promise<number> {
  await open();
  const before = await usedBytes((_, round) => round === 3);
  for (let count = 0; count < streams; count++) await open();
  const now = await usedBytes((bytes) => bytes < before + streams * atMost);
  return (now - before) / streams;
}

for (const [protocol, { path, body }] of Object.entries(requests))
  test(`silent streams keep almost nothing of their large requests: ${protocol}`, async () => {
    const bytes = Buffer.from(JSON.stringify(body));
    const each = await heldBytes(() => open(path, bytes), keptBytes);
    assert.ok(each < keptBytes, `${Math.round(each / 1000)} kB for each of ${streams} streams`);
  });

test('a turn over WebSocket holds its conversation in memory once, and the next turn may continue it', async () => {
  const clients: Awaited<ReturnType<typeof talk>>[] = [];
  const begin = async () => {
    const client = await talk(testbed.origin, customer.key);
    client.send({ type: 'response.create', model: 'silent', store: false, input: text });
    await until('the turn has begun', () =>
      client.messages.some(({ type }: { type: string }) => type === 'response.output_text.delta'),
    );
    clients.push(client);
  };
  const each = await heldBytes(begin, bodyBytes + keptBytes);
  await Promise.all(clients.map((client) => client.close()));
  assert.ok(each < bodyBytes + keptBytes, `${Math.round(each / 1000)} kB for each of ${streams} turns`);
});
