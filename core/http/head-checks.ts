/** Checks of a request's head, and answers to what Node does not parse as a request. */

import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { PluginInstance } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Answer } from '../contract/message.ts';
import { table } from '../contract/table.ts';
import { renderError } from './answers.ts';

/** Throws for HTTP versions other than 1.0 and 1.1, absolute targets, a missing or repeated Host header, too many headers. */
export function checkHead(incoming: IncomingMessage, maxHeaders: number): void {
  // Node's parser accepts 0.9 and 2.0 too.
  const { httpVersion } = incoming;
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new GatewayError('invalid_request', 'The HTTP version of this connection must be 1.0 or 1.1.', {
      field: 'version',
    });
  if (!incoming.url!.startsWith('/'))
    throw new GatewayError('invalid_request', 'The request target must be a path.', { field: 'target' });
  const raw = incoming.rawHeaders;
  if (raw.length > 2 * maxHeaders)
    throw new GatewayError('headers_too_large', `A request may carry at most ${maxHeaders} headers.`);
  let hosts = 0;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  if (hosts > 1) throw new GatewayError('invalid_request', 'The request carries two Host headers.', { field: 'host' });
  if (hosts === 0 && incoming.httpVersion === '1.1')
    throw new GatewayError('invalid_request', 'The request carries no Host header.', { field: 'host' });
}

/** Node handles `Expect: 100-continue`; any other value is refused before the body is sent. */
export const unmetExpectation = () =>
  new GatewayError('invalid_request', 'The header "Expect" may only be 100-continue.', { field: 'expect' });

/**
 * Whether the whole request has arrived. Closing a connection while more is arriving resets it, and the client may never
 * read the answer; such a connection is closed after a later answer.
 */
export function hasArrived({ complete, headers }: Pick<IncomingMessage, 'complete' | 'headers'>): boolean {
  // Node sets `complete` of a request without a body only after it has emitted the request.
  return complete || ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined);
}

const parserErrors: Record<string, GatewayError> = table({
  HPE_HEADER_OVERFLOW: new GatewayError('headers_too_large', 'The request headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new GatewayError('request_timeout', 'The request did not arrive in time.'),
});

const noTunnel = () => new GatewayError('method_not_allowed', 'This is no proxy: CONNECT is not answered.');

/** Answers parser errors and CONNECT, on which Node would only close the connection. */
export function refuseNonRequests(server: Server, shapes: readonly PluginInstance[]): void {
  server.on('clientError', (error, socket) => refuseBrokenRequest(error, socket, shapes));
  server.on('connect', (_incoming, socket) => {
    socket.on('error', () => {});
    refuseSocket(socket, renderError(noTunnel(), undefined, shapes).answer);
  });
}

/** Answers a parser error; the connection ends. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex, shapes: readonly PluginInstance[]): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const refusal =
    parserErrors[error.code ?? ''] ?? new GatewayError('invalid_request', 'The request is not valid HTTP.');
  refuseSocket(socket, renderError(refusal, undefined, shapes).answer);
}

/** Answers on a socket without a `ServerResponse`; the connection ends. */
export function refuseSocket(socket: Duplex, answer: Answer): void {
  const body = answer.body as string;
  const headers = { ...answer.headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, ...lines].join('\r\n');
  endSocket(socket, `${head}\r\n\r\n${body}`);
}

/** How long a peer has to close its half after ours was closed. */
const hangUpMs = 2_000;

/** Writes the text and ends the socket; destroys it if the peer does not close its half in time. */
function endSocket(socket: Duplex, text: string): void {
  const timer = setTimeout(() => void socket.destroy(), hangUpMs);
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
  socket.end(text);
}
