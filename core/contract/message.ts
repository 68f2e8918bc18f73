/** Requests and answers as plugins see them. Types. */
import type { GatewayError } from './errors.ts';

/** Header names are lower-case; a header that was sent twice has its values joined as RFC 9110 says. */
export type Headers = Record<string, string>;

/** A client's request, over HTTP or as a direct request; in the protocol of its endpoint, whatever the upstream speaks. */
export interface ClientRequest {
  readonly method: string;
  /** Path without the query, as routed. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Headers>;
  /** Path parameters by name; a trailing wildcard is `*`. Decoded. */
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly remoteAddress: string;
  /** The whole body. Empty until it was read, and again once the answer has begun, which frees its memory. */
  readonly body: Uint8Array;
  /** Length of the body once it was read. */
  readonly bodyBytes: number;
  /**
   * The body as it arrives, once, for endpoints with the body `stream`: pulled, so that a slow reader slows the client. Throws
   * client_left, or unsupported for an encoded body. What the reader leaves is discarded. Bounds are the reader's to keep.
   */
  openBody?(): AsyncIterable<Uint8Array>;
}

/** A body of a request to an upstream that is not in memory. It is opened for each attempt, and pulled as the upstream takes it. */
export interface RepeatableBody {
  readonly bytes: number;
  open(): AsyncIterable<Uint8Array>;
}

export type AnswerBody = AsyncIterable<Uint8Array> | Uint8Array | string;

/** The answer of a plugin, an endpoint or an upstream, on its way to the client: `next` returns it, and a plugin may change or replace it. */
export interface Answer {
  status: number;
  /** The answer's own object: plugins and the core add to it. */
  headers: Headers;
  /** A whole body, or chunks that are pulled. When the client disconnects, `return()` of the iterator is called. */
  body: AnswerBody;
  /** Each one becomes a `set-cookie` line of its own. */
  cookies?: readonly string[];
  /** Length of a streamed body where it is known beforehand; becomes `content-length`. A body of another length breaks off. */
  bodyBytes?: number;
  /** true once the chunk that was pulled last contains the protocol's terminal event; absent: not known. */
  endsNow?: () => boolean;
  /** Called when a streamed body is silent: bytes that the client's protocol ignores (an SSE comment); undefined within a frame. */
  idleFrame?: () => Uint8Array | undefined;
  /**
   * Called when a plugin above throws in a streamed body that it wraps: the bytes that report the error in the client's protocol
   * and end the stream. Absent or undefined: the connection is closed.
   */
  failed?: (error: GatewayError) => Uint8Array | undefined;
}

/** An observer of answers on their way to the client. Its methods must not throw or change what they get, and copy what they keep. */
export interface AnswerWatcher {
  head(status: number, headers: Readonly<Record<string, unknown>>): void;
  chunk(bytes: Uint8Array): void;
}
