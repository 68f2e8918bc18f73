/** What comes before the first byte of an upstream's request: a connection, and then the `beforeFirstByte` hooks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

/** A plugin that forwards, and tells of its hooks: `steps` are what has happened, `gate` is what the hook waits for. */
const plugin = `
import { z } from 'zod';
import { defineContextKey, upstreamRequest } from '../../../core/contract/contract.ts';
const opened = defineContextKey('opened by sends');
export default {
  name: 'sends',
  retries: true,
  config: z.strictObject({ url: z.string() }),
  requires: [opened],
  sets: [upstreamRequest],
  setup: (host, { url }) => ({
    endpoints: [{ method: 'POST', path: '/send', operation: 'send', setsOnOpen: [opened],
      open: (exchange) => exchange.set(opened, true) }],
    handle(exchange, next) {
      const world = globalThis.firstByteTest;
      exchange.beforeSend((sending) => { world.steps.push('attempt'); sending.get(upstreamRequest).headers['x-late'] = 'reported'; });
      exchange.beforeFirstByte(async () => { world.steps.push('first byte'); await world.gate(); });
      exchange.signal.addEventListener('abort', () => world.steps.push('aborted'));
      exchange.set(upstreamRequest, { url: world.url ?? url, method: 'POST', headers: {}, body: world.parts ?? exchange.request.body, credential: 'k',
        stream: false, connectTimeoutMs: 300, firstByteTimeoutMs: 5000, idleTimeoutMs: 5000, drain: { longestMs: 5000, maxBytes: 5000 } });
      return world.twice ? next().then(() => next()) : next();
    },
  }),
};`;

interface World {
  steps: string[];
  gate: () => Promise<void> | void;
  url: string | undefined;
  parts: readonly Uint8Array[] | undefined;
  /** Whatever the first attempt's answer is, another one is made. */
  twice: boolean;
}
const world: World = { steps: [], gate: () => {}, url: undefined, parts: undefined, twice: false };
(globalThis as unknown as { firstByteTest: World }).firstByteTest = world;

let directory: string;
let gateway: TestGateway;
let vendor: Server;
let origin: string;
const sockets = new Set<Socket>();
let received = '';

before(async () => {
  vendor = createServer((socket) => {
    sockets.add(socket);
    world.steps.push('connected');
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let text = '';
    socket.on('data', (chunk) => {
      if (text === '') world.steps.push('bytes');
      text += chunk.toString('latin1');
      if (!text.endsWith('!')) return;
      received = text;
      text = '';
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  directory = await mkdtemp(join(process.cwd(), 'tests/core/.first-byte-'));
  await writeFile(join(directory, 'sends.ts'), plugin);
  gateway = await startGateway(
    `gateway: test\nlisten: 127.0.0.1:0\nplugins: [${directory}/sends.ts]\nsends: { url: "${origin}/a" }\nserver: { drain: { grace: 10ms, deadline: 100ms } }\n`,
  );
});

after(async () => {
  await gateway.stop();
  for (const socket of sockets) socket.destroy();
  vendor.close();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  for (const socket of sockets) socket.destroy();
  while (sockets.size > 0) await pause(5);
  await pause(20);
  Object.assign(world, { steps: [], gate: () => {}, url: undefined, parts: undefined, twice: false });
  received = '';
});

const send = (body = 'hello!') => fetch(`${gateway.origin}/send`, { method: 'POST', body });

test('on a new connection the hooks run after it is open and before the first byte', async () => {
  let open!: () => void;
  world.gate = () => new Promise<void>((resolve) => (open = resolve));
  const answer = send();
  while (!world.steps.includes('first byte')) await pause(5);
  await pause(50);
  assert.deepEqual(world.steps.toSorted(), ['attempt', 'connected', 'first byte'], 'nothing is written while it waits');
  open();
  assert.equal((await answer).status, 200);
  assert.equal(world.steps.at(-1), 'bytes');
  assert.match(received, /\r\nx-late: reported\r\n/);
  assert.match(received, /\r\ncontent-length: 6\r\n/);
  assert.match(received, /\r\n\r\nhello!$/);
});

test('on a reused connection the hooks run before the first byte, and no other connection is made', async () => {
  await (await send()).text();
  await pause(20);
  world.steps = [];
  for (let count = 0; count < 3; count++) {
    await (await send()).text();
    await pause(20);
  }
  const each = ['attempt', 'first byte', 'bytes'];
  assert.deepEqual(world.steps, [...each, ...each, ...each]);
  assert.equal(sockets.size, 1);
});

test('hooks do not run where no connection is made', async () => {
  for (const url of ['http://127.0.0.1:1/a', 'http://name.invalid/a']) {
    world.steps = [];
    world.url = url;
    assert.equal((await send()).status, 502);
    assert.deepEqual(world.steps, ['attempt'], url);
  }
});

test('the refusal of a hook is the answer, nothing is sent, and the connection is free again', async () => {
  const refusal = () => Promise.reject(Object.assign(new Error('no'), { name: 'refusal' }));
  for (const isNew of [true, false]) {
    if (!isNew) await (await send()).text();
    await pause(20);
    received = '';
    world.gate = refusal;
    for (let count = 0; count < 3; count++) assert.equal((await send()).status, 500, `new: ${isNew}`);
    assert.equal(received, '');
    world.gate = () => {};
    assert.equal((await send()).status, 200);
  }
});

test('when a client disconnects during a hook, nothing is sent', async () => {
  const leaving = new AbortController();
  let open!: () => void;
  world.gate = () => new Promise<void>((resolve) => (open = resolve));
  const answer = fetch(`${gateway.origin}/send`, { method: 'POST', body: 'gone!', signal: leaving.signal });
  answer.catch(() => {});
  while (!world.steps.includes('first byte')) await pause(5);
  leaving.abort();
  await pause(50);
  open();
  await pause(50);
  assert.ok(!world.steps.includes('bytes'));
  world.gate = () => {};
  assert.equal((await send()).status, 200);
});

test('when a client disconnects during the hook of a second attempt, the call ends, whatever the first one sent', async () => {
  const leaving = new AbortController();
  world.twice = true;
  world.gate = () =>
    world.steps.filter((step) => step === 'first byte').length === 2 ? new Promise<void>(() => {}) : undefined;
  const answer = fetch(`${gateway.origin}/send`, { method: 'POST', body: 'twice!', signal: leaving.signal });
  answer.catch(() => {});
  while (world.steps.at(-1) !== 'first byte' || !world.steps.includes('bytes')) await pause(5);
  leaving.abort();
  for (let waits = 0; waits < 200 && !world.steps.includes('aborted'); waits++) await pause(5);
  assert.equal(world.steps.at(-1), 'aborted');
  assert.equal(world.steps.filter((step) => step === 'bytes').length, 1);
});

test('an empty body and a long one arrive whole over a new connection', async () => {
  const long = `${'x'.repeat(3_000_000)}!`;
  assert.equal((await send(long)).status, 200);
  assert.ok(received.endsWith(long));
  assert.match(received, /content-length: 3000001\r\n/);
});

test('a body in parts arrives as one body with its length, over a new and an open connection', async () => {
  world.parts = ['one, ', 'two, ', 'x'.repeat(1_000_000), '!'].map((text) => Buffer.from(text));
  for (const isNew of [true, false]) {
    received = '';
    assert.equal((await send()).status, 200, `new: ${isNew}`);
    assert.match(received, /content-length: 1000011\r\n/);
    assert.ok(received.endsWith(`\r\n\r\none, two, ${'x'.repeat(1_000_000)}!`));
    await pause(20);
  }
  assert.equal(sockets.size, 1);
});
