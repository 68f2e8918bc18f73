/**
 * THE CONTRACT between the core and every plugin: the one file a plugin author reads.
 *
 * A request becomes an Exchange. It walks the plugins of its gateway as an onion, in the order of the YAML list, and is
 * forwarded at the centre. The answer comes back as a body that is *pulled*, so each plugin may wrap it and backpressure
 * is free. Plugins never import one another: they share Facts (true of one exchange) and Services (alive as long as the
 * process), and declare which they read, write, need and provide, so that a wrong order is a sentence at boot.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Branch } from './branch.ts';
import type { Command } from './commands.ts';
import type { Crew } from './crew.ts';
import type { GatewayError } from './errors.ts';
import type { AnswerWatcher } from './watcher.ts';

export type { Command, CommandResult } from './commands.ts';
export type { AnswerWatcher } from './watcher.ts';

// ---------------------------------------------------------------------------------------------------------------- facts

/** Something that is true of one exchange, such as who calls or what it used. Compared by identity; `name` is for messages. */
export interface Fact<T> {
  readonly name: string;
  /** Place in the exchange's slots; facts are made once per process, at module load. */
  readonly slot: number;
  /** Carries T for the type checker; never set. */
  readonly type?: T;
}

let nextSlot = 0;
export function defineFact<T>(name: string): Fact<T> {
  return { name, slot: nextSlot++ };
}

/** Something that lives as long as the gateway, such as the database or the catalogue. */
export interface Service<T> {
  readonly name: string;
  readonly type?: T;
}

export function defineService<T>(name: string): Service<T> {
  return { name };
}

// ------------------------------------------------------------------------------------------------------------- exchange

/** Header names are lower-case; a header that was sent twice has its values joined as RFC 9110 says. */
export type Headers = Record<string, string>;

export interface ClientRequest {
  readonly method: string;
  /** Path without the query, as routed. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Headers>;
  /** Path parameters by name; a trailing wildcard is `*`. Decoded. */
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly remoteAddress: string;
  /** The whole body. Empty until it was read, and again once the answer has begun: nobody pays for a prompt that was sent. */
  readonly body: Uint8Array;
  /** Length of the body, once it was read. */
  readonly bodyBytes: number;
}

export type AnswerBody = AsyncIterable<Uint8Array> | Uint8Array | string;

export interface Answer {
  status: number;
  /** The answer's own object: plugins on the way out, and the core, add to it. */
  headers: Headers;
  /** A whole body, or chunks that are pulled. When the client leaves, `return()` of the iterator is called. */
  body: AnswerBody;
  /** Each one becomes a `set-cookie` line of its own. */
  cookies?: readonly string[];
  /** Length of a streamed body where it is known beforehand; becomes `content-length`. A body of another length breaks off. */
  bodyBytes?: number;
  /** Asked when a streamed body is silent: bytes that the client's protocol ignores (an SSE comment); undefined within a frame. */
  idleFrame?: () => Uint8Array | undefined;
}

/** How an exchange ended. Given to every deferred work. */
export interface Outcome {
  /** `complete`: the whole answer went out (an error answer too). `client_left`: before that. `failed`: the answer broke off or could not be rendered. */
  readonly kind: 'complete' | 'client_left' | 'failed';
  /** What the client was told, or what broke the stream. */
  readonly error?: GatewayError;
  /** Status that was sent; 499 when the client left before the head. */
  readonly status: number;
  readonly bytesOut: number;
  /** Milliseconds from arrival to the first body byte and to the end; monotonic clock. */
  readonly firstByteMs?: number;
  readonly totalMs: number;
}

export interface Exchange {
  /** UUIDv7; the gateway's own request id, the key of every row that this exchange leaves behind. */
  readonly id: string;
  readonly endpoint: Endpoint;
  readonly request: ClientRequest;
  /** Wall-clock milliseconds of arrival. */
  readonly receivedAt: number;
  /** Aborts when the client leaves (unless the answer is read on without it) or the exchange's deadline passes. */
  readonly signal: AbortSignal;
  /** The fact's value; throws when nobody has set it. */
  get<T>(fact: Fact<T>): T;
  /** The fact's value or undefined. */
  find<T>(fact: Fact<T>): T | undefined;
  set<T>(fact: Fact<T>, value: T): void;
  /** Runs exactly once when the exchange has ended, whatever the end; last in first out, off the client's path. */
  defer(work: (outcome: Outcome) => void | Promise<void>): void;
  /** Runs each time right before a request is handed to an upstream socket; it waits for it. `sending`: whose request it is. */
  beforeSend(work: (sending: Exchange) => void | Promise<void>): void;
  /**
   * When the client leaves after something was sent, the answer is read on to its end within these bounds, through every
   * plugin, as if the client were there: `signal` aborts only when they are used up.
   */
  outlive(bounds: DrainBounds): void;
  /** States that a streamed answer broke although its body ends in good order (the error went out inside the stream). */
  fail(error: GatewayError): void;
  /** For attempts that run at the same time: `next` is called with one branch for each. */
  fork(): Branch;
  /** Shows `watcher` the answer as it is handed to the client's socket, an error's too. One for each exchange. */
  watch(watcher: AnswerWatcher): void;
}

// ------------------------------------------------------------------------------------------------------------- endpoint

export interface Endpoint {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** find-my-way pattern: `/v1/tasks/:task_id`, `/v1beta/models/*`. */
  readonly path: string;
  /** The name that configuration uses for it: `chat`, `messages`, `models`, `tasks`. Several endpoints may share one. */
  readonly operation: string;
  /** Kind of the models that its requests name, where that is another than chat: `image`. */
  readonly takes?: string;
  /** Its address admits by itself (it is signed): no key is asked for. */
  readonly keyless?: true;
  /** A person's look at the gateway, not a call of a client: no row is kept of it. */
  readonly unlogged?: true;
  /** `none`: no body is read. Default: the whole body, up to the server's limit. */
  readonly body?: 'whole' | 'none';
  /** Overrides the exchange's deadline (600 s), in milliseconds. */
  readonly timeoutMs?: number;
  /** Done later, by whoever takes the order: no upstream is chosen in the exchange; money is set aside by the order's `deposit`. */
  readonly later?: true;
  /** The facts that `open` states. */
  readonly states?: readonly Fact<unknown>[];
  /** Facts that `open` uses where they are stated; whoever writes them stands above the first plugin that reads what it states. */
  readonly finds?: readonly Fact<unknown>[];
  /**
   * Reads what the gateway must know of the request and states it as facts. It runs, after the body was read, right
   * before the first plugin that reads one of `states`: whoever stands earlier (auth) can refuse without the body.
   * A promise is waited for; return one only where something must be looked up.
   */
  open?(exchange: Exchange): void | Promise<void>;
  /**
   * Answers by itself instead of forwarding. Runs at the centre, inside every plugin that applies. `forward` sends what it
   * has stated as `upstreamRequest`, for endpoints that know only then whether somebody else has the answer.
   */
  handle?(exchange: Exchange, forward: Next): Answer | Promise<Answer>;
  /** Words an error in this endpoint's protocol; also of requests near its path that came to no endpoint. */
  renderError?(error: GatewayError, told: Pick<Exchange, 'id' | 'request'>): Answer;
}

// -------------------------------------------------------------------------------------------------------------- forward

/** How far an answer is read on after its client has left. */
export interface DrainBounds {
  readonly longestMs: number;
  readonly maxBytes: number;
}

/** What the centre sends. Stated by the plugin that knows the upstream's protocol, anew for each attempt. */
export interface UpstreamRequest {
  /** Absolute http(s) URL. */
  url: string;
  method: string;
  headers: Headers;
  body: Uint8Array | string | undefined;
  /** Names the credential; sockets are never shared between two of them. */
  credential: string;
  /** true: hand the body on as it comes. false: wait for the whole body and answer with one buffer. */
  stream: boolean;
  connectTimeoutMs: number;
  /** From the request's last byte to the answer's head. */
  firstByteTimeoutMs: number;
  /** Longest silence inside a body. */
  idleTimeoutMs: number;
  /** The answer is read on when the client leaves, so that what it cost is known; absent: the upstream is told to stop. */
  drain?: DrainBounds | undefined;
}

export const upstreamRequest: Fact<UpstreamRequest> = defineFact('upstream request');

// --------------------------------------------------------------------------------------------------------------- plugin

export type Next = (branch?: Branch) => Promise<Answer>;

/** An address of WebSockets. No other plugin has a say: who may open it is for `accept` to find out. */
export interface SocketEndpoint {
  /** Exact, without a query. */
  readonly path: string;
  /** Takes the socket over, with Node's own objects, as WebSocket libraries want them; destroys it where it refuses. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** One running instance of a plugin in one gateway. Leave out what you do not do. */
export interface Part<Config = unknown> {
  endpoints?: readonly Endpoint[];
  /** WebSocket addresses; whoever accepts one speaks with it until it ends. */
  sockets?: readonly SocketEndpoint[];
  /** Asked once for each endpoint at boot; default: every endpoint that does not answer by itself (`handle`). */
  applies?(endpoint: Endpoint): boolean;
  /** Throw a GatewayError to refuse. Only a plugin with `repeats` may call `next` more than once. */
  handle?(exchange: Exchange, next: Next): Promise<Answer>;
  /** The gateway's own error shape; asked before the endpoint's. Without an exchange the request came to no endpoint. */
  renderError?(error: GatewayError, exchange: Exchange | undefined): Answer | undefined;
  commands?: readonly Command[];
  /** What an operator should know of this configuration; `check` prints it. */
  notices?(): readonly Notice[];
  /** Why this configuration must not run, asked when every plugin is set up: told like other faults of the file. */
  problems?(): readonly Fault[];
  /**
   * Looks a new section over and gets ready for it, changing nothing; throws an Error whose message is a sentence to refuse.
   * What it returns takes it up and cannot fail: called in one turn for all plugins in the list's order, also where only
   * another's section has changed, or never. Services stay the same objects and speak of the new state. It may replace this
   * part's `handle` and `applies`: running exchanges go on with the chain that they began with.
   */
  prepare?(config: Config): (() => void) | Promise<() => void>;
  /** Members of the section that `prepare` can take up; changes of others wait for a restart. Absent: all of them. */
  readonly reloads?: readonly string[];
  /** false while this part cannot serve; `/readyz` says so. */
  ready?(): boolean;
  /** false once nothing but a restart lets this part serve again; `/healthz` says so, so that an orchestrator restarts it. */
  alive?(): boolean;
  /** After every plugin is set up and before the first request. Not run for commands. */
  start?(): void | Promise<void>;
  /** Clients can call now, at this base address. */
  listening?(origin: string): void | Promise<void>;
  /** Called when the gateway is told to stop, while what is in flight goes on; `stop` comes when that has ended. */
  drain?(): void;
  /** In reverse order after the last exchange; also after a command. */
  stop?(): void | Promise<void>;
}

/** A fault of a plugin's section that shows only beside the other plugins. */
export interface Fault {
  /** Where in the section, such as `['gpt', 'price']`. */
  readonly path: readonly (string | number)[];
  /** One sentence that names what to change. */
  readonly message: string;
}

/** A remark on the configuration: `info` is worth knowing, `warning` means that something will not work. */
export interface Notice {
  readonly level: 'info' | 'warning';
  /** One sentence that names what it is about. */
  readonly text: string;
}

export interface Plugin<Config = unknown> {
  readonly name: string;
  /** zod schema of the plugin's section. Strict: unknown keys fail. Every field carries a `.describe()` sentence. */
  readonly config: ConfigSchema<Config>;
  /** Services it must have at setup: a plugin above must provide them. */
  readonly needs?: readonly Service<unknown>[];
  /** Services it asks for at run time with `host.find`, if there are any. */
  readonly uses?: readonly Service<unknown>[];
  readonly provides?: readonly Service<unknown>[];
  /** Facts that must be stated before its `handle` runs. */
  readonly reads?: readonly Fact<unknown>[];
  /** Facts that its `handle` uses where they are stated; the endpoint is opened, and whoever writes them stands, above it. */
  readonly finds?: readonly Fact<unknown>[];
  readonly writes?: readonly Fact<unknown>[];
  /** Facts it reads when the exchange has ended: somebody must write them, wherever it stands. */
  readonly awaits?: readonly Fact<unknown>[];
  /** Its `handle` calls `next` once per attempt. */
  readonly repeats?: true;
  setup(host: Host, config: Config): Part<Config> | Promise<Part<Config>>;
}

/** The part of zod that the core uses; `z.strictObject({...})` fits. */
export interface ConfigSchema<Config> {
  readonly _zod: { readonly output: Config };
}

/** Gives the plugin's config its type and keeps its name in stack traces. */
export function definePlugin<Config>(plugin: Plugin<Config>): Plugin<Config> {
  return plugin;
}

export interface Host {
  /** Name of the gateway: `main`. */
  readonly gateway: string;
  /** Database schema that is this gateway's alone. */
  readonly schema: string;
  /** Absolute path under which this process keeps what must survive; no other process that serves has the same. */
  readonly directory: string;
  /** The same for all processes of this machine that serve the gateway together. */
  readonly commonDirectory: string;
  /** The others that serve it with this process on this machine. */
  readonly crew: Crew;
  /**
   * `serve`: requests will come. `command`: one command runs, perhaps beside a serving process.
   * `check`: nothing may be opened, written or sent; only the configuration is looked at.
   */
  readonly mode: 'serve' | 'command' | 'check';
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** The service's value; the wiring check has made sure that it is there. */
  need<T>(service: Service<T>): T;
  /** The service's value, or undefined; for `uses`, at run time. */
  find<T>(service: Service<T>): T | undefined;
  provide<T>(service: Service<T>, value: T): void;
  /** Every endpoint of the gateway; complete from `start` on. */
  endpoints(): readonly Endpoint[];
  /** Work that goes on every so often while serving, stopped at the end; errors are logged. */
  every(intervalMs: number, name: string, work: () => void | Promise<void>): void;
}

/** Injected time; simulation depends on nobody asking Date or performance. Milliseconds. */
export interface Clock {
  /** Wall clock, whole milliseconds since 1970; may step. */
  now(): number;
  /** Never steps back; only differences mean something. */
  monotonic(): number;
}

export interface Random {
  bytes(count: number): Buffer;
  /** Uniform in [0, 1). */
  fraction(): number;
}

/** pino's shape: fields first, then a sentence. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /**
   * A line at level info whose fields are JSON already (an object with members): for what is written with each request.
   * Nothing is masked in it: texts from outside must be masked field by field.
   */
  record(message: string, json: string): void;
}
