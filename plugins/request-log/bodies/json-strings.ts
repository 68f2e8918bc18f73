/** A tolerant JSON scanner for whole, concatenated, cut or broken JSON; reports strings with their member names. Pure. */
import { table } from '../../../core/contract/table.ts';

export interface JsonListener {
  /** Text between strings: punctuation, numbers or invalid JSON. `hidden`: it belongs to a name that hides its value. */
  between(text: string, hidden: boolean): void;
  /** A member's name, raw with its quotes, and decoded. */
  name(raw: string, decoded: string): void;
  /** `path`: the member names that lead to the value. */
  value(raw: string, decoded: string, path: string, hidden: boolean): void;
  /** A number under a name that ends with `index`: it distinguishes parallel streams. */
  index(name: string, value: string): void;
  /** The outermost object or list has ended. */
  documentEnd(): void;
}

interface Level {
  readonly path: string;
  readonly hidden: boolean;
  readonly isObject: boolean;
  name: string;
  /** One member says that the value in another is secret: `{"name": "password", "value": …}`. */
  hidesValue: boolean;
}

const naming = /^(?:name|key|header|field|variable)$/i;
const named = /^(?:value|default|content|text)$/i;

const colon = /\s*:/y;
const signs = /["{}[\],]/g;
const longestPath = 300;

// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: a scanner keeps its position, its level and what it has just read in one loop.
export function readJson(text: string, hides: (name: string) => boolean, listener: JsonListener): void {
  const levels: Level[] = [{ path: '', hidden: false, isObject: false, name: '', hidesValue: false }];
  let at = 0;
  while (at < text.length) {
    const level = levels.at(-1)!;
    const isNamed = level.name !== '' && (hides(level.name) || (level.hidesValue && named.test(level.name)));
    const hidden = level.hidden || isNamed;
    signs.lastIndex = at;
    const sign = signs.exec(text);
    const end = sign?.index ?? text.length;
    if (end > at) {
      const between = text.slice(at, end);
      if (level.name.endsWith('index')) listener.index(level.name, between);
      listener.between(between, hidden);
    }
    if (sign === null) return;
    if (sign[0] === '"') {
      at = stringEnd(text, end);
      const raw = text.slice(end, at);
      const decoded = unescaped(raw);
      colon.lastIndex = at;
      if (level.isObject && level.name === '' && colon.test(text)) {
        level.name = decoded;
        listener.name(raw, decoded);
        continue;
      }
      if (level.isObject && naming.test(level.name) && hides(decoded)) level.hidesValue = true;
      listener.value(raw, decoded, pathOf(level), hidden);
      continue;
    }
    listener.between(sign[0], false);
    at = end + 1;
    step(levels, sign[0], hidden, listener);
  }
}

function step(levels: Level[], sign: string, hidden: boolean, listener: JsonListener): void {
  const level = levels.at(-1)!;
  if (sign === ',') {
    if (level.isObject) level.name = '';
  } else if (sign === '{' || sign === '[') {
    levels.push({ path: pathOf(level), hidden, isObject: sign === '{', name: '', hidesValue: false });
  } else if (levels.length > 1) {
    levels.pop();
    if (levels.length === 1) listener.documentEnd();
  }
}

const pathOf = ({ path, name }: Level): string =>
  name === '' || path.length > longestPath ? path : `${path}.${name.slice(0, longestPath)}`;

/** The index behind the closing quote, or the end of the text. */
function stringEnd(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

const escapes = /\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g;
const meanings: Readonly<Record<string, string>> = table({ n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' });

/** Decodes a string, also one that is cut or invalid. */
function unescaped(raw: string): string {
  const isClosed = raw.length > 1 && raw.endsWith('"');
  const inner = raw.slice(1, isClosed ? -1 : undefined);
  if (!inner.includes('\\')) return inner;
  return inner.replace(escapes, (_all, code: string | undefined, letter: string) =>
    code === undefined ? (meanings[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
