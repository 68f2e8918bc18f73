/**
 * JSON.parse that also reads names with escape sequences rightly. V8 takes such a name for another one that it has seen and
 * that begins with the same bytes: once some object had the name `file_i\`, `"file_i\u0064"` is read as `file_i\` and not as
 * `file_id` (nodejs/node issue 63785), so that one caller's body would change how another's is read. Pure.
 */

/** Throws SyntaxError. */
export function parseJson(text: string): unknown {
  return text.includes('\\') && mayHaveEscapedName(text) ? parseEscapedNames(text) : JSON.parse(text);
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/** Whether a string with an escape sequence is followed by a colon. Never false for a text that has such a name. */
function mayHaveEscapedName(text: string): boolean {
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', at)) {
    at = endOfString(text, at) + 1;
    while (at < text.length && text.charCodeAt(at) <= 0x20) at++;
    if (text.charCodeAt(at) === colon) return true;
  }
  return false;
}

/** The index of the quote that ends a string, or the text's length; `start`: a place in the string outside of an escape. */
function endOfString(text: string, start: number): number {
  const { length } = text;
  for (let at = start; at < length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) return at;
    if (unit === backslash) at++;
  }
  return length;
}

/** A string, and the colon that makes it a name. */
const strings = /("(?:[^"\\]|\\.)*")(\s*:)?/gs;

/** Parses with plain marks instead of such names, and then puts the names back. */
function parseEscapedNames(text: string): unknown {
  let mark = '~';
  while (text.includes(`"${mark}`)) mark += '~';
  const names: string[] = [];
  const marked = text.replace(strings, (all, name: string, colon: string | undefined) =>
    colon === undefined || !name.includes('\\')
      ? all
      : `"${mark}${names.push(JSON.parse(name) as string) - 1}"${colon}`,
  );
  const value: unknown = JSON.parse(marked);
  return renamed(value, (key) => (key.startsWith(mark) ? names[Number(key.slice(mark.length))]! : key));
}

/** The value, with objects that have a marked name written again. A reviver of JSON.parse would take many times longer. */
function renamed(value: unknown, nameOf: (key: string) => string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return renamedElements(value, nameOf);
  const members = value as Record<string, unknown>;
  let isMarked = false;
  for (const key of Object.keys(members)) {
    const member = members[key];
    const inner = renamed(member, nameOf);
    // An assignment would set the prototype where a member is called __proto__.
    if (inner !== member) Object.defineProperty(members, key, { value: inner });
    isMarked ||= nameOf(key) !== key;
  }
  if (!isMarked) return value;
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [nameOf(key), member]));
}

function renamedElements(list: unknown[], nameOf: (key: string) => string): unknown[] {
  for (let index = 0; index < list.length; index++) {
    const element = list[index];
    if (typeof element === 'object') list[index] = renamed(element, nameOf);
  }
  return list;
}
