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

/** Settings of the gateway itself that need no restart. */
const lightSettings: ReadonlySet<string> = new Set(['reload'] satisfies (keyof GatewaySettings)[]);

export function compare(running: GatewayFile, next: GatewayFile, seats: readonly Seat[]): Comparison {
  const changes: Change[] = [];
  for (const name of Object.keys(next.settings) as (keyof GatewaySettings)[]) {
    // Where data lies may be said by the environment too: the directory counts.
    if (name === 'data' ? running.directory === next.directory : same(running.settings[name], next.settings[name]))
      continue;
    changes.push({ section: name, restart: !lightSettings.has(name) });
  }
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
  const settings = { ...running.settings, reload: next.settings.reload };
  return { changes, reachable: { ...next, settings, directory: running.directory, sections } };
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
  plugin: string,
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
    changes.push({ section: `${plugin}.${member}`, restart: true });
    if (old[member] === undefined) delete reachable[member];
    else reachable[member] = old[member];
  }
  if (isLight) changes.push({ section: plugin, restart: false });
  return reachable;
}

function membersOf(section: unknown): Values {
  return typeof section === 'object' && section !== null ? (section as Values) : {};
}

function same(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other);
}
