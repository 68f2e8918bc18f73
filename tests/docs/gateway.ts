/** Every built-in plugin, set up by dry runs of the shipped files: its settings, what a reload applies, its commands and extensions. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Host, Plugin, PluginInstance } from '../../core/contract/contract.ts';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { builtInNames, loadPlugin } from '../../core/gateway/registry.ts';

export interface Described {
  readonly plugin: Plugin;
  /** Absent: no shipped list has it. */
  readonly instance: PluginInstance | undefined;
  readonly extensions: readonly Added[];
}

interface Added {
  readonly point: string;
  readonly extension: object;
}

const clouds = ['ollama', 'cohere', 'bedrock', 'vertex', 'azure', 'aws', 'google'];
/** Shipped files, and what is added to their lists so that each plugin with something to tell is in one. */
const lists = [
  { file: 'config/main.yaml', add: clouds },
  { file: 'config/alt.yaml', add: [] },
  { file: 'config/demo.yaml', add: [] },
  { file: 'config/passthrough.yaml', add: [] },
];

/** Environment of the dry runs: nothing is opened, so any address does. */
const environment = { UPSTREAM_URL: 'http://127.0.0.1:9' };

/** Commands need a database: it is embedded, in a temporary directory. */
export async function describedPlugins(): Promise<Described[]> {
  const plugins = await Promise.all(builtInNames().map((name) => loadPlugin(name, '')));
  const instances = new Map<string, PluginInstance>();
  const extensions = new Map<string, Added[]>();
  const restore = plugins.map((plugin) => watchSetup(plugin, instances, extensions));
  const directory = mkdtempSync(join(tmpdir(), 'docs-'));
  try {
    for (const { file, add } of lists) await dryRun(directory, file, add);
  } finally {
    for (const end of restore) end();
    rmSync(directory, { recursive: true });
  }
  return plugins.map((plugin) => ({
    plugin,
    instance: instances.get(plugin.name),
    extensions: extensions.get(plugin.name) ?? [],
  }));
}

/** Notes what the plugin's `setup` returns and adds. */
function watchSetup(
  plugin: Plugin,
  instances: Map<string, PluginInstance>,
  extensions: Map<string, Added[]>,
): () => void {
  const { setup } = plugin;
  const watched = plugin as { setup: Plugin['setup'] };
  watched.setup = async (host, config) => {
    const added: Added[] = [];
    const extend: Host['extend'] = (point, extension) => {
      added.push({ point: point.name, extension });
      host.extend(point, extension);
    };
    const noting = new Proxy(host, {
      get(target, name) {
        if (name === 'extend') return extend;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const instance = await setup.call(plugin, noting, config);
    const isFuller =
      (instance.commandLine?.commands?.length ?? 0) > (instances.get(plugin.name)?.commandLine?.commands?.length ?? 0);
    if (isFuller || !instances.has(plugin.name)) instances.set(plugin.name, instance);
    if (!extensions.has(plugin.name)) extensions.set(plugin.name, added);
    return instance;
  };
  return () => {
    watched.setup = setup;
  };
}

async function dryRun(directory: string, file: string, add: readonly string[]): Promise<void> {
  const options = {
    mode: 'check' as const,
    log: createLog('silent'),
    environment: { ...environment, DATA_DIR: directory },
  };
  const gateway = await boot(file, options);
  const { plugins } = gateway.file.settings;
  await gateway.stop(0);
  if (add.length === 0) return;
  const missing = add.filter((name) => !plugins.includes(name));
  const path = join(directory, 'all.yaml');
  const list = [...plugins.slice(0, plugins.indexOf('protocol-convert') + 1), ...missing];
  list.push(...plugins.filter((name) => !list.includes(name)));
  writeFileSync(path, `include: ${resolve(file)}\nplugins: [${list.join(', ')}]\n`);
  await (await boot(path, { ...options, mode: 'command' })).stop(0);
}
