/** Puts together the arguments of a call that arrive as values at JSON paths (`$.a.b[0]`). Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../json.ts';

type Container = Record<string, unknown> | unknown[];

/** Lists are not filled beyond this place: a path is the upstream's, memory is ours. */
const maxIndex = 10_000;
const stepPattern = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;
const forbidden = new Set(['__proto__', 'constructor', 'prototype']);

export class PartialArgs {
  readonly #root: Record<string, unknown> = {};

  /** Takes the `partialArgs` of one chunk. Strings at the same path grow; what cannot be placed is skipped. */
  take(partialArgs: unknown): void {
    for (const piece of listOf(partialArgs)) {
      if (!isObject(piece)) continue;
      const path = stepsOf(textOf(piece['jsonPath'] ?? piece['json_path']) ?? '');
      if (path !== undefined) this.#put(path, piece);
    }
  }

  /** JSON text of what is known now. */
  get text(): string {
    return JSON.stringify(this.#root);
  }

  #put(path: readonly (string | number)[], piece: JsonObject): void {
    let place: Container = this.#root;
    for (let at = 0; at < path.length - 1; at++) {
      const next = path[at + 1]!;
      const child: unknown = read(place, path[at]!);
      if (isContainer(child)) place = child;
      else {
        const fresh: Container = typeof next === 'number' ? [] : {};
        if (!write(place, path[at]!, fresh)) return;
        place = fresh;
      }
    }
    const last = path[path.length - 1]!;
    const text = piece['stringValue'] ?? piece['string_value'];
    const before = read(place, last);
    if (typeof text === 'string') write(place, last, typeof before === 'string' ? before + text : text);
    else {
      const value = piece['numberValue'] ?? piece['number_value'] ?? piece['boolValue'] ?? piece['bool_value'];
      write(place, last, value ?? null);
    }
  }
}

/** The steps of a path; undefined for one that is empty, unreadable, or leads into an object's own machinery. */
function stepsOf(path: string): (string | number)[] | undefined {
  if (!path.startsWith('$')) return undefined;
  const steps: (string | number)[] = [];
  stepPattern.lastIndex = 1;
  while (stepPattern.lastIndex < path.length) {
    const found = stepPattern.exec(path);
    if (found === null) return undefined;
    const [, name, index, single, double] = found;
    const step = index === undefined ? (name ?? (single ?? double)!.replace(/\\(.)/g, '$1')) : Number(index);
    if (typeof step === 'number' ? step > maxIndex : forbidden.has(step)) return undefined;
    steps.push(step);
  }
  return steps.length === 0 ? undefined : steps;
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function read(place: Container, step: string | number): unknown {
  if (Array.isArray(place)) return typeof step === 'number' ? place[step] : undefined;
  return Object.hasOwn(place, step) ? place[step] : undefined;
}

/** false when a name is used on a list or a number on an object. */
function write(place: Container, step: string | number, value: unknown): boolean {
  if (Array.isArray(place)) {
    if (typeof step !== 'number') return false;
    place[step] = value;
  } else place[String(step)] = value;
  return true;
}
