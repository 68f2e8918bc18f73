/** One exchange: its context values, its request and answer, its endpoint, and what the centre sends upstream. */

import type { SecureContext } from 'node:tls';
import type { GatewayError } from './errors.ts';
import type { RequestLog } from './host-tools.ts';
import type { Answer, AnswerWatcher, ClientRequest, Headers, RepeatableBody } from './message.ts';
import type { PublicOperation } from './public-operation.ts';
import type { Secret } from './secret.ts';

// -------------------------------------------------------------------------------------------------------------- context

/** The key of a value of one exchange, such as its caller or its usage. Compared by identity; `name` is for messages. */
export interface ContextKey<T> {
  readonly name: string;
  /** Index in the exchange's context; keys are defined once per process, at module load. */
  readonly slot: number;
  /** Carries T for the type checker; never set. */
  readonly type?: T;
}

let nextSlot = 0;
/** A new context key; once per process, at module load. A plugin that imports it can read what another one has set. */
export function defineContextKey<T>(name: string): ContextKey<T> {
  return { name, slot: nextSlot++ };
}

/** How an exchange ended; passed to deferred work. */
export interface Outcome {
  /** `complete`: the whole answer was sent (an error answer too). `client_left`: the client disconnected before. `failed`: the answer broke off or could not be rendered. */
  readonly kind: 'complete' | 'client_left' | 'failed';
  /** The error that was sent to the client, or that broke the stream. */
  readonly error?: GatewayError;
  /** The status that was sent; 499 when the client disconnected before the head. */
  readonly status: number;
  readonly bytesOut: number;
  /** Milliseconds from arrival to the first body byte and to the end; monotonic clock. */
  readonly firstByteMs?: number;
  readonly totalMs: number;
}

export type SendHook = (sending: Exchange) => void | Promise<void>;

/** One client request and its answer, as each plugin of the chain gets it. It lives until its deferred work has run. */
export interface Exchange {
  /** UUIDv7; the gateway's request id, and the key of the rows that this exchange writes. */
  readonly id: string;
  readonly endpoint: Endpoint;
  readonly request: ClientRequest;
  /** Wall-clock milliseconds of arrival. */
  readonly receivedAt: number;
  /** Writes lines about this request. */
  readonly log: RequestLog;
  /** Aborts when the client disconnects (see `continueAfterDisconnect`) or the exchange's deadline passes. */
  readonly signal: AbortSignal;
  /** The key's value; throws when it is not set. */
  get<T>(key: ContextKey<T>): T;
  /** The key's value or undefined. */
  find<T>(key: ContextKey<T>): T | undefined;
  set<T>(key: ContextKey<T>, value: T): void;
  /** Runs exactly once when the exchange has ended, however it ended; last in first out, after the client has its answer. */
  defer(work: (outcome: Outcome) => void | Promise<void>): void;
  /**
   * Runs once, right before the last bytes of an answer are sent, and delays them until it resolves. Does not run when the
   * answer breaks off or the client has disconnected. `kind`: how the exchange ends, unless the connection breaks now.
   */
  beforeEnd(work: (kind: Outcome['kind']) => void | Promise<void>): void;
  /** Runs before each attempt and delays it until it resolves; the request may be changed. `sending`: the exchange or branch that sends. */
  beforeSend(work: SendHook): void;
  /**
   * Runs when an attempt has its connection, right before the first byte of its request is written, and delays that until it
   * resolves: an attempt that fails to connect never comes to it. The request cannot be changed any more.
   */
  beforeFirstByte(work: SendHook): void;
  /** After a disconnect, the answer to a sent request is read on, through every plugin, before `signal` aborts. */
  continueAfterDisconnect(bounds: DrainBounds): void;
  /** Marks a streamed answer as failed although its body ends normally (the error was sent inside the stream). */
  fail(error: GatewayError): void;
  /** A branch of the exchange for one of several concurrent attempts, each of which gets one from `next`. */
  fork(): Branch;
  /** The request goes on with another body, by which its endpoint is opened again. Before anything was sent; not with the body `stream`. */
  replaceBody(body: Uint8Array): Promise<void>;
  /** Passes the answer, as it is written to the client's socket, to `watcher` too; an error answer as well. */
  watch(watcher: AnswerWatcher): void;
}

// ------------------------------------------------------------------------------------------------------------- endpoint

/** An address of the gateway: what it reads, whether it is charged, how it answers or that it is forwarded. A plugin returns its own as `endpoints`. */
export interface Endpoint {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** find-my-way pattern: `/v1/tasks/:task_id`, `/v1beta/models/*`. */
  readonly path: string;
  /** The requests to its path that it takes, before the endpoint there that has no such bound. Absent: all. */
  takes?(params: Readonly<Record<string, string | undefined>>): boolean;
  /** Its name in configuration: `chat`, `messages`, `models`, `tasks`. Several endpoints may share one. */
  readonly operation: string;
  /** Kind of the models that its requests name; absent: chat. */
  readonly modelKind?: string;
  /** It authenticates requests itself (by a signature) or needs no authentication: no key is required. */
  readonly keyless?: true;
  readonly describes?: readonly PublicOperation[];
  /** It is for pages of the gateway itself: browsers let no page of another origin read its answers. */
  readonly sameOrigin?: true;
  /** What is kept here of its requests or answers beyond their exchange, in the plural: `files`. Callers of whom nothing may be kept are refused. */
  readonly keeps?: string;
  /** Requests to it are not recorded in the request log. */
  readonly unlogged?: true;
  /**
   * `none`: no body is read. Default: the whole body, up to the server's limit. `json`: `open` reads it with `readBody` of
   * `core/json/request-body.ts`; a large one is parsed in slices, its values are bounded. `stream`: `open` or `handle` reads it.
   */
  readonly body?: 'whole' | 'json' | 'none' | 'stream';
  /** Whether its requests, or those with this head, are charged. Absent: not known before the body is read. */
  readonly charges?: boolean | ((request: ClientRequest) => boolean);
  /** Overrides the exchange's deadline (600 s), in milliseconds. */
  readonly timeoutMs?: number;
  /** The work is done after the exchange, which chooses no upstream; its money is reserved by an authorization. */
  readonly deferred?: true;
  /** The context keys that `open` sets. */
  readonly setsOnOpen?: readonly ContextKey<unknown>[];
  /** Context keys that `open` uses where they are set; their plugins must precede the first plugin that requires what it sets. */
  readonly optional?: readonly ContextKey<unknown>[];
  /**
   * Parses what the gateway must know of the request and sets it as context. Runs, after the body was read, right before
   * the first plugin that requires one of `setsOnOpen`: earlier plugins (auth) can refuse without the body. Return a promise
   * only for a look-up.
   */
  open?(exchange: Exchange): void | Promise<void>;
  /**
   * Answers instead of forwarding. Runs at the centre, inside every plugin that applies. `forward` sends the
   * `upstreamRequest` that it has set, for endpoints that decide only then whether an upstream has the answer.
   */
  handle?(exchange: Exchange, forward: Next): Answer | Promise<Answer>;
  /** Renders an error in this endpoint's protocol; also for requests near its path that match no endpoint. */
  renderError?(error: GatewayError, exchange: Pick<Exchange, 'id' | 'request'>): Answer;
  /** Its clients act on the form and the headers of its errors: a gateway's own error shape is not used for them. */
  readonly keepsErrorForm?: true;
}

// -------------------------------------------------------------------------------------------------------------- forward

/** Bounds on reading an answer after its client has disconnected. */
export type DrainBounds = { readonly longestMs: number; readonly maxBytes: number };

/** The request that the centre sends. Set by the plugin that knows the upstream's protocol, again for each attempt. */
export interface UpstreamRequest {
  /** Absolute http(s) URL. */
  url: string;
  method: string;
  headers: Headers;
  /** A list is one body in parts, which are written in turns of the event loop of their own. */
  body: Uint8Array | string | readonly Uint8Array[] | RepeatableBody | undefined;
  /** Names the credential; sockets are never shared between two of them. */
  credential: string;
  /** true: pass the body on as it arrives. false: read the whole body and answer with one buffer. */
  stream: boolean;
  connectTimeoutMs: number;
  /** How the upstream is reached; absent: directly. */
  network?: UpstreamNetwork | undefined;
  /** Gives the headers of a credential that is computed from the final request; a failure ends the attempt before it is sent. */
  authorize?(request: UpstreamRequest): Headers | Promise<Headers>;
  /** Called when the upstream answers 401 to these headers; true: others can be had, and the request is sent once more with them. */
  refused?(request: UpstreamRequest): boolean;
  /** From the request's last byte to the answer's head. */
  firstByteTimeoutMs: number;
  /** Longest silence inside a body. */
  idleTimeoutMs: number;
  /**
   * Makes the attempt instead of forwarding, for upstreams over WebSocket; rejects with an UpstreamError. May resolve before
   * `begin` is called, as nothing has been executed then. Resolves with undefined, before `begin`, to have the request forwarded.
   */
  sendOver?(sending: Sending): Promise<Answer | undefined>;
  /** The answer is read on within these bounds when the client disconnects, so that its cost is known; absent: the request is aborted. */
  drain?: DrainBounds | undefined;
}

/** How an upstream is reached other than directly. */
export interface UpstreamNetwork {
  /** Distinguishes it from others: requests of two networks never share a socket. */
  readonly name: string;
  /** http://, https:// or socks5://, with its credentials; vendors' names are resolved by the proxy. */
  readonly proxy?: Secret | undefined;
  /** Keys and trusted certificates of the TLS connection to the upstream. */
  readonly secureContext?: SecureContext | undefined;
  /** Certificates that are trusted beside the system's, in PEM; for a proxy with TLS, too. */
  readonly ca?: readonly string[] | undefined;
  readonly family?: 'ipv4_first' | 'ipv6_first' | 'ipv4' | 'ipv6' | undefined;
}

/** An attempt that a plugin makes itself, instead of HTTP. */
export interface Sending {
  /** Aborts when the attempt must end. */
  readonly signal: AbortSignal;
  /** Awaited right before anything is sent that the upstream may execute. Rejects when it must not be sent. */
  begin(): Promise<void>;
}

/** The account that the memory of the request's body is counted for; set by the plugin that authenticates. */
export const bodyOwner: ContextKey<string> = defineContextKey('body owner');

/** The request that the centre sends; set below `route`, again for each attempt. */
export const upstreamRequest: ContextKey<UpstreamRequest> = defineContextKey('upstream request');

/** The rest of the chain: resolves with the answer's head. Rejects with a GatewayError, an UpstreamRefusal or an UpstreamError. */
export type Next = (branch?: Branch) => Promise<Answer>;

/**
 * One of several concurrent attempts. It starts with a copy of the exchange's context and keeps its own until `join`. Deferred
 * work is the exchange's; an abort of the exchange aborts it too.
 */
export interface Branch extends Exchange {
  /** Its request was handed to a socket. */
  readonly hasSent: boolean;
  /** Status that its upstream has sent; 0: none yet. */
  readonly headStatus: number;
  /** Aborts this attempt alone. */
  stop(reason: GatewayError): void;
  /** Makes this branch's context the exchange's. For one of the running branches. */
  join(): void;
}
