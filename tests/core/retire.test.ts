/** A retiring gateway: it breaks no connection, and answers further requests with `connection: close`. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

let vendor: Server;
before(async () => {
  vendor = createServer(async (request, response) => {
    response.write('first');
    if (request.url === '/slow') await pause(400);
    response.end('last');
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
});
after(() => vendor.close());

function start(): Promise<TestGateway> {
  const { port } = vendor.address() as AddressInfo;
  return startGateway(
    `gateway: retiring\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "http://127.0.0.1:${port}" }\n`,
  );
}

async function open({ origin }: TestGateway): Promise<{ socket: Socket; text: () => string }> {
  let text = '';
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  socket.on('data', (data) => {
    text += data;
  });
  await once(socket, 'connect');
  return { socket, text: () => text };
}

const send = (socket: Socket, path: string) => void socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);

test('a retiring gateway serves idle connections once more and ends them with that answer; new connections are refused', async () => {
  const gateway = await start();
  const [used, unused, prober] = await Promise.all([open(gateway), open(gateway), open(gateway)]);
  send(used.socket, '/a');
  await until('the answer has ended', () => used.text().endsWith('0\r\n\r\n'));
  assert.match(used.text(), /keep-alive/i);
  let retired = false;
  const retiring = gateway.gateway.retire().then(() => {
    retired = true;
  });
  await pause(200);
  assert.deepEqual(
    [used, unused, prober].map(({ socket }) => socket.readableEnded),
    [false, false, false],
  );
  await assert.rejects(fetch(`${gateway.origin}/a`));
  send(used.socket, '/b');
  send(unused.socket, '/c');
  send(prober.socket, '/readyz');
  const seen = used.text().length;
  await Promise.all([used, unused, prober].map(({ socket }) => once(socket, 'end')));
  for (const text of [used.text().slice(seen), unused.text(), prober.text()]) {
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.match(text, /\r\nconnection: close\r\n/i);
  }
  assert.match(unused.text(), /last\r\n0\r\n\r\n$/);
  await retiring;
  assert(retired);
});

test('a retiring gateway waits for running exchanges', async () => {
  const gateway = await start();
  const { socket, text } = await open(gateway);
  send(socket, '/slow');
  await until('the answer has begun', () => text().includes('first'));
  const retiring = gateway.gateway.retire().then(() => text());
  await until('the answer has ended', () => text().endsWith('0\r\n\r\n'));
  socket.end();
  assert.match(await retiring, /last/);
});

test('a retiring gateway stops at once on request', async () => {
  const gateway = await start();
  await open(gateway);
  const retiring = gateway.gateway.retire();
  await pause(50);
  const reportedAt = performance.now();
  await gateway.gateway.stop(0);
  await retiring;
  assert(performance.now() - reportedAt < 20_000);
});

test('a client whose body is still unread gets its answer without a reset', async () => {
  const gateway = await start();
  const { socket, text } = await open(gateway);
  const retiring = gateway.gateway.retire();
  socket.write('POST /healthz/nothing HTTP/1.1\r\nhost: a\r\nhost: b\r\ncontent-length: 5\r\n\r\n12');
  await until('it is refused', () => text().includes('HTTP/1.1 400'));
  assert.match(text(), /\r\nconnection: keep-alive\r\n/i);
  const seen = text().length;
  socket.write('345');
  send(socket, '/a');
  await once(socket, 'end');
  assert.match(text().slice(seen), /^HTTP\/1\.1 200 [\s\S]*\r\nconnection: close\r\n/i);
  await retiring;
});
