/** Every setting of a gateway file, from the zod schemas: name, type, unit, default, what it does, an example. */
import { stringify } from 'yaml';
import type { z } from '../../core/contract/schema.ts';
import { examples } from './examples.ts';

export interface Setting {
  /** As in a file, with NAME for a name of the operator's own: `models.NAME.price`. */
  readonly path: string;
  readonly type: string;
  readonly unit: string | undefined;
  /** As it is written; undefined: there is none. */
  readonly default: string | undefined;
  readonly isRequired: boolean;
  readonly description: string;
  /** One line of YAML. Absent for a section, which shows the ones of its members. */
  readonly example: string | undefined;
  /** Another setting with the same members. */
  readonly sameAs: string | undefined;
}

type Schema = z.core.$ZodType;
// biome-ignore lint/suspicious/noExplicitAny: the definitions of all types of schemas.
const defOf = (schema: Schema): any => schema._zod.def;
const wrappers = new Set(['optional', 'nullable', 'default', 'prefault', 'readonly', 'nonoptional', 'catch']);

interface Unwrapped {
  readonly core: Schema;
  readonly description: string | undefined;
  readonly fallback: { readonly value: unknown; readonly isOutput: boolean } | undefined;
  readonly isOptional: boolean;
}

function unwrap(schema: Schema): Unwrapped {
  let core = schema;
  let description: string | undefined;
  let fallback: Unwrapped['fallback'];
  let isOptional = false;
  for (;;) {
    description ??= (core as z.ZodType).description;
    const def = defOf(core);
    if (def.type === 'default' || def.type === 'prefault')
      fallback ??= { value: def.defaultValue, isOutput: def.type === 'default' };
    if (def.type === 'optional') isOptional = true;
    if (wrappers.has(def.type)) core = def.innerType;
    else if (def.type === 'lazy') core = def.getter();
    else break;
  }
  return { core, description, fallback, isOptional };
}

/** What is written: the input of a transformation. */
function written(schema: Schema): Schema {
  const { core } = unwrap(schema);
  const def = defOf(core);
  if (def.type !== 'pipe') return core;
  return written(defOf(def.in).type === 'transform' ? def.out : def.in);
}

/** The texts that the core's own types refuse with. */
const kinds: readonly (readonly [message: RegExp, type: string, unit: string])[] = [
  [/^must be a duration/, 'duration', 'ms, s, m, h or d'],
  [/^must be a size such as 512KB/, 'size', 'bytes, KB, MB or GB'],
  [/^must be a whole number such as 600/, 'count', ''],
  [/^must be a port/, 'address', 'port, or address:port'],
];

function kindOf(schema: Schema): readonly [type: string, unit: string] | undefined {
  const { core } = unwrap(schema);
  if (!['pipe', 'union', 'string'].includes(defOf(core).type)) return undefined;
  const found = (core as z.ZodType).safeParse('?!');
  if (found.success) return undefined;
  const texts = found.error.issues.flatMap((issue) =>
    issue.code === 'invalid_union'
      ? [issue.message, ...issue.errors.flat().map(({ message }) => message)]
      : [issue.message],
  );
  const kind = kinds.find(([message]) => texts.some((text) => message.test(text)));
  return kind === undefined ? undefined : [kind[1], kind[2]];
}

function typeOf(schema: Schema, depth = 0): string {
  const kind = kindOf(schema);
  if (kind !== undefined) return acceptsOff(schema) ? `${kind[0]}, or \`off\`` : kind[0];
  const core = written(schema);
  const def = defOf(core);
  switch (def.type) {
    case 'enum':
      return Object.values(def.entries)
        .map((value) => `\`${value}\``)
        .join(', ');
    case 'literal':
      return def.values.map((value: unknown) => `\`${String(value)}\``).join(', ');
    case 'array':
      return depth > 1 ? 'list' : `list of ${typeOf(def.element, depth + 1)}`;
    case 'record':
      return depth > 1 ? 'mapping' : `mapping of names to ${typeOf(def.valueType, depth + 1)}`;
    case 'union':
      return [...new Set((def.options as Schema[]).map((option) => typeOf(option, depth + 1)))].join(', or ');
    case 'object':
      return 'section';
    case 'string':
      return 'text';
    case 'number':
      return def.checks?.some((check: Schema) => /int/.test(String((defOf(check) as { format?: string }).format))) ||
        /int/.test(String(def.format))
        ? 'whole number'
        : 'number';
    case 'boolean':
      return '`true`, `false`';
    default:
      return 'value';
  }
}

const acceptsOff = (schema: Schema) => (unwrap(schema).core as z.ZodType).safeParse('off').success;

const durations = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;
const sizes = [
  ['GB', 2 ** 30],
  ['MB', 2 ** 20],
  ['KB', 2 ** 10],
] as const;

function withUnit(value: number, units: readonly (readonly [string, number])[]): string {
  const unit = units.find(([, one]) => value >= one && value % one === 0);
  return unit === undefined ? String(value) : `${value / unit[1]}${unit[0]}`;
}

/** The default as it would be written. */
function writtenDefault({ fallback }: Unwrapped, type: string): unknown {
  if (fallback === undefined) return undefined;
  const { value } = fallback;
  if (typeof value !== 'number' || !fallback.isOutput) return value;
  if (type.startsWith('duration')) return value === 0 ? '0s' : withUnit(value, durations);
  return type === 'size' ? withUnit(value, sizes) : value;
}

const flow = { collectionStyle: 'flow', lineWidth: 0, defaultStringType: 'PLAIN' } as const;
const asYaml = (value: unknown) => stringify(value, flow).trimEnd();

/** A value that differs from the default, where the type says one. */
function someValue(schema: Schema, type: string, fallback: unknown): unknown {
  const core = written(schema);
  const def = defOf(core);
  if (type.startsWith('duration'))
    return fallback === undefined || fallback === 'off'
      ? ['30s', '10m', '24h', '400d'].find((text) => (schema as z.ZodType).safeParse(text).success)
      : fallback;
  if (type === 'size') return fallback ?? '32MB';
  if (type === 'count') return fallback ?? 100;
  if (def.type === 'enum') return Object.values(def.entries).find((value) => value !== fallback);
  if (def.type === 'boolean') return fallback !== true;
  if (def.type === 'literal') return def.values[0];
  if (def.type === 'array' && fallback === undefined) {
    const item = someValue(def.element, '', undefined);
    return item === undefined ? undefined : [item];
  }
  const given = Array.isArray(fallback) && fallback.length > 4 ? fallback.slice(0, 2) : fallback;
  return given === '' || (Array.isArray(given) && given.length === 0) ? undefined : given;
}

function exampleOf(path: string, schema: Schema, type: string, fallback: unknown): string {
  const named = examples[path] ?? examples[path.replace(/^.*\.(tls|price|dialect\.NAME|traits)\./, '$1.')];
  const value = named ?? someValue(schema, type, fallback);
  if (value === undefined) throw new Error(`${path}: tests/docs/examples.ts has no example of it`);
  // Certificates are read where they are named.
  const parsed = (schema as z.ZodType).safeParse(String(value).startsWith('/etc/ssl/') ? undefined : value);
  if (!parsed.success) throw new Error(`${path}: the example ${asYaml(value)} is refused: ${parsed.error.message}`);
  const whole = path
    .replace(/ \(.*?\)/, '')
    .split('.')
    .reverse()
    .reduce((inner: unknown, segment) => {
      const [name, ...lists] = segment.split('[]');
      const nested = lists.reduce((item: unknown) => [item], inner);
      return { [name === 'NAME' ? 'my-name' : name!]: nested };
    }, value);
  return asYaml(whole).replace(/^\{ (.*) \}$/, '$1');
}

/** "What. When. Unit: X. Default: Y." in parts. */
function partsOf(text: string) {
  const [, before, fallback] = /^(.*?)(?: (?:Default|Empty): (.*?)\.?)?$/s.exec(text)!;
  const [, description, unit] = /^(.*?)(?: Unit: (.*?)\.)?$/s.exec(before!)!;
  return { description: description!, unit, fallback };
}

/** All settings of a section, sections before their members; `prefix` is empty for the gateway's own. */
export function settingsOf(prefix: string, schema: Schema): Setting[] {
  const found: Setting[] = [];
  const documented = new Map<Schema, string>();
  const queue = nestedIn(schema, prefix);
  for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
    const [path, of] = at;
    for (const [name, member] of Object.entries(defOf(of).shape as Record<string, Schema>)) {
      const inner = path === '' ? name : `${path}.${name}`;
      const nested = nestedIn(member, inner);
      const known = nested.map(([, one]) => sameMembers(documented, one)).find((other) => other !== undefined);
      found.push(settingOf(inner, member, nested.length > 0, known));
      for (const [place, one] of nested)
        if (sameMembers(documented, one) === undefined) {
          documented.set(one, inner);
          queue.push([place, one]);
        }
    }
  }
  return found;
}

/** The setting that has nearly all of these members already. */
function sameMembers(documented: ReadonlyMap<Schema, string>, object: Schema): string | undefined {
  const members: Schema[] = Object.values(defOf(object).shape);
  return [...documented].find(([other]) => {
    const known = new Set(Object.values(defOf(other).shape));
    return members.length > 0 && members.filter((member) => known.has(member)).length >= members.length * 0.9;
  })?.[1];
}

/** The objects that a setting may be or hold, with their places. */
function nestedIn(schema: Schema, path: string): (readonly [string, Schema])[] {
  const core = written(schema);
  const def = defOf(core);
  if (def.type === 'object') return [[path, core]];
  if (def.type === 'array') return nestedIn(def.element, `${path}[]`);
  if (def.type === 'record') return nestedIn(def.valueType, `${path}.NAME`);
  if (def.type !== 'union') return [];
  const all = (def.options as Schema[]).flatMap((option) => nestedIn(option, path));
  return all.filter(([, one], index) => all.findIndex(([, other]) => other === one) === index);
}

function settingOf(path: string, schema: Schema, hasMembers: boolean, sameAs: string | undefined): Setting {
  const unwrapped = unwrap(schema);
  const type = typeOf(schema);
  const { description, unit, fallback } = partsOf(unwrapped.description ?? '');
  const given = writtenDefault(unwrapped, type);
  const isPlain = hasMembers && type.endsWith('section');
  return {
    path,
    type,
    unit: unit ?? (kindOf(schema)?.[1] || undefined),
    default: given === undefined || isPlain ? fallback : `\`${given === '' ? '""' : asYaml(given)}\``,
    isRequired:
      given === undefined &&
      fallback === undefined &&
      !unwrapped.isOptional &&
      !(schema as z.ZodType).safeParse(undefined).success,
    description: given === undefined || fallback === undefined ? description : `${description} Empty: ${fallback}.`,
    example: isPlain || sameAs !== undefined ? undefined : exampleOf(path, schema, type, given),
    sameAs,
  };
}
