/** Sets members in a text of JSON, with comments or without, and leaves every other byte. Pure. */
import { isObject, type Members } from '../../tools/client-programs.ts';

interface Member {
  readonly name: string;
  readonly start: number;
  readonly value: Value;
}
interface Value {
  readonly start: number;
  readonly end: number;
  /** What it has, if it is an object. */
  readonly members?: readonly Member[];
}

/** Throws an Error with a sentence where it is no object. */
export function inJson(text: string, members: Members): string {
  rootOf(text);
  let result = text;
  for (const [path, value] of leavesOf(members)) result = withLeaf(result, path, value);
  return result;
}

/** Objects are merged, everything else is replaced. */
function leavesOf(
  members: Members,
  path: readonly string[] = [],
): (readonly [path: readonly string[], value: unknown])[] {
  return Object.entries(members).flatMap(([name, value]) =>
    isObject(value) && Object.keys(value).length > 0
      ? leavesOf(value, [...path, name])
      : [[[...path, name], value] as const],
  );
}

function withLeaf(text: string, path: readonly string[], leaf: unknown): string {
  let at = rootOf(text);
  for (const [depth, name] of path.entries()) {
    // Readers take the last one of a name.
    const found = at.members!.findLast((member) => member.name === name);
    const rest = path.slice(depth + 1);
    if (found === undefined) return withMember(text, at, name, nested(rest, leaf));
    if (rest.length === 0 || found.value.members === undefined) {
      // An empty object leaves one that is there.
      if (found.value.members !== undefined && isObject(leaf)) return text;
      const value = written(nested(rest, leaf), text, indentAt(text, found.start));
      return text.slice(0, found.value.start) + value + text.slice(found.value.end);
    }
    at = found.value;
  }
  return text;
}

const nested = (path: readonly string[], leaf: unknown): unknown =>
  path.reduceRight<unknown>((inner, name) => Object.fromEntries([[name, inner]]), leaf);

function withMember(text: string, object: Value, name: string, value: unknown): string {
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  const last = object.members!.at(-1);
  const outer = indentAt(text, object.start);
  const indent =
    last === undefined || !isFirstOfLine(text, last.start) ? outer + unitOf(text) : indentAt(text, last.start);
  const member = `${line}${indent}${JSON.stringify(name)}: ${written(value, text, indent)}`;
  if (last === undefined) {
    const inside = text.slice(object.start + 1, object.end - 1);
    const end = inside.trim() === '' ? `${line}${outer}` : inside;
    return `${text.slice(0, object.start + 1)}${member}${end}${text.slice(object.end - 1)}`;
  }
  const next = skipped(text, last.value.end);
  const hasComma = text[next] === ',';
  const behind = hasComma ? next + 1 : last.value.end;
  // A comment of the last member's line stays with it.
  const rest = /^[ \t]*\/\/[^\r\n]*/.exec(text.slice(behind))?.[0] ?? '';
  const place = behind + rest.length;
  const end = isFirstOfLine(text, object.end - 1) ? '' : `${line}${outer}`;
  const tail = end === '' ? text.slice(place) : text.slice(place).trimStart();
  return `${text.slice(0, behind)}${hasComma ? '' : ','}${rest}${member}${hasComma ? ',' : ''}${end}${tail}`;
}

function written(value: unknown, text: string, indent: string): string {
  const line = text.includes('\r\n') ? '\r\n' : '\n';
  return JSON.stringify(value, undefined, unitOf(text)).replaceAll('\n', `${line}${indent}`);
}

const unitOf = (text: string) => /\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
const lineBefore = (text: string, at: number) => text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
const isFirstOfLine = (text: string, at: number) =>
  lineBefore(text, at).trim() === '' && text.lastIndexOf('\n', at) !== -1;
const indentAt = (text: string, at: number) => /^[ \t]*/.exec(lineBefore(text, at))![0];

// --------------------------------------------------------------------------------------------------------------- reading

const trivia = /(?:[\s\uFEFF]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const scalar = /"(?:\\.|[^"\\\n])*"|-?\d[\d.eE+-]*|true|false|null/y;

function skipped(text: string, at: number): number {
  trivia.lastIndex = at;
  trivia.test(text);
  return trivia.lastIndex;
}

function rootOf(text: string): Value {
  const root = valueAt(text, skipped(text, 0));
  if (skipped(text, root.end) !== text.length) throw new Error('it is no valid JSON');
  if (root.members === undefined) throw new Error('it is no JSON object');
  return root;
}

function valueAt(text: string, start: number): Value {
  if (text[start] === '{') return objectAt(text, start);
  if (text[start] === '[') return { start, end: arrayEnd(text, start) };
  scalar.lastIndex = start;
  if (!scalar.test(text)) throw new Error('it is no valid JSON');
  return { start, end: scalar.lastIndex };
}

function arrayEnd(text: string, start: number): number {
  let at = skipped(text, start + 1);
  while (text[at] !== ']') at = afterItem(text, valueAt(text, at).end, ']');
  return at + 1;
}

function objectAt(text: string, start: number): Value {
  const members: Member[] = [];
  let at = skipped(text, start + 1);
  while (text[at] !== '}') {
    const key = valueAt(text, at);
    const colon = skipped(text, key.end);
    if (text[at] !== '"' || text[colon] !== ':') throw new Error('it is no valid JSON');
    const value = valueAt(text, skipped(text, colon + 1));
    members.push({ name: JSON.parse(text.slice(at, key.end)) as string, start: at, value });
    at = afterItem(text, value.end, '}');
  }
  return { start, end: at + 1, members };
}

/** Where the next item or the end begins. A comma may stand before the end. */
function afterItem(text: string, end: number, close: string): number {
  const at = skipped(text, end);
  if (text[at] === close) return at;
  if (text[at] !== ',') throw new Error('it is no valid JSON');
  return skipped(text, at + 1);
}
