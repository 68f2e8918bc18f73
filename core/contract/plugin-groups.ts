/** The groups of members that a plugin instance has where it needs them. Types alone. */
import type { Command } from './commands.ts';
import type { SocketEndpoint } from './direct-request.ts';
import type { StoreState } from './extensions.ts';
import type { Unrouted } from './public-operation.ts';
import type { Fault, Notice, SectionPart } from './remarks.ts';
import type { RotatedSecret } from './secret.ts';

/** From the set-up to the end of the process. Commands run `stop` alone. */
export interface Lifecycle {
  /** After every plugin is set up and before the first request. */
  start?(): void | Promise<void>;
  /** Called when the gateway listens, with its base address. */
  listening?(origin: string): void | Promise<void>;
  /** Called when the gateway begins to stop, while exchanges still run; `stop` follows when they have ended. */
  drain?(): void;
  /** In reverse order after the last exchange; also after a command. */
  stop?(): void | Promise<void>;
}

/** Changes of the section while the gateway serves; without this group they wait for a restart. */
export interface Reload<Config> {
  /**
   * Validates and prepares a new section without changing anything; throws an Error with a sentence to refuse. The function
   * that it returns applies it and cannot fail: it is called in one turn for all plugins in the list's order, also where only
   * another section has changed, or never. Services stay the same objects. It may replace `handle` and `applies` of this
   * instance: running exchanges keep the chain that they began with.
   */
  prepare(config: Config): (() => void) | Promise<() => void>;
  /** Members of the section that `prepare` can apply; changes of others wait for a restart. Absent: all of them. */
  readonly members?: readonly string[];
}

/** What `/healthz` and `/readyz` say of this plugin. */
export interface Health {
  /** false once only a restart lets this plugin serve again; `/healthz` then fails, so that an orchestrator restarts it. */
  alive?(): boolean;
  /** false while this plugin cannot serve; `/readyz` then fails. */
  ready?(): boolean;
  /** Stores that this plugin uses by themselves, such as a database: `/readyz` shows them, and fails by `ready` alone. */
  stores?(): Readonly<Record<string, StoreState>>;
  /** What this plugin refuses for now while all else is served: how that ends, by name. `/readyz` shows it, and does not fail. */
  refuses?(): Readonly<Record<string, string>>;
}

/** What `check` and the start say about this configuration when every plugin is set up. */
export interface Checks {
  /** Faults that show only beside the other plugins; reported like other faults of the file. */
  problems?(): readonly (Fault | SectionPart)[];
  /** Remarks for the operator. */
  notices?(): readonly Notice[];
  /** The most connections to upstreams at once, where one address with one key has at most `perPool`. For a warning at start. */
  upstreamConnections?(perPool: number): number;
  /** Why several processes cannot serve this configuration together, and what to change: one sentence. Absent: they can. */
  singleProcess?(): string | undefined;
}

/** Commands of this plugin. */
export interface CommandLine {
  readonly commands?: readonly Command[];
  /** The secrets that `secrets rotate` handles; read only for commands. */
  secrets?(): readonly RotatedSecret[];
  /** Remarks for a person before the command of this name runs, in whole sentences; printed on standard error. */
  beforeCommand?(name: string): readonly string[];
}

/** Addresses beside the endpoints. */
export interface Addresses {
  /** Segments in front of its endpoints' paths, such as `/v1`: a doubled one is dropped, a missing one is named in the 404. */
  readonly pathPrefixes?: readonly string[];
  readonly sockets?: readonly SocketEndpoint[];
  /** Answers requests that no endpoint takes. */
  readonly unrouted?: Unrouted;
}
