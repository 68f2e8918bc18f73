/** Requests that did not come over HTTP (a turn on a WebSocket, a line of a batch), and the WebSocket addresses of plugins. Types. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Endpoint, Exchange, Outcome } from './exchange.ts';
import type { ClientRequest, Headers } from './message.ts';

/** Such a request passes the same chain as one over HTTP: key, limits, hold, row, log line, metrics. */
export interface DirectRequest {
  readonly method: Endpoint['method'];
  /** With the query. */
  readonly path: string;
  /** Lower-case names; the credential is one of them, unless `prepare` sets the caller. The body's length is added. */
  readonly headers: Readonly<Headers>;
  /** As it would be sent: neither compressed nor chunked. */
  readonly body?: Uint8Array;
  readonly remoteAddress: string;
  /** The exchange's id, where rows have it already; absent: a new one. */
  readonly id?: string;
  /** Its abort is the client's disconnect. */
  readonly signal?: AbortSignal;
  /** Sets context values that are known already, such as an authenticated caller; runs before the first plugin. */
  prepare?(exchange: Exchange): void;
}

/** An answer from its head on; error answers too, in the endpoint's protocol. */
export interface DirectAnswer {
  readonly status: number;
  /** `x-request-id` is the exchange's id. */
  readonly headers: Readonly<Headers>;
  /** Is pulled, with backpressure to the upstream. `return()` of the iterator is a disconnect; an answer that breaks off throws. */
  readonly body: AsyncIterable<Uint8Array>;
  /** When the exchange has ended and its deferred work is done: the money is settled. Comes only after the body was read or left. */
  readonly ended: Promise<Outcome>;
}

/** A WebSocket address. `accept` authenticates: no other plugin sees the request. */
export interface SocketEndpoint {
  /** Exact, without a query. */
  readonly path: string;
  /** Takes the socket over, with Node's own objects as WebSocket libraries expect them. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, upgrade: Upgrade): void;
  /**
   * The gateway stops: closes its sockets, each when what runs on it has ended; the rest is cut at the drain's deadline. Absent:
   * the sockets are ended at once.
   */
  drain?(): void;
}

/** A request to upgrade. */
export interface Upgrade {
  readonly id: string;
  readonly request: ClientRequest;
  /** Answers with an error in the protocol of the path and ends the socket. */
  refuse(error: unknown): void;
}
