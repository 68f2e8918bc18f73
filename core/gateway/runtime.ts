/** The runtime of one gateway: installs its plugins, serves, applies changed files, and stops. */

import type { ConfigNotice } from '../contract/config-files.ts';
import type { Endpoint, Host, Plugin, PluginInstance, Service } from '../contract/contract.ts';
import type { Extension, ExtensionPoint } from '../contract/extensions.ts';
import type { Clock, Log, Random, RegularWork } from '../contract/host-tools.ts';
import { Outage, regularWorks } from '../contract/outage.ts';
import { outboundCalls } from '../contract/outbound.ts';
import { alone, ownDirectory, type ProcessGroup } from '../contract/process-group.ts';
import { listenFailure } from '../contract/schema.ts';
import { type SecretSource, secretSources } from '../contract/secret.ts';
import { type BodyLimits, BodyReader } from '../http/body.ts';
import { compileChain, type InstalledPlugin } from '../http/chain.ts';
import { trustedProxies } from '../http/client-address.ts';
import { createForward, type Forward } from '../http/forward.ts';
import { createRouter, type Router } from '../http/router.ts';
import { GatewayServer, type ServerLimits } from '../http/server.ts';
import { type GatewayFile, type GatewaySettings, schemaOf } from './config.ts';
import { defaultUpstreamSockets, descriptorLimit } from './descriptors.ts';
import { Extensions, Services } from './extensions.ts';
import { createLog, type LevelledLog } from './log.ts';
import { noticesOf } from './notices/notices.ts';
import { Outbound } from './outbound.ts';
import { sourceProblems } from './secrets/sources.ts';
import { systemClock, systemRandom, uuidMaker } from './system.ts';

export interface GatewayRuntimeOptions {
  /** `serve`: the gateway serves requests. `command`: one command runs. `check`: nothing is opened, written or sent. */
  readonly mode: Host['mode'];
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Absent: this process serves alone. */
  readonly processGroup?: ProcessGroup;
  /** For tests: a plugin from outside that reads a context value which it does not declare gets an error. */
  readonly guardsContext?: boolean;
}

/** The parts of a serving gateway; created once, so that limits hold across reloads. */
interface Running {
  readonly server: GatewayServer;
  readonly bodies: BodyReader;
  readonly forward: Forward;
}

export class GatewayRuntime {
  readonly plugins: InstalledPlugin[] = [];
  readonly endpoints: Endpoint[] = [];
  readonly log: Log;
  readonly clock: Clock;
  readonly #ownLog: LevelledLog | undefined;
  readonly mode: Host['mode'];
  readonly #random: Random;
  readonly #processGroup: ProcessGroup;
  readonly #services = new Services();
  readonly #extensions = new Extensions();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** How each regular work fails. */
  readonly #works = new Map<string, Outage>();
  readonly #outbound: Outbound;
  #file: GatewayFile;
  #running: Running | undefined;
  #stopping: Promise<void> | undefined;

  constructor(file: GatewayFile, options: GatewayRuntimeOptions) {
    this.#file = file;
    this.mode = options.mode;
    this.#ownLog =
      options.log === undefined ? createLog(file.settings.log, undefined, file.settings.gateway) : undefined;
    this.log = options.log ?? this.#ownLog!;
    this.clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#processGroup = options.processGroup ?? alone;
    const failing = () =>
      [...this.#works].flatMap(([name, { lastsMs: forMs }]) => (forMs === undefined ? [] : [{ name, forMs }]));
    this.provide(regularWorks, { failing });
    this.#outbound = new Outbound(() => this.#file.settings.outbound, this.clock);
    this.provide(outboundCalls, this.#outbound);
  }

  /** The running configuration: the last file, with the old values of what waits for a restart. */
  get file(): GatewayFile {
    return this.#file;
  }

  get inFlight(): number {
    return this.#running?.server.inFlight ?? 0;
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  find<T>(service: Service<T>): T | undefined {
    return this.#services.find(service);
  }

  provide<T>(service: Service<T>, value: T): void {
    this.#services.provide(service, value);
  }

  /** Remarks on the running configuration: the core's own, then the plugins'. */
  notices(): readonly ConfigNotice[] {
    return noticesOf(this.#file, this.plugins);
  }

  /** Returns what keeps it from being set up. */
  async install(plugin: Plugin, section: unknown): Promise<readonly string[]> {
    const problems = this.#services.begin(
      plugin,
      this.plugins.map((earlier) => earlier.plugin),
    );
    if (problems.length > 0) return problems;
    const instance = await plugin.setup(this.#hostFor(plugin), section);
    this.plugins.push({ plugin, instance });
    return [];
  }

  /** Sources of secrets of the plugins that are installed. */
  sources(): readonly SecretSource[] {
    return this.#extensions.added(secretSources);
  }

  /**
   * Every plugin is installed, whatever was set up first: extensions and endpoints are complete. `order`: the list. Returns what is wrong
   * with extensions and services.
   */
  complete(order: readonly Plugin[]): readonly string[] {
    this.plugins.sort((left, right) => order.indexOf(left.plugin) - order.indexOf(right.plugin));
    const problems = [
      ...this.#extensions.complete(),
      ...sourceProblems(this.sources()),
      ...this.#services.complete(order),
    ];
    if (problems.length === 0) this.endpoints.push(...this.plugins.flatMap(({ instance }) => instance.endpoints ?? []));
    return problems;
  }

  #hostFor(plugin: Plugin): Host {
    const { settings, directory } = this.#file;
    return {
      gateway: settings.gateway,
      schema: schemaOf(settings),
      directory: ownDirectory(directory, this.#processGroup.workerIndex),
      commonDirectory: directory,
      processGroup: this.#processGroup,
      mode: this.mode,
      log: this.log,
      clock: this.clock,
      random: this.#random,
      get: (service) => this.#services.get(service, plugin),
      find: (service) => this.#services.find(service, plugin),
      provide: (service, value) => this.provide(service, value),
      extend: <T extends Extension>(point: ExtensionPoint<T>, extension: T) =>
        this.#extensions.add(plugin, point, extension),
      extensions: <T extends Extension>(point: ExtensionPoint<T>) => this.#extensions.of(plugin, point),
      endpoints: () => this.endpoints,
      every: (intervalMs, name, work) => this.#every(intervalMs, name, work),
      fetch: (address, options) => this.#outbound.fetch(plugin.name, address, options),
      perform: async (request) => {
        if (this.#running === undefined)
          throw new Error(`"${plugin.name}" performs a request, and the gateway does not serve`);
        return this.#running.server.perform(request);
      },
    };
  }

  #every(intervalMs: number, name: string, work: RegularWork): void {
    if (this.mode !== 'serve') return;
    const round = regularWork(this, name, work, (outage) => this.#works.set(name, outage));
    const timer = setInterval(round, intervalMs);
    timer.unref();
    this.#timers.add(timer);
  }

  /** Starts every plugin and listens; resolves with the port. */
  async serve(): Promise<number> {
    const { listen, server: limits } = this.#file.settings;
    const bodies = new BodyReader(bodyLimits(limits));
    const maxSockets = limits.upstream_connections ?? defaultUpstreamSockets(descriptorLimit());
    const forward = createForward(limits.answer_limit, maxSockets);
    const instances = this.plugins.map(({ instance }) => instance);
    const server = new GatewayServer({
      limits: serverLimits(limits),
      router: this.#router(bodies, forward),
      bodies,
      sockets: instances,
      errorShapes: instances.filter((instance) => instance.renderError !== undefined),
      unrouted: instances.flatMap((instance) => instance.addresses?.unrouted ?? [])[0],
      newId: uuidMaker(this.clock, this.#random),
      clock: this.clock,
      logs: { log: this.log, sources: instances.filter((instance) => instance.logFields !== undefined) },
      notAlive: () =>
        this.plugins.filter(({ instance }) => instance.health?.alive?.() === false).map(({ plugin }) => plugin.name),
      notReady: () =>
        this.plugins.filter(({ instance }) => instance.health?.ready?.() === false).map(({ plugin }) => plugin.name),
      details: () => detailsOf(instances),
    });
    this.#running = { server, bodies, forward };
    for (const instance of instances) await instance.lifecycle?.start?.();
    const port = await server.listen(listen.port, listen.host).catch((error: unknown) => {
      throw listenFailure(error, '"listen" (in the shipped files PORT, of the second gateway ALT_PORT)', listen);
    });
    for (const instance of instances)
      await instance.lifecycle?.listening?.(`http://${listen.host ?? 'localhost'}:${port}`);
    return port;
  }

  #router(bodies: BodyReader, forward: Forward): Router {
    const readBody = bodies.read.bind(bodies);
    const prefixes = this.plugins.flatMap(({ instance }) => instance.addresses?.pathPrefixes ?? []);
    return createRouter(
      this.endpoints.map((endpoint) => ({ endpoint, run: compileChain(endpoint, this.plugins, readBody, forward) })),
      [...new Set(prefixes)],
    );
  }

  /**
   * Applies a changed file in one turn; running exchanges keep the old chains. `commits`: what the plugins have prepared, in
   * the list's order.
   */
  applyConfig(file: GatewayFile, commits: readonly (() => void)[]): void {
    for (const commit of commits) {
      try {
        commit();
      } catch (error) {
        this.log.error({ error }, 'a plugin did not apply its section, which is a bug; the others have');
      }
    }
    this.#file = file;
    this.#ownLog?.setLevel(file.settings.log);
    if (this.#running === undefined) return;
    const { server, bodies, forward } = this.#running;
    bodies.applyConfig(bodyLimits(file.settings.server));
    server.applyConfig(this.#router(bodies, forward), serverLimits(file.settings.server));
  }

  /** Lets exchanges end within the configured times (or `deadlineMs`), then stops every plugin in reverse order; once. */
  stop(deadlineMs: number | undefined): Promise<void> {
    this.#stopping ??= this.#stop(deadlineMs);
    return this.#stopping;
  }

  /** Stops after another process has taken over the address: waits until all connections have ended. */
  async retire(): Promise<void> {
    await this.#running?.server.closeGracefully();
    await this.stop(this.#file.settings.server.drain.deadline);
  }

  async #stop(deadlineMs: number | undefined): Promise<void> {
    const { grace, deadline } = this.#file.settings.server.drain;
    for (const { instance } of this.plugins) instance.lifecycle?.drain?.();
    await this.#running?.server.drain(deadlineMs === undefined ? grace : 0, deadlineMs ?? deadline);
    await this.stopPlugins();
    await this.#running?.forward.close();
  }

  /** In reverse order; a failure is logged and does not stop the rest. */
  async stopPlugins(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { plugin, instance } of this.plugins.toReversed() as {
      plugin: Plugin;
      instance: PluginInstance;
    }[]) {
      try {
        await instance.lifecycle?.stop?.();
      } catch (error) {
        this.log.error({ error, plugin: plugin.name }, 'the plugin failed to stop');
      }
    }
    await this.#outbound.close();
  }
}

function bodyLimits(limits: GatewaySettings['server']): BodyLimits {
  const { body_limit: maxBytes, bodies_in_flight: maxBytesInFlight } = limits;
  // Twice, because a body is in memory in both forms while it is decoded.
  const share = limits.bodies_per_account ?? Math.max(maxBytesInFlight / 4, 2 * maxBytes);
  const { decompressions: maxDecoding, body_values: maxValues } = limits;
  return { maxBytes, maxBytesInFlight, maxBytesPerAccount: share, maxDecoding, maxValues };
}

function serverLimits(limits: GatewaySettings['server']): ServerLimits {
  return {
    maxHeaderBytes: limits.header_limit,
    maxHeaders: limits.headers,
    maxSockets: limits.sockets,
    requestTimeoutMs: limits.request_timeout,
    exchangeTimeoutMs: limits.timeout,
    stallTimeoutMs: limits.stall_timeout,
    idleFrameAfterMs: limits.idle_frame,
    proxies: trustedProxies(limits.trusted_proxies),
    allowedOrigins: limits.cors.origins,
  };
}

/** A round, which is skipped while the previous one still runs. */
export function regularWork(
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  name: string,
  work: RegularWork,
  begun?: (outage: Outage) => void,
): () => Promise<void> {
  const outage = new Outage({
    clock,
    log,
    began: 'regular work failed',
    over: 'regular work succeeds again',
    fields: { work: name },
  });
  begun?.(outage);
  let isRunning = false;
  /** The last failure came after the work had returned its promise. */
  let hasFailedLater = false;
  return async () => {
    if (isRunning) return;
    isRunning = true;
    let isLater = false;
    try {
      const round = work();
      isLater = round !== undefined;
      const isIdle = isLater ? (await round) === 'idle' : hasFailedLater;
      if (!isIdle) outage.succeeded();
    } catch (error) {
      hasFailedLater = isLater;
      outage.failed(error);
    } finally {
      isRunning = false;
    }
  };
}

/** The answer of `/readyz`: the stores and the current refusals, where there are any. */
function detailsOf(instances: readonly PluginInstance[]): object {
  const refuses = Object.assign({}, ...instances.map((instance) => instance.health?.refuses?.()));
  const stores = Object.assign({}, ...instances.map((instance) => instance.health?.stores?.()));
  return Object.fromEntries(
    Object.entries({ refuses, stores }).filter(([, members]) => Object.keys(members).length > 0),
  );
}
