/** What is wrong with a request before anybody looks at what it asks for, said on its socket. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { renderError } from './answers.ts';
import type { Part } from './contract.ts';
import { GatewayError } from './errors.ts';

/** Throws for what a gateway must not accept: absolute targets, no Host header or two, more headers than anybody needs. */
export function checkHead(incoming: IncomingMessage, maxHeaders: number): void {
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

/** Of `Expect`, Node meets `100-continue` by itself; whoever expects anything else is told so before the body is sent. */
export const unmetExpectation = () =>
  new GatewayError('invalid_request', 'The header "Expect" may only be 100-continue.', { field: 'expect' });

/**
 * Whether all of the request is here. To close a connection on which more of it is coming resets it, and the client may
 * never read the answer: such a connection ends with a later one.
 */
export function hasArrived({ complete, headers }: IncomingMessage): boolean {
  // Of a request without a body Node says that it is complete a moment after it has handed it out.
  return complete || ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined);
}

const parserErrors: Record<string, GatewayError> = {
  HPE_HEADER_OVERFLOW: new GatewayError('headers_too_large', 'The request headers are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: new GatewayError('request_timeout', 'The request did not arrive in time.'),
};

/** Whoever sends CONNECT takes the gateway for a forward proxy. */
const noTunnel = () => new GatewayError('method_not_allowed', 'This is no proxy: CONNECT is not answered.');

/** Answers what Node hands out as no request: what its parser gave up on, and CONNECT, which it would only hang up on. */
export function refuseWhatIsNoRequest(server: Server, shapes: readonly Part[]): void {
  server.on('clientError', (error, socket) => refuseBrokenRequest(error, socket, shapes));
  server.on('connect', (_incoming, socket) => {
    socket.on('error', () => {});
    refuseSocket(socket, noTunnel(), shapes);
  });
}

/** Answers what Node's parser gave up on; the connection ends. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex, shapes: readonly Part[]): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const refusal =
    parserErrors[error.code ?? ''] ?? new GatewayError('invalid_request', 'The request is not valid HTTP.');
  refuseSocket(socket, refusal, shapes);
}

/** Answers on a socket that no `ServerResponse` stands on; the connection ends. */
export function refuseSocket(socket: Duplex, refusal: GatewayError, shapes: readonly Part[]): void {
  const { answer } = renderError(refusal, undefined, shapes);
  const body = answer.body as string;
  const headers = { ...answer.headers, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, ...lines].join('\r\n');
  endSocket(socket, `${head}\r\n\r\n${body}`);
}

/** Time in which a peer that was told the end should have hung up, in milliseconds. */
const hangUpMs = 2_000;

/** Writes the last words. A peer that does not hang up is cut off: its half of the connection would stay open for ever. */
export function endSocket(socket: Duplex, lastWords: string): void {
  const timer = setTimeout(() => void socket.destroy(), hangUpMs);
  socket.once('close', () => clearTimeout(timer));
  socket.resume();
  socket.end(lastWords);
}
