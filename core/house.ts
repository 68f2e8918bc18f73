/** What one gateway is made of while it is set up, runs, takes up a changed file, and stops. */
import { type BodyLimits, BodyReader } from './body.ts';
import { compileChain, type Seat } from './chain.ts';
import { trustedProxies } from './client-address.ts';
import { systemClock } from './clock.ts';
import { type GatewayFile, type GatewaySettings, schemaOf } from './config.ts';
import type { Clock, Endpoint, Host, Log, Part, Plugin, Random, Service } from './contract.ts';
import { alone, type Crew, ownDirectory } from './crew.ts';
import { createForward, type Forward } from './forward.ts';
import { createLog, type LevelledLog } from './log.ts';
import { systemRandom, uuidMaker } from './random.ts';
import { createRouter, type Router } from './router.ts';
import { GatewayServer, type ServerLimits } from './server.ts';

export interface HouseOptions {
  /** `serve`: requests will come. `command`: one command runs. `check`: nothing is opened, written or sent. */
  readonly mode: Host['mode'];
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Absent: this process serves alone. */
  readonly crew?: Crew;
}

/** What serving stands on; made once, so that limits hold across reloads. */
interface Running {
  readonly server: GatewayServer;
  readonly bodies: BodyReader;
  readonly forward: Forward;
}

export class House {
  readonly seats: Seat[] = [];
  readonly endpoints: Endpoint[] = [];
  readonly log: Log;
  readonly clock: Clock;
  readonly #ownLog: LevelledLog | undefined;
  readonly #mode: Host['mode'];
  readonly #random: Random;
  readonly #crew: Crew;
  readonly #services = new Map<Service<unknown>, unknown>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #file: GatewayFile;
  #running: Running | undefined;
  #stopping: Promise<void> | undefined;

  constructor(file: GatewayFile, options: HouseOptions) {
    this.#file = file;
    this.#mode = options.mode;
    this.#ownLog =
      options.log === undefined ? createLog(file.settings.log, undefined, file.settings.gateway) : undefined;
    this.log = options.log ?? this.#ownLog!;
    this.clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#crew = options.crew ?? alone;
  }

  /** What runs: the file as it was read last, with the old values of what waits for a restart. */
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
    return this.#services.get(service) as T | undefined;
  }

  provide<T>(service: Service<T>, value: T): void {
    this.#services.set(service, value);
  }

  async seat(plugin: Plugin, section: unknown): Promise<void> {
    const part = await plugin.setup(this.#hostFor(plugin), section);
    this.seats.push({ plugin, part });
    this.endpoints.push(...(part.endpoints ?? []));
  }

  #hostFor(plugin: Plugin): Host {
    const { settings, directory } = this.#file;
    return {
      gateway: settings.gateway,
      schema: schemaOf(settings),
      directory: ownDirectory(directory, this.#crew.place),
      commonDirectory: directory,
      crew: this.#crew,
      mode: this.#mode,
      log: this.log,
      clock: this.clock,
      random: this.#random,
      need: <T>(service: Service<T>) => {
        if (!this.#services.has(service))
          throw new Error(`"${plugin.name}" asked for "${service.name}", which it does not declare to need`);
        return this.#services.get(service) as T;
      },
      find: (service) => this.find(service),
      provide: (service, value) => this.provide(service, value),
      endpoints: () => this.endpoints,
      every: (intervalMs, name, work) => this.#every(intervalMs, name, work),
    };
  }

  /** A run that takes longer than its interval is not overtaken by the next one. */
  #every(intervalMs: number, name: string, work: () => void | Promise<void>): void {
    if (this.#mode !== 'serve') return;
    let running = false;
    const timer = setInterval(async () => {
      if (running) return;
      running = true;
      try {
        await work();
      } catch (error) {
        this.log.error({ error, work: name }, 'regular work failed');
      } finally {
        running = false;
      }
    }, intervalMs);
    timer.unref();
    this.#timers.add(timer);
  }

  /** Starts every part and listens; resolves with the port. */
  async serve(): Promise<number> {
    const { listen, server: limits } = this.#file.settings;
    const bodies = new BodyReader(bodyLimits(limits));
    const forward = createForward(limits.answer_limit);
    const parts = this.seats.map(({ part }) => part);
    const server = new GatewayServer({
      limits: serverLimits(limits),
      router: this.#router(bodies, forward),
      bodies,
      sockets: parts,
      errorShapes: parts.filter((part) => part.renderError !== undefined),
      newId: uuidMaker(this.clock, this.#random),
      clock: this.clock,
      log: this.log,
      notAlive: () => this.seats.filter(({ part }) => part.alive?.() === false).map(({ plugin }) => plugin.name),
      notReady: () => this.seats.filter(({ part }) => part.ready?.() === false).map(({ plugin }) => plugin.name),
    });
    this.#running = { server, bodies, forward };
    for (const part of parts) await part.start?.();
    const port = await server.listen(listen.port, listen.host);
    for (const part of parts) await part.listening?.(`http://${listen.host ?? 'localhost'}:${port}`);
    return port;
  }

  #router(bodies: BodyReader, forward: Forward): Router {
    const readBody = bodies.read.bind(bodies);
    return createRouter(
      this.endpoints.map((endpoint) => ({ endpoint, run: compileChain(endpoint, this.seats, readBody, forward) })),
    );
  }

  /**
   * Takes a changed file up, in one turn: who has come walks the old chains to the end, who comes walks the new ones.
   * `commits` are what the parts have prepared, in the list's order.
   */
  takeUp(file: GatewayFile, commits: readonly (() => void)[]): void {
    for (const commit of commits) {
      try {
        commit();
      } catch (error) {
        this.log.error({ error }, 'a plugin did not take its section up, which is a bug; the others have');
      }
    }
    this.#file = file;
    this.#ownLog?.setLevel(file.settings.log);
    if (this.#running === undefined) return;
    const { server, bodies, forward } = this.#running;
    bodies.follow(bodyLimits(file.settings.server));
    server.follow(this.#router(bodies, forward), serverLimits(file.settings.server));
  }

  /** Lets exchanges end within the configured times (or `deadlineMs`), then stops every part in reverse order; once. */
  stop(deadlineMs: number | undefined): Promise<void> {
    this.#stopping ??= this.#stop(deadlineMs);
    return this.#stopping;
  }

  /** Like `stop`, while others serve at the same address already: nobody is hung up on, whoever asks on is told to go there. */
  async retire(): Promise<void> {
    await this.#running?.server.letGo();
    await this.stop(this.#file.settings.server.drain.deadline);
  }

  async #stop(deadlineMs: number | undefined): Promise<void> {
    const { grace, deadline } = this.#file.settings.server.drain;
    for (const { part } of this.seats) part.drain?.();
    await this.#running?.server.drain(deadlineMs === undefined ? grace : 0, deadlineMs ?? deadline);
    await this.stopParts();
    await this.#running?.forward.close();
  }

  /** In reverse order; one part's failure is logged and keeps no other from stopping. */
  async stopParts(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { plugin, part } of this.seats.toReversed() as { plugin: Plugin; part: Part }[]) {
      try {
        await part.stop?.();
      } catch (error) {
        this.log.error({ error, plugin: plugin.name }, 'the plugin did not stop in order');
      }
    }
  }
}

function bodyLimits({ body_limit, bodies_in_flight }: GatewaySettings['server']): BodyLimits {
  return { maxBytes: body_limit, maxBytesInFlight: bodies_in_flight };
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
  };
}
