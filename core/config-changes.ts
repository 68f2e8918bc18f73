/** What a changed file changes: which sections can be taken up by the running gateway, and which wait for a restart. Pure. */
import { isDeepStrictEqual } from 'node:util';
import type { Seat } from './chain.ts';
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
  /** The new file with the running values of what waits: what the gateway can become now. */
  readonly reachable: GatewayFile;
}

/** Members of `server` that hold for who comes next; the others are built into what serves. */
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

export function compare(running: GatewayFile, next: GatewayFile, seats: readonly Seat[]): Comparison {
  const changes: Change[] = [];
  const settings = compareSettings(running, next, changes);
  const sections: Values = {};
  // Seats stand in the order of the running list. Sections of plugins that are only to come are left out.
  for (const [index, seat] of seats.entries()) {
    const stays = next.settings.plugins.includes(running.settings.plugins[index]!);
    const { name } = seat.plugin;
    const found = stays
      ? compareSection(seat, running.sections[name], next.sections[name], changes)
      : running.sections[name];
    if (found !== undefined) sections[name] = found;
  }
  return { changes, reachable: { ...next, settings, directory: running.directory, sections } };
}

/** What the gateway's own settings can become now; notes in `changes` what differs. */
function compareSettings(running: GatewayFile, next: GatewayFile, changes: Change[]): GatewaySettings {
  const [old, wanted] = [running.settings, next.settings];
  for (const name of ['gateway', 'listen', 'schema', 'data', 'plugins'] as const) {
    // Where data lies may be said by the environment too: the directory counts.
    if (name === 'data' ? running.directory === next.directory : same(old[name], wanted[name])) continue;
    changes.push({ section: name, restart: true });
  }
  for (const name of ['log', 'reload'] as const)
    if (!same(old[name], wanted[name])) changes.push({ section: name, restart: false });
  const server = compareMembers('server', old.server, wanted.server, lightLimits, changes) as GatewaySettings['server'];
  return { ...old, log: wanted.log, reload: wanted.reload, server };
}

/** What the plugin's section can become now; notes in `changes` what differs. */
function compareSection({ plugin, part }: Seat, old: unknown, wanted: unknown, changes: Change[]): unknown {
  const { name } = plugin;
  if (same(old, wanted)) return wanted;
  if (part.prepare === undefined) {
    changes.push({ section: name, restart: true });
    return old;
  }
  if (part.reloads === undefined) {
    changes.push({ section: name, restart: false });
    return wanted;
  }
  return compareMembers(name, membersOf(old), membersOf(wanted), part.reloads, changes);
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
