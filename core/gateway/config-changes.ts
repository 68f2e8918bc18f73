/** Compares a changed file with the running one: sections that can be applied, and those that wait for a restart. Pure. */
import { isDeepStrictEqual } from 'node:util';
import type { InstalledPlugin } from '../http/chain.ts';
import type { GatewayFile, GatewaySettings } from './config.ts';
import type { Values } from './yaml.ts';

/** A section, a setting of the gateway itself, or one member of either (`auth.cache`), that differs. */
export interface Change {
  readonly section: string;
  /** true: it takes effect only after a restart. */
  readonly restart: boolean;
}

export interface Comparison {
  readonly changes: readonly Change[];
  /** The new file with the running values of what waits for a restart. */
  readonly reachable: GatewayFile;
}

/** Members of `server` that can change while serving. */
const lightLimits: readonly (keyof GatewaySettings['server'])[] = [
  'body_limit',
  'bodies_in_flight',
  'headers',
  'sockets',
  'request_timeout',
  'timeout',
  'stall_timeout',
  'idle_frame',
  'drain',
];

export function compare(running: GatewayFile, next: GatewayFile, plugins: readonly InstalledPlugin[]): Comparison {
  const changes: Change[] = [];
  const settings = compareSettings(running, next, changes);
  const sections: Values = {};
  // In the order of the running list; sections of new plugins wait for a restart.
  for (const [index, installed] of plugins.entries()) {
    const stays = next.settings.plugins.includes(running.settings.plugins[index]!);
    const { name } = installed.plugin;
    const found = stays
      ? compareSection(installed, running.sections[name], next.sections[name], changes)
      : running.sections[name];
    if (found !== undefined) sections[name] = found;
  }
  return { changes, reachable: { ...next, settings, directory: running.directory, sections } };
}

/** The gateway's own settings as they can be applied; adds differences to `changes`. */
function compareSettings(running: GatewayFile, next: GatewayFile, changes: Change[]): GatewaySettings {
  const [old, wanted] = [running.settings, next.settings];
  for (const name of ['gateway', 'listen', 'schema', 'data', 'plugins'] as const) {
    // The environment may set the directory too, so the resolved path is compared.
    if (name === 'data' ? running.directory === next.directory : same(old[name], wanted[name])) continue;
    changes.push({ section: name, restart: true });
  }
  for (const name of ['log', 'reload', 'outbound'] as const)
    if (!same(old[name], wanted[name])) changes.push({ section: name, restart: false });
  const server = compareMembers('server', old.server, wanted.server, lightLimits, changes) as GatewaySettings['server'];
  return { ...old, log: wanted.log, reload: wanted.reload, outbound: wanted.outbound, server };
}

/** The plugin's section as it can be applied; adds differences to `changes`. */
function compareSection(
  { plugin, instance }: InstalledPlugin,
  old: unknown,
  wanted: unknown,
  changes: Change[],
): unknown {
  const { name } = plugin;
  if (same(old, wanted)) return wanted;
  if (instance.reload === undefined) {
    changes.push({ section: name, restart: true });
    return old;
  }
  if (instance.reload.members === undefined) {
    changes.push({ section: name, restart: false });
    return wanted;
  }
  return compareMembers(name, membersOf(old), membersOf(wanted), instance.reload.members, changes);
}

function compareMembers(
  name: string,
  old: Values,
  wanted: Values,
  reloads: readonly string[],
  changes: Change[],
): Values {
  const reachable: Values = { ...wanted };
  let isLight = false;
  for (const member of new Set([...Object.keys(old), ...Object.keys(wanted)])) {
    if (same(old[member], wanted[member])) continue;
    if (reloads.includes(member)) {
      isLight = true;
      continue;
    }
    changes.push({ section: `${name}.${member}`, restart: true });
    if (old[member] === undefined) delete reachable[member];
    else reachable[member] = old[member];
  }
  if (isLight) changes.push({ section: name, restart: false });
  return reachable;
}

function membersOf(section: unknown): Values {
  return typeof section === 'object' && section !== null ? (section as Values) : {};
}

function same(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other);
}
