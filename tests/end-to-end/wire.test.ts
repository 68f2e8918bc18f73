/** A vendor whose HTTP is broken or unusual, byte by byte: what the client sees and what it pays. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { upstreamAdmin } from '../../plugins/common/domain/admin/upstreams.ts';
import { type Customer, modelAt, type Reply, speaks, startTestbed, type Testbed } from './testbed.ts';

/** What the vendor writes for one request; a number is a pause in milliseconds, `close` ends the connection. */
type Line = Buffer | string | number | 'close';

let testbed: Testbed;
let vendor: Server;
let lines: readonly Line[] = [];
let connections = 0;
let requests = 0;
const sockets = new Set<Socket>();

before(async () => {
  vendor = createServer((socket) => {
    connections++;
    sockets.add(socket);
    let received = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const head = received.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(received.toString('latin1'))?.[1] ?? 0);
      if (head === -1 || received.length < head + 4 + length) return;
      received = received.subarray(head + 4 + length);
      requests++;
      void play(socket, lines);
    });
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  const timeouts = { first_byte: '400ms', idle: '400ms' };
  testbed = await startTestbed({
    providers: () => ({
      raw: { keys: 'raw-key', speaks: speaks(origin), timeouts },
      pair: { keys: 'raw-key', speaks: speaks(origin), timeouts },
    }),
    models: { raw: modelAt('raw'), pair: modelAt('pair', 'sandbox') },
    // Each fault is met once, so that the outcome of this attempt alone is seen.
    more: { server: { answer_limit: '2MB' }, route: { retry_ambiguous: 'never' } },
  });
});
after(async () => {
  await testbed.stop();
  for (const socket of sockets) socket.destroy();
  vendor.close();
});

async function play(socket: Socket, script: readonly Line[]): Promise<void> {
  for (const line of script) {
    if (typeof line === 'number') await pause(line);
    else if (line === 'close') socket.end();
    else socket.write(line);
  }
}

interface Requested {
  readonly reply: Reply;
  readonly customer: Customer;
  /** Which end, and `result` of each attempt. */
  readonly end: string;
  readonly attempts: readonly string[];
}

async function send(script: readonly Line[], stream = false, model = 'raw'): Promise<Requested> {
  lines = script;
  // What an earlier case made of it is forgotten: it is asked first each time.
  testbed.gateway.gateway.find(upstreamAdmin)!.clearCooldown(model);
  const customer = await testbed.customer();
  const reply = await testbed.call(customer, 'chat', { model, prompt: 'Hello', stream });
  const records = await testbed.records(customer);
  return { reply, customer, end: records.ends[0]!, attempts: records.attempts.map(({ result }) => result) };
}

const whole = JSON.stringify({
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
});
const chunk = (content: string) => `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
const stop = 'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const done = 'data: [DONE]\n\n';
const stream = chunk('Hello') + chunk('World') + stop + done;
const head = (headers: string, status = '200 OK') => `HTTP/1.1 ${status}\r\n${headers}\r\n\r\n`;
const json = (body: Buffer | string, more = '') =>
  head(`content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}${more}`);
const eventStream = 'content-type: text/event-stream\r\n';
const chunked = (...parts: (Buffer | string)[]): Buffer =>
  Buffer.concat(
    parts.flatMap((part) => [
      Buffer.from(`${Buffer.byteLength(part).toString(16)}\r\n`),
      typeof part === 'string' ? Buffer.from(part) : part,
      Buffer.from('\r\n'),
    ]),
  );

test('informational answers are skipped', async () => {
  const early = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n';
  const { reply, end } = await send([early, 10, json(whole), whole]);
  assert.deepEqual([reply.status, reply.text, end], [200, whole, 'charged answered']);
});

const beforeAnyAnswer: Record<string, readonly Line[]> = {
  'no HTTP at all': ['HELO vendor\r\n\r\n', 'close'],
  'an upgrade no one asked for': [
    head('connection: upgrade\r\nupgrade: websocket', '101 Switching Protocols'),
    'close',
  ],
  'a length and chunks at once': [
    head('content-type: application/json\r\ncontent-length: 5\r\ntransfer-encoding: chunked'),
    chunked(whole),
    '0\r\n\r\n',
  ],
  'two lengths': [head('content-length: 5\r\ncontent-length: 6'), whole],
  'a header without an end': [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`],
  silence: [],
  'half a head': ['HTTP/1.1 200 OK\r\ncontent-ty', 'close'],
  'a closed connection': ['close'],
};

for (const [what, script] of Object.entries(beforeAnyAnswer)) {
  test(`${what} instead of an answer: 502 or 504, void, unknown, not tried elsewhere`, async () => {
    for (const isStream of [false, true]) {
      const { reply, end, attempts } = await send(script, isStream, 'pair');
      assert.ok(reply.status === 502 || reply.status === 504, `${reply.status} ${reply.text}`);
      assert.equal(reply.headers.get('x-should-retry'), 'true');
      assert.deepEqual([end, attempts], ['free unknown', ['unknown']]);
    }
  });
}

const brokenBodies: Record<string, readonly Line[]> = {
  'is shorter than its length': [head('content-type: application/json\r\ncontent-length: 500'), whole, 'close'],
  stalls: [head('content-type: application/json\r\ncontent-length: 500'), whole],
  'has a chunk whose size is no number': [
    head('content-type: application/json\r\ntransfer-encoding: chunked'),
    'xyz\r\n',
    whole,
    '\r\n0\r\n\r\n',
    'close',
  ],
  'lacks its last chunk': [
    head('content-type: application/json\r\ntransfer-encoding: chunked'),
    chunked(whole.slice(0, 30)),
    'close',
  ],
  'is half of a JSON text': [json(whole.slice(0, 40)), whole.slice(0, 40)],
  'is damaged gzip': [json('no gzip at all', '\r\ncontent-encoding: gzip'), 'no gzip at all'],
  'is encoded in an unknown way': [json(whole, '\r\ncontent-encoding: rot13'), whole],
  'is encoded twice': [json(gzipSync(gzipSync(whole)), '\r\ncontent-encoding: gzip, gzip'), gzipSync(gzipSync(whole))],
  'is larger than allowed': [json('x'.repeat(3_000_000)), 'x'.repeat(3_000_000)],
  'is a gzip bomb': [
    json(gzipSync('x'.repeat(50_000_000)), '\r\ncontent-encoding: gzip'),
    gzipSync('x'.repeat(50_000_000)),
  ],
};

for (const [what, script] of Object.entries(brokenBodies)) {
  test(`a whole answer that ${what}: 502 or 504, void, unknown`, async () => {
    const { reply, end, attempts } = await send(script);
    assert.ok(reply.status === 502 || reply.status === 504, `${reply.status} ${reply.text.slice(0, 200)}`);
    assert.equal(reply.headers.get('x-should-retry'), 'true');
    assert.deepEqual([end, attempts], ['free unknown', ['unknown']]);
  });
}

test('one known content encoding is decoded, whole and streamed', async () => {
  for (const [name, encode] of [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const) {
    const body = encode(whole);
    const { reply, end } = await send([json(body, `\r\ncontent-encoding: ${name}`), body]);
    assert.deepEqual([reply.status, reply.text, reply.headers.get('content-encoding')], [200, whole, null], name);
    assert.equal(end, 'charged answered');
    const frames = encode(stream);
    const streamed = await send(
      [head(`${eventStream}content-encoding: ${name}\r\ntransfer-encoding: chunked`), chunked(frames), '0\r\n\r\n'],
      true,
    );
    assert.deepEqual([streamed.reply.text, streamed.end], [stream, 'charged answered'], name);
  }
});

const cutStreams: Record<string, readonly Line[]> = {
  'a chunk whose size is no number': [
    head(`${eventStream}transfer-encoding: chunked`),
    chunked(chunk('Hello')),
    5,
    'zz\r\n',
  ],
  'a missing last chunk': [head(`${eventStream}transfer-encoding: chunked`), chunked(chunk('Hello')), 5, 'close'],
  'a length that is not reached': [head(`${eventStream}content-length: 90000`), chunk('Hello'), 5, 'close'],
  silence: [head(`${eventStream}transfer-encoding: chunked`), chunked(chunk('Hello'))],
  'truncated gzip': [
    head(`${eventStream}content-encoding: gzip\r\ntransfer-encoding: chunked`),
    chunked(gzipSync(chunk('Hello'.repeat(5_000)) + stream).subarray(0, 60)),
    5,
    'close',
  ],
  'an end in good order without the terminal event': [
    head(`${eventStream}transfer-encoding: chunked`),
    chunked(chunk('Hello')),
    '0\r\n\r\n',
  ],
  'a close that ends a body without length': [head(`${eventStream}connection: close`), chunk('Hello'), 5, 'close'],
};

for (const [what, script] of Object.entries(cutStreams)) {
  test(`a stream cut by ${what} ends with its protocol's error and never [DONE], and the received part is settled`, async () => {
    const { reply, end, customer, attempts } = await send(script, true);
    if (reply.status === 200) {
      assert.match(reply.text, /^data: \{"error":/m);
      assert.doesNotMatch(reply.text, /\[DONE\]/);
      assert.equal(reply.broken, false);
      assert.deepEqual([end, attempts], ['charged cut', ['answered']]);
      const { charges } = await testbed.records(customer);
      assert.ok(charges[0]!.estimated && !charges[0]!.terminal);
    } else {
      // Nothing could be read of it, so nothing had reached the client.
      assert.equal(what, 'truncated gzip');
      assert.deepEqual([reply.status, end, attempts], [502, 'free unknown', ['unknown']]);
    }
  });
}

const unusualStreams: Record<string, string> = {
  'a byte order mark': `\ufeff${stream}`,
  CRLF: stream.replaceAll('\n', '\r\n'),
  CR: stream.replaceAll('\n', '\r'),
  'comments between frames': `: hi\n\n${stream.replaceAll('\n\n', '\n\n: ping\n\n')}`,
  'no blank line at its end': stream.trimEnd(),
  'an event of a megabyte': chunk('x'.repeat(1_000_000)) + stream,
};

for (const [what, body] of Object.entries(unusualStreams)) {
  test(`a stream with ${what} is relayed and settled, in any chunks`, async () => {
    const bytes = Buffer.from(body);
    const size = bytes.length > 100_000 ? 40_000 : 7;
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      chunked(bytes.subarray(at * size, (at + 1) * size)),
    );
    const { reply, end } = await send([head(`${eventStream}transfer-encoding: chunked`), ...parts, '0\r\n\r\n'], true);
    assert.equal(end, 'charged answered', reply.text.slice(-300));
    const until = (text: string) => text.slice(0, text.indexOf('[DONE]'));
    assert.equal(until(reply.text).replace(/^\ufeff/, ''), until(body).replace(/^\ufeff/, ''));
  });
}

test('bytes after an answer never become the answer of the next request', async () => {
  const poison = whole.replace('Hi', 'Stolen');
  const before = connections;
  const first = await send([json(whole), whole, 20, json(poison), poison]);
  assert.equal(first.reply.text, whole);
  await pause(60);
  for (let round = 0; round < 3; round++) {
    const next = await send([json(whole), whole]);
    assert.deepEqual([next.reply.status, next.reply.text], [200, whole]);
  }
  const together = await send([json(whole) + whole + json(poison) + poison]);
  assert.ok(together.reply.text === whole || together.reply.status === 502);
  const next = await send([json(whole), whole]);
  assert.deepEqual([next.reply.status, next.reply.text], [200, whole]);
  assert.ok(connections > before + 1, 'the poisoned socket was used again');
});

test('a socket that the vendor closes between two requests is no failure', async () => {
  for (let round = 0; round < 5; round++) {
    const { reply } = await send([json(whole), whole, 'close']);
    assert.equal(reply.status, 200);
    await pause(20);
  }
});

test('the ledger passes its audit at the end', async () => {
  assert.ok(requests > 0);
  await testbed.audit();
  assert.equal(testbed.gateway.gateway.inFlight, 0);
});
