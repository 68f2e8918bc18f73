/** The server's edges over real sockets: limits, broken requests, routes, aborts, drain. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

let upstream: ReturnType<typeof createServer>;
let gateway: TestGateway;
let behaviour: (incoming: IncomingMessage, outgoing: ServerResponse) => void = (_incoming, outgoing) =>
  void outgoing.end('ok');
const closings: boolean[] = [];

before(async () => {
  upstream = createServer((incoming, outgoing) => {
    outgoing.on('close', () => closings.push(outgoing.writableFinished));
    behaviour(incoming, outgoing);
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  gateway = await startGateway(passthrough());
});

after(async () => {
  await gateway.stop();
  upstream.close();
});

function passthrough(server = '', grace = '50ms'): string {
  const { port } = upstream.address() as AddressInfo;
  return `gateway: test\nlisten: 127.0.0.1:0\nplugins: [passthrough]\npassthrough: { upstream: "http://127.0.0.1:${port}" }\nserver: { body_limit: 64KB, headers: 50, drain: { grace: ${grace}, deadline: 2s } ${server} }\n`;
}

/** Sends raw bytes and resolves with everything that comes back until the connection closes. */
async function raw(text: string, origin = gateway.origin): Promise<string> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => {});
  socket.write(text);
  await once(socket, 'close');
  return received;
}

const firstLine = (answer: string) => answer.slice(0, answer.indexOf('\r\n'));

test('a body above the limit is refused with 413, whether its length is declared or not', async () => {
  const big = 'x'.repeat(70_000);
  assert.equal((await fetch(`${gateway.origin}/a`, { method: 'POST', body: big })).status, 413);
  const chunked = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(big));
      controller.close();
    },
  });
  assert.equal(
    (await fetch(`${gateway.origin}/a`, { method: 'POST', body: chunked, duplex: 'half' } as RequestInit)).status,
    413,
  );
});

test('bodies that together exceed the budget are refused with 503, and the budget is released', async (context) => {
  await using small = await startGateway(passthrough(', bodies_in_flight: 90KB'));
  context.after(() => small.stop());
  behaviour = (incoming, outgoing) => {
    incoming.resume();
    setTimeout(() => outgoing.end('ok'), 150);
  };
  const send = () => fetch(`${small.origin}/a`, { method: 'POST', body: 'x'.repeat(50_000) });
  const statuses = (await Promise.all([send(), send()])).map((answer) => answer.status).sort();
  assert.deepEqual(statuses, [200, 503]);
  assert.equal((await send()).status, 200);
});

test('compressed request bodies arrive decoded; bombs and unknown encodings are refused', async () => {
  const { gzipSync } = await import('node:zlib');
  behaviour = (incoming, outgoing) => void incoming.pipe(outgoing);
  const post = (body: Buffer, encoding: string) =>
    fetch(`${gateway.origin}/a`, {
      method: 'POST',
      body: new Uint8Array(body),
      headers: { 'content-encoding': encoding },
    });
  assert.equal(await (await post(gzipSync('hello'), 'gzip')).text(), 'hello');
  assert.equal((await post(gzipSync('x'.repeat(100_000)), 'gzip')).status, 413);
  assert.equal((await post(Buffer.from('x'), 'rot13')).status, 422);
  assert.equal((await post(Buffer.from('no gzip at all'), 'gzip')).status, 400);
});

test('two Host headers, absolute targets and too many headers are refused', async () => {
  assert.match(firstLine(await raw('GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')), / 400 /);
  assert.match(
    firstLine(await raw('GET http://elsewhere/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')),
    / 400 /,
  );
  const many = Array.from({ length: 60 }, (_, index) => `x-${index}: 1\r\n`).join('');
  assert.match(firstLine(await raw(`GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${many}\r\n`)), / 431 /);
});

test('HTTP versions except 1.0 and 1.1 are refused, since the rules of Host and lengths do not apply to them', async () => {
  for (const line of ['GET /a', 'GET /a HTTP/0.9', 'GET /a HTTP/2.0', 'POST /a HTTP/2.0'])
    for (const headers of ['', 'Connection: close\r\n', 'Host: a\r\nHost: b\r\nConnection: close\r\n'])
      assert.match(firstLine(await raw(`${line}\r\n${headers}\r\n`)), / 400 /, line);
});

test('bytes that are no HTTP get a 400, and a too large head gets a 431', async () => {
  assert.match(firstLine(await raw('HELO\r\n\r\n')), / 400 /);
  assert.match(firstLine(await raw(`GET / HTTP/1.1\r\nHost: a\r\nx: ${'y'.repeat(80_000)}\r\n\r\n`)), / 431 /);
  assert.match(
    firstLine(
      await raw('POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    ),
    / 400 /,
  );
});

test('a request that does not arrive in time gets a 408', async (context) => {
  await using hasty = await startGateway(passthrough(', request_timeout: 300ms'));
  context.after(() => hasty.stop());
  assert.match(
    firstLine(await raw('POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc', hasty.origin)),
    / 408 /,
  );
});

test('an upgrade is refused with 426 at once', async () => {
  const answer = await raw(
    'GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  );
  assert.match(firstLine(answer), / 426 /);
});

test('a request that Node would refuse without a body is refused with one', async () => {
  const cases: readonly [request: string, status: number, kind: string, word: string][] = [
    ['GET /a HTTP/1.1\r\nConnection: close', 400, 'invalid_request', 'no Host'],
    ['POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: more', 400, 'invalid_request', 'Expect'],
    ['CONNECT b:443 HTTP/1.1\r\nHost: b:443', 405, 'method_not_allowed', 'no proxy'],
    ['GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket', 426, 'upgrade_required', 'WebSocket'],
  ];
  for (const [request, status, kind, word] of cases) {
    const answer = await raw(`${request}\r\n\r\n`);
    assert.match(firstLine(answer), new RegExp(` ${status} \\w`));
    const { error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as {
      error: { type: string; message: string };
    };
    assert.equal(error.type, kind, answer);
    assert.ok(error.message.includes(word), answer);
  }
  assert.match(firstLine(await raw('GET /a HTTP/1.0\r\n\r\n')), / 200 /);
});

test('HEAD /, GET /, health and readiness answer 200 without a key', async () => {
  for (const [method, path] of [
    ['HEAD', '/'],
    ['GET', '/'],
    ['GET', '/healthz'],
    ['GET', '/readyz'],
  ]) {
    assert.equal((await fetch(gateway.origin + path, { method: method! })).status, 200, `${method} ${path}`);
  }
});

test("a client's disconnection reaches the upstream, before the head and in mid-stream", async () => {
  for (const head of [false, true]) {
    behaviour = (_incoming, outgoing) => {
      if (!head) return;
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: 1\n\n');
    };
    closings.length = 0;
    const leaving = new AbortController();
    const pending = fetch(`${gateway.origin}/a`, { signal: leaving.signal });
    if (head) await (await pending).body!.getReader().read();
    else await pause(100);
    leaving.abort();
    await pending.catch(() => {});
    await until('the upstream has seen it', () => closings.length > 0);
    assert.deepEqual(closings, [false], head ? 'in mid-stream' : 'before the head');
    await until('nothing is in flight', () => gateway.gateway.inFlight === 0);
  }
});

test('a dead upstream is a 502 without details of it; a cut answer breaks the connection', async () => {
  behaviour = (incoming) => void incoming.socket.destroy();
  const answer = await fetch(`${gateway.origin}/a`);
  const text = await answer.text();
  assert.equal(answer.status, 502);
  assert.equal(answer.headers.get('x-should-retry'), 'false');
  assert.doesNotMatch(text, /127\.0\.0\.1|ECONN|socket/);
  behaviour = (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/plain' });
    outgoing.write('half');
    setTimeout(() => outgoing.destroy(), 30);
  };
  await assert.rejects(fetch(`${gateway.origin}/a`).then((cut) => cut.text()));
});

test('streams are chunked on a connection that stays open, and not chunked for older clients', async () => {
  behaviour = async (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    // Parts of one packet are framed as one chunk, so the second one waits until the first has been passed on.
    outgoing.write('data: 1\n\n');
    await pause(300);
    outgoing.end('data: twenty-two\n\n');
  };
  const get = (more: string) => `GET /a HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  const both = await raw(get('') + get('Connection: close\r\n'));
  const bodies = both.split(/HTTP\/1\.1 200 OK\r\n[\s\S]*?\r\n\r\n/).slice(1);
  const body = '9\r\ndata: 1\n\n\r\n12\r\ndata: twenty-two\n\n\r\n0\r\n\r\n';
  assert.deepEqual(bodies, [body, body]);
  const older = await raw('GET /a HTTP/1.0\r\nHost: a\r\n\r\n');
  assert.doesNotMatch(older, /transfer-encoding/i);
  assert.equal(older.slice(older.indexOf('\r\n\r\n') + 4), 'data: 1\n\ndata: twenty-two\n\n');
  const bodiless = await raw('HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  assert.match(firstLine(bodiless), / 200 /);
  assert.equal(bodiless.slice(bodiless.indexOf('\r\n\r\n') + 4), '');
});

test('a slow reader slows the upstream instead of filling memory', async () => {
  let written = 0;
  behaviour = (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/octet-stream' });
    const chunk = Buffer.alloc(64 * 1024);
    const fill = () => {
      while (written < 64 * 2 ** 20) {
        written += chunk.length;
        if (!outgoing.write(chunk)) return void outgoing.once('drain', fill);
      }
      outgoing.end();
    };
    fill();
  };
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  socket.pause();
  socket.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await pause(500);
  assert(written < 32 * 2 ** 20, `${written} bytes were taken from the upstream for a reader that reads nothing`);
  socket.destroy();
});

test('drain: readiness fails, and the running stream ends whole', async (context) => {
  const stopping = await startGateway(passthrough());
  context.after(() => stopping.stop());
  behaviour = (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    let count = 0;
    const timer = setInterval(() => {
      outgoing.write(`data: ${count++}\n\n`);
      if (count === 6) {
        clearInterval(timer);
        outgoing.end('data: last\n\n');
      }
    }, 50);
  };
  const stream = await fetch(`${stopping.origin}/a`);
  const stopped = stopping.gateway.stop();
  const ready = await fetch(`${stopping.origin}/readyz`);
  assert.equal(ready.status, 503);
  assert.match(await stream.text(), /data: last/);
  await stopped;
  await assert.rejects(fetch(`${stopping.origin}/healthz`));
});

test('drain: a kept connection is served once more, and ends when it has been idle for a while', async (context) => {
  const stopping = await startGateway(passthrough('', '300ms'));
  context.after(() => stopping.stop());
  let first: ServerResponse | undefined;
  behaviour = (_incoming, outgoing) => {
    // The head of the first answer is sent before the drain: it says that the connection stays.
    if (first !== undefined) return void outgoing.end('second');
    first = outgoing;
    outgoing.write('first');
  };
  const port = Number(new URL(stopping.origin).port);
  const [used, unused] = [connect(port, '127.0.0.1').setEncoding('latin1'), connect(port, '127.0.0.1')];
  const ended = Promise.all([once(used, 'end'), once(unused.resume(), 'end')]);
  let text = '';
  used.on('data', (chunk) => (text += chunk));
  const send = () => used.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(used, 'connect');
  send();
  await until('the first answer begins', () => text.includes('first'));
  const stopped = stopping.gateway.stop();
  const isRefused = () =>
    fetch(`${stopping.origin}/healthz`).then(
      () => false,
      () => true,
    );
  await until('new connections are refused', isRefused);
  await pause(350);
  first!.end('last');
  await until('the first answer ends', () => text.includes('last'));
  send();
  await Promise.all([ended, stopped]);
  assert.match(text, /connection: keep-alive.*last.*HTTP\/1\.1 200 .*connection: close.*second/is);
});

test('drain: exchanges past the deadline are ended', async (context) => {
  const stopping = await startGateway(passthrough());
  context.after(() => stopping.stop());
  behaviour = (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
    outgoing.write('data: 1\n\n');
  };
  const stream = await fetch(`${stopping.origin}/a`);
  const ended = assert.rejects(stream.text());
  await stopping.gateway.stop(200);
  await ended;
});

test('an exchange past its deadline gets 504, and its upstream is aborted', async (context) => {
  await using short = await startGateway(passthrough(', timeout: 300ms'));
  context.after(() => short.stop());
  behaviour = () => {};
  closings.length = 0;
  const answer = await fetch(`${short.origin}/a`);
  assert.equal(answer.status, 504);
  assert.equal(answer.headers.get('x-should-retry'), 'false');
  await until('the upstream has seen it', () => closings.length > 0);
  assert.deepEqual(closings, [false]);
});

test('a client that reads nothing of a stream for too long is disconnected', async (context) => {
  await using strict = await startGateway(passthrough(', stall_timeout: 300ms'));
  context.after(() => strict.stop());
  behaviour = (_incoming, outgoing) => {
    outgoing.writeHead(200, { 'content-type': 'application/octet-stream' });
    const fill = () => {
      while (outgoing.write(Buffer.alloc(256 * 1024))) if (outgoing.destroyed) return;
      outgoing.once('drain', fill);
    };
    fill();
  };
  closings.length = 0;
  const socket = connect(Number(new URL(strict.origin).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  socket.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('the upstream has seen it', () => closings.length > 0);
  assert.deepEqual(closings, [false]);
  assert.equal(strict.gateway.inFlight, 0);
  socket.destroy();
});
