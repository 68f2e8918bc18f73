/** Requests without a connection: objects instead of Node's request and response, so that the same code handles them. */
import { PassThrough, Readable } from 'node:stream';
import type { Outcome } from '../contract/contract.ts';
import type { DirectAnswer, DirectRequest } from '../contract/direct-request.ts';
import type { Headers } from '../contract/message.ts';
import { clientDisconnected } from './exchange.ts';

/** Bytes of an answer that wait for their reader; above it the upstream waits. */
const waitingBytes = 64 * 1024;

/** Instead of Node's IncomingMessage: the whole body is there. */
export class DirectIncoming extends Readable {
  readonly complete = true;
  readonly method: string;
  readonly headers: Headers;
  readonly socket: { readonly remoteAddress: string };

  constructor({ method, headers, body, remoteAddress }: DirectRequest) {
    super();
    this.method = method;
    this.headers = withoutFraming(headers);
    this.socket = { remoteAddress };
    if (body !== undefined && body.length > 0) {
      this.headers['content-length'] = String(body.length);
      this.push(body);
    }
    this.push(null);
  }

  override _read(): void {}
}

/** Headers of a connection, or of an encoding that the body does not have. */
function withoutFraming(headers: Readonly<Headers>): Headers {
  const {
    'content-length': _length,
    'content-encoding': _encoding,
    'transfer-encoding': _transfer,
    expect: _expect,
    ...others
  } = headers;
  return others;
}

/** Stands in for Node's ServerResponse: written bytes are pulled from it. */
export class DirectOutgoing extends PassThrough {
  headersSent = false;
  /** Bodies are not chunked here. */
  chunkedEncoding = false;
  onHead: ((status: number, headers: Headers) => void) | undefined;

  constructor() {
    super({ writableHighWaterMark: waitingBytes, readableHighWaterMark: waitingBytes });
    // A broken answer throws in its reader; without one, nothing is lost.
    this.on('error', () => {});
  }

  writeHead(status: number, headers: Record<string, unknown>): void {
    this.headersSent = true;
    const entries = Object.entries(headers).map(([name, value]) => [name, String(value)]);
    this.onHead?.(status, Object.fromEntries(entries) as Headers);
  }

  flushHeaders(): void {}

  writeContinue(): void {}
}

/** Resolves with the answer's head; rejects when the request was given up before it. */
export function answerOf(
  outgoing: DirectOutgoing,
  ended: Promise<Outcome>,
  signal?: AbortSignal,
): Promise<DirectAnswer> {
  return new Promise((resolve, reject) => {
    const leave = () => void outgoing.destroy();
    outgoing.onHead = (status, headers) => resolve({ status, headers, body: outgoing, ended });
    outgoing.once('close', () => {
      signal?.removeEventListener('abort', leave);
      reject(clientDisconnected());
    });
    if (signal?.aborted === true) leave();
    else signal?.addEventListener('abort', leave, { once: true });
  });
}
