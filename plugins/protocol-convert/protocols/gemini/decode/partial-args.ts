/** Assembles call arguments that arrive as values at JSON paths (`$.a.b[0]`). Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../../../core/json/json.ts';

type Container = Record<string, unknown> | unknown[];

/** Lists are not filled beyond this index: the upstream chooses the path, the gateway provides the memory. */
const maxIndex = 10_000;
const stepPattern = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;
const forbidden = new Set(['__proto__', 'constructor', 'prototype']);

export class PartialArgs {
  readonly #root: Record<string, unknown> = {};

  /**
   * Applies the `partialArgs` of one chunk. Strings at the same path are concatenated; values with an invalid path are
   * skipped.
   */
  take(partialArgs: unknown): void {
    for (const piece of listOf(partialArgs)) {
      if (!isObject(piece)) continue;
      const path = stepsOf(textOf(piece['jsonPath'] ?? piece['json_path']) ?? '');
      if (path !== undefined) this.#put(path, piece);
    }
  }

  /** JSON text of the arguments so far. */
  get text(): string {
    return JSON.stringify(this.#root);
  }

  #put(path: readonly (string | number)[], piece: JsonObject): void {
    let place: Container | undefined = this.#root;
    for (let at = 0; at < path.length - 1 && place !== undefined; at++)
      place = containerIn(place, path[at]!, path[at + 1]!);
    if (place === undefined) return;
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

/** The steps of a path; undefined for a path that is empty, malformed, or names a member of the object prototype. */
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

/** The container at a step, made to take the step after it if there is none yet; undefined if none fits there. */
function containerIn(place: Container, step: string | number, next: string | number): Container | undefined {
  const child = read(place, step);
  if (isContainer(child)) return child;
  const fresh: Container = typeof next === 'number' ? [] : {};
  return write(place, step, fresh) ? fresh : undefined;
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function read(place: Container, step: string | number): unknown {
  if (Array.isArray(place)) return typeof step === 'number' ? place[step] : undefined;
  return Object.hasOwn(place, step) ? place[step] : undefined;
}

/** false for a name on a list or a number on an object. */
function write(place: Container, step: string | number, value: unknown): boolean {
  if (Array.isArray(place)) {
    if (typeof step !== 'number') return false;
    place[step] = value;
  } else place[String(step)] = value;
  return true;
}
