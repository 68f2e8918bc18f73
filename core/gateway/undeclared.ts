/** Finds context values and services that a plugin from outside uses without declaring them, which works by luck of the order alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContextKey } from '../contract/contract.ts';
import { isService, type PluginServices, type Service } from '../contract/extensions.ts';
import type { InstalledPlugin } from '../http/chain.ts';
import { LiveExchange } from '../http/exchange.ts';
import { outsideFile } from './registry.ts';
import { authorModule } from './resolution.ts';

interface Guarded {
  readonly plugin: string;
  /** A file, or a folder with a separator at its end. */
  readonly code: string;
  readonly declared: ReadonlySet<ContextKey<unknown>>;
  readonly services: PluginServices;
}

function guardedOf({ plugin, instance }: InstalledPlugin): Guarded | undefined {
  const file = outsideFile(plugin);
  if (file === undefined) return undefined;
  const opened = (instance.endpoints ?? []).flatMap(({ setsOnOpen = [], optional = [] }) => [
    ...setsOnOpen,
    ...optional,
  ]);
  const { requires = [], optional = [], sets = [], requiresAtEnd = [] } = plugin;
  return {
    plugin: plugin.name,
    code: /^index\./.test(basename(file)) ? dirname(file) + sep : file,
    declared: new Set([...requires, ...optional, ...sets, ...requiresAtEnd, ...opened]),
    services: plugin.services ?? {},
  };
}

const sentence = (plugin: string, key: string, place: string) =>
  `"${plugin}" reads the context value "${key}" (${place}), which it does not declare: name it under "requires" or "optional" in its plugin`;

/**
 * Undeclared reads in the source: `exchange.get(caller)` of a key that is imported from the gateway. Returns a sentence for each.
 */
export async function undeclaredInSource(installed: readonly InstalledPlugin[]): Promise<string[]> {
  const found: string[] = [];
  for (const guarded of installed.flatMap((one) => guardedOf(one) ?? []))
    for (const file of sourcesOf(guarded.code)) found.push(...(await undeclaredIn(file, guarded)));
  return found;
}

function sourcesOf(code: string): string[] {
  if (!code.endsWith(sep)) return [code];
  return readdirSync(code, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?<!\.test|\.d)\.m?[jt]s$/.test(entry.name))
    .map((entry) => join(code, entry.name));
}

async function undeclaredIn(file: string, { plugin, declared, services }: Guarded): Promise<string[]> {
  const text = readFileSync(file, 'utf8');
  const sentences: string[] = [];
  for (const [, names, specifier] of text.matchAll(/\bimport\s*\{([^}]*)\}\s*from\s*['"](model-gateway[^'"]*)['"]/g)) {
    const url = authorModule(specifier!);
    if (url === undefined) continue;
    const module = (await import(url)) as Record<string, unknown>;
    for (const name of names!.split(',')) {
      const [imported = '', local = imported] = name.trim().split(/\s+as\s+/);
      const key = module[imported];
      const place = (verbs: string) => placeOf(text, verbs, local, file);
      if (isService(key)) sentences.push(...undeclaredService(plugin, key, services, place('get')));
      if (!isContextKey(key) || declared.has(key)) continue;
      const use = place('get|find');
      if (use !== undefined) sentences.push(`${sentence(plugin, key.name, use)}.`);
    }
  }
  return sentences;
}

/** File and line of the first call of one of these methods with the name. */
function placeOf(text: string, verbs: string, name: string, file: string): string | undefined {
  const use = text.search(new RegExp(`\\.(?:${verbs})\\(\\s*${name.replaceAll('$', '\\$')}\\s*\\)`));
  return use === -1 ? undefined : `${file}:${text.slice(0, use).split('\n').length}`;
}

/** `host.get` throws for a service that is not there, in the middle of a call perhaps: the list of plugins must have it. */
function undeclaredService(
  plugin: string,
  service: Service<unknown>,
  { requires = [], provides = [] }: PluginServices,
  place: string | undefined,
): string[] {
  if (place === undefined || requires.includes(service) || provides.includes(service)) return [];
  return [
    `"${plugin}" needs the service "${service.name}" (${place}), which it does not declare: name it under "services.requires" in its plugin.`,
  ];
}

function isContextKey(value: unknown): value is ContextKey<unknown> {
  return typeof (value as ContextKey<unknown> | undefined)?.slot === 'number';
}

/** The plugins of each guarded gateway in this process. A plugin used by two gateways may read what it declares in either. */
const guarded = new Set<readonly Guarded[]>();
const ownCode = fileURLToPath(new URL('../../plugins/', import.meta.url));
const sharedCode = join(ownCode, 'common') + sep;
let isPatched = false;

/** For tests: such a read throws until the returned function is called. Each read looks at the stack, which costs too much otherwise. */
export function guardContext(installed: readonly InstalledPlugin[]): () => void {
  const plugins = installed.flatMap((one) => guardedOf(one) ?? []);
  if (plugins.length > 0) {
    guarded.add(plugins);
    patchOnce();
  }
  return () => void guarded.delete(plugins);
}

function patchOnce(): void {
  if (isPatched) return;
  isPatched = true;
  const { get, find } = LiveExchange.prototype;
  LiveExchange.prototype.get = function <T>(this: LiveExchange, key: ContextKey<T>): T {
    refuseUndeclared(key);
    return get.call(this, key) as T;
  };
  LiveExchange.prototype.find = function <T>(this: LiveExchange, key: ContextKey<T>): T | undefined {
    refuseUndeclared(key);
    return find.call(this, key) as T | undefined;
  };
}

function refuseUndeclared(key: ContextKey<unknown>): void {
  if (guarded.size === 0) return;
  const plugins = [...guarded].flat();
  const { stack = '' } = new Error('read');
  for (const frame of stack.split('\n').slice(3)) {
    const [, location = '', line] = /(?:\(|at )((?:file:\/\/)?\/[^)]*?):(\d+):\d+\)?$/.exec(frame) ?? [];
    const file = location.startsWith('file:') ? fileURLToPath(location) : location;
    // A built-in plugin reads for itself what it was called with.
    if (file.startsWith(ownCode) && !file.startsWith(sharedCode)) return;
    const readers = plugins.filter(({ code }) => file === code || file.startsWith(code));
    if (readers.length === 0) continue;
    if (!readers.some(({ declared }) => declared.has(key)))
      throw new Error(sentence(readers[0]!.plugin, key.name, `${file}:${line}`));
    return;
  }
}
