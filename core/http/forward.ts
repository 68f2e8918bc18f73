/** The centre of the chain: forwards with http-proxy-3, of which it is the only importer, on the undici transport. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyServer, type ServerOptions } from 'http-proxy-3';
import { type UpstreamRequest, upstreamRequest } from '../contract/contract.ts';
import type { Answer } from '../contract/message.ts';
import { UpstreamError } from '../contract/upstream-failures.ts';
import { decodeStream, decodeWhole, encodingOf } from './content-encoding.ts';
import type { LiveExchange } from './exchange.ts';
import { Pools, type SocketPool } from './sockets.ts';
import { type Sender, type UpstreamAnswer, UpstreamAttempt, type WholeReader } from './transport.ts';

/**
 * Given to http-proxy-3 instead of the client's request: plugins set method, path, headers and body, so a copy of the
 * client's would be discarded, and the server handles its socket's errors.
 */
const placeholderRequest = {
  method: 'POST',
  url: '/',
  headers: {},
  httpVersionMajor: 1,
  on: () => {},
} as unknown as IncomingMessage;

/** Options of one request: where this gateway's own pass sends it, and what sends it and gets the answer. */
interface SendingOptions extends ServerOptions {
  readonly target: URL;
  readonly path: string;
  readonly attempt: UpstreamAttempt;
}

/** Takes the place of http-proxy-3's last pass, which would send on Node's http or on `fetch`: sends on undici's dispatch. */
function dispatchPass(_request: unknown, _response: unknown, options: ServerOptions): true {
  const { path, attempt } = options as SendingOptions;
  attempt.dispatch(path);
  return true;
}

const smallBytes = 64 * 1024;

export interface Forward {
  (exchange: LiveExchange): Promise<Answer>;
  close(): Promise<void>;
}

/**
 * Sends the exchange's `upstreamRequest` and resolves with the answer. Rejects with an UpstreamError; its phase says whether
 * the upstream may have executed the request. `maxAnswerBytes` bounds answers that are read whole, `maxSockets` the sockets
 * per origin and credential: beyond it `overloaded`, before anything is sent.
 */
export function createForward(maxAnswerBytes: number, maxSockets: number): Forward {
  const proxy = createProxyServer({ selfHandleResponse: true, ignorePath: true, prependPath: false });
  proxy.before('web', 'stream', dispatchPass);
  const pools = new Pools(maxSockets);
  const tools: SendingTools = {
    // Only `dispatchPass` gets the response, and does not touch it.
    web: (exchange, options) => void proxy.web(placeholderRequest, exchange.outgoing as ServerResponse, options),
    maxAnswerBytes,
  };

  function forward(exchange: LiveExchange): Promise<Answer> {
    const request = exchange.get(upstreamRequest);
    if (request.refused === undefined) return send(exchange, request, false);
    return send(exchange, request, false).then((answer) =>
      // A request that is refused for its credential was not executed.
      answer.status === 401 && request.refused!(request) ? send(exchange, request, true) : answer,
    );
  }

  /** `isRepeated`: of the same attempt, which is recorded as sent already. */
  function send(exchange: LiveExchange, request: UpstreamRequest, isRepeated: boolean): Promise<Answer> {
    if (request.sendOver === undefined) return overHttp(exchange, request, isRepeated, false);
    return handOver(exchange, request, isRepeated).then(
      (answer) => answer ?? overHttp(exchange, request, isRepeated, true),
    );
  }

  /** `isReady`: the exchange is ready to send and the request is authorized. */
  function overHttp(
    exchange: LiveExchange,
    request: UpstreamRequest,
    isRepeated: boolean,
    isReady: boolean,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      exchange.attemptSent = false;
      if (exchange.clientDisconnected !== undefined) throw exchange.clientDisconnected;
      const address = parsed(request.url);
      const pool = pools.for(address.origin, request.credential, request.connectTimeoutMs, request.network);
      const sending = new Sending({ exchange, request, address, isRepeated, resolve, reject }, tools);
      let ready = isRepeated || isReady ? undefined : exchange.readyToSend();
      if (request.authorize !== undefined && !isReady) ready = authorized(request, ready);
      if (ready === undefined) sending.start(pool);
      else ready.then(() => sending.start(pool)).catch(reject);
    });
  }

  return Object.assign(forward, { close: () => pools.close() });
}

/** Adds the headers of a computed credential, over all that `ready` may still change. */
async function authorized(request: UpstreamRequest, ready: Promise<void> | undefined): Promise<void> {
  await ready;
  Object.assign(request.headers, await request.authorize!(request));
}

/** An attempt that a plugin makes itself; undefined: the request is to be forwarded. */
async function handOver(
  exchange: LiveExchange,
  request: UpstreamRequest,
  isRepeated: boolean,
): Promise<Answer | undefined> {
  exchange.attemptSent = false;
  if (exchange.clientDisconnected !== undefined) throw exchange.clientDisconnected;
  let ready = isRepeated ? undefined : exchange.readyToSend();
  if (request.authorize !== undefined) ready = authorized(request, ready);
  await ready;
  refuseStopped(exchange);
  const begin = async () => {
    if (!isRepeated) await exchange.readyForFirstByte();
    leave(exchange);
  };
  const answer = await request.sendOver!({ signal: exchange.signal, begin });
  if (answer !== undefined) exchange.headStatus = answer.status;
  return answer;
}

interface SendingTools {
  /** Through http-proxy-3. */
  web(exchange: LiveExchange, options: SendingOptions): void;
  readonly maxAnswerBytes: number;
}

interface Forwarding {
  readonly exchange: LiveExchange;
  readonly request: UpstreamRequest;
  readonly address: Address;
  readonly isRepeated: boolean;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** A forwarded request from its connection to its answer: works by callbacks, so that all of it is one promise. */
class Sending implements Sender, WholeReader {
  readonly #forwarding: Forwarding;
  readonly #tools: SendingTools;
  #answer: UpstreamAnswer | undefined;

  constructor(forwarding: Forwarding, tools: SendingTools) {
    this.#forwarding = forwarding;
    this.#tools = tools;
  }

  start(pool: SocketPool): void {
    const { exchange, request, isRepeated } = this.#forwarding;
    refuseStopped(exchange);
    const attempt = new UpstreamAttempt(pool, request, this);
    if (!attempt.writesAtOnce) {
      this.#dispatch(attempt);
      return;
    }
    let ready: Promise<void> | undefined;
    try {
      ready = isRepeated ? undefined : exchange.readyForFirstByte();
    } catch (error) {
      this.#cancel(attempt, error);
      return;
    }
    if (ready === undefined) this.#leave(attempt);
    else
      ready.then(
        () => this.#leave(attempt),
        (error: unknown) => this.#cancel(attempt, error),
      );
  }

  #leave(attempt: UpstreamAttempt): void {
    try {
      leave(this.#forwarding.exchange);
    } catch (error) {
      this.#cancel(attempt, error);
      return;
    }
    this.#dispatch(attempt);
  }

  #cancel(attempt: UpstreamAttempt, error: unknown): void {
    attempt.cancel();
    this.#forwarding.reject(error);
  }

  #dispatch(attempt: UpstreamAttempt): void {
    const { exchange, address, reject } = this.#forwarding;
    exchange.runs(attempt);
    try {
      this.#tools.web(exchange, { target: address.url, path: address.path, attempt });
    } catch (error) {
      reject(error);
    }
  }

  begin(): Promise<void> | undefined {
    const { exchange, isRepeated } = this.#forwarding;
    const ready = isRepeated ? undefined : exchange.readyForFirstByte();
    if (ready !== undefined) return ready.then(() => leave(exchange));
    leave(exchange);
    return undefined;
  }

  gotAnswer(answer: UpstreamAnswer): void {
    const { exchange, request, resolve, reject } = this.#forwarding;
    exchange.headStatus = answer.status;
    // A body of known short length costs less as one buffer than as a stream.
    const isSmall = Number(answer.headers['content-length'] ?? Number.NaN) <= smallBytes;
    if (!request.stream || answer.status >= 300 || isSmall) {
      this.#answer = answer;
      answer.body.readAll(this.#tools.maxAnswerBytes, this);
      return;
    }
    try {
      resolve(streamed(answer));
    } catch (error) {
      reject(error);
    }
  }

  /** A failed attempt stops listening to the exchange's abort. */
  failed(error: Error): void {
    const { exchange, reject } = this.#forwarding;
    exchange.attemptSent = false;
    exchange.runs(undefined);
    reject(error);
  }

  gotBody(body: Uint8Array): void {
    const { resolve, reject } = this.#forwarding;
    const answer = this.#answer!;
    const { status, headers } = answer;
    const header = headers['content-encoding'];
    const encoding = header === undefined ? 'identity' : encodingOf(header);
    if (encoding === 'identity') resolve({ status, headers, body });
    else if (encoding === undefined) reject(new UpstreamError('sent', 'unknown content-encoding'));
    else
      decodeWhole(body, encoding, this.#tools.maxAnswerBytes).then(
        (decoded) => resolve({ status, headers: withoutEncoding(answer), body: decoded }),
        (cause: unknown) => reject(new UpstreamError('sent', 'damaged content-encoding', { cause })),
      );
  }

  lostBody(error: UpstreamError): void {
    this.#forwarding.reject(error);
  }
}

/** A URL in the parts that are needed. */
interface Address {
  readonly url: URL;
  readonly origin: string;
  /** With the query. */
  readonly path: string;
}

const addresses = new Map<string, Address>();
const maxAddresses = 1_000;

/** Kept: few distinct URLs recur in every request. */
function parsed(text: string): Address {
  const known = addresses.get(text);
  if (known !== undefined) return known;
  if (addresses.size >= maxAddresses) addresses.clear();
  const url = new URL(text);
  const address = { url, origin: url.origin, path: url.pathname + url.search };
  addresses.set(text, address);
  return address;
}

/** Nothing was sent: the attempt must not be charged. */
function refuseStopped(exchange: LiveExchange): void {
  const stopped = exchange.aborted ?? exchange.clientDisconnected;
  if (stopped !== undefined) throw new UpstreamError('connect', stopped.message, { cause: stopped });
}

/** The request's first byte is about to be written. Throws when it must not be. */
function leave(exchange: LiveExchange): void {
  refuseStopped(exchange);
  exchange.hasSent = true;
  exchange.attemptSent = true;
  // A failure of an earlier attempt has not reached the client.
  exchange.failure = undefined;
}

function streamed(answer: UpstreamAnswer): Answer {
  const encoding = encodingOf(answer.headers['content-encoding']);
  if (encoding === 'identity') return answer;
  if (encoding === undefined) {
    void answer.body.return();
    throw new UpstreamError('sent', 'unknown content-encoding');
  }
  return { status: answer.status, headers: withoutEncoding(answer), body: decodeStream(answer.body, encoding) };
}

function withoutEncoding(answer: UpstreamAnswer): Answer['headers'] {
  const { 'content-encoding': _encoding, 'content-length': _length, ...headers } = answer.headers;
  return headers;
}
