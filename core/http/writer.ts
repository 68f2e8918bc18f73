/** Writes answers to the client's socket as their bodies are pulled, with backpressure. */
import type { Writable } from 'node:stream';
import type { Clock } from '../contract/host-tools.ts';
import type { Answer, AnswerBody } from '../contract/message.ts';
import type { LiveExchange } from './exchange.ts';
import type { Outgoing } from './incoming-request.ts';

/** Progress of an answer, read by the server's sweep. */
export interface Progress {
  status: number;
  bytesOut: number;
  /** Monotonic milliseconds of the first body byte. */
  firstByteAt: number | undefined;
  /** Monotonic milliseconds of the last byte that was written to the socket. */
  lastByteAt: number;
  /** Set while the socket's buffer is full. */
  blockedSince: number | undefined;
  idleFrame: (() => Uint8Array | undefined) | undefined;
  /** The body is chunked here, not by Node. */
  isChunked: boolean;
  /** The head was sent, or waits for the socket together with the first chunk. */
  isBegun: boolean;
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
    isBegun: false,
  };
}

/**
 * Writes the answer to the socket. true: all of it was written, or the client has disconnected; else `end` is called, later. Throws when
 * the body breaks at once.
 */
export function writeAnswer(
  exchange: LiveExchange,
  answer: Answer,
  progress: Progress,
  clock: Clock,
  closing: boolean,
  end: AnswerEnd,
): boolean {
  const { outgoing } = exchange;
  if (outgoing.destroyed || outgoing.headersSent) {
    if (!isStream(answer.body)) return true;
    drainBody(exchange, answer.body, clock).then(
      () => end.written(),
      (error) => end.broke(error),
    );
    return false;
  }
  progress.status = answer.status;
  // A plugin may keep its answer and give it again: its headers stay as they are.
  const headers: Record<string, string | number | string[]> = { ...answer.headers };
  // Official SDKs show one of the two in their errors.
  headers['x-request-id'] = exchange.id;
  headers['request-id'] ??= exchange.id;
  if (closing) headers['connection'] = 'close';
  exchange.watcher?.head(answer.status, headers);
  if (answer.cookies !== undefined) headers['set-cookie'] = [...answer.cookies];
  if (isStream(answer.body)) {
    if (answer.bodyBytes === undefined) delete headers['content-length'];
    else headers['content-length'] = answer.bodyBytes;
    outgoing.writeHead(answer.status, headers);
    progress.isChunked = takeFraming(outgoing) && exchange.request.method !== 'HEAD';
    progress.idleFrame = answer.idleFrame;
    new Pump(exchange, answer, progress, clock, end);
    return false;
  }
  const ending = exchange.readyToEnd();
  if (ending === undefined) return writeWhole(exchange, answer, headers, progress, clock);
  ending.then(
    () => {
      try {
        if (!outgoing.destroyed) writeWhole(exchange, answer, headers, progress, clock);
      } catch (error) {
        end.broke(error);
        return;
      }
      end.written();
    },
    (error) => end.broke(error),
  );
  return false;
}

function writeWhole(
  exchange: LiveExchange,
  answer: Answer,
  headers: Record<string, string | number | string[]>,
  progress: Progress,
  clock: Clock,
): true {
  const { outgoing } = exchange;
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : (answer.body as Uint8Array);
  headers['content-length'] = body.length;
  outgoing.writeHead(answer.status, headers);
  progress.bytesOut = body.length;
  progress.firstByteAt = clock.monotonic();
  exchange.watcher?.chunk(body);
  outgoing.end(body);
  return true;
}

function isStream(body: AnswerBody): body is AsyncIterable<Uint8Array> {
  return typeof body !== 'string' && !(body instanceof Uint8Array);
}

/** The body, which throws when its length differs from `bodyBytes`: the connection's framing would break. */
function checkedLength({ body, bodyBytes }: Answer, method: string): AsyncIterable<Uint8Array> {
  const chunks = body as AsyncIterable<Uint8Array>;
  return bodyBytes === undefined || method === 'HEAD' ? chunks : exactly(chunks, bodyBytes);
}

async function* exactly(chunks: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array, void> {
  let remaining = bytes;
  for await (const chunk of chunks) {
    remaining -= chunk.length;
    if (remaining < 0) throw new Error('the body is longer than its stated length');
    yield chunk;
  }
  if (remaining > 0) throw new Error('the body is shorter than its stated length');
}

/** Who is called once when the answer was written, or its body broke. */
export interface AnswerEnd {
  written(): void;
  broke(error: unknown): void;
}

/**
 * Pulls a body and writes its chunks. An object with two callbacks for all of its chunks: a stream may be silent for long, and an async function
 * would keep several times as much, the last chunk among it.
 */
class Pump {
  readonly #exchange: LiveExchange;
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #endsNow: Answer['endsNow'];
  readonly #progress: Progress;
  readonly #clock: Clock;
  readonly #end: AnswerEnd;
  #flush: NodeJS.Immediate | undefined;

  constructor(exchange: LiveExchange, answer: Answer, progress: Progress, clock: Clock, end: AnswerEnd) {
    this.#exchange = exchange;
    this.#iterator = checkedLength(answer, exchange.request.method)[Symbol.asyncIterator]();
    this.#endsNow = answer.endsNow;
    this.#progress = progress;
    this.#clock = clock;
    this.#end = end;
    // Delays the head by one turn, so that it and a ready first chunk share a packet.
    this.#flush = setImmediate(() => {
      this.#flush = undefined;
      exchange.outgoing.flushHeaders();
    });
    this.pull();
  }

  pull(): void {
    try {
      Promise.resolve(this.#iterator.next()).then(this.#took, this.#broke);
    } catch (error) {
      this.#broke(error);
    }
  }

  readonly #took = (step: IteratorResult<Uint8Array>): void => {
    try {
      if (step.done === true) this.#finish();
      else if (this.#exchange.outgoing.destroyed) this.#readOn(step.value);
      else this.#pass(step.value);
    } catch (error) {
      this.#broke(error);
    }
  };

  readonly #broke = (error: unknown): void => {
    this.#close().then(
      () => this.#end.broke(error),
      (other) => this.#end.broke(other),
    );
  };

  /** The client has disconnected. */
  #readOn(bytes: Uint8Array): void {
    const now = this.#clock.monotonic();
    this.#exchange.disconnect(now);
    if (this.#exchange.shouldKeepReading(now, bytes.length)) this.pull();
    else this.#finish();
  }

  #pass(bytes: Uint8Array): void {
    if (this.#flush !== undefined) this.#clearFlush();
    const ready = this.#endsNow?.() === true ? this.#exchange.readyToEnd() : undefined;
    if (ready === undefined) this.#write(bytes);
    else ready.then(() => this.#write(bytes)).catch(this.#broke);
  }

  #write(bytes: Uint8Array): void {
    const { outgoing, watcher } = this.#exchange;
    const progress = this.#progress;
    watcher?.chunk(bytes);
    const taken = writePart(outgoing, bytes, progress);
    progress.bytesOut += bytes.length;
    progress.lastByteAt = this.#clock.monotonic();
    progress.firstByteAt ??= progress.lastByteAt;
    if (taken) {
      this.pull();
      return;
    }
    progress.blockedSince = progress.lastByteAt;
    void drained(outgoing).then(() => {
      progress.blockedSince = undefined;
      this.pull();
    });
  }

  #clearFlush(): void {
    clearImmediate(this.#flush);
    this.#flush = undefined;
  }

  /** Stops the body's producer; without effect after its end. */
  async #close(): Promise<void> {
    this.#clearFlush();
    this.#progress.idleFrame = undefined;
    await this.#iterator.return?.();
  }

  #finish(): void {
    this.#finished().then(
      () => this.#end.written(),
      (error) => this.#end.broke(error),
    );
  }

  async #finished(): Promise<void> {
    const { outgoing } = this.#exchange;
    await this.#close();
    if (!outgoing.destroyed) await this.#exchange.readyToEnd();
    outgoing.end(this.#progress.isChunked ? lastChunk : undefined);
  }
}

/** Writes the last bytes of a stream after its body broke, and ends it. */
export async function endWith(exchange: LiveExchange, last: Uint8Array, progress: Progress): Promise<void> {
  const { outgoing } = exchange;
  await exchange.readyToEnd();
  if (outgoing.destroyed) return;
  exchange.watcher?.chunk(last);
  writePart(outgoing, last, progress);
  progress.bytesOut += last.length;
  outgoing.end(progress.isChunked ? lastChunk : undefined);
}

/**
 * Writes a chunk; false: the caller must wait until the socket has `drain`. Behind the first, a chunk that is framed here goes to the
 * socket itself: Node's answer would hold each one back until the end of the tick.
 */
export function writePart(outgoing: Outgoing, bytes: Uint8Array, progress: Progress): boolean {
  if (bytes.length === 0) return true;
  if (!progress.isChunked) return outgoing.write(bytes);
  const { socket } = outgoing;
  // A pipelined answer has no socket before its turn, and then writes all that it was given before.
  if (progress.isBegun && socket?.writable === true)
    return bytes.length > mostCopied ? writeChunk(socket, bytes) : socket.write(chunkOf(bytes));
  progress.isBegun = true;
  return outgoing.write(chunkOf(bytes));
}

const lastChunk = '0\r\n\r\n';

/**
 * Takes the chunked framing over from Node and returns whether the body is chunked. Node frames a chunk by four writes in one
 * `writev`; one `write` of one buffer saves a fifth of the cost of relaying a small chunk.
 */
function takeFraming(outgoing: Outgoing): boolean {
  const isChunked = outgoing.chunkedEncoding;
  outgoing.chunkedEncoding = false;
  return isChunked;
}

/** Up to this size, copying a chunk into one buffer is faster than writing it in three parts. */
const mostCopied = 8 * 1024;

/** Writes what `chunkOf` returns, without copying the bytes, in one `writev`. */
function writeChunk(socket: Writable, bytes: Uint8Array): boolean {
  socket.cork();
  socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1');
  socket.write(bytes);
  const taken = socket.write('\r\n', 'latin1');
  socket.uncork();
  return taken;
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

/** The client disconnected before the head: reads the body within its bounds, so that its cost is known. */
async function drainBody(exchange: LiveExchange, body: AsyncIterable<Uint8Array>, clock: Clock): Promise<void> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    while (exchange.shouldKeepReading(clock.monotonic(), 0)) {
      const step = await iterator.next();
      if (step.done === true || !exchange.shouldKeepReading(clock.monotonic(), step.value.length)) break;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Resolves when the socket accepts more, or is closed. Without a socket yet, the answer's own events are used. */
function drained(outgoing: Outgoing): Promise<void> {
  const writing = outgoing.socket ?? outgoing;
  return new Promise((resolve) => {
    const done = () => {
      writing.off('drain', done);
      outgoing.off('close', done);
      resolve();
    };
    writing.on('drain', done);
    outgoing.on('close', done);
  });
}
