/**
 * The contract between the core and the plugins; a plugin author reads this file first.
 *
 * A request becomes an Exchange. It passes the plugins of its gateway in the order of the YAML list and is forwarded at the
 * centre. The answer returns as a body that is *pulled*, so each plugin can wrap it and backpressure is free. Plugins never
 * import one another: they share context values (of one exchange) and services (as long as the process lives), and declare
 * which of them they require, set and provide, so that a wrong order is an error at boot.
 */

import type { Command } from './commands.ts';
import type { DirectAnswer, DirectRequest, SocketEndpoint } from './direct-request.ts';
import type { GatewayError } from './errors.ts';
import type { DeclaresExtensions, ExtensionHost, PluginServices, Service, StoreState } from './extensions.ts';
import type { Clock, Log, Random, RegularWork } from './host-tools.ts';
import type { Answer, AnswerWatcher, ClientRequest, Headers, RepeatableBody } from './message.ts';
import type { Sending, UpstreamNetwork } from './network.ts';
import type { ProcessGroup } from './process-group.ts';
import type { PublicOperation, Unrouted } from './public-operation.ts';
import type { Fault, Notice, SectionPart } from './remarks.ts';
import type { RotatedSecret } from './secret.ts';

export type { Command, CommandResult } from './commands.ts';
export type { DirectAnswer, DirectRequest, SocketEndpoint, Upgrade } from './direct-request.ts';
export {
  defineExtensionPoint,
  defineService,
  type ExtensionPoint,
  type PluginServices,
  type Service,
  type StoreState,
} from './extensions.ts';
export type { Clock, Log, Random } from './host-tools.ts';
export type { AnswerWatcher } from './message.ts';
export type { Fault, Notice } from './remarks.ts';

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

export interface Exchange {
  /** UUIDv7; the gateway's request id, and the key of the rows that this exchange writes. */
  readonly id: string;
  readonly endpoint: Endpoint;
  readonly request: ClientRequest;
  /** Wall-clock milliseconds of arrival. */
  readonly receivedAt: number;
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
  /** For concurrent attempts: `next` is called with one branch for each. */
  fork(): Branch;
  /** Passes the answer, as it is written to the client's socket, to `watcher` too; an error answer as well. */
  watch(watcher: AnswerWatcher): void;
}

// ------------------------------------------------------------------------------------------------------------- endpoint

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
}

// -------------------------------------------------------------------------------------------------------------- forward

/** Bounds on reading an answer after its client has disconnected. */
export type DrainBounds = { readonly longestMs: number; readonly maxBytes: number };

/** What the centre sends. Set by the plugin that knows the upstream's protocol, again for each attempt. */
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
   * Makes the attempt in place of forwarding, for upstreams over WebSocket; rejects with an UpstreamError. May resolve before
   * `begin` is called, as nothing has been executed then. Resolves with undefined, before `begin`, to have the request forwarded.
   */
  sendOver?(sending: Sending): Promise<Answer | undefined>;
  /** The answer is read on within these bounds when the client disconnects, so that its cost is known; absent: the request is aborted. */
  drain?: DrainBounds | undefined;
}

/** The account that the memory of the request's body is counted for; set by the plugin that authenticates. */
export const bodyOwner: ContextKey<string> = defineContextKey('body owner');

export const upstreamRequest: ContextKey<UpstreamRequest> = defineContextKey('upstream request');

// --------------------------------------------------------------------------------------------------------------- plugin

export type Next = (branch?: Branch) => Promise<Answer>;

/** The result of `PluginInstance.admit`; a promise only for a look-up. */
export type Admission = 'later' | undefined | Promise<'later' | undefined>;

/** One running instance of a plugin in one gateway. */
export interface PluginInstance<Config = unknown> {
  /** Read when every plugin is set up. */
  readonly endpoints?: readonly Endpoint[];
  /** Segments in front of its endpoints' paths, such as `/v1`: a doubled one is dropped, a missing one is named in the 404. */
  pathPrefixes?: readonly string[];
  /** WebSocket addresses. */
  sockets?: readonly SocketEndpoint[];
  /** Called once for each endpoint at boot; default: every endpoint without a `handle` of its own. */
  applies?(endpoint: Endpoint): boolean;
  /**
   * Called before a large, encoded or chunked body is read, if `handle` runs after `open`; throws a GatewayError to refuse.
   * What it acquires it releases in `exchange.defer`; `handle` still runs. `later`: the request may be answered without
   * the plugins below, which are not asked.
   */
  admit?(exchange: Exchange): Admission;
  /** Throw a GatewayError to refuse. Only a plugin with `retries` may call `next` more than once. */
  handle?(exchange: Exchange, next: Next): Promise<Answer>;
  /** The gateway's own error shape; tried before the endpoint's. No exchange: the request matched no endpoint. */
  renderError?(error: GatewayError, exchange: Exchange | undefined): Answer | undefined;
  readonly unrouted?: Unrouted;
  commands?: readonly Command[];
  /** What `secrets rotate` is about; asked of commands alone. */
  secrets?(): readonly RotatedSecret[];
  /** Remarks on this configuration for the operator; `check` prints them. */
  notices?(): readonly Notice[];
  /** The most connections to upstreams at once, where one address with one key has at most `perPool`. For a warning at start. */
  upstreamConnections?(perPool: number): number;
  /** Faults that show only when every plugin is set up; reported like other faults of the file. */
  problems?(): readonly (Fault | SectionPart)[];
  /**
   * Validates and prepares a new section without changing anything; throws an Error with a sentence to refuse. The function
   * that it returns applies it and cannot fail: it is called in one turn for all plugins in the list's order, also where only
   * another section has changed, or never. Services stay the same objects. It may replace `handle` and `applies` of this
   * instance: running exchanges keep the chain that they began with.
   */
  prepare?(config: Config): (() => void) | Promise<() => void>;
  /** Members of the section that `prepare` can apply; changes of others wait for a restart. Absent: all of them. */
  readonly reloads?: readonly string[];
  /** Why several processes cannot serve this configuration together, and what to change: one sentence. Absent: they can. */
  singleProcess?(): string | undefined;
  /** false while this plugin cannot serve; `/readyz` then fails. */
  ready?(): boolean;
  /** Stores that this plugin uses by themselves, such as a database: `/readyz` shows them, and fails by `ready` alone. */
  stores?(): Readonly<Record<string, StoreState>>;
  /** What this plugin refuses for now while all else is served: how that ends, by name. `/readyz` shows it, and does not fail. */
  refuses?(): Readonly<Record<string, string>>;
  /** What a person should know before this command runs, in whole sentences; printed on standard error. */
  beforeCommand?(name: string): readonly string[];
  /** false once only a restart lets this plugin serve again; `/healthz` then fails, so that an orchestrator restarts it. */
  alive?(): boolean;
  /** After every plugin is set up and before the first request. Not run for commands. */
  start?(): void | Promise<void>;
  /** Called when the gateway listens, with its base address. */
  listening?(origin: string): void | Promise<void>;
  /** Called when the gateway begins to stop, while exchanges still run; `stop` follows when they have ended. */
  drain?(): void;
  /** In reverse order after the last exchange; also after a command. */
  stop?(): void | Promise<void>;
}

export interface Plugin<Config = unknown> extends DeclaresExtensions {
  readonly name: string;
  /** zod schema of the plugin's section. Strict: unknown keys fail. Every field carries a `.describe()` sentence. */
  readonly config: ConfigSchema<Config>;
  readonly services?: PluginServices;
  /** Context keys that must be set before its `handle` runs. */
  readonly requires?: readonly ContextKey<unknown>[];
  /** Context keys that its `handle` uses where they are set; if anything sets them, it must run before. */
  readonly optional?: readonly ContextKey<unknown>[];
  readonly sets?: readonly ContextKey<unknown>[];
  /** Context keys that it reads when the exchange has ended: some plugin of the list must set them. */
  readonly requiresAtEnd?: readonly ContextKey<unknown>[];
  /** Its `handle` calls `next` once per attempt. */
  readonly retries?: true;
  /**
   * Called as soon as the plugin is loaded for a gateway that is to serve, with its section as written: begins what takes a while
   * beside the loading of the others and shows nowhere. Nothing is checked yet, and `setup` may never follow.
   */
  warmUp?(section: unknown): void;
  setup(host: Host, config: Config): PluginInstance<Config> | Promise<PluginInstance<Config>>;
}

/** The subset of zod that the core uses; `z.strictObject({...})` fits. */
export interface ConfigSchema<Config> {
  readonly _zod: { readonly output: Config };
}

/** Infers the type of the plugin's config. */
export function definePlugin<Config>(plugin: Plugin<Config>): Plugin<Config> {
  return plugin;
}

export interface Host extends ExtensionHost {
  /** Name of the gateway: `main`. */
  readonly gateway: string;
  /** The gateway's own database schema. */
  readonly schema: string;
  /** Absolute path for what this process must keep; no other serving process has the same. */
  readonly directory: string;
  /** Absolute path that is the same for all processes on this machine that serve the gateway. */
  readonly commonDirectory: string;
  /** The processes on this machine that serve the gateway together. */
  readonly processGroup: ProcessGroup;
  /**
   * `serve`: the gateway will serve requests. `command`: one command runs, perhaps beside a serving process.
   * `check`: only the configuration is checked; nothing may be opened, written or sent.
   */
  readonly mode: 'serve' | 'command' | 'check';
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** The service's value; the wiring check guarantees that it is provided. */
  get<T>(service: Service<T>): T;
  /** The value of an optional service, or undefined; at run time. */
  find<T>(service: Service<T>): T | undefined;
  provide<T>(service: Service<T>, value: T): void;
  /** Every endpoint of the gateway; complete from `start` on. */
  endpoints(): readonly Endpoint[];
  /**
   * Repeats the work while serving. Failures are one line when they begin, one a minute, and one at their end: a round that has nothing
   * to do returns no promise, or `idle`, which is no success.
   */
  every(intervalMs: number, name: string, work: RegularWork): void;
  /**
   * Runs a request that did not come over HTTP through the whole chain, and resolves with its answer's head. Rejects for an
   * address without an endpoint, and when the request is given up before its answer. While serving.
   */
  perform(request: DirectRequest): Promise<DirectAnswer>;
}

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
