/** Faults of a gateway file that show at once while it is written: syntax, unknown members, values not on the list. Pure. */
import { isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { alternatives, memberOf, type SchemaNode, valuesOf } from './schema.ts';

export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

const mostMarks = 100;

/** Marks of a text; values from the environment are not judged. `say` gives the messages. */
export function marksOf(root: SchemaNode, text: string, say: Sayings): Mark[] {
  const parsed = parseDocument(text, { prettyErrors: false, uniqueKeys: true });
  const marks: Mark[] = parsed.errors.map(({ pos, message }) => ({ from: pos[0], to: pos[1], message }));
  if (marks.length === 0 && parsed.contents !== null) walk(root, alternatives(root, root), parsed.contents, marks, say);
  return marks.slice(0, mostMarks);
}
export interface Sayings {
  unknown(name: string, known: readonly string[]): string;
  value(value: string, allowed: readonly string[]): string;
}

function walk(root: SchemaNode, nodes: readonly SchemaNode[], at: Node, marks: Mark[], say: Sayings): void {
  if (isMap(at)) {
    walkMap(root, nodes, at.items, marks, say);
    return;
  }
  if (isSeq(at)) {
    const inner = nodes.flatMap(({ items }) => (items === undefined ? [] : alternatives(root, items)));
    for (const item of at.items) if (inner.length > 0) walk(root, inner, item as Node, marks, say);
    return;
  }
  if (!isScalar(at) || at.value === null) return;
  const allowed = valuesOf(nodes);
  // A list is complete only where nothing else may stand there.
  const isClosed = nodes.every((node) => node.enum !== undefined || node.const !== undefined);
  const value = String(at.value);
  if (!isClosed || allowed.length === 0 || allowed.includes(value) || value.includes('${')) return;
  marks.push({ ...span(at), message: say.value(value, allowed) });
}

function walkMap(
  root: SchemaNode,
  nodes: readonly SchemaNode[],
  pairs: readonly unknown[],
  marks: Mark[],
  say: Sayings,
): void {
  const maps = nodes.filter(({ properties, additionalProperties }) => properties ?? additionalProperties);
  if (maps.length === 0) return;
  const known = [...new Set(maps.flatMap(({ properties }) => Object.keys(properties ?? {})))];
  const isClosed = maps.every(({ additionalProperties }) => additionalProperties === false);
  for (const pair of pairs) {
    if (!isPair(pair) || !isScalar(pair.key)) continue;
    const name = String(pair.key.value);
    const inner = maps.flatMap((node) => {
      const member = memberOf(node, name);
      return member === undefined ? [] : alternatives(root, member);
    });
    if (inner.length > 0) {
      if (pair.value !== null) walk(root, inner, pair.value as Node, marks, say);
    } else if (isClosed) marks.push({ ...span(pair.key), message: say.unknown(name, nearest(name, known)) });
  }
}

function span(node: Node): { readonly from: number; readonly to: number } {
  const [from = 0, to = from] = node.range ?? [];
  return { from, to };
}

/** The known names that begin alike, or else the first few. */
function nearest(name: string, known: readonly string[]): string[] {
  const alike = known.filter((one) => one.slice(0, 2) === name.slice(0, 2));
  return (alike.length > 0 ? alike : known).slice(0, 8);
}

/** `main.yaml:12:3` as an offset in the text of that file; undefined for another file, or a place that is not there. */
export function offsetOf(where: string, file: string, text: string): number | undefined {
  const match = /^(.*?)(?::(\d+))?(?::(\d+))?$/.exec(where)!;
  const name = match[1]!;
  if (name !== '' && !file.endsWith(name) && !name.endsWith(file)) return undefined;
  const counter = new LineCounter();
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) counter.addNewLine(at + 1);
  const start = match[2] === undefined || match[2] === '1' ? 0 : counter.lineStarts[Number(match[2]) - 2];
  if (start === undefined) return undefined;
  return Math.min(start + Number(match[3] ?? 1) - 1, text.length);
}
