/** Presets of vendors, from config/vendors.yaml: the settings of an entry that names one, and their list. */
import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import type { Command, CommandResult } from '../../core/contract/commands.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { didYouMean } from '../../core/tools/near-names.ts';

/** A vendor of the file. */
export interface Preset {
  readonly name: string;
  /** The page on which a key is made, or that none is needed. */
  readonly key: string;
  /** The environment variable that the vendor's documentation uses. */
  readonly variable?: string;
  /** The vendor's page about its interface, and the day on which the base URL was last compared. */
  readonly source: string;
  readonly read: string;
  /** Base URLs by protocol where every account has its own, with names in capitals to be replaced; the entry writes `speaks`. */
  readonly addresses?: Readonly<Record<string, string>>;
  readonly provider: Readonly<Record<string, unknown>>;
}

const file = new URL('../../config/vendors.yaml', import.meta.url);
let known: ReadonlyMap<string, Preset> | undefined;

/** Read when a preset is first used: most gateways name none. */
export function presets(): ReadonlyMap<string, Preset> {
  known ??= new Map(Object.entries(parse(readFileSync(file, 'utf8')) as Record<string, Preset>));
  return known;
}

/** Vendors by preset for forms: name, variable of the key, and the page on which a key is made. */
export function presetsForForms(): Readonly<Record<string, object>> {
  return Object.fromEntries(
    [...presets()].map(([preset, { name, key, variable, addresses }]) => [
      preset,
      { name, key, variable, addresses: addresses ?? {} },
    ]),
  );
}

export function unknownPreset(name: string): string {
  return `there is no preset "${name}"${didYouMean(name, presets().keys()) || '; "providers presets" lists them'}`;
}

/** The problem of an entry without `speaks`; undefined: its preset has base URLs. */
export function ownAddresses(preset: string | undefined): string | undefined {
  const { addresses } = (preset === undefined ? undefined : presets().get(preset)) ?? {};
  if (addresses === undefined) return undefined;
  const lines = Object.entries(addresses).map(([protocol, url]) => `${protocol}: ${url}`);
  return `this vendor gives every account its own base URLs, such as ${lines.join(', ')}`;
}

type Section = Readonly<Record<string, unknown>>;

/** The entry over its preset; unchanged if it names none, or one that does not exist. */
export function withPreset(entry: unknown): unknown {
  if (!isMapping(entry)) return entry;
  const preset = typeof entry['preset'] === 'string' ? presets().get(entry['preset']) : undefined;
  if (preset === undefined) return entry;
  return merged(entry['speaks'] === undefined ? preset.provider : withoutAddresses(preset.provider, entry), entry);
}

/** Addresses are replaced together: another region's or a proxy's serve one of the protocols, and none of the preset's. */
function withoutAddresses({ speaks: _replaced, ...others }: Section, entry: Section): Section {
  const spoken = isMapping(entry['speaks']) ? entry['speaks'] : {};
  const byProtocol = ['dialect', 'drop_fields'].flatMap((setting) => {
    const traits = others[setting];
    if (!isMapping(traits)) return [];
    return [
      [setting, Object.fromEntries(Object.entries(traits).filter(([protocol]) => Object.hasOwn(spoken, protocol)))],
    ];
  });
  return { ...others, ...Object.fromEntries(byProtocol) };
}

function merged(under: Section, over: Section): Section {
  const result: Record<string, unknown> = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = result[name];
    result[name] = isMapping(below) && isMapping(value) && name !== 'auth' ? merged(below, value) : value;
  }
  return result;
}

function isMapping(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const presetsCommand: Command = {
  name: 'providers presets',
  summary: 'Lists the vendors that "preset: NAME" of a provider stands for; with a name, prints its entry to paste.',
  arguments: ['[name]'],
  run: async ({ name }) => {
    if (typeof name === 'string') return entryToPaste(name);
    const all = [...presets()].map(([preset, { provider, ...about }]) => ({ preset, ...about, provider }));
    const lines = all.map(({ preset, name, key, addresses, provider }) => {
      const protocols = Object.keys(addresses ?? (provider['speaks'] as object)).join(', ');
      return `${preset.padEnd(16)} ${name}: ${protocols}; key: ${key}`;
    });
    const rest = `${all.length} presets. "providers presets NAME" prints the entry of one, with its source and the day it was read.`;
    return { json: all, text: [...lines, rest].join('\n') };
  },
};

function entryToPaste(preset: string): CommandResult {
  const found = presets().get(preset);
  if (found === undefined) throw new GatewayError('not_found', `T${unknownPreset(preset).slice(1)}`, { field: 'name' });
  const { name, key, variable, source, read, addresses } = found;
  const entry = {
    preset,
    ...(variable === undefined ? {} : { keys: keysFrom(variable) }),
    ...(addresses === undefined ? {} : { speaks: addresses }),
  };
  const lines = [
    `# ${name}: ${source}, read on ${read}. Key: ${key}.`,
    ...(addresses === undefined ? [] : ['# Your own addresses: replace the words in capitals, and the region.']),
    stringify({ providers: { [preset]: entry } }, { lineWidth: 0 }).trimEnd(),
  ];
  return { json: { preset, ...found }, text: lines.join('\n') };
}

/** A key of two variables (`ID:SECRET`) must be set: two empty ones would still be a key. */
function keysFrom(variable: string): string {
  const names = variable.split(':');
  return names.length === 1 ? `\${${variable}:-}` : names.map((name) => `\${${name}}`).join(':');
}
