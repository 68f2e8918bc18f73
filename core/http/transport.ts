/** The undici transport. Hooks run before a request's first byte is sent; the answer's body is pulled. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { UpstreamRequest } from '../contract/contract.ts';
import type { Headers, RepeatableBody } from '../contract/message.ts';
import { UpstreamError, type UpstreamPhase } from '../contract/upstream-failures.ts';
import type { Connection, SocketPool } from './sockets.ts';

/** An answer from its head on. */
export interface UpstreamAnswer {
  status: number;
  headers: Headers;
  body: UpstreamBody;
}

/** Unread bytes of one body above which the upstream's socket is paused. */
const pauseAboveBytes = 256 * 1024;

/** Gets a whole body, or its failure. */
export interface WholeReader {
  gotBody(body: Uint8Array): void;
  lostBody(error: UpstreamError): void;
}

/** Most bytes of several chunks that are given as one. */
const joinedBytes = 64 * 1024;

/**
 * A body that is pulled. Chunks that have come in one packet are given as one, so that they are handled and written once. Backpressure
 * reaches the upstream's socket.
 */
export class UpstreamBody implements AsyncIterableIterator<Uint8Array> {
  readonly #controller: Dispatcher.DispatchController;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #error: UpstreamError | undefined;
  #waiting: { resolve(step: IteratorResult<Uint8Array>): void; reject(error: unknown): void } | undefined;
  /** Set when the body is read as a whole. */
  #reader: WholeReader | undefined;
  #maxBytes = 0;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#chunks.length > 0) return Promise.resolve(new Arrived(this));
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** The chunks that have come, up to a bound. None after `return`. */
  take(): Uint8Array {
    const chunks = this.#chunks;
    let count = 0;
    let bytes = 0;
    while (count < chunks.length && (count === 0 || bytes + chunks[count]!.length <= joinedBytes))
      bytes += chunks[count++]!.length;
    this.#bytes -= bytes;
    if (this.#controller.paused && this.#bytes < pauseAboveBytes / 2) this.#controller.resume();
    if (count === 1) return chunks.shift()!;
    return Buffer.concat(chunks.splice(0, count), bytes);
  }

  /** Gives the reader all of the body, once its head is known; fails with phase `sent` when it is larger than `maxBytes`. */
  readAll(maxBytes: number, reader: WholeReader): void {
    this.#maxBytes = maxBytes;
    this.#reader = reader;
  }

  #refuseLarge(): void {
    this.#reader!.lostBody(new UpstreamError('sent', 'answer too large'));
    void this.return();
  }

  /** The consumer stops reading: the upstream's socket is closed. */
  return(): Promise<IteratorResult<Uint8Array>> {
    const ended = this.#ended;
    this.#ended = true;
    this.#chunks = [];
    if (!ended) this.#controller.abort(new Error('the reader left'));
    this.#waiting?.resolve({ done: true, value: undefined });
    this.#waiting = undefined;
    return Promise.resolve({ done: true, value: undefined });
  }

  push(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#waiting !== undefined) {
      this.#waiting.resolve(new Arrived(this));
      this.#waiting = undefined;
    } else if (this.#reader === undefined) {
      if (this.#bytes > pauseAboveBytes) this.#controller.pause();
    } else if (this.#bytes > this.#maxBytes) this.#refuseLarge();
  }

  end(): void {
    const chunks = this.#chunks;
    if (!this.#ended) this.#reader?.gotBody(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.#bytes));
    this.#ended = true;
    this.#waiting?.resolve({ done: true, value: undefined });
    this.#waiting = undefined;
  }

  break(error: UpstreamError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#reader?.lostBody(error);
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}

/** A step of the iteration. Its bytes are joined when they are first read, with all that has arrived by then. */
class Arrived implements IteratorYieldResult<Uint8Array> {
  readonly done = false;
  readonly #body: UpstreamBody;
  #bytes: Uint8Array | undefined;

  constructor(body: UpstreamBody) {
    this.#body = body;
  }

  get value(): Uint8Array {
    this.#bytes ??= this.#body.take();
    return this.#bytes;
  }
}

/** The sender of a request. Exactly one of `gotAnswer` and `failed` is called, once. */
export interface Sender {
  /** Work right before the first byte; a failure means that nothing is sent. */
  begin(): Promise<void> | undefined;
  /** The head has come. */
  gotAnswer(answer: UpstreamAnswer): void;
  /** Nothing has come. An UpstreamError has the phase. */
  failed(error: Error): void;
}

/** One request on the wire. */
export class UpstreamAttempt implements Dispatcher.DispatchHandler {
  #isOver = false;
  #controller: Dispatcher.DispatchController | undefined;
  #body: UpstreamBody | undefined;
  #phase: UpstreamPhase = 'connect';
  #aborted: Error | undefined;
  #pool: SocketPool | undefined;
  readonly #connection: Connection;
  /** Until it is dispatched: its body may be large, and an answer may take long. */
  #request: UpstreamRequest | undefined;
  /** Until the head has come or the attempt has failed: an answer may take long. */
  #sender: Sender | undefined;

  /**
   * Whether dispatched bytes are written at once: work before the first byte is done before `dispatch`. Otherwise a connection is
   * made first, which may take long or fail, and the sender's `begin` is called when it is there: undici writes nothing before a body's first
   * part.
   */
  readonly writesAtOnce: boolean;

  constructor(pool: SocketPool, request: UpstreamRequest, sender: Sender) {
    this.#pool = pool;
    this.#connection = pool.take();
    this.#request = request;
    this.#sender = sender;
    this.writesAtOnce = this.#connection.isOpen || request.body === undefined;
  }

  /** Instead of `dispatch`. */
  cancel(): void {
    this.#pool?.giveBack(this.#connection);
    this.#pool = undefined;
  }

  /** `path`: with the query. */
  dispatch(path: string): void {
    const { method, headers, body, firstByteTimeoutMs, idleTimeoutMs } = this.#request!;
    this.#request = undefined;
    const isWhole = body === undefined || (this.writesAtOnce && isSmall(body));
    this.#connection.client.dispatch(
      {
        path,
        method: method as 'POST',
        headers: isWhole ? headers : { ...headers, 'content-length': String(lengthOf(body)) },
        body: (isWhole ? (body ?? null) : new BodyParts(this, body)) as unknown as Buffer,
        headersTimeout: firstByteTimeoutMs,
        bodyTimeout: idleTimeoutMs,
      },
      this,
    );
  }

  /** Called before the first part of a body, unless it is written at once. */
  async beginNow(): Promise<void> {
    try {
      await this.#sender!.begin();
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    }
    this.#phase = 'sent';
  }

  abort(reason: Error): void {
    this.#aborted = reason;
    // A request that waits for its connection has no controller yet; it is aborted when it gets one.
    if (this.#controller === undefined) this.#fail(new UpstreamError('connect', reason.message, { cause: reason }));
    else this.#controller.abort(reason);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const sender = this.#sender!;
    this.#sender = undefined;
    sender.failed(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted !== undefined) controller.abort(this.#aborted);
    else if (this.writesAtOnce) this.#phase = 'sent';
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.#phase = 'body';
    // A buffer for each name and value, which undici keeps until the answer has ended.
    controller.rawHeaders = null;
    this.#body = new UpstreamBody(controller);
    if (this.#isOver) return;
    this.#isOver = true;
    const sender = this.#sender!;
    this.#sender = undefined;
    sender.gotAnswer({ status, headers: joinHeaders(headers), body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#endRequest();
    this.#body?.end();
  }

  /** Removes the request from the pool's count, once. */
  #endRequest(): void {
    this.#pool?.end();
    this.#pool = undefined;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#endRequest();
    const timedOut =
      timeoutNames.has(error.name) || (this.#aborted as { kind?: string } | undefined)?.kind === 'upstream_timeout';
    const failure = new UpstreamError(this.#phase, error.message, { timedOut, cause: error });
    if (this.#body === undefined) this.#fail(failure);
    else this.#body.break(failure);
  }
}

type RequestBody = NonNullable<UpstreamRequest['body']>;

/** A body up to this size is given to undici whole, which keeps it until the answer has ended. */
const keptBytes = 16 * 1024;

function isSmall(body: RequestBody): body is string | Uint8Array {
  return (typeof body === 'string' || body instanceof Uint8Array) && body.length <= keptBytes;
}

/** A body for undici, which holds this as long as the answer takes: the bytes are forgotten when they have been written. */
class BodyParts implements AsyncIterable<Uint8Array | string> {
  readonly #attempt: UpstreamAttempt;
  #body: RequestBody | undefined;

  constructor(attempt: UpstreamAttempt, body: RequestBody) {
    this.#attempt = attempt;
    this.#body = body;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array | string> {
    if (!this.#attempt.writesAtOnce) await this.#attempt.beginNow();
    const body = this.#body!;
    this.#body = undefined;
    if (isRepeatable(body)) yield* body.open();
    else if (typeof body === 'string') yield body;
    else {
      for (const part of isList(body) ? body : piecesOf(body)) {
        yield part;
        await nextTurn();
      }
    }
  }
}

/** Most bytes of a body that are written in one turn: the kernel copies them, and on one machine delivers them, in the writer's time. */
const pieceBytes = 512 * 1024;

function* piecesOf(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}

function isList(body: RequestBody): body is readonly Uint8Array[] {
  return Array.isArray(body);
}

function isRepeatable(body: RequestBody): body is RepeatableBody {
  return typeof body === 'object' && 'open' in body;
}

function lengthOf(body: RequestBody): number {
  if (isRepeatable(body)) return body.bytes;
  return isList(body) ? body.reduce((sum, { length }) => sum + length, 0) : Buffer.byteLength(body);
}

const timeoutNames = new Set(['ConnectTimeoutError', 'HeadersTimeoutError', 'BodyTimeoutError']);

function joinHeaders(headers: Record<string, string | string[] | undefined>): Headers {
  const joined: Headers = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) joined[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return joined;
}
