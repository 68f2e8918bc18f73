/** Programs and libraries that call gateways: config/clients.json, and its settings, variables and code filled in. Pure. */
import data from '../../config/clients.json' with { type: 'json' };

export type Members = Readonly<Record<string, unknown>>;

/** A settings file. Its format is that of its ending: JSON, YAML, TOML, or lines of variables (`.env`). */
export interface SettingsFile {
  /** `~/` is the person's home. */
  readonly path: string;
  readonly set?: Members;
  /** Where another variable puts its folder, on some systems only. */
  readonly folder?: readonly { readonly variable: string; readonly replaces: string; readonly only?: string }[];
  /** The member that holds the program's variables; empty: they are its lines. */
  readonly variables_in?: string;
}

interface CodeText {
  readonly language: string;
  readonly text: readonly string[];
  /** For PowerShell, where its commands differ by more than line ends. */
  readonly powershell?: readonly string[];
  readonly save_as?: string;
}

/** Texts have gaps: `{{base}}` is required, `{{context:128000}}` has a default; what has neither is left out. */
export interface ClientProgram {
  readonly name: string;
  /** Absent: conversations. */
  readonly makes?: string;
  /** The protocol that it asks in. */
  readonly speaks?: 'chat' | 'responses' | 'messages' | 'gemini';
  /** Names of the models that it is made for, as a pattern. */
  readonly prefers?: string;
  /** How it is started. */
  readonly run?: string;
  /** How it is started where no person answers its questions, such as which folders it trusts. Absent: like that, too. */
  readonly unattended?: string;
  /** Those that it reads from its environment. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly files?: readonly SettingsFile[];
  /** What a person enters in its settings, by the field's name. */
  readonly enter?: Readonly<Record<string, string>>;
  readonly code?: readonly CodeText[];
  /** Addresses that open the program with everything filled in. */
  readonly links?: Readonly<Record<string, string>>;
  /** Its files hold lists of a person's own: no command writes them. */
  readonly by_hand?: boolean;
}

export const clientPrograms: ReadonlyMap<string, ClientProgram> = new Map(
  Object.entries(data as unknown as Record<string, ClientProgram>),
);

/** Those that the command `connect` sets up, or says what to enter in. */
export const isConnectable = ({ files, enter, variables, by_hand }: ClientProgram) =>
  by_hand !== true && (files ?? enter ?? variables) !== undefined;

/** Where a gateway serves the command `connect` as one file (plugins/docs). */
export const programAddress = (base: string) => `${base}/docs/connect.cjs`;

/** The line that sets a program up, on a machine with Node alone; it asks for a key by itself. */
export function connectCommand(id: string, base: string, model?: string, shell: Shell = 'sh'): string {
  const words = `${id} --gateway ${base}${model === undefined ? '' : ` --model ${wordOf(model, shell)}`}`;
  const address = programAddress(base);
  // What it reads by a pipe is another encoding in older ones, and the question to the person needs the keyboard.
  const file = '$env:TEMP\\connect.cjs';
  if (shell === 'powershell') return `curl.exe -fsSo ${file} ${address}; node ${file} ${words}`;
  return `curl -fsS ${address} | node - ${words}`;
}

export interface Filling {
  /** Address of the gateway, without a path and a slash at its end. */
  readonly base: string;
  readonly key: string;
  readonly model: string;
  /** Name of the gateway, for programs that keep several. */
  readonly name: string;
  /** A cheaper model, for the side jobs of coding clients. Default: the model. */
  readonly small?: string | undefined;
  /** Tokens that the models take, and that they write, where they are known. */
  readonly context?: number | undefined;
  readonly output?: number | undefined;
  readonly smallContext?: number | undefined;
  readonly smallOutput?: number | undefined;
}

/** Stands where the key is not known: keys are shown once. */
export const keyPlaceholder = 'YOUR_KEY';

// ------------------------------------------------------------------------------------------------------------------ gaps

type Values = ReadonlyMap<string, string | number | undefined>;

function valuesOf(filling: Filling): Values {
  const { model, small = model, context, output } = filling;
  const isSame = small === model;
  return new Map<string, string | number | undefined>(
    Object.entries({
      ...filling,
      small,
      smallContext: isSame ? context : filling.smallContext,
      smallOutput: isSame ? output : filling.smallOutput,
      ...fromContainer(filling.base),
    }),
  );
}

/** How a program in a container reaches the gateway: its own machine's name does not lead out of it. */
function fromContainer(base: string): Record<string, string | undefined> {
  const isLocal = /^https?:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?=[:/]|$)/.test(base);
  if (!isLocal) return { outer: base };
  const name = 'host.docker.internal';
  return { outer: base.replace(/\/\/[^:/[]+|\/\/\[::1\]/, `//${name}`), host: `${name}:host-gateway` };
}

const gap = /\{\{(\w+)(?::(\d+))?\}\}/g;
const wholeGap = new RegExp(`^${gap.source}$`);

/** undefined: a gap has no value. */
function filledText(text: string, values: Values, encode: (value: string) => string = String): string | undefined {
  let isKnown = true;
  const filled = text.replace(gap, (_, name: string, byDefault?: string) => {
    const value = values.get(name) ?? byDefault;
    isKnown &&= value !== undefined;
    return encode(String(value));
  });
  return isKnown ? filled : undefined;
}

/** Every text in it, names of members too; a number stays one, and a list has no item twice. */
function filledValue(value: unknown, values: Values): unknown {
  if (typeof value === 'string') {
    const [, name, byDefault] = wholeGap.exec(value) ?? [];
    if (name === undefined) return filledText(value, values);
    return values.get(name) ?? (byDefault === undefined ? undefined : Number(byDefault));
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => filledValue(item, values)).filter((item) => item !== undefined);
    return [...new Map(items.map((item) => [JSON.stringify(item), item])).values()];
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      const [key, filled] = [filledText(name, values), filledValue(inner, values)];
      return key === undefined || filled === undefined ? [] : [[key, filled]];
    }),
  );
}

function filledTexts(texts: Readonly<Record<string, string>>, values: Values): [name: string, text: string][] {
  return Object.entries(texts).flatMap(([name, text]) => {
    const filled = filledText(text, values);
    return filled === undefined ? [] : [[name, filled]];
  });
}

const filledLines = (lines: readonly string[], values: Values) =>
  lines.flatMap((line) => filledText(line, values) ?? []).join('\n');

// ----------------------------------------------------------------------------------------------------- what is made of it

export const variablesOf = ({ variables = {} }: ClientProgram, filling: Filling): readonly [string, string][] =>
  filledTexts(variables, valuesOf(filling));

/** What is entered by hand, a line for each field. */
export function entriesOf({ enter = {} }: ClientProgram, filling: Filling): string[] {
  const entries = filledTexts(enter, valuesOf(filling));
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}   ${value}`);
}

/** The members that a program's file must have. */
export function membersOf(program: ClientProgram, file: SettingsFile, filling: Filling): Members {
  if (file.set !== undefined) return filledValue(file.set, valuesOf(filling)) as Members;
  const variables = Object.fromEntries(variablesOf(program, filling));
  return file.variables_in === '' ? variables : { [file.variables_in!]: variables };
}

export const linksOf = ({ links = {} }: ClientProgram, filling: Filling): [app: string, address: string][] =>
  Object.entries(links).map(([app, address]) => [
    app,
    filledText(address, valuesOf(filling), encodeURIComponent) ?? '',
  ]);

export const shellNames = { sh: 'bash, zsh', fish: 'fish', powershell: 'PowerShell' } as const;
export type Shell = keyof typeof shellNames;
export const shells = Object.keys(shellNames) as readonly Shell[];

/** The command that sets a variable of the environment. */
export function setVariable(name: string, value: string, shell: Shell): string {
  if (shell === 'powershell') return `$env:${name} = ${quotedIn(shell, value)}`;
  return shell === 'fish' ? `set -gx ${name} ${wordOf(value, shell)}` : `export ${name}=${wordOf(value, shell)}`;
}

/** A text as one word of a command, quoted where the shell would take it otherwise. */
function wordOf(text: string, shell: Shell): string {
  const isPlain = shell === 'powershell' ? /^[\w:./-]+$/ : /^[\w@%+=:,./-]+$/;
  return isPlain.test(text) ? text : quotedIn(shell, text);
}

function quotedIn(shell: Shell, text: string): string {
  if (shell === 'powershell') return `'${text.replaceAll("'", "''")}'`;
  if (shell === 'fish') return `'${text.replace(/['\\]/g, '\\$&')}'`;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export interface Block {
  readonly language: string;
  readonly text: string;
  /** Where it is kept, if it is a file and no command. */
  readonly saveAs?: string | undefined;
}

/** A program's whole set-up by hand, in order: its files, what is entered, the commands of a shell, code. */
export function blocksOf(program: ClientProgram, filling: Filling, shell: Shell = 'sh'): Block[] {
  const values = valuesOf(filling);
  const blocks: Block[] = (program.files ?? [])
    .filter(({ set }) => set !== undefined)
    .map((file) => ({
      language: formatOf(file.path),
      text: newText(formatOf(file.path), membersOf(program, file, filling)).trimEnd(),
      saveAs: file.path,
    }));
  const entries = entriesOf(program, filling);
  if (entries.length > 0) blocks.push({ language: 'text', text: entries.join('\n') });
  const commands = variablesOf(program, filling).map(([name, value]) => setVariable(name, value, shell));
  if (program.run !== undefined) commands.push(program.run);
  if (commands.length > 0) blocks.push({ language: 'sh', text: commands.join('\n') });
  for (const { language, text, powershell, save_as: saveAs } of program.code ?? [])
    if (language === 'sh' && shell === 'powershell')
      blocks.push({ language, text: filledLines(powershell ?? text, values).replace(/ \\$/gm, ' `') });
    else blocks.push({ language, text: filledLines(text, values), saveAs });
  return blocks;
}

// ----------------------------------------------------------------------------------------------------------------- formats

export type Format = 'json' | 'yaml' | 'toml' | 'env' | Shell;

const formats: Readonly<Record<string, Format>> = Object.assign(Object.create(null), {
  json: 'json',
  jsonc: 'json',
  yaml: 'yaml',
  yml: 'yaml',
  toml: 'toml',
  env: 'env',
  sh: 'sh',
  fish: 'fish',
  ps1: 'powershell',
});

export const formatOf = (path: string): Format => formats[path.slice(path.lastIndexOf('.') + 1)] ?? 'env';

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const tomlLine = (name: string, value: unknown) => `${name} = ${JSON.stringify(value)}`;
const tomlTable = (name: string, members: Members) => [
  `[${name}]`,
  ...Object.entries(members).map(([key, value]) => tomlLine(key, value)),
];

/** In files of variables it is quoted where their readers would cut it or put something into it. */
export function variableLine(name: string, value: string, format: 'env' | Shell): string {
  if (format !== 'env') return setVariable(name, value, format);
  return `${name}=${/^[^\s"'#$`\\]*$/.test(value) ? value : JSON.stringify(value)}`;
}

/** A file that has these members alone. In TOML, members with an object are tables; the others stand above the first table. */
export function newText(format: Format, members: Members): string {
  const entries = Object.entries(members);
  if (format === 'json') return `${JSON.stringify(members, undefined, 2)}\n`;
  if (format === 'yaml') return `${yamlLines(members).join('\n')}\n`;
  if (format !== 'toml')
    return `${entries.map(([name, value]) => variableLine(name, String(value), format)).join('\n')}\n`;
  const lines = entries.filter(([, value]) => !isObject(value)).map(([name, value]) => tomlLine(name, value));
  const tables = entries.flatMap(([name, value]) => (isObject(value) ? ['', ...tomlTable(name, value)] : []));
  return `${[...lines, ...tables].join('\n').trimStart()}\n`;
}

/** A text that YAML reads as another type is quoted. */
const yamlScalar = (value: unknown) =>
  typeof value === 'string' && /^(?!(?:true|false|null|yes|no|on|off)$)[a-z][\w./@:-]*(?<!:)$/i.test(value)
    ? value
    : JSON.stringify(value);

function yamlLines(value: unknown): string[] {
  if (Array.isArray(value))
    return value.flatMap((item) => yamlLines(item).map((line, index) => `${index === 0 ? '- ' : '  '}${line}`));
  if (!isObject(value)) return [yamlScalar(value)];
  return Object.entries(value).flatMap(([name, inner]) => {
    const lines = yamlLines(inner);
    const isShort = !isObject(inner) && !(Array.isArray(inner) && inner.some(isObject));
    if (!isShort) return [`${yamlScalar(name)}:`, ...lines.map((line) => `  ${line}`)];
    const text = Array.isArray(inner) ? `[${inner.map(yamlScalar).join(', ')}]` : lines[0]!;
    return [`${yamlScalar(name)}: ${text}`];
  });
}
