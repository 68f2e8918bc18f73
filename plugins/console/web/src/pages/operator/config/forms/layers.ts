/** The files of a gateway as they are laid over one another: the effective value of a member, and the file to write it in. Pure. */
import { type Document, isAlias, isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml';
import type { FormMap, FormValue, Path } from './edit-yaml.ts';

export interface LayerFile {
  readonly name: string;
  readonly text: string;
  /** Whether forms write it: it is the operator's own, and not read-only. */
  readonly writable: boolean;
  /** Names of the files below it, the one that comes first at the end. */
  readonly includes: readonly string[];
}
export interface Layer extends LayerFile {
  readonly root: Node | null;
  readonly document: Document;
}
/** A value as it is written: a scalar's own letters, a list of such, or something that a form does not show. */
export type Written = string | readonly string[] | { readonly other: true };

/** The first comes before all others. The first file includes the rest, directly or not. */
export function layersOf(files: readonly LayerFile[]): readonly Layer[] {
  const layers = new Map(
    files.map((file) => {
      const document = parseDocument(file.text) as Document;
      const root = document.errors.length > 0 ? null : (document.contents as Node | null);
      return [file.name, { ...file, document, root }];
    }),
  );
  const order: Layer[] = [];
  const visit = (layer: Layer | undefined) => {
    if (layer === undefined || order.includes(layer)) return;
    order.push(layer);
    for (const name of layer.includes.toReversed()) visit(layers.get(name));
  };
  visit(layers.get(files[0]?.name ?? ''));
  return order;
}

function nodeAt(root: Node | null, path: Path): Node | null | undefined {
  let node: Node | null | undefined = root;
  for (const name of path) {
    if (!isMap(node)) return undefined;
    const found = node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
    if (found === undefined) return undefined;
    node = found.value as Node | null;
  }
  return node;
}

function writtenAt(root: Node | null, path: Path): Written | undefined {
  const node = nodeAt(root, path);
  if (node === undefined) return undefined;
  if (node === null || (isScalar(node) && node.value === null)) return undefined;
  if (isScalar(node)) return lettersOf(node);
  if (isSeq(node) && node.items.every(isScalar)) return node.items.map(lettersOf);
  return { other: true };
}

/** A number's own digits, since 1.50 is read as 1.5. */
const lettersOf = (node: { readonly value: unknown; readonly source?: string | undefined }): string =>
  typeof node.value === 'number' ? (node.source ?? String(node.value)) : String(node.value);

/** The effective value at a path, from the first file that has it; undefined where none has. */
export function valueAt(layers: readonly Layer[], path: Path): Written | undefined {
  for (const { root } of layers) {
    const written = writtenAt(root, path);
    if (written !== undefined) return written;
  }
  return undefined;
}

/** The names below a path, of all files, but for what a file above takes away by null; included files come first, as a reader meets them. */
export function namesAt(layers: readonly Layer[], path: Path): readonly string[] {
  const names = layers.toReversed().flatMap(({ root }) => {
    const node = nodeAt(root, path);
    return isMap(node) ? node.items.flatMap(({ key }) => (isScalar(key) ? [String(key.value)] : [])) : [];
  });
  const isTaken = (name: string) => {
    const node = layers.map(({ root }) => nodeAt(root, [...path, name])).find((one) => one !== undefined);
    return isScalar(node) && node.value === null;
  };
  return [...new Set(names)].filter((name) => !isTaken(name));
}

/** A value with everything in it, as JSON with numbers as their own letters. */
export type Whole = string | readonly Whole[] | { readonly [name: string]: Whole };

const deepest = 10;

/** The effective value at a path: mappings of all files are merged, everything else is the first file's. */
export function wholeAt(layers: readonly Layer[], path: Path): Whole | undefined {
  const merged = layers.toReversed().reduce<Merged | undefined>((below, { root, document }) => {
    const above = mergedOf(nodeAt(root, path), document, 0);
    return above === undefined ? below : over(above, below);
  }, undefined);
  return merged === undefined ? undefined : jsonOf(merged);
}

type Merged = string | readonly Merged[] | ReadonlyMap<string, Merged>;

function mergedOf(node: Node | null | undefined, document: Document, depth: number): Merged | undefined {
  if (node === undefined || node === null || depth > deepest) return undefined;
  if (isAlias(node)) return mergedOf(node.resolve(document) as Node | undefined, document, depth + 1);
  const inner = (one: unknown) => mergedOf(one as Node | null, document, depth + 1);
  if (isSeq(node)) return node.items.flatMap((item) => inner(item) ?? []);
  if (isMap(node))
    return new Map(
      node.items.flatMap(({ key, value }) => {
        const item = isScalar(key) ? inner(value) : undefined;
        return item === undefined ? [] : [[String((key as { value: unknown }).value), item] as const];
      }),
    );
  return isScalar(node) && node.value !== null ? lettersOf(node) : undefined;
}

function over(above: Merged, below: Merged | undefined): Merged {
  if (!(above instanceof Map) || !(below instanceof Map)) return above;
  const merged = new Map<string, Merged>(below);
  for (const [name, value] of above as ReadonlyMap<string, Merged>) merged.set(name, over(value, below.get(name)));
  return merged;
}

function jsonOf(value: Merged): Whole {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, inner]) => [name, jsonOf(inner)]));
  return Array.isArray(value) ? value.map(jsonOf) : (value as string);
}

/** What a form writes for it: `true` and `false` are no texts. */
export function formValueOf(whole: Whole): NonNullable<FormValue> {
  if (typeof whole === 'string') return whole === 'true' || whole === 'false' ? whole === 'true' : whole;
  if (Array.isArray(whole)) return whole.map((item: Whole) => formValueOf(item) as string | FormMap);
  return new Map(Object.entries(whole).map(([name, inner]) => [name, formValueOf(inner)]));
}

/** The files that have something at a path. */
export const filesWith = (layers: readonly Layer[], path: Path): readonly Layer[] =>
  layers.filter(({ root }) => nodeAt(root, path) !== undefined);

/** Whether a member is written by an alias (`*name`) or below one, which no form changes. */
function isAliased(root: Node | null, path: Path): boolean {
  return path.some((_name, index) => isAlias(nodeAt(root, path.slice(0, index + 1))));
}

/**
 * The file to write a member in: the one that has it or its entry, or where that is not written, the nearest one that overrides it and is. What no file has is new: it
 * is written in the first file, the operator's own. undefined: there is none.
 */
export function fileFor(layers: readonly Layer[], path: Path): Layer | undefined {
  for (let length = path.length; length > 1; length--) {
    const at = layers.findIndex(({ root }) => nodeAt(root, path.slice(0, length)) !== undefined);
    if (at < 0) continue;
    const chosen = layers.slice(0, at + 1).findLast(({ writable }) => writable);
    return chosen !== undefined && isAliased(chosen.root, path) ? undefined : chosen;
  }
  return layers.find(({ writable }) => writable);
}

/** What a form writes where nothing is to apply: an empty text over a file below that has the member; undefined: it is taken out. */
export function nothingAt(layers: readonly Layer[], path: Path): '' | undefined {
  const own = fileFor(layers, path);
  const below = own === undefined ? [] : layers.slice(layers.indexOf(own) + 1);
  return valueAt(below, path) === undefined ? undefined : '';
}
