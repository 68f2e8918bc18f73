/** From a gateway file to a gateway that runs: load, check, set up, compile, start; and back. */
import { BodyReader } from './body.ts';
import { compileChain, type Seat } from './chain.ts';
import { trustedProxies } from './client-address.ts';
import { systemClock } from './clock.ts';
import { ConfigError, type GatewayFile, readGatewayFile, readSections, schemaOf } from './config.ts';
import type { Clock, Command, Endpoint, Fact, Host, Log, Notice, Part, Plugin, Random, Service } from './contract.ts';
import { createForward, type Forward } from './forward.ts';
import { createLog } from './log.ts';
import { systemRandom, uuidMaker } from './random.ts';
import { builtInNames, loadPlugin } from './registry.ts';
import { createRouter } from './router.ts';
import { GatewayServer } from './server.ts';
import { checkFacts, checkServices } from './wiring.ts';

export interface BootOptions {
  /** `serve`: requests will come. `command`: one command runs. `check`: nothing is opened, written or sent. */
  readonly mode: Host['mode'];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A gateway that is set up. `serve` starts it; `stop` ends it, started or not. */
export interface Gateway {
  readonly file: GatewayFile;
  readonly log: Log;
  readonly endpoints: readonly Endpoint[];
  readonly commands: readonly Command[];
  /** What the plugins want an operator to know of this configuration. */
  notices(): readonly Notice[];
  /** The service's value, for those who start gateways (tests, commands). */
  find<T>(service: Service<T>): T | undefined;
  readonly inFlight: number;
  /** Starts every part and listens; resolves with the port. */
  serve(): Promise<number>;
  /** Lets exchanges end within the configured times (or `deadlineMs`), then stops every part in reverse order. */
  stop(deadlineMs?: number): Promise<void>;
}

/** Sets a gateway up. Throws a ConfigError that lists every problem in the file or in the plugins' order. */
export async function boot(path: string, options: BootOptions): Promise<Gateway> {
  const file = readGatewayFile(path, options.environment);
  const plugins = await loadPlugins(file);
  await refuseMisfits(file, plugins, (owners) => checkServices(plugins, owners));
  const sections = readSections(file, plugins, new Set(builtInNames()));
  const house = new House(file, options);
  try {
    for (const plugin of plugins) await house.seat(plugin, sections.get(plugin.name));
    await refuseMisfits(file, plugins, (owners) => checkFacts(house.endpoints, house.seats, owners));
    refuseFaults(file, house.seats);
    return house.gateway();
  } catch (error) {
    await house.stopParts();
    throw error;
  }
}

async function loadPlugins(file: GatewayFile): Promise<Plugin[]> {
  const plugins: Plugin[] = [];
  const problems = [];
  for (const [index, name] of file.settings.plugins.entries()) {
    try {
      plugins.push(await loadPlugin(name, file.file));
    } catch (error) {
      problems.push({ where: file.yaml.where(['plugins', index]), message: (error as Error).message });
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return plugins;
}

type Owners = (wanted: Service<unknown> | Fact<unknown>) => readonly string[];

/** Runs a check; only when it finds something, the other plugins of the house are looked at for who could help. */
async function refuseMisfits(
  file: GatewayFile,
  listed: readonly Plugin[],
  check: (owners: Owners) => string[],
): Promise<void> {
  if (check(() => []).length === 0) return;
  const names = new Set(listed.map((plugin) => plugin.name));
  const others = await Promise.all(
    builtInNames()
      .filter((name) => !names.has(name))
      .map((name) => loadPlugin(name, file.file)),
  );
  const owners: Owners = (wanted) =>
    others
      .filter((plugin) => plugin.provides?.includes(wanted) || plugin.writes?.includes(wanted as Fact<unknown>))
      .map((plugin) => plugin.name);
  throw new ConfigError(check(owners).map((message) => ({ where: file.yaml.where(['plugins']), message })));
}

function refuseFaults(file: GatewayFile, seats: readonly Seat[]): void {
  const problems = seats.flatMap(({ plugin, part }) =>
    (part.problems?.() ?? []).map(({ path, message }) => ({
      where: file.yaml.where([plugin.name, ...path]),
      message: `${[plugin.name, ...path].join('.')}: ${message}`,
    })),
  );
  if (problems.length > 0) throw new ConfigError(problems);
}

/** What one gateway is made of while it is set up, runs and stops. */
class House {
  readonly seats: Seat[] = [];
  readonly endpoints: Endpoint[] = [];
  readonly #file: GatewayFile;
  readonly #options: BootOptions;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #services = new Map<Service<unknown>, unknown>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #forward: Forward | undefined;
  #server: GatewayServer | undefined;
  #stopping: Promise<void> | undefined;

  constructor(file: GatewayFile, options: BootOptions) {
    this.#file = file;
    this.#options = options;
    this.#log = options.log ?? createLog(file.settings.log, undefined, file.settings.gateway);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
  }

  async seat(plugin: Plugin, section: unknown): Promise<void> {
    const part = await plugin.setup(this.#hostFor(plugin), section);
    this.seats.push({ plugin, part });
    this.endpoints.push(...(part.endpoints ?? []));
  }

  gateway(): Gateway {
    const house = this;
    return {
      file: this.#file,
      log: this.#log,
      endpoints: this.endpoints,
      commands: this.seats.flatMap(({ part }) => part.commands ?? []),
      notices: () => this.seats.flatMap(({ part }) => part.notices?.() ?? []),
      find: <T>(service: Service<T>) => this.#services.get(service) as T | undefined,
      get inFlight() {
        return house.#server?.inFlight ?? 0;
      },
      serve: () => this.#serve(),
      stop: (deadlineMs) => {
        this.#stopping ??= this.#stop(deadlineMs);
        return this.#stopping;
      },
    };
  }

  #hostFor(plugin: Plugin): Host {
    const { settings, directory } = this.#file;
    return {
      gateway: settings.gateway,
      schema: schemaOf(settings),
      directory,
      mode: this.#options.mode,
      log: this.#log,
      clock: this.#clock,
      random: this.#random,
      need: <T>(service: Service<T>) => {
        if (!this.#services.has(service))
          throw new Error(`"${plugin.name}" asked for "${service.name}", which it does not declare to need`);
        return this.#services.get(service) as T;
      },
      find: <T>(service: Service<T>) => this.#services.get(service) as T | undefined,
      provide: (service, value) => void this.#services.set(service, value),
      endpoints: () => this.endpoints,
      every: (intervalMs, name, work) => this.#every(intervalMs, name, work),
    };
  }

  /** A run that takes longer than its interval is not overtaken by the next one. */
  #every(intervalMs: number, name: string, work: () => void | Promise<void>): void {
    if (this.#options.mode !== 'serve') return;
    let running = false;
    const timer = setInterval(async () => {
      if (running) return;
      running = true;
      try {
        await work();
      } catch (error) {
        this.#log.error({ error, work: name }, 'regular work failed');
      } finally {
        running = false;
      }
    }, intervalMs);
    timer.unref();
    this.#timers.add(timer);
  }

  async #serve(): Promise<number> {
    const { settings } = this.#file;
    const limits = settings.server;
    const bodies = new BodyReader({ maxBytes: limits.body_limit, maxBytesInFlight: limits.bodies_in_flight });
    const forward = createForward(limits.answer_limit);
    this.#forward = forward;
    const readBody = bodies.read.bind(bodies);
    const routes = this.endpoints.map((endpoint) => ({
      endpoint,
      run: compileChain(endpoint, this.seats, readBody, forward),
    }));
    this.#server = new GatewayServer({
      limits: {
        maxHeaderBytes: limits.header_limit,
        maxHeaders: limits.headers,
        requestTimeoutMs: limits.request_timeout,
        exchangeTimeoutMs: limits.timeout,
        stallTimeoutMs: limits.stall_timeout,
        idleFrameAfterMs: limits.idle_frame,
      },
      proxies: trustedProxies(limits.trusted_proxies),
      router: createRouter(routes),
      bodies,
      errorShapes: this.seats.map(({ part }) => part).filter((part) => part.renderError !== undefined),
      newId: uuidMaker(this.#clock, this.#random),
      clock: this.#clock,
      log: this.#log,
      notReady: () => this.seats.filter(({ part }) => part.ready?.() === false).map(({ plugin }) => plugin.name),
    });
    for (const { part } of this.seats) await part.start?.();
    const port = await this.#server.listen(settings.listen.port, settings.listen.host);
    for (const { part } of this.seats) await part.listening?.(`http://${settings.listen.host ?? 'localhost'}:${port}`);
    return port;
  }

  async #stop(deadlineMs: number | undefined): Promise<void> {
    const { grace, deadline } = this.#file.settings.server.drain;
    for (const { part } of this.seats) part.drain?.();
    await this.#server?.drain(deadlineMs === undefined ? grace : 0, deadlineMs ?? deadline);
    await this.stopParts();
    await this.#forward?.close();
  }

  /** In reverse order; one part's failure is logged and keeps no other from stopping. */
  async stopParts(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const { plugin, part } of this.seats.toReversed() as { plugin: Plugin; part: Part }[]) {
      try {
        await part.stop?.();
      } catch (error) {
        this.#log.error({ error, plugin: plugin.name }, 'the plugin did not stop in order');
      }
    }
  }
}
