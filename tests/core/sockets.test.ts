/** WebSocket addresses of plugins over real sockets: acceptance, refusal and shutdown. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';

const plugin = `
import { WebSocketServer } from 'ws';
import { z } from 'zod';
const sockets = new WebSocketServer({ noServer: true });
export default {
  name: 'live',
  config: z.strictObject({}),
  setup: () => ({
    addresses: { sockets: [
      { path: '/live', accept: (request, socket, head) => sockets.handleUpgrade(request, socket, head, (client) => {
        client.on('message', (text) => client.send(request.url + ' ' + text));
      }) },
      { path: '/broken', accept: () => { throw new Error('no room'); } },
      { path: '/raw', accept: (_request, socket) => void socket.write('in') },
      { path: '/ended', accept: (_request, socket) => void socket.end('bye') },
    ] },
  }),
};`;
let directory: string;
let gateway: TestGateway;

before(async () => {
  directory = await mkdtemp(join(process.cwd(), 'tests/core/.sockets-'));
  await writeFile(join(directory, 'live.ts'), plugin);
  gateway = await start();
});

after(async () => {
  await gateway.stop();
  await rm(directory, { recursive: true, force: true });
});

function start(server = 'sockets: 3', drain = 'grace: 50ms, deadline: 1s'): Promise<TestGateway> {
  return startGateway(
    `gateway: test\nlisten: 127.0.0.1:0\nplugins: [${directory}/live.ts]\nserver: { ${server}, drain: { ${drain} } }\n`,
  );
}

const address = (path: string, { origin } = gateway) => origin.replace('http', 'ws') + path;

async function spoken(client: WebSocket, text: string): Promise<string> {
  if (client.readyState !== WebSocket.OPEN) await once(client, 'open');
  client.send(text);
  const [answer] = (await once(client, 'message')) as [Buffer];
  return String(answer);
}

/** The status that an upgrade was refused with. */
async function refused(path: string, options: { headers?: Record<string, string> } = {}): Promise<number> {
  const client = new WebSocket(address(path), options);
  client.on('error', () => {});
  const [, answer] = (await once(client, 'unexpected-response')) as [unknown, { statusCode: number }];
  return answer.statusCode;
}

/** A socket that asks for `/raw` and stays half open. */
async function stubborn(
  { origin } = gateway,
  head = 'Host: a\r\n',
  path = '/raw',
): Promise<{ socket: Socket; answer: string }> {
  const socket = connect({ port: Number(new URL(origin).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return { socket, answer: String(answer) };
}

async function settled(count: number, { gateway: running } = gateway): Promise<void> {
  for (let tries = 0; running.inFlight !== count && tries < 3_000; tries++) await pause(20);
  assert.equal(running.inFlight, count);
}

test('the exact path opens a socket to its plugin, and the socket counts as in flight', async () => {
  const client = new WebSocket(address('/live?topic=a'));
  assert.equal(await spoken(client, 'hello'), '/live?topic=a hello');
  assert.equal(gateway.gateway.inFlight, 1);
  client.close();
  await settled(0);
});

test('another path is refused with 426, and a client that does not hang up is disconnected', async () => {
  for (const path of ['/', '/live/', '/Live', '/live/more', '/v1/responses']) assert.equal(await refused(path), 426);
  const socket = connect({ port: Number(new URL(gateway.origin).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  socket.resume();
  socket.write('GET /other HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  const gone = new Promise<void>((resolve) => void socket.on('close', () => resolve()));
  await once(socket, 'end');
  const writing = setInterval(() => void socket.write('x'), 200);
  await gone.finally(() => clearInterval(writing));
});

test('a head that would be refused in a request is refused in an upgrade', async () => {
  const { socket, answer } = await stubborn(gateway, 'Host: a\r\nHost: b\r\n');
  assert.match(answer, /^HTTP\/1\.1 400 /);
  socket.destroy();
});

test('an error in accept closes the socket and is logged', async () => {
  const client = new WebSocket(address('/broken'));
  const [error] = (await once(client, 'error')) as [Error];
  assert.match(error.message, /hang up|ECONNRESET/);
  assert(
    gateway.lines.some((line) => line.includes('the socket failed inside the gateway') && line.includes('no room')),
  );
  await settled(0);
});

test('no more sockets than configured are open at once', async () => {
  const clients = [1, 2, 3].map(() => new WebSocket(address('/live')));
  await Promise.all(clients.map((client) => spoken(client, 'in')));
  assert.equal(await refused('/live'), 503);
  clients[0]!.close();
  await settled(2);
  const next = new WebSocket(address('/live'));
  assert.equal(await spoken(next, 'in'), '/live in');
  for (const client of [...clients, next]) client.terminate();
  await settled(0);
});

test('a socket that its plugin has ended is released, whether its client hangs up or not', async () => {
  const { socket } = await stubborn(gateway, undefined, '/ended');
  assert.equal(gateway.gateway.inFlight, 1);
  for (let tries = 0; gateway.gateway.inFlight > 0 && tries < 600; tries++) await pause(100);
  assert.equal(gateway.gateway.inFlight, 0);
  socket.destroy();
});

test('drain: new sockets are refused, open ones are ended after the grace time', async () => {
  // Long enough to come late in, however busy the machine is.
  const stopping = await start('sockets: 3', 'grace: 1s, deadline: 5s');
  const client = new WebSocket(address('/live', stopping));
  await spoken(client, 'in');
  const gone = once(client, 'close');
  const stopped = stopping.gateway.stop();
  const late = new WebSocket(address('/live', stopping));
  late.on('error', () => {});
  const [, answer] = (await once(late, 'unexpected-response')) as [unknown, { statusCode: number }];
  assert.equal(answer.statusCode, 503);
  assert.equal(client.readyState, WebSocket.OPEN, 'still within the grace time');
  await gone;
  await stopped;
  await stopping.stop();
});

test('drain: a socket that the peer keeps open is destroyed at the deadline', async () => {
  const stopping = await start();
  const { socket } = await stubborn(stopping);
  const startedAt = performance.now();
  await stopping.gateway.stop(300);
  const tookMs = performance.now() - startedAt;
  assert(tookMs >= 290 && tookMs < 20_000, `${tookMs} ms`);
  socket.destroy();
  await stopping.stop();
});
