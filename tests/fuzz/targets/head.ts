/** Request heads: raw bytes on a connection, whole and in pieces, up to the checks of `core/http/head-checks.ts`. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { renderError } from '../../../core/http/answers.ts';
import { checkHead, refuseNonRequests } from '../../../core/http/head-checks.ts';
import { cut, type Target } from '../target.ts';

const maxHeaders = 20;

interface Accepted {
  readonly line: string;
  readonly headers: readonly string[];
  readonly bodyBytes: number;
}

/** A connection without a socket. */
class Connection extends Duplex {
  readonly written: Buffer[] = [];
  readonly accepted: Accepted[] = [];
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(chunk);
    done();
  }
  setTimeout(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
}

const server = createServer({
  maxHeaderSize: 64 * 1024,
  requireHostHeader: false,
  connectionsCheckingInterval: 2 ** 30,
});
server.maxHeadersCount = 0;
server.on('request', serve);
server.on('checkExpectation', serve);
server.on('upgrade', (_incoming, socket: Duplex) => socket.destroy());
refuseNonRequests(server, []);

function serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const connection = incoming.socket as unknown as Connection;
  try {
    checkHead(incoming, maxHeaders);
  } catch (error) {
    const { answer } = renderError(error, undefined, []);
    outgoing.writeHead(answer.status, answer.headers).end(answer.body);
    incoming.resume();
    return;
  }
  let bodyBytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    bodyBytes += chunk.length;
  });
  incoming.on('error', () => {});
  incoming.on('end', () => {
    const line = `${incoming.method} ${incoming.url} ${incoming.httpVersion}`;
    connection.accepted.push({ line, headers: incoming.rawHeaders, bodyBytes });
    outgoing.end('ok');
  });
}

export const head: Target = {
  name: 'head',
  corpus: [
    'GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n',
    'POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nContent-Length: 2\r\n\r\n{}',
    'POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET / HTTP/1.1\r\nhost: b\r\n\r\n',
    'GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n',
    'GET /v1/realtime HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    'PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\nx',
    `GET / HTTP/1.1\r\nhost: a\r\n${Array.from({ length: 19 }, (_, index) => `x-${index}: 1\r\n`).join('')}\r\n`,
    'CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n',
    'GET http://a/v1/models HTTP/1.1\r\nhost: a\r\n\r\n',
  ].map((text) => Buffer.from(text, 'latin1')),
  dictionary: [
    ...[
      '\r\n',
      '\n',
      '\r',
      '\r\n\r\n',
      'Host: b\r\n',
      'HOST:b\r\n',
      'host : b\r\n',
      ' host: b\r\n',
      'Content-Length: 5\r\n',
    ],
    ...[
      'content-length: 0\r\n',
      'Transfer-Encoding: chunked\r\n',
      'transfer-encoding: x, chunked\r\n',
      'connection: close\r\n',
    ],
    ...[
      'expect: x\r\n',
      'HTTP/1.1',
      'HTTP/1.0',
      'HTTP/2.0',
      '*',
      '//a',
      '/../',
      '%00',
      '\u0000',
      '\t',
      ':',
      '0\r\n\r\n',
      '1;a=b\r\n',
    ],
    ...['OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n', 'GET / HTTP/1.1\r\n', 'a'.repeat(300), '-1', '1e3', '0x10', '+1'],
  ],
  async check(bytes, chance) {
    const whole = await connect([bytes]);
    for (const request of whole.accepted) checkAccepted(request);
    checkWritten(whole.written);
    const pieces = await connect(cut(bytes, chance));
    assert.deepEqual(pieces.accepted, whole.accepted, 'what is accepted depends on how the bytes were cut');
  },
};

async function connect(chunks: readonly Buffer[]): Promise<Connection> {
  const connection = new Connection();
  connection.on('error', () => {});
  server.emit('connection', connection);
  for (const chunk of chunks) {
    if (connection.destroyed) break;
    connection.push(chunk);
    if (chunks.length > 1) await turn();
  }
  // As long as answers still come: several requests may stand one behind the other.
  for (let quiet = 0, seen = -1; quiet < 2; quiet = connection.written.length === seen ? quiet + 1 : 0) {
    seen = connection.written.length;
    await turn();
  }
  connection.destroy();
  return connection;
}

function checkAccepted({ line, headers }: Accepted): void {
  assert.match(line, /^[A-Z-]+ \/[^\s]* 1\.[01]$/);
  assert.ok(headers.length <= 2 * maxHeaders, `${headers.length / 2} headers`);
  const names = headers.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  for (const name of names) assert.match(name, /^[!#$%&'*+.^_`|~0-9a-z-]+$/);
  for (const value of headers.filter((_, index) => index % 2 === 1)) assert.doesNotMatch(value, /[\r\n\0]/);
  const count = (wanted: string) => names.filter((name) => name === wanted).length;
  assert.ok(count('host') === 1 || (count('host') === 0 && line.endsWith('1.0')), `${count('host')} hosts`);
  assert.ok(count('content-length') <= 1, 'two lengths');
  assert.ok(count('content-length') === 0 || count('transfer-encoding') === 0, 'a length and an encoding');
}

function checkWritten(written: readonly Buffer[]): void {
  const text = Buffer.concat(written).toString('latin1');
  if (text !== '') assert.match(text, /^HTTP\/1\.1 [1-5]\d\d [^\r\n]*\r\n/);
}
