/** The files of a gateway as they are laid over one another: the effective value of a member, and the file to write it in. Pure. */
import { isAlias, isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml';
import type { Path } from './edit-yaml.ts';

export interface LayerFile {
  readonly name: string;
  readonly text: string;
  readonly writable: boolean;
}
export interface Layer extends LayerFile {
  readonly root: Node | null;
}
/** A value as it is written: a scalar's own letters, a list of such, or something that a form does not show. */
export type Written = string | readonly string[] | { readonly other: true };

/** The first comes before all others. The first file includes the rest, directly or not. */
export function layersOf(files: readonly LayerFile[]): readonly Layer[] {
  const layers = new Map(files.map((file) => [file.name, { ...file, root: rootOf(file.text) }]));
  const order: Layer[] = [];
  const visit = (layer: Layer | undefined) => {
    if (layer === undefined || order.includes(layer)) return;
    order.push(layer);
    const included = writtenAt(layer.root, ['include']);
    const names = typeof included === 'string' ? [included] : Array.isArray(included) ? included : [];
    for (const name of names.toReversed()) visit(layers.get(beside(layer.name, name)));
  };
  visit(layers.get(files[0]?.name ?? ''));
  return order;
}

function rootOf(text: string): Node | null {
  const document = parseDocument(text);
  return document.errors.length > 0 ? null : document.contents;
}

/** `../a.yaml` beside `config/x/main.yaml`. */
function beside(file: string, name: string): string {
  if (name.startsWith('/')) return name;
  const parts = file.split('/').slice(0, -1);
  for (const part of name.split('/')) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return parts.join('/');
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

/** The names below a path, of all files; those of an included file come first, as a reader of the files meets them. */
export function namesAt(layers: readonly Layer[], path: Path): readonly string[] {
  const names = layers.toReversed().flatMap(({ root }) => {
    const node = nodeAt(root, path);
    return isMap(node) ? node.items.flatMap(({ key }) => (isScalar(key) ? [String(key.value)] : [])) : [];
  });
  return [...new Set(names)];
}

/** Whether a member is written by an alias (`*name`) or below one, which no form changes. */
function isAliased(root: Node | null, path: Path): boolean {
  return path.some((_name, index) => isAlias(nodeAt(root, path.slice(0, index + 1))));
}

/**
 * The file in which a member is written, else the one that has most of its path. Files before it override it: if it is
 * read-only, the nearest writable file before it; undefined: there is none.
 */
export function fileFor(layers: readonly Layer[], path: Path): Layer | undefined {
  for (let length = path.length; length >= 0; length--) {
    const at = layers.findIndex(({ root }) => length === 0 || nodeAt(root, path.slice(0, length)) !== undefined);
    if (at < 0) continue;
    const chosen = layers.slice(0, at + 1).findLast(({ writable }) => writable);
    return chosen !== undefined && isAliased(chosen.root, path) ? undefined : chosen;
  }
  return undefined;
}
