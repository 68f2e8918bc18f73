/** Checks that a list of plugins fits together in its order. Each problem is one sentence that names the fix. Pure. */

import {
  type ContextKey,
  type Endpoint,
  type ExtensionPoint,
  type Plugin,
  type Service,
  upstreamRequest,
} from '../contract/contract.ts';
import { secretSources } from '../contract/secret.ts';
import { type InstalledPlugin, installedPlugins, openingIndex } from '../http/chain.ts';

type Owners = (wanted: Service<unknown> | ContextKey<unknown> | ExtensionPoint) => readonly string[];

/** Checks services and extension points, before setup. `owners`: the built-in plugins that could provide missing ones. */
export function checkServices(plugins: readonly Plugin[], owners: Owners): string[] {
  const sentences = plugins.flatMap((plugin, index) =>
    plugins.slice(0, index).some((earlier) => earlier.name === plugin.name)
      ? [`"${plugin.name}" stands twice in the list: remove one.`]
      : [],
  );
  return [
    ...sentences,
    ...missingServices(plugins, owners),
    ...rivals(
      plugins,
      (plugin) => plugin.services?.provides,
      ({ name }) => `provide the service "${name}"`,
    ),
    ...missingPoints(plugins, owners),
    ...needySources(plugins),
    ...rivals(
      plugins,
      (plugin) => plugin.extensionPoints,
      ({ name }) => `own the extension point "${name}"`,
    ),
  ];
}

/** Their owners may stand anywhere in the list. */
function missingPoints(plugins: readonly Plugin[], owners: Owners): string[] {
  const owned = new Set<ExtensionPoint>([
    secretSources,
    ...plugins.flatMap(({ extensionPoints = [] }) => extensionPoints),
  ]);
  const missing = plugins.flatMap((plugin) =>
    (plugin.extends ?? []).filter((point) => !owned.has(point)).map((point) => ({ point, adder: plugin.name })),
  );
  return [...Map.groupBy(missing, ({ point }) => point)].map(([point, group]) => {
    const adders = group.map(({ adder }) => adder);
    return `${subject(adders, 'adds')} to the extension point "${point.name}", which no plugin of the list owns: ${addAbove(owners(point), undefined)}.`;
  });
}

/** Secrets are needed for the sections of all others. */
function needySources(plugins: readonly Plugin[]): string[] {
  return plugins.flatMap(({ name, services, extends: points }) => {
    const [needed] = services?.requires ?? [];
    if (needed === undefined || points?.includes(secretSources) !== true) return [];
    return `"${name}" adds secret sources, so it is set up first and can require no service, but it requires "${needed.name}".`;
  });
}

function missingServices(plugins: readonly Plugin[], owners: Owners): string[] {
  const missing = plugins.flatMap((plugin, index) =>
    (plugin.services?.requires ?? [])
      .filter((service) => !plugins.slice(0, index).some((other) => other.services?.provides?.includes(service)))
      .map((service) => ({ service, reader: plugin.name })),
  );
  return [...Map.groupBy(missing, ({ service }) => service)].map(([service, group]) => {
    const readers = group.map(({ reader }) => reader);
    const need = `${subject(readers, 'needs')} the service "${service.name}"`;
    const later = plugins.find((other) => other.services?.provides?.includes(service));
    return later === undefined
      ? `${need}, which no plugin of the list provides: ${addAbove(owners(service), readers[0])}.`
      : `${need}, but "${later.name}", which provides it, stands below: move "${later.name}" above "${readers[0]}".`;
  });
}

/** Two plugins for what only one may be for. */
function rivals<T>(
  plugins: readonly Plugin[],
  owned: (plugin: Plugin) => readonly T[] | undefined,
  verb: (owned: T) => string,
): string[] {
  const owners = new Map<T, string>();
  const sentences: string[] = [];
  for (const plugin of plugins) {
    for (const one of owned(plugin) ?? []) {
      const first = owners.get(one);
      if (first !== undefined && first !== plugin.name)
        sentences.push(`"${first}" and "${plugin.name}" both ${verb(one)}: keep one.`);
      owners.set(one, plugin.name);
    }
  }
  return sentences;
}

/** A plugin that uses a context value which is not set by then. */
interface Misfit {
  readonly endpoint: Endpoint;
  readonly kind: 'required' | 'used' | 'opened' | 'at end' | 'forward';
  readonly key: ContextKey<unknown>;
  /** The plugin that uses the value, or before which the request is opened. */
  readonly reader: string;
  /** The plugin below that sets the value; undefined: none does. */
  readonly later: string | undefined;
}

/** Checks context values on each endpoint's chain, after setup. One sentence for each plugin to add or to move. */
export function checkContext(
  endpoints: readonly Endpoint[],
  installed: readonly InstalledPlugin[],
  owners: Owners,
): string[] {
  const misfits = endpoints.flatMap((endpoint) => checkEndpoint(endpoint, installedPlugins(endpoint, installed)));
  const order = installed.map(({ plugin }) => plugin.name);
  const mistakes = Map.groupBy(misfits, ({ kind, key, later }) =>
    later === undefined ? `${kind === 'used' ? 'required' : kind} ${key.name}` : `${later} ${key.name}`,
  );
  return [...clashes(installed), ...[...mistakes.values()].map((group) => sentenceFor(group, order, owners))];
}

function checkEndpoint(endpoint: Endpoint, installed: readonly InstalledPlugin[]): Misfit[] {
  const misfits: Misfit[] = [];
  const opening = openingIndex(endpoint, installed);
  const setKeys = new Set<ContextKey<unknown>>();
  installed.forEach(({ plugin }, index) => {
    if (index === opening) {
      misfits.push(...openedTooEarly(endpoint, installed, index, setKeys));
      for (const key of endpoint.setsOnOpen ?? []) setKeys.add(key);
    }
    misfits.push(...missingAt(endpoint, installed, index, setKeys));
    for (const key of plugin.sets ?? []) setKeys.add(key);
  });
  for (const key of endpoint.setsOnOpen ?? []) setKeys.add(key);
  return [...misfits, ...missingAtEnd(endpoint, installed, setKeys)];
}

/** Values that the plugin at this place uses although no plugin, or only a later one, sets it. */
function missingAt(
  endpoint: Endpoint,
  installed: readonly InstalledPlugin[],
  index: number,
  setKeys: ReadonlySet<ContextKey<unknown>>,
): Misfit[] {
  const { plugin } = installed[index]!;
  const reader = plugin.name;
  const required = (plugin.requires ?? [])
    .filter((key) => !setKeys.has(key))
    .map((key): Misfit => ({ endpoint, kind: 'required', key, reader, later: writerFrom(installed, index + 1, key) }));
  // Also where an earlier plugin sets it: a later value would be missed.
  const optional = (plugin.optional ?? []).flatMap((key): Misfit[] => {
    const later = writerFrom(installed, index + 1, key);
    return later === undefined ? [] : [{ endpoint, kind: 'used', key, reader, later }];
  });
  return [...required, ...optional];
}

/** Values that are not set when the exchange ends, or when it is forwarded. */
function missingAtEnd(
  endpoint: Endpoint,
  installed: readonly InstalledPlugin[],
  setKeys: ReadonlySet<ContextKey<unknown>>,
): Misfit[] {
  const misfits = installed.flatMap(({ plugin }) =>
    (plugin.requiresAtEnd ?? [])
      .filter((key) => !setKeys.has(key))
      .map((key): Misfit => ({ endpoint, kind: 'at end', key, reader: plugin.name, later: undefined })),
  );
  if (endpoint.handle === undefined && !setKeys.has(upstreamRequest))
    misfits.push({ endpoint, kind: 'forward', key: upstreamRequest, reader: '', later: undefined });
  return misfits;
}

/** Problems of an `open` that would run before a context value that it uses is set. */
function openedTooEarly(
  endpoint: Endpoint,
  installed: readonly InstalledPlugin[],
  opening: number,
  setKeys: ReadonlySet<ContextKey<unknown>>,
): Misfit[] {
  const reader = installed[opening]!.plugin.name;
  return (endpoint.optional ?? []).flatMap((key): Misfit[] => {
    const later = setKeys.has(key) ? undefined : writerFrom(installed, opening, key);
    return later === undefined ? [] : [{ endpoint, kind: 'opened', key, reader, later }];
  });
}

/** `misfits`: of one mistake. `order`: the names of the list. */
function sentenceFor(misfits: readonly Misfit[], order: readonly string[], owners: Owners): string {
  const { kind, key, later } = misfits[0]!;
  const where = placesOf(misfits);
  if (kind === 'forward') return `${where} no plugin sets where to forward to: ${addAbove(owners(key), undefined)}.`;
  const readers = order.filter((name) => misfits.some(({ reader }) => reader === name));
  const first = readers[0]!;
  if (later === undefined) {
    const end = kind === 'at end' ? ' at the end' : '';
    const fix = addAbove(owners(key), kind === 'at end' ? undefined : first);
    return `${where} ${subject(readers, 'requires')} the context value "${key.name}"${end}, which no plugin sets: ${fix}.`;
  }
  if (misfits.every((misfit) => misfit.kind === 'opened')) {
    const fix = later === first ? 'that cannot be' : `move "${later}" above "${first}"`;
    return `${where} the request is opened before "${first}" and uses the context value "${key.name}", which "${later}" sets after that: ${fix}.`;
  }
  const verb = misfits[0]!.kind === 'required' ? 'requires' : 'uses';
  return `${where} ${subject(readers, verb)} the context value "${key.name}", but "${later}", which sets it, stands below: move "${later}" above "${first}".`;
}

function subject(readers: readonly string[], verb: string): string {
  const names = readers.map((name) => `"${name}"`);
  if (names.length === 1) return `${names[0]} ${verb}`;
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)} ${verb.slice(0, -1)}`;
}

function placesOf(misfits: readonly Misfit[]): string {
  const places = [...new Set(misfits.map(({ endpoint: { method, path } }) => `${method} ${path}`))];
  return places.length === 1 ? `On ${places[0]}` : `On ${places.length} endpoints, such as ${places[0]},`;
}

function writerFrom(installed: readonly InstalledPlugin[], from: number, key: ContextKey<unknown>): string | undefined {
  return installed.slice(from).find(({ plugin }) => plugin.sets?.includes(key))?.plugin.name;
}

/** Problems of two endpoints at one address. A WebSocket may share the address of a page. */
function clashes(installed: readonly InstalledPlugin[]): string[] {
  const owners = new Map<string, string>();
  const sentences: string[] = [];
  for (const { plugin, instance } of installed) {
    const addresses = [
      ...(instance.endpoints ?? [])
        .filter(({ takes }) => takes === undefined)
        .map(({ method, path }) => `${method} ${path}`),
      ...(instance.addresses?.sockets ?? []).map(({ path }) => `WebSockets at ${path}`),
    ];
    for (const address of addresses) {
      const first = owners.get(address);
      if (first !== undefined)
        sentences.push(`"${first}" and "${plugin.name}" both answer ${address}: remove one of them.`);
      owners.set(address, plugin.name);
    }
  }
  return sentences;
}

function addAbove(candidates: readonly string[], plugin: string | undefined): string {
  const named =
    candidates.length === 0 ? 'add a plugin that does' : `add ${candidates.map((name) => `"${name}"`).join(' or ')}`;
  return plugin === undefined ? `${named} to the list` : `${named} above "${plugin}"`;
}
