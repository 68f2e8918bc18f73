/** undici behind two small faces: sockets kept per credential, and an answer whose body is pulled. */
import { type Dispatcher, Pool } from 'undici';
import type { Headers } from './contract.ts';
import { UpstreamError, type UpstreamPhase } from './errors.ts';

/** Sockets to one origin for one credential; the oldest unused pool is closed when there are more than this. */
const maxPools = 512;
const maxSocketsPerPool = 4096;

/** Pools by origin and credential: a socket never carries the requests of two credentials. */
export class Pools {
  readonly #pools = new Map<string, Pool>();

  for(origin: string, credential: string, connectTimeoutMs: number): Pool {
    const name = `${credential} ${origin} ${connectTimeoutMs}`;
    const found = this.#pools.get(name);
    if (found !== undefined) return found;
    if (this.#pools.size >= maxPools) this.#closeOldest();
    const pool = new Pool(origin, {
      connections: maxSocketsPerPool,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: connectTimeoutMs },
      keepAliveTimeout: 30_000,
      maxHeaderSize: 64 * 1024,
    });
    this.#pools.set(name, pool);
    return pool;
  }

  #closeOldest(): void {
    for (const [name, pool] of this.#pools) {
      if (pool.stats.running + pool.stats.pending + pool.stats.queued > 0) continue;
      this.#pools.delete(name);
      pool.close().catch(() => {});
      return;
    }
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.allSettled(pools.map((pool) => pool.destroy()));
  }
}

/** An answer whose head has arrived. */
export interface UpstreamAnswer {
  status: number;
  headers: Headers;
  body: UpstreamBody;
}

/** Bytes of one body that may wait for the reader before the upstream is told to pause. */
const pauseAboveBytes = 256 * 1024;

/** A body that is pulled chunk by chunk, as the upstream sent them. Backpressure reaches the upstream's socket. */
export class UpstreamBody implements AsyncIterableIterator<Uint8Array> {
  readonly #controller: Dispatcher.DispatchController;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #error: UpstreamError | undefined;
  #waiting: { resolve(step: IteratorResult<Uint8Array>): void; reject(error: unknown): void } | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#bytes -= chunk.length;
      if (this.#controller.paused && this.#bytes < pauseAboveBytes / 2) this.#controller.resume();
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** Nobody wants the rest: the upstream's socket is closed. */
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
    if (this.#waiting !== undefined) {
      this.#waiting.resolve({ done: false, value: chunk });
      this.#waiting = undefined;
      return;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > pauseAboveBytes) this.#controller.pause();
  }

  end(): void {
    this.#ended = true;
    this.#waiting?.resolve({ done: true, value: undefined });
    this.#waiting = undefined;
  }

  break(error: UpstreamError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}

/** One request on the wire. `answer` resolves with the head; it rejects with an UpstreamError that knows how far things went. */
export class UpstreamAttempt implements Dispatcher.DispatchHandler {
  readonly answer: Promise<UpstreamAnswer>;
  #resolve!: (answer: UpstreamAnswer) => void;
  #reject!: (error: UpstreamError) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #body: UpstreamBody | undefined;
  #phase: UpstreamPhase = 'connect';
  #aborted: Error | undefined;

  constructor() {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  abort(reason: Error): void {
    this.#aborted = reason;
    // A request that still waits for its connection has no controller yet; it is refused when it gets one.
    if (this.#controller === undefined) this.#reject(new UpstreamError('connect', reason.message, { cause: reason }));
    else this.#controller.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted !== undefined) controller.abort(this.#aborted);
    else this.#phase = 'sent';
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.#phase = 'body';
    this.#body = new UpstreamBody(controller);
    this.#resolve({ status, headers: joinHeaders(headers), body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const timedOut =
      timeoutNames.has(error.name) || (this.#aborted as { kind?: string } | undefined)?.kind === 'upstream_timeout';
    const failure = new UpstreamError(this.#phase, error.message, { timedOut, cause: error });
    if (this.#body === undefined) this.#reject(failure);
    else this.#body.break(failure);
  }
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
