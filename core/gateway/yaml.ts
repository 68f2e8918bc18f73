/** One YAML file, or several by `include`, to plain values with the file and line of each. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
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
import { didYouMean } from '../tools/near-names.ts';
import { ownFileOf } from './files/own-file.ts';
import { Filling, type FoundSecrets, isQuoted, type WantedSecret } from './secrets/filling.ts';
import { describeSyntaxError, unknownAlias } from './yaml-errors.ts';

/** A problem and its location. */
export interface Problem {
  /** `config/main.yaml:12` */
  readonly where: string;
  readonly message: string;
}

interface Remark {
  readonly where: string;
  readonly text: string;
}

export type Values = Record<string, unknown>;

export interface LoadedYaml {
  readonly values: Values;
  readonly problems: readonly Problem[];
  /** Values that are read and probably not meant; without the values. */
  readonly remarks: readonly Remark[];
  /** Whether a file could not be read as YAML: what its text says is not known. */
  readonly isUnread: boolean;
  /** Every file that was read, the main one first: its text by absolute path. The own file over a shipped one is empty until there is one. */
  readonly files: ReadonlyMap<string, string>;
  /** The files that each of them includes, in the order in which they are laid over one another. */
  readonly includes: ReadonlyMap<string, readonly string[]>;
  /** Where the operator's own file over a shipped one is, or would be. */
  readonly own: string | undefined;
  /** Files with secrets that the values name, by absolute path, with what stands in them. */
  readonly secretFiles: ReadonlyMap<string, string | undefined>;
  /** Secrets of plugins' sources that the values name and that were not given. */
  readonly wanted: ReadonlyMap<string, WantedSecret>;
  /** Masks the values of environment variables and secrets in a text. */
  hide(text: string): string;
  /** File and line of a path such as `['billing', 'hold']`, or of its nearest parent. */
  where(path: readonly PropertyKey[]): string;
  /** The same of the setting that a sentence begins with (`server.body_limit is …`); undefined: it names none that is written. */
  whereOf(sentence: string): string | undefined;
}

const maxIncludeDepth = 8;

/** Proposed texts of files. */
export interface Drafts {
  /** Texts instead of files, by absolute path. */
  readonly texts: ReadonlyMap<string, string>;
  /** Whether a draft may include this file. */
  mayRead(file: string): boolean;
  /** Whether a draft may take a secret from this file. */
  mayTakeSecret(file: string): boolean;
}

interface Loading {
  readonly drafts: Drafts | undefined;
  readonly files: Map<string, string>;
  readonly includes: Map<string, readonly string[]>;
  readonly filling: Filling;
  readonly problems: Problem[];
  readonly remarks: Remark[];
  readonly locations: Map<string, string>;
  isUnread: boolean;
}

/**
 * Reads `file` and what it includes; a file's own members are laid over those of its includes, mapping by mapping, while
 * scalars and lists are replaced whole. `${NAME}`, `${file:/path}` and `${source:reference}` in values are filled in
 * (`secrets/filling.ts`); `found`: what sources have given. Problems are collected, not thrown.
 */
export function loadYaml(
  file: string,
  environment: Readonly<Record<string, string | undefined>>,
  drafts?: Drafts,
  found?: FoundSecrets,
): LoadedYaml {
  const filling = new Filling(environment, found, (path) => drafts?.mayTakeSecret(path) !== false);
  const loading: Loading = {
    drafts,
    files: new Map(),
    includes: new Map(),
    filling,
    problems: [],
    remarks: [],
    locations: new Map(),
    isUnread: false,
  };
  const path = resolve(file);
  const root = display(path);
  const written = loadFile(path, loading, [], root);
  const own = ownFileOf(path, written, environment);
  const values = own === undefined ? written : merged(written, loadOwn(own, path, loading));
  return {
    values,
    problems: loading.problems,
    remarks: loading.remarks,
    isUnread: loading.isUnread,
    files: own === undefined ? loading.files : new Map([[own, loading.files.get(own) ?? ''], ...loading.files]),
    own,
    includes: loading.includes,
    secretFiles: filling.files,
    wanted: filling.wanted,
    hide: (text) => filling.hide(text),
    where(path) {
      for (let length = path.length; length > 0; length--) {
        const location = loading.locations.get(locationKey(path.slice(0, length)));
        if (location !== undefined) return location;
      }
      return root;
    },
    whereOf: (sentence) => placeOfSetting(sentence, loading.locations),
  };
}

/** Names of members may have full stops in them, so every written path is compared. */
function placeOfSetting(sentence: string, locations: ReadonlyMap<string, string>): string | undefined {
  let [name = ''] = /^[^\s:,]+/.exec(sentence) ?? [];
  const byName = new Map([...locations].map(([key, place]) => [key.replaceAll('\u0000', '.'), place]));
  while (name !== '' && !byName.has(name)) name = name.slice(0, Math.max(0, name.lastIndexOf('.')));
  return byName.get(name);
}

/** What the own file says over a shipped one, which it need not include. */
function loadOwn(own: string, shipped: string, loading: Loading): Values {
  const isThere = loading.drafts?.texts.has(own) === true || existsSync(own);
  const values = isThere ? loadFile(own, loading, [], display(own)) : {};
  loading.includes.set(own, [shipped, ...(loading.includes.get(own) ?? [])]);
  return values;
}

/** `includedAt`: where the file is named, or the file itself. */
function loadFile(file: string, loading: Loading, above: readonly string[], includedAt: string): Values {
  if (loading.isUnread) return {};
  const refuse = (message: string): Values => {
    loading.problems.push({
      where: includedAt,
      message: above.length === 0 ? message : `${display(file)}: ${message}`,
    });
    return {};
  };
  if (above.includes(file) || above.length >= maxIncludeDepth) return refuse('is included by itself');
  if (above.length > 0 && loading.drafts?.mayRead(file) === false)
    return refuse('lies elsewhere: it can only be included by hand');
  let text: string;
  try {
    text = loading.drafts?.texts.get(file) ?? readFileSync(file, 'utf8');
  } catch (error) {
    loading.isUnread = true;
    return refuse(unreadable(file, error, loading.drafts === undefined));
  }
  loading.files.set(file, text);
  const { document, lines } = parsed(text);
  const shown = display(file);
  const place = (offset: number) => `${shown}:${lines.linePos(offset).line}`;
  const at = (node: Node | null | undefined) => place(node?.range?.[0] ?? 0);
  if (document.errors.length > 0) {
    const { offset, message } = describeSyntaxError(document, text);
    loading.problems.push({ where: place(offset), message });
    loading.isUnread = true;
    return {};
  }
  substitute(document.contents, [], { at, loading, directory: dirname(file) });
  const own = toValues(document, at, loading);
  const includedFrom = document.get('include', true);
  const names = [own['include'] ?? []].flat().map((name) => resolve(dirname(file), String(name)));
  loading.includes.set(file, names);
  const included = names.map((name, index) => {
    const item = isSeq(includedFrom) ? includedFrom.items[index] : includedFrom;
    return loadFile(name, loading, [...above, file], at(item as Node));
  });
  // After those of its includes: its own take precedence.
  rememberPlaces(document.contents, [], at, loading);
  delete own['include'];
  return included.concat(own).reduce(merged, {});
}

interface Parsed {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
}

/** Parsed files by text: a start reads the same included files several times. Cleared after `keptMs`. */
const parsedLately = new Map<string, Parsed>();
const mostParsed = 8;
const keptMs = 30_000;

function parsed(text: string): Parsed {
  const before = parsedLately.get(text);
  if (before !== undefined) return before;
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: true, uniqueKeys: true });
  // Substituting variables changes the document, so it cannot be used again.
  if (text.includes('${') || parsedLately.size === mostParsed) return { document, lines };
  if (parsedLately.size === 0) setTimeout(() => parsedLately.clear(), keptMs).unref();
  parsedLately.set(text, { document, lines });
  return { document, lines };
}

/** `suggests`: whether the message may tell names of other files. */
function unreadable(file: string, error: unknown, suggests: boolean): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT') return `cannot be read (${code ?? 'unknown error'})`;
  return `there is no such file${suggests ? didYouMean(basename(file), filesIn(dirname(file))) : ''}`;
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => /\.ya?ml$/.test(name));
  } catch {
    return [];
  }
}

function toValues(document: Document, at: (node: Node | null) => string, loading: Loading): Values {
  const fail = (node: Node | null, message: string): Values => {
    loading.problems.push({ where: at(node), message });
    loading.isUnread = true;
    return {};
  };
  const unknown = unknownAlias(document);
  if (unknown !== undefined) return fail(unknown.alias, unknown.message);
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    const isMerge = (error as Error).message.startsWith('Merge');
    return fail(
      null,
      isMerge ? '"<<" takes a mapping, or an anchor of one' : 'the anchors of this file stand for too much',
    );
  }
  if (value === null || value === undefined) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Values;
  return fail(document.contents as Node | null, 'a gateway file is a mapping (name: value)');
}

interface Substituting {
  readonly at: (node: Node) => string;
  readonly loading: Loading;
  readonly directory: string;
}

/** Fills in what values stand for. `true` and `false` become booleans; everything else stays text. */
function substitute(node: unknown, path: readonly PropertyKey[], tools: Substituting): void {
  if (isMap(node)) {
    for (const pair of node.items) {
      refuseKey(pair.key, tools);
      substitute(pair.value, [...path, String((pair.key as Scalar | null)?.value)], tools);
    }
  } else if (isSeq(node)) for (const [index, item] of node.items.entries()) substitute(item, [...path, index], tools);
  else if (isScalar(node) && typeof node.value === 'string') {
    const { at, loading } = tools;
    if (isQuoted(node.value))
      loading.remarks.push({ where: at(node), text: 'the value has quotes inside of its quotes, which belong to it' });
    if (node.value.includes('${')) fill(node as Scalar<string>, path, tools);
  }
}

/** A key of that name would give a mapping members that no check of sections sees. */
function refuseKey(key: unknown, { at, loading }: Substituting): void {
  if (!isScalar(key) || key.value !== '__proto__') return;
  loading.problems.push({ where: at(key), message: 'the key "__proto__" is not accepted' });
}

function fill(node: Scalar<string>, path: readonly PropertyKey[], { at, loading, directory }: Substituting): void {
  const where = at(node);
  const filled = loading.filling.fill(node.value, {
    setting: path.map(String).join('.'),
    directory,
    refuse: (message) => loading.problems.push({ where, message }),
    remark: (text) => loading.remarks.push({ where, text }),
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
      loading.locations.set(locationKey(below), at(pair.key as Node));
      rememberPlaces(pair.value, below, at, loading);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, index) => {
      if (isScalar(item) || isMap(item) || isAlias(item))
        loading.locations.set(locationKey([...path, index]), at(item));
      rememberPlaces(item, [...path, index], at, loading);
    });
  }
}

function merged(under: Values, over: Values): Values {
  const result: Values = { ...under };
  for (const [name, value] of Object.entries(over)) {
    if (name === '__proto__') continue;
    const below = result[name];
    result[name] = isMapping(below) && isMapping(value) ? merged(below, value) : value;
  }
  return result;
}

function isMapping(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function locationKey(path: readonly PropertyKey[]): string {
  return path.map(String).join('\u0000');
}

/** A path for messages: relative to the working directory if it is below it. */
export function display(file: string): string {
  const short = relative(process.cwd(), file);
  return short.startsWith('..') ? file : short;
}
