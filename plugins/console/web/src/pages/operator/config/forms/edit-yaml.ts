/** Changes one member of a YAML text and leaves every other byte as it is: comments, order, quotes. Pure. */
import {
  isAlias,
  isCollection,
  isMap,
  isScalar,
  type Node,
  type Pair,
  parseDocument,
  stringify,
  type YAMLMap,
} from 'yaml';

export type Path = readonly string[];
/** Members of a mapping, in the order in which they are written. */
export type FormMap = ReadonlyMap<string, NonNullable<FormValue>>;
/** What a form writes; undefined removes the member, and a mapping that becomes empty by it. */
export type FormValue = string | boolean | readonly (string | FormMap)[] | FormMap | undefined;

interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}
type Member = Pair<Node, Node | null>;

/** The new text; undefined where the place is written in a way that only a person should change. */
export function withMember(text: string, path: Path, value: FormValue): string | undefined {
  const document = parseDocument(text);
  if (document.errors.length > 0) return undefined;
  const { contents } = document;
  if (contents !== null && !isMap(contents)) return undefined;
  const splice =
    contents === null
      ? value === undefined
        ? undefined
        : { from: text.length, to: text.length, text: `${lineBreakAfter(text)}${blockMember(path, value, 0)}\n` }
      : change(text, contents as YAMLMap<Node, Node | null>, path, value);
  if (splice === undefined) return value === undefined ? text : undefined;
  const changed = text.slice(0, splice.from) + splice.text + text.slice(splice.to);
  return means(changed, text, path, value) ? changed : undefined;
}

/** The new text with another name for a member, which keeps its value and place; undefined as for `withMember`. */
export function withName(text: string, path: Path, name: string): string | undefined {
  const document = parseDocument(text);
  if (document.errors.length > 0) return undefined;
  let map = document.contents as Node | null;
  for (const step of path.slice(0, -1)) map = isMap(map) ? (memberOf(map as never, step)?.value ?? null) : null;
  if (!isMap(map) || memberOf(map as never, name) !== undefined) return undefined;
  const member = memberOf(map as YAMLMap<Node, Node | null>, path.at(-1)!);
  if (member === undefined) return undefined;
  const [from, to] = member.key.range!;
  const changed = text.slice(0, from) + scalarText(name, true, true) + text.slice(to);
  const wanted = renamed(parseDocument(text).toJS({ mapAsMap: true }) as Values, path, name);
  const after = parseDocument(changed);
  return after.errors.length === 0 && plain(wanted) === plain(after.toJS({ mapAsMap: true })) ? changed : undefined;
}

/** Changes it in place: what an alias stands for has the new name too. */
function renamed(values: Values, path: Path, name: string): Values {
  let map = values;
  for (const step of path.slice(0, -1)) map = [...map].find(([key]) => String(key) === step)![1] as Values;
  const entries = [...map];
  map.clear();
  for (const [key, value] of entries) map.set(String(key) === path.at(-1) ? name : key, value);
  return values;
}

function change(text: string, map: YAMLMap<Node, Node | null>, path: Path, value: FormValue): Splice | undefined {
  const [name, ...rest] = path as [string, ...string[]];
  const member = memberOf(map, name);
  if (member === undefined) return value === undefined ? undefined : insertion(text, map, path, value);
  const inner = member.value;
  const isEmpty = inner === null || (isScalar(inner) && inner.value === null);
  if (rest.length === 0 || (isEmpty && value !== undefined))
    return value === undefined ? removal(text, map, member) : replacement(text, map, member, rest, value);
  if (!isMap(inner)) return undefined;
  const deeper = inner as YAMLMap<Node, Node | null>;
  if (value === undefined && holdsOnly(deeper, rest)) return removal(text, map, member);
  return change(text, deeper, rest, value);
}

const memberOf = (map: YAMLMap<Node, Node | null>, name: string): Member | undefined =>
  (map.items as readonly Member[]).find(({ key }) => isScalar(key) && String(key.value) === name);

/** Whether nothing is left of a mapping without the member at a path. */
function holdsOnly(map: YAMLMap<Node, Node | null>, [name, ...rest]: Path): boolean {
  const member = memberOf(map, name!);
  if (member === undefined || map.items.length !== 1) return false;
  return rest.length === 0 || (isMap(member.value) && holdsOnly(member.value as YAMLMap<Node, Node | null>, rest));
}

function replacement(
  text: string,
  map: YAMLMap,
  { key, value: old }: Member,
  rest: Path,
  value: NonNullable<FormValue>,
): Splice | undefined {
  if (isAlias(old)) return undefined;
  const colon = text.indexOf(':', endOf(key));
  const flow = map.flow === true || rest.length > 0;
  const written = rest.length === 0 ? scalarText(value, flow) : flowMembers(rest, value);
  if (old === null || endOf(old) <= colon + 1) return { from: colon + 1, to: colon + 1, text: ` ${written}` };
  const isBlock = isCollection(old) && old.flow !== true;
  if (isBlock) return { from: colon + 1, to: lastEnd(old), text: ` ${written}` };
  return { from: old.range![0], to: old.range![1], text: written };
}

function insertion(
  text: string,
  map: YAMLMap<Node, Node | null>,
  path: Path,
  value: NonNullable<FormValue>,
): Splice | undefined {
  const last = map.items.at(-1) as Member | undefined;
  if (map.flow === true) {
    const [name, ...rest] = path as [string, ...string[]];
    const written = flowMember(name, rest, value);
    const from = last === undefined ? map.range![0] + 1 : lastEnd(last.value ?? last.key);
    const to = last === undefined ? map.range![1] - 1 : from;
    return { from, to, text: last === undefined ? ` ${written} ` : `, ${written}` };
  }
  if (last === undefined) return undefined;
  const first = (map.items[0] as Member).key.range![0];
  const column = first - (text.lastIndexOf('\n', first - 1) + 1);
  const lineEnd = endOfLine(text, lastEnd(last.value ?? last.key));
  return { from: lineEnd, to: lineEnd, text: `\n${blockMember(path, value, column)}` };
}

function removal(text: string, map: YAMLMap<Node, Node | null>, member: Member): Splice {
  const start = member.key.range![0];
  const end = lastEnd(member.value ?? member.key);
  const at = map.items.indexOf(member as never);
  if (map.flow === true) {
    const before = map.items[at - 1] as Member | undefined;
    if (before !== undefined) return { from: lastEnd(before.value ?? before.key), to: end, text: '' };
    const after = map.items[at + 1] as Member | undefined;
    return { from: start, to: after === undefined ? end : after.key.range![0], text: '' };
  }
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  return { from: lineStart, to: Math.min(endOfLine(text, end) + 1, text.length), text: '' };
}

const endOf = (node: Node): number => node.range![1];

/** Where the last thing inside a node ends: a block's own range includes the lines below it. */
function lastEnd(node: Node): number {
  if (!isCollection(node) || node.flow === true) return endOf(node);
  const last = node.items.at(-1);
  if (last === undefined) return endOf(node);
  const inner = isMap(node) ? ((last as Member).value ?? (last as Member).key) : (last as Node);
  return lastEnd(inner);
}

function endOfLine(text: string, from: number): number {
  if (from > 0 && text[from - 1] === '\n') return from - 1;
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

const lineBreakAfter = (text: string): string => (text === '' || text.endsWith('\n') ? '' : '\n');

/** Nested mappings for the path: `a:` and below it `b: value`. */
function blockMember([name, ...rest]: Path, value: NonNullable<FormValue>, column: number): string {
  const head = `${' '.repeat(column)}${scalarText(name!, false, true)}:`;
  if (rest.length > 0) return `${head}\n${blockMember(rest, value, column + 2)}`;
  if (isMapping(value) && value.size > 0)
    return [head, ...[...value].map(([key, item]) => blockMember([key], item, column + 2))].join('\n');
  if (Array.isArray(value) && value.some(isMapping))
    return [head, ...value.map((item) => `${' '.repeat(column + 2)}- ${scalarText(item, true, true)}`)].join('\n');
  return `${head} ${scalarText(value, false)}`;
}

const isMapping = (value: unknown): value is FormMap => value instanceof Map;

function flowMember(name: string, rest: Path, value: NonNullable<FormValue>): string {
  return `${scalarText(name, true, true)}: ${rest.length === 0 ? scalarText(value, true) : flowMembers(rest, value)}`;
}
function flowMembers([name, ...rest]: Path, value: NonNullable<FormValue>): string {
  return `{ ${flowMember(name!, rest, value)} }`;
}

/** Numbers keep the digits that were typed; other text is quoted where YAML needs it. */
function scalarText(value: NonNullable<FormValue>, flow: boolean, keepsText = false): string {
  if (typeof value === 'string' && !keepsText && isNumber(value)) return value;
  if (isMapping(value)) return `{ ${[...value].map(([key, item]) => flowMember(key, [], item)).join(', ')} }`;
  if (Array.isArray(value)) return `[${value.map((item) => scalarText(item, true, true)).join(', ')}]`;
  const style = { lineWidth: 0, defaultStringType: 'PLAIN' } as const;
  if (!flow) return stringify(value, style).trim();
  return stringify([value], { ...style, collectionStyle: 'flow', flowCollectionPadding: false })
    .trim()
    .slice(1, -1);
}

const isNumber = (text: string): boolean => /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text);

/** Whether the texts have the same values except for this member. */
function means(changed: string, text: string, path: Path, value: FormValue): boolean {
  const after = parseDocument(changed);
  if (after.errors.length > 0) return false;
  const wanted = parseDocument(text).toJS({ mapAsMap: true }) as Values | null;
  return plain(put(wanted ?? new Map(), path, meaningOf(value))) === plain(after.toJS({ mapAsMap: true }) ?? new Map());
}

/** What a reader of the file gets. Words of a list are texts even if they look like numbers. */
function meaningOf(value: FormValue): unknown {
  if (isMapping(value)) return new Map([...value].map(([key, item]) => [key, meaningOf(item)]));
  if (Array.isArray(value)) return value.map((item) => (isMapping(item) ? meaningOf(item) : item));
  return typeof value === 'string' && isNumber(value) ? Number(value) : value;
}

type Values = Map<unknown, unknown>;

function put(values: Values, [name, ...rest]: Path, value: unknown): Values {
  const key = [...values.keys()].find((one) => String(one) === name) ?? name;
  if (rest.length === 0) {
    if (value === undefined) values.delete(key);
    else values.set(key, value);
    return values;
  }
  const inner = values.get(key);
  if (value === undefined && !(inner instanceof Map)) return values;
  const below = put(inner instanceof Map ? inner : new Map(), rest, value);
  if (value === undefined && below.size === 0) values.delete(key);
  else values.set(key, below);
  return values;
}

const plain = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    inner instanceof Map ? [...inner].map(([key, item]) => [String(key), item]) : inner,
  ) ?? '';
