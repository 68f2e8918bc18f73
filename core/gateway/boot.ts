/** Boots a gateway from its file: loads, checks and sets up its plugins; dry-runs changed files. */

import type { Command } from '../contract/commands.ts';
import { type ConfigCheck, type ConfigNotice, configFiles } from '../contract/config-files.ts';
import type { ContextKey, Endpoint, ExtensionPoint, Host, Plugin, Service } from '../contract/contract.ts';
import type { Log } from '../contract/host-tools.ts';
import type { Fault } from '../contract/remarks.ts';
import { secretSources } from '../contract/secret.ts';
import type { InstalledPlugin } from '../http/chain.ts';
import { ConfigError, type GatewayFile, readGatewayFile, readSections, schemaOf } from './config.ts';
import { GatewayConfigFiles } from './files/config-files.ts';
import { createLog } from './log.ts';
import { lineOfNotice } from './notices/notices.ts';
import { builtInNames, loadPlugin, setupSentence } from './registry.ts';
import { Reloader } from './reload.ts';
import { GatewayRuntime, type GatewayRuntimeOptions } from './runtime.ts';
import type { FoundSecrets } from './secrets/filling.ts';
import { rotateCommand } from './secrets/rotate.ts';
import { withSecrets } from './secrets/sources.ts';
import { parseSection } from './section-problems.ts';
import { guardContext, undeclaredInSource } from './undeclared.ts';
import { checkContext, checkServices } from './wiring.ts';
import type { Drafts, Problem } from './yaml.ts';

export interface BootOptions extends GatewayRuntimeOptions {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Called when the files were saved through this gateway and applied. */
  readonly onSaved?: () => void;
}

/** A gateway that is set up. `serve` starts it; `stop` stops it, started or not. */
export interface Gateway {
  /** The running configuration. */
  readonly file: GatewayFile;
  readonly log: Log;
  readonly endpoints: readonly Endpoint[];
  readonly commands: readonly Command[];
  /** Remarks on this configuration. */
  notices(): readonly ConfigNotice[];
  /** Why several processes cannot serve this gateway together; undefined: they can. */
  singleProcess(): string | undefined;
  /** Remarks for a person before a command runs. */
  beforeCommand(name: string): readonly string[];
  /** A service's value, for tests and commands. */
  find<T>(service: Service<T>): T | undefined;
  readonly inFlight: number;
  /** Starts every plugin and listens; resolves with the port. */
  serve(): Promise<number>;
  /** Reads the files again and applies all changes or none. Problems are logged and returned. */
  reload(): Promise<ConfigCheck>;
  /** Lets exchanges end within the configured times (or `deadlineMs`), then stops every plugin in reverse order. */
  stop(deadlineMs?: number): Promise<void>;
  /** Stops accepting, waits until all connections have ended, then stops; used when another process has taken over. */
  retire(): Promise<void>;
}

/** Sets a gateway up. Throws a ConfigError that lists every problem. */
export async function boot(path: string, options: BootOptions): Promise<Gateway> {
  const reading = (drafts?: Drafts) => (found?: FoundSecrets) =>
    readGatewayFile(path, options.environment, drafts, found);
  const runtime = new GatewayRuntime(reading()(), options);
  const reloader = new Reloader({
    runtime: runtime,
    read: (drafts) => withSecrets(reading(drafts)(), runtime.sources(), reading(drafts)),
    check: (file) => dryRun(file, options),
    known: () => new Set(builtInNames()),
    onSaved: options.onSaved,
  });
  if (options.mode !== 'check') runtime.provide(configFiles, new GatewayConfigFiles(runtime, reloader));
  await installPlugins(runtime, reading());
  const endGuard = options.guardsContext ? guardContext(runtime.plugins) : undefined;
  return {
    get file() {
      return runtime.file;
    },
    log: runtime.log,
    endpoints: runtime.endpoints,
    commands: [
      ...runtime.plugins.flatMap(({ instance }) => instance.commandLine?.commands ?? []),
      rotateCommand(() => runtime.plugins.flatMap(({ instance }) => instance.commandLine?.secrets?.() ?? [])),
    ],
    notices: () => runtime.notices(),
    singleProcess: () => runtime.plugins.flatMap(({ instance }) => instance.checks?.singleProcess?.() ?? [])[0],
    beforeCommand: (name) =>
      runtime.plugins.flatMap(({ instance }) => instance.commandLine?.beforeCommand?.(name) ?? []),
    find: (service) => runtime.find(service),
    get inFlight() {
      return runtime.inFlight;
    },
    async serve() {
      const port = await runtime.serve();
      if (options.processGroup?.isFirst !== false) logWarnings(runtime);
      reloader.watch();
      return port;
    },
    reload: () => reloader.reload(),
    stop(deadlineMs) {
      reloader.close();
      return runtime.stop(deadlineMs).finally(endGuard);
    },
    retire() {
      reloader.close();
      return runtime.retire();
    },
  };
}

/**
 * Installs every plugin of the file; first those with sources of secrets if other sections need some, for which `read` reads the file
 * again. On a problem it stops the installed plugins and throws.
 */
async function installPlugins(runtime: GatewayRuntime, read: (found: FoundSecrets) => GatewayFile): Promise<void> {
  const plugins = await loadPlugins(runtime.file, runtime.mode);
  await refuseMisfits(runtime.file, plugins, (owners) => checkServices(plugins, owners));
  try {
    if (runtime.file.yaml.wanted.size > 0) await installSources(runtime, plugins, read);
    const { file } = runtime;
    const sections = readSections(file, plugins, new Set(builtInNames()));
    const installed = new Set(runtime.plugins.map(({ plugin }) => plugin));
    for (const [index, plugin] of plugins.entries())
      if (!installed.has(plugin)) await install(runtime, plugin, sections.get(plugin.name), index);
    const problems = runtime.complete(plugins);
    if (problems.length > 0)
      throw new ConfigError(problems.map((message) => ({ where: file.yaml.where(['plugins']), message })));
    await refuseMisfits(file, plugins, (owners) => checkContext(runtime.endpoints, runtime.plugins, owners));
    await refuseFaults(file, runtime.plugins);
    const undeclared = await undeclaredInSource(runtime.plugins);
    if (undeclared.length > 0)
      throw new ConfigError(undeclared.map((message) => ({ where: file.yaml.where(['plugins']), message })));
  } catch (error) {
    await runtime.stopPlugins();
    throw error;
  }
}

async function installSources(
  runtime: GatewayRuntime,
  plugins: readonly Plugin[],
  read: (found: FoundSecrets) => GatewayFile,
): Promise<void> {
  const { file } = runtime;
  const own = setUpFirst(plugins, new Set([...file.yaml.wanted.values()].map(({ source }) => source)));
  for (const { places } of file.yaml.wanted.values())
    for (const { setting, refuse } of places)
      if (own.some(({ name }) => setting.startsWith(`${name}.`)))
        refuse(`${setting}: a plugin that gives secrets can only have variables and files in its own section`);
  if (file.yaml.problems.length > 0) throw new ConfigError(file.yaml.problems);
  const sections = readSections(file, own, new Set([...builtInNames(), ...plugins.map(({ name }) => name)]));
  for (const plugin of own) await install(runtime, plugin, sections.get(plugin.name), plugins.indexOf(plugin));
  runtime.applyConfig(await withSecrets(file, runtime.sources(), read), []);
}

/** Plugins with sources of secrets; of a store only where a file names it, with those that it reads from. In the list's order. */
function setUpFirst(plugins: readonly Plugin[], wanted: ReadonlySet<string>): readonly Plugin[] {
  const givers = plugins.filter(
    ({ extends: points, storedSecrets: stored }) =>
      points?.includes(secretSources) && (stored === undefined || wanted.has(stored.source)),
  );
  const needed = new Set(givers.flatMap(({ storedSecrets }) => storedSecrets?.after ?? []));
  const isNeeded = ({ services }: Plugin) => services?.provides?.some((service) => needed.has(service)) === true;
  return plugins.filter((plugin) => givers.includes(plugin) || isNeeded(plugin));
}

/** Sets one plugin up. What a plugin that is not built in throws is a problem of the file. */
async function install(runtime: GatewayRuntime, plugin: Plugin, section: unknown, index: number): Promise<void> {
  const where = runtime.file.yaml.where(['plugins', index]);
  const problems = await runtime.install(plugin, section).catch((error: unknown) => {
    const message = setupSentence(plugin, error);
    if (message === undefined) throw error;
    return [message];
  });
  if (problems.length > 0) throw new ConfigError(problems.map((message) => ({ where, message })));
}

/** Sets the gateway up in the mode `check`: nothing is opened, written or sent. Throws as `boot` does. */
async function dryRun(file: GatewayFile, { clock, random }: BootOptions): Promise<readonly ConfigNotice[]> {
  const injected = { ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) };
  const model = new GatewayRuntime(file, { mode: 'check', log: createLog('silent'), ...injected });
  await installPlugins(model, () => file);
  const notices = model.notices();
  await model.stopPlugins();
  return notices;
}

/** Logs the warnings at each start, so that they are seen without `check`. */
function logWarnings(runtime: GatewayRuntime): void {
  const warnings = runtime.notices().flatMap((notice) => (notice.level === 'warning' ? [lineOfNotice(notice)] : []));
  if (warnings.length > 0) runtime.log.warn({ warnings }, 'the configuration has warnings');
}

async function loadPlugins(file: GatewayFile, mode: Host['mode']): Promise<Plugin[]> {
  const plugins: Plugin[] = [];
  const problems = [];
  const place = { directory: file.directory, schema: schemaOf(file.settings) };
  for (const [index, name] of file.settings.plugins.entries()) {
    try {
      const plugin = await loadPlugin(name, file.file);
      plugins.push(plugin);
      if (mode === 'serve' && file.yaml.wanted.size === 0) plugin.warmUp?.(file.sections[plugin.name], place);
    } catch (error) {
      problems.push({ where: file.yaml.where(['plugins', index]), message: (error as Error).message });
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return plugins;
}

type Wanted = Service<unknown> | ContextKey<unknown> | ExtensionPoint;

/** Runs a check; only if it fails, loads the other built-in plugins to name those that could help. */
async function refuseMisfits(
  file: GatewayFile,
  listed: readonly Plugin[],
  check: (owners: (wanted: Wanted) => readonly string[]) => string[],
): Promise<void> {
  if (check(() => []).length === 0) return;
  const others = await unlisted(file, listed);
  const owners = (wanted: Wanted) =>
    others
      .filter(({ services, sets, extensionPoints }) =>
        [services?.provides, sets, extensionPoints].some((list) => list?.includes(wanted as ContextKey<unknown>)),
      )
      .map((plugin) => plugin.name);
  throw new ConfigError(check(owners).map((message) => ({ where: file.yaml.where(['plugins']), message })));
}

/** The built-in plugins that are not in the list. */
function unlisted(file: GatewayFile, listed: readonly Plugin[]): Promise<Plugin[]> {
  const names = new Set(listed.map((plugin) => plugin.name));
  return Promise.all(
    builtInNames()
      .filter((name) => !names.has(name))
      .map((name) => loadPlugin(name, file.file)),
  );
}

async function refuseFaults(file: GatewayFile, plugins: readonly InstalledPlugin[]): Promise<void> {
  const found = plugins.flatMap(({ plugin, instance }) =>
    (instance.checks?.problems?.() ?? []).map((problem) => ({
      problem,
      place: [plugin.name, ...problem.path.map(String)],
    })),
  );
  const isLacking = found.some(({ problem }) => 'lacks' in problem);
  const listed = plugins.map(({ plugin }) => plugin);
  const others = isLacking ? await unlisted(file, listed) : [];
  const problems = found.flatMap(({ problem, place }): readonly Problem[] => {
    if ('schema' in problem) {
      const parsed = parseSection(problem.schema, problem.value, place, file.yaml);
      return 'problems' in parsed ? parsed.problems : [];
    }
    const message = unlistedSentence(problem, others) ?? problem.message;
    return [{ where: file.yaml.where(place), message: file.yaml.hide(`${place.join('.')}: ${message}`) }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

/**
 * Names the plugin outside the list that brings what a setting lacks: a service by what plugins declare; an extension `NAME` or
 * `NAME-…` comes with the plugin `NAME`.
 */
function unlistedSentence({ lacks, message }: Fault, others: readonly Plugin[]): string | undefined {
  if (lacks === undefined) return undefined;
  if ('service' in lacks) {
    const owner = others.find(({ services }) => services?.provides?.includes(lacks.service));
    return owner && `${message}: add "${owner.name}" to the list`;
  }
  const { name: missing, point } = lacks;
  const named = others.filter(
    ({ name, extends: points }) => `${missing}-`.startsWith(`${name}-`) && points?.includes(point),
  );
  const brings = named.find(({ name }) => name === missing) ?? named[0];
  return brings && `"${missing}" comes with the plugin "${brings.name}": add it to the list`;
}
