/** JSON values as they are written in Python, JavaScript and a shell, with files named in the place of their bytes. Pure. */

/** Base64 of a file; no word of a text is so long without a space. */
const fileData = /[A-Za-z0-9+/=]{400,}/;
const fileDataEverywhere = new RegExp(fileData, 'g');

const endings = [
  ['iVBOR', 'png'],
  ['/9j/', 'jpg'],
  ['UklGR', 'webp'],
  ['R0lGOD', 'gif'],
] as const;

/** Names of the files that a snippet reads, in their order: image.png, image-2.jpg. */
export class FileNames {
  readonly #names: string[] = [];

  nameOf(base64: string): string {
    const ending = endings.find(([start]) => base64.startsWith(start))?.[1] ?? 'png';
    const number = this.#names.length + 1;
    const name = `image${number === 1 ? '' : `-${number}`}.${ending}`;
    this.#names.push(name);
    return name;
  }
}

interface Dialect {
  readonly words: { readonly null: string; readonly true: string; readonly false: string };
  readonly indent: string;
  /** An expression of the file's Base64. */
  readonly file: (name: string) => string;
  readonly member: (name: string) => string;
}

const identifier = /^[A-Za-z_]\w*$/;
export const javascript: Dialect = {
  words: { null: 'null', true: 'true', false: 'false' },
  indent: '  ',
  file: (name) => `readFileSync(${JSON.stringify(name)}, "base64")`,
  member: (name) => (identifier.test(name) ? name : JSON.stringify(name)),
};
export const python: Dialect = {
  words: { null: 'None', true: 'True', false: 'False' },
  indent: '    ',
  file: (name) => `b64encode(Path(${JSON.stringify(name)}).read_bytes()).decode()`,
  member: (name) => JSON.stringify(name),
};
/** `maxTokens` as Python has it. */
export const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Its client takes bytes, and encodes them itself. */
export const pythonOfGoogle: Dialect = {
  ...python,
  file: (name) => `Path(${JSON.stringify(name)}).read_bytes()`,
  member: (name) => JSON.stringify(snake(name)),
};

/** A file that the SDK sends itself. */
export class OpenedFile {
  readonly data: string;

  /** A file's name, or a data URL for which a name is found. */
  constructor(data: string) {
    this.data = data;
  }
}

/** The value of an argument. */
export function argument(value: unknown, dialect: Dialect, files: FileNames): string {
  if (value instanceof OpenedFile) {
    const { data } = value;
    const name = JSON.stringify(data.startsWith('data:') ? files.nameOf(data.slice(data.indexOf(',') + 1)) : data);
    return dialect === javascript ? `createReadStream(${name})` : `open(${name}, "rb")`;
  }
  if (Array.isArray(value) && value.some((one) => one instanceof OpenedFile))
    return `[${value.map((one) => argument(one, dialect, files)).join(', ')}]`;
  return literal(value, dialect, files, 1);
}

/** Long lists and objects a line for each member, short ones on one line. */
function literal(value: unknown, dialect: Dialect, files: FileNames, depth = 0): string {
  if (typeof value === 'string') return textLiteral(value, dialect, files);
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return dialect.words[`${value}`];
  if (typeof value !== 'object' || value === null) return dialect.words.null;
  const inner = (one: unknown) => literal(one, dialect, files, depth + 1);
  if (Array.isArray(value)) return enclosed('[]', value.map(inner), dialect, depth);
  const members = Object.entries(value).map(([name, one]) => `${dialect.member(name)}: ${inner(one)}`);
  return enclosed('{}', members, dialect, depth);
}

const longestLine = 90;
function enclosed(brackets: string, parts: readonly string[], { indent }: Dialect, depth: number): string {
  const [open, close] = brackets as unknown as [string, string];
  const space = brackets === '{}' && indent === javascript.indent && parts.length > 0 ? ' ' : '';
  const line = `${open}${space}${parts.join(', ')}${space}${close}`;
  if (line.length + depth * indent.length <= longestLine && !line.includes('\n')) return line;
  const lines = parts.map((part) => `${indent.repeat(depth + 1)}${part},\n`).join('');
  return `${open}\n${lines}${indent.repeat(depth)}${close}`;
}

/** JSON's strings are strings of both languages. */
function textLiteral(text: string, dialect: Dialect, files: FileNames): string {
  const data = fileData.exec(text)?.[0];
  if (data === undefined) return JSON.stringify(text);
  const before = text.slice(0, text.indexOf(data));
  const file = dialect.file(files.nameOf(data));
  return before === '' ? file : `${JSON.stringify(before)} + ${file}`;
}

/** In single quotes, as a shell wants them. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The data of a request for a shell: a text in quotes, or, where files are in it, lines that read them. */
export function shellData(body: object): string {
  const text = JSON.stringify(body, null, 2);
  if (!fileData.test(text)) return `-d ${shellQuoted(text)}`;
  const files = new FileNames();
  const escaped = text.replaceAll(/[\\$`]/g, '\\$&');
  const read = escaped.replaceAll(fileDataEverywhere, (data) => `$(base64 < ${files.nameOf(data)} | tr -d '\\n')`);
  return `-d @- <<END_OF_JSON\n${read}\nEND_OF_JSON`;
}
