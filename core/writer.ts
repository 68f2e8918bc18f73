/** The only writer of responses: an answer goes to the client's socket as it is pulled, and every end is told. */
import type { ServerResponse } from 'node:http';
import type { Answer, AnswerBody, Clock } from './contract.ts';
import type { LiveExchange } from './exchange.ts';

/** How far an answer has gone out. The server's sweep reads it; no timer belongs to a single stream. */
export interface Progress {
  status: number;
  bytesOut: number;
  /** Monotonic milliseconds of the first body byte. */
  firstByteAt: number | undefined;
  /** Monotonic milliseconds of the last byte that was handed to the socket. */
  lastByteAt: number;
  /** Set while the socket takes nothing more. */
  blockedSince: number | undefined;
  idleFrame: (() => Uint8Array | undefined) | undefined;
  /** The body goes out in chunks that are framed here, not by Node. */
  isChunked: boolean;
}

export function newProgress(now: number): Progress {
  return {
    status: 0,
    bytesOut: 0,
    firstByteAt: undefined,
    lastByteAt: now,
    blockedSince: undefined,
    idleFrame: undefined,
    isChunked: false,
  };
}

/** Resolves when the whole answer was handed to the socket, or the client has left. Rejects when the body breaks. */
export async function writeAnswer(
  exchange: LiveExchange,
  answer: Answer,
  progress: Progress,
  clock: Clock,
  closing: boolean,
): Promise<void> {
  const { outgoing } = exchange;
  if (outgoing.destroyed || outgoing.headersSent) {
    if (isStream(answer.body)) await readOn(exchange, answer.body, clock);
    return;
  }
  progress.status = answer.status;
  const headers: Record<string, string | number | string[]> = answer.headers;
  // Official SDKs show one or the other in their errors.
  headers['x-request-id'] = exchange.id;
  headers['request-id'] ??= exchange.id;
  if (closing) headers['connection'] = 'close';
  exchange.watcher?.head(answer.status, headers);
  if (answer.cookies !== undefined) headers['set-cookie'] = [...answer.cookies];
  if (isStream(answer.body)) {
    if (answer.bodyBytes === undefined) delete headers['content-length'];
    else headers['content-length'] = answer.bodyBytes;
    outgoing.writeHead(answer.status, headers);
    progress.isChunked = takeFraming(outgoing);
    progress.idleFrame = answer.idleFrame;
    await pump(exchange, measured(answer, exchange.request.method), progress, clock);
    return;
  }
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  headers['content-length'] = body.length;
  outgoing.writeHead(answer.status, headers);
  progress.bytesOut = body.length;
  progress.firstByteAt = clock.monotonic();
  exchange.watcher?.part(body);
  outgoing.end(body);
}

function isStream(body: AnswerBody): body is AsyncIterable<Uint8Array> {
  return typeof body !== 'string' && !(body instanceof Uint8Array);
}

/** The body, which throws as soon as it is not as long as was said: what follows on the connection would be taken for it. */
function measured({ body, bodyBytes }: Answer, method: string): AsyncIterable<Uint8Array> {
  const chunks = body as AsyncIterable<Uint8Array>;
  return bodyBytes === undefined || method === 'HEAD' ? chunks : exactly(chunks, bodyBytes);
}

async function* exactly(chunks: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array, void> {
  let left = bytes;
  for await (const chunk of chunks) {
    left -= chunk.length;
    if (left < 0) throw new Error('the body is longer than was said');
    yield chunk;
  }
  if (left > 0) throw new Error('the body is shorter than was said');
}

async function pump(
  exchange: LiveExchange,
  body: AsyncIterable<Uint8Array>,
  progress: Progress,
  clock: Clock,
): Promise<void> {
  const { outgoing } = exchange;
  const iterator = body[Symbol.asyncIterator]();
  // The head waits one turn for the first chunk, so that both go out in one packet when both are there.
  const flush = setImmediate(() => outgoing.flushHeaders());
  try {
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
      if (outgoing.destroyed) {
        exchange.leave(clock.monotonic());
        if (!exchange.readsOn(clock.monotonic(), step.value.length)) break;
        continue;
      }
      if (progress.firstByteAt === undefined) clearImmediate(flush);
      exchange.watcher?.part(step.value);
      const taken = writePart(outgoing, step.value, progress);
      progress.bytesOut += step.value.length;
      progress.lastByteAt = clock.monotonic();
      progress.firstByteAt ??= progress.lastByteAt;
      if (taken) continue;
      progress.blockedSince = progress.lastByteAt;
      await drained(outgoing);
      progress.blockedSince = undefined;
    }
  } finally {
    clearImmediate(flush);
    progress.idleFrame = undefined;
    // Tells the body that nobody reads on; after its own end this does nothing.
    await iterator.return?.();
  }
  outgoing.end(progress.isChunked ? lastChunk : undefined);
}

/** A part of a stream. As `outgoing.write`: false asks to wait for `drain`. */
export function writePart(outgoing: ServerResponse, bytes: Uint8Array, { isChunked }: Progress): boolean {
  if (bytes.length === 0) return true;
  return outgoing.write(isChunked ? chunkOf(bytes) : bytes);
}

const lastChunk = '0\r\n\r\n';

/**
 * Whether the body must be chunked, which Node decides by the client's version of HTTP. Node frames a chunk by four writes
 * that are gathered into one `writev`; framed here it is one `write` of one buffer, which spares a fifth of what relaying a
 * small chunk costs.
 */
function takeFraming(outgoing: ServerResponse): boolean {
  const isChunked = outgoing.chunkedEncoding;
  outgoing.chunkedEncoding = false;
  return isChunked;
}

/** RFC 9112, section 7.1: the length in hexadecimal digits, CR LF, the bytes, CR LF. */
function chunkOf(bytes: Uint8Array): Buffer {
  const head = `${bytes.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(head.length + bytes.length + 2);
  chunk.write(head, 0, 'latin1');
  chunk.set(bytes, head.length);
  chunk.write('\r\n', head.length + bytes.length, 'latin1');
  return chunk;
}

/** The client left before the head: the body is read for what it costs, as far as it is to be read at all. */
async function readOn(exchange: LiveExchange, body: AsyncIterable<Uint8Array>, clock: Clock): Promise<void> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    while (exchange.readsOn(clock.monotonic(), 0)) {
      const step = await iterator.next();
      if (step.done === true || !exchange.readsOn(clock.monotonic(), step.value.length)) break;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Resolves when the socket takes more, or is gone. */
function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('drain', done);
      outgoing.off('close', done);
      resolve();
    };
    outgoing.on('drain', done);
    outgoing.on('close', done);
  });
}
