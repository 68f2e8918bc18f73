/**
 * The contract between the core and the plugins; a plugin author reads this file first.
 *
 * A request becomes an Exchange. It passes the plugins of its gateway in the order of the YAML list and is forwarded at the
 * centre. The answer returns as a body that is *pulled*, so each plugin can wrap it and backpressure is free. Plugins never
 * import one another: they share context values (of one exchange) and services (as long as the process lives), and declare
 * which of them they require, set and provide, so that a wrong order is an error at boot.
 */

import type { DirectAnswer, DirectRequest } from './direct-request.ts';
import type { GatewayError } from './errors.ts';
import type { ContextKey, Endpoint, Exchange, Next } from './exchange.ts';
import type { DeclaresExtensions, ExtensionHost, PluginServices, Service } from './extensions.ts';
import type { Clock, Log, Random, RegularWork } from './host-tools.ts';
import type { Answer } from './message.ts';
import type { FetchOptions } from './outbound.ts';
import type { Addresses, Checks, CommandLine, Health, Lifecycle, Reload } from './plugin-groups.ts';
import type { ProcessGroup } from './process-group.ts';

export type { Command, CommandResult } from './commands.ts';
export type { DirectAnswer, DirectRequest, SocketEndpoint, Upgrade } from './direct-request.ts';
export * from './exchange.ts';
export {
  defineExtensionPoint,
  defineService,
  type ExtensionPoint,
  type PluginServices,
  type Service,
  type StoreState,
} from './extensions.ts';
export type { Clock, Log, Random, RequestLog } from './host-tools.ts';
export type { AnswerWatcher } from './message.ts';
export type { FetchOptions } from './outbound.ts';
export type { Addresses, Checks, CommandLine, Health, Lifecycle, Reload } from './plugin-groups.ts';
export type { Fault, Notice } from './remarks.ts';

// --------------------------------------------------------------------------------------------------------------- plugin

/** The result of `PluginInstance.admit`; a promise only for a look-up. */
export type Admission = 'later' | undefined | Promise<'later' | undefined>;

/** One running instance of a plugin in one gateway: its part in requests, and the groups of other members that it needs. */
export interface PluginInstance<Config = unknown> {
  /** Read when every plugin is set up. */
  readonly endpoints?: readonly Endpoint[];
  /** Called once for each endpoint at boot; default: every endpoint without a `handle` of its own. */
  applies?(endpoint: Endpoint): boolean;
  /**
   * Called before a large, encoded or chunked body is read, if `handle` runs after `open`; throws a GatewayError to refuse.
   * It releases what it acquires in `exchange.defer`; `handle` still runs. `later`: the request may be answered without
   * the plugins below, which are not asked.
   */
  admit?(exchange: Exchange): Admission;
  /** Throw a GatewayError to refuse. Only a plugin with `retries` may call `next` more than once. */
  handle?(exchange: Exchange, next: Next): Promise<Answer>;
  /** The gateway's own error shape; tried before the endpoint's. No exchange: the request matched no endpoint. */
  renderError?(error: GatewayError, exchange: Exchange | undefined): Answer | undefined;
  /** What log lines about a request have of this plugin, in snake_case. Called for a line alone, at any time of the exchange. */
  logFields?(exchange: Exchange): Readonly<Record<string, string>> | undefined;
  readonly addresses?: Addresses;
  readonly lifecycle?: Lifecycle;
  readonly reload?: Reload<Config>;
  readonly health?: Health;
  readonly checks?: Checks;
  readonly commandLine?: CommandLine;
}

/** What a plugin declares, and its `setup`. The default export of its module, by `definePlugin`. */
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
   * It adds a source of secrets of this name that reads from services of others. It is set up early only where a file names the source, behind the
   * plugins that provide these services; their own sections and its own can have variables and files alone.
   */
  readonly storedSecrets?: { readonly source: string; readonly after: readonly Service<unknown>[] };
  /**
   * Called as soon as the plugin is loaded for a gateway that is to serve, with its section as written: begins what takes a while
   * beside the loading of the others and shows nowhere. Nothing is checked yet, and `setup` may never follow: the process ends then,
   * and has to take away what it has begun in the data directory.
   */
  warmUp?(section: unknown, place: { readonly directory: string; readonly schema: string }): void;
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

/** What the gateway gives a plugin in `setup`, for as long as the gateway lives. */
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
  /**
   * Asks a service outside, by the gateway's `outbound` settings. Resolves with the answer's head, of any status; its body is read as that of `fetch`.
   * Rejects with Unfetchable for an address or a redirect that is not public (unless it is allowed), with a TimeoutError, and with what broke.
   */
  fetch(address: string, options?: FetchOptions): Promise<Response>;
}
