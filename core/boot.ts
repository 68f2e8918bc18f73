/** From a gateway file to a gateway that is ready to run: load, check, set up; and the same, for show, for a changed file. */
import type { Seat } from './chain.ts';
import { ConfigError, type GatewayFile, readGatewayFile, readSections } from './config.ts';
import { FileDesk } from './config-desk.ts';
import type { Command, Endpoint, Fact, Log, Notice, Plugin, Service } from './contract.ts';
import { type ConfigCheck, configDesk } from './desk.ts';
import { House, type HouseOptions } from './house.ts';
import { createLog } from './log.ts';
import { builtInNames, loadPlugin } from './registry.ts';
import { Reloader } from './reload.ts';
import { checkFacts, checkServices } from './wiring.ts';

export interface BootOptions extends HouseOptions {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Called when the files were changed, and taken up, by somebody who uses this gateway. */
  readonly onSaved?: () => void;
}

/** A gateway that is set up. `serve` starts it; `stop` ends it, started or not. */
export interface Gateway {
  /** What runs. */
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
  /** Reads the files again and takes up what has changed, all of it or nothing. What is wrong is logged, and told, not thrown. */
  reload(): Promise<ConfigCheck>;
  /** Lets exchanges end within the configured times (or `deadlineMs`), then stops every part in reverse order. */
  stop(deadlineMs?: number): Promise<void>;
  /** Stops accepting at once and then, when nobody is connected who would be hung up on, as `stop`: for whom others serve already. */
  retire(): Promise<void>;
}

/** Sets a gateway up. Throws a ConfigError that lists every problem in the file or in the plugins' order. */
export async function boot(path: string, options: BootOptions): Promise<Gateway> {
  const house = new House(readGatewayFile(path, options.environment), options);
  const reloader = new Reloader({
    house,
    read: (drafts) => readGatewayFile(path, options.environment, drafts),
    check: (file) => lookOver(file, options),
    known: () => new Set(builtInNames()),
    onSaved: options.onSaved,
  });
  if (options.mode === 'serve') house.provide(configDesk, new FileDesk(house, reloader));
  await fill(house);
  return {
    get file() {
      return house.file;
    },
    log: house.log,
    endpoints: house.endpoints,
    commands: house.seats.flatMap(({ part }) => part.commands ?? []),
    notices: () => noticesOf(house),
    find: (service) => house.find(service),
    get inFlight() {
      return house.inFlight;
    },
    async serve() {
      const port = await house.serve();
      reloader.watch();
      return port;
    },
    reload: () => reloader.reload(),
    stop(deadlineMs) {
      reloader.close();
      return house.stop(deadlineMs);
    },
    retire() {
      reloader.close();
      return house.retire();
    },
  };
}

/** Seats every plugin of the house's file. Whatever does not fit together stops what was set up, and is thrown. */
async function fill(house: House): Promise<void> {
  const { file } = house;
  const plugins = await loadPlugins(file);
  await refuseMisfits(file, plugins, (owners) => checkServices(plugins, owners));
  const sections = readSections(file, plugins, new Set(builtInNames()));
  try {
    for (const plugin of plugins) await house.seat(plugin, sections.get(plugin.name));
    await refuseMisfits(file, plugins, (owners) => checkFacts(house.endpoints, house.seats, owners));
    refuseFaults(file, house.seats);
  } catch (error) {
    await house.stopParts();
    throw error;
  }
}

/** Sets the file's gateway up for show, as `check` does: nothing is opened, written or sent. Throws as `boot` does. */
async function lookOver(file: GatewayFile, { clock, random }: BootOptions): Promise<readonly Notice[]> {
  const injected = { ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) };
  const model = new House(file, { mode: 'check', log: createLog('silent'), ...injected });
  await fill(model);
  const notices = noticesOf(model).map(({ level, text }) => ({ level, text: file.yaml.hide(text) }));
  await model.stopParts();
  return notices;
}

function noticesOf({ seats }: House): readonly Notice[] {
  return seats.flatMap(({ part }) => part.notices?.() ?? []);
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
      message: file.yaml.hide(`${[plugin.name, ...path].join('.')}: ${message}`),
    })),
  );
  if (problems.length > 0) throw new ConfigError(problems);
}
