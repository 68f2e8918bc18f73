/** One YAML file, or several by `include`, to plain values that remember where each was written. */
import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
} from 'yaml';

/** What is wrong, and where it was written. */
export interface Problem {
  /** `config/main.yaml:12` */
  readonly where: string;
  readonly message: string;
}

export type Values = Record<string, unknown>;

export interface LoadedYaml {
  readonly values: Values;
  readonly problems: readonly Problem[];
  /** Every file that was read, the named one first: absolute path to its text as it is written. */
  readonly files: ReadonlyMap<string, string>;
  /** A text about the values, without what environment variables put into them. */
  hide(text: string): string;
  /** File and line of a path such as `['billing', 'hold']`, or of the nearest parent that was written. */
  where(path: readonly PropertyKey[]): string;
}

const maxIncludeDepth = 8;
/** What is shorter is no secret, and may be a part of any word. */
const shortestHidden = 8;
const variablePattern = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}\\]|\\.)*))?\}/g;

/** What somebody would like files to be, who need not be the one who keeps them. */
export interface Drafts {
  /** Texts that stand for what the disk has, by absolute path. */
  readonly texts: ReadonlyMap<string, string>;
  /** Whether a draft may include this file. */
  mayRead(file: string): boolean;
}

interface Loading {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly drafts: Drafts | undefined;
  readonly files: Map<string, string>;
  readonly filledIn: Set<string>;
  readonly problems: Problem[];
  readonly places: Map<string, string>;
}

/**
 * Reads `file` and what it includes; a file's own members are laid over those of its includes, mapping by mapping, while
 * scalars and lists are replaced whole. `${NAME}` and `${NAME:-default}` in values stand for the environment's variables.
 * Every problem is collected; nothing is thrown for what an operator wrote.
 */
export function loadYaml(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
  drafts?: Drafts,
): LoadedYaml {
  const loading: Loading = {
    environment,
    drafts,
    files: new Map(),
    filledIn: new Set(),
    problems: [],
    places: new Map(),
  };
  const values = loadFile(resolve(file), loading, []);
  const root = display(resolve(file));
  return {
    values,
    problems: loading.problems,
    files: loading.files,
    hide: (text) => [...loading.filledIn].reduce((hidden, value) => hidden.replaceAll(value, '***'), text),
    where(path) {
      for (let length = path.length; length > 0; length--) {
        const place = loading.places.get(placeKey(path.slice(0, length)));
        if (place !== undefined) return place;
      }
      return root;
    },
  };
}

function loadFile(file: string, loading: Loading, above: readonly string[]): Values {
  if (above.includes(file) || above.length >= maxIncludeDepth) {
    loading.problems.push({ where: display(file), message: 'is included by itself' });
    return {};
  }
  if (loading.drafts?.mayRead(file) === false) {
    loading.problems.push({ where: display(file), message: 'lies elsewhere: it can only be included by hand' });
    return {};
  }
  let text: string;
  try {
    text = loading.drafts?.texts.get(file) ?? readFileSync(file, 'utf8');
  } catch {
    loading.problems.push({ where: display(file), message: 'cannot be read' });
    return {};
  }
  loading.files.set(file, text);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: true, uniqueKeys: true });
  const at = (node: Node | null | undefined) => `${display(file)}:${lines.linePos(node?.range?.[0] ?? 0).line}`;
  for (const error of document.errors)
    loading.problems.push({
      where: `${display(file)}:${error.linePos?.[0].line ?? 1}`,
      message: error.message.split('\n')[0]!,
    });
  if (document.errors.length > 0) return {};
  substitute(document.contents, at, loading);
  const own = toValues(document, at, loading);
  const included = [own['include'] ?? []]
    .flat()
    .map((name) => loadFile(resolve(dirname(file), String(name)), loading, [...above, file]));
  // Includes were read after this file: its own places must win over theirs.
  rememberPlaces(document.contents, [], at, loading);
  delete own['include'];
  return included.concat(own).reduce(merged, {});
}

function toValues(document: Document, at: (node: Node | null) => string, loading: Loading): Values {
  const value: unknown = document.toJS();
  if (value === null || value === undefined) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Values;
  loading.problems.push({ where: at(document.contents as Node | null), message: 'must be a mapping' });
  return {};
}

/** Puts the environment's values where they are asked for. `true` and `false` become booleans; everything else stays text. */
function substitute(node: unknown, at: (node: Node) => string, loading: Loading): void {
  if (isMap(node)) for (const pair of node.items) substitute(pair.value, at, loading);
  else if (isSeq(node)) for (const item of node.items) substitute(item, at, loading);
  else if (isScalar(node) && typeof node.value === 'string' && node.value.includes('${'))
    fill(node as Scalar<string>, at, loading);
}

function fill(node: Scalar<string>, at: (node: Node) => string, loading: Loading): void {
  const filled = node.value.replace(variablePattern, (_whole, name: string, fallback: string | undefined) => {
    const value = loading.environment[name];
    if (value !== undefined && value !== '') {
      if (value.length >= shortestHidden) loading.filledIn.add(value);
      return value;
    }
    if (fallback !== undefined) return fallback;
    loading.problems.push({ where: at(node), message: `the environment variable ${name} is not set` });
    return '';
  });
  (node as Scalar).value = filled === 'true' ? true : filled === 'false' ? false : filled;
}

function rememberPlaces(
  node: unknown,
  path: readonly PropertyKey[],
  at: (node: Node) => string,
  loading: Loading,
): void {
  if (isMap(node)) {
    for (const pair of node.items) {
      const below = [...path, String((pair.key as Scalar).value)];
      loading.places.set(placeKey(below), at(pair.key as Node));
      rememberPlaces(pair.value, below, at, loading);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, index) => {
      if (isScalar(item) || isMap(item) || isAlias(item)) loading.places.set(placeKey([...path, index]), at(item));
      rememberPlaces(item, [...path, index], at, loading);
    });
  }
}

function merged(under: Values, over: Values): Values {
  const result: Values = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const below = result[name];
    result[name] = isMapping(below) && isMapping(value) ? merged(below, value) : value;
  }
  return result;
}

function isMapping(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function placeKey(path: readonly PropertyKey[]): string {
  return path.map(String).join('\u0000');
}

/** A file as people are told of it: from the working directory where it is below that. */
export function display(file: string): string {
  const short = relative(process.cwd(), file);
  return short.startsWith('..') ? file : short;
}
