/** What an answer is found by: a digest of everything that decides on it. Pure. */
import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../../core/json/json.ts';
import type { Model } from '../common/domain/models.ts';
import { versionAt } from '../common/domain/prices.ts';

/** A text of a request that is left out of its digest: a member of an object. */
export interface Hole {
  readonly holder: object;
  readonly member: string;
}

/** A request's body in one form, whatever its spaces and the order of its members. */
interface CanonicalText {
  readonly text: string;
  /** Members of all of its objects, those that were left out too. */
  readonly members: number;
}

/** Members that say how an answer is sent, and not what it says. */
const delivery: ReadonlySet<string> = new Set(['stream', 'stream_options']);
const leftOut = '\u0000';
const mostNested = 200;

/**
 * undefined: the body has a number that is not what the client wrote once it is read, or is nested too deeply. `isForm`: how the answer
 * is sent is left out.
 */
export function canonicalText(json: JsonObject, isForm: boolean, hole?: Hole): CanonicalText | undefined {
  const writer = new Writer(hole);
  try {
    const text = writer.object(json, 0, isForm ? delivery : undefined);
    return { text, members: writer.members };
  } catch (error) {
    if (error === unsafe) return undefined;
    throw error;
  }
}

const unsafe = new Error('not one request for sure');

class Writer {
  members = 0;
  readonly #hole: Hole | undefined;

  constructor(hole: Hole | undefined) {
    this.#hole = hole;
  }

  #value(value: unknown, depth: number): string {
    if (depth > mostNested) throw unsafe;
    if (Array.isArray(value)) return `[${value.map((item) => this.#value(item, depth + 1)).join(',')}]`;
    if (isObject(value)) return this.object(value, depth);
    if (typeof value === 'number' && !isExact(value)) throw unsafe;
    return JSON.stringify(value);
  }

  object(json: JsonObject, depth: number, without?: ReadonlySet<string>): string {
    const isMessage = typeof json['role'] === 'string';
    const parts: string[] = [];
    for (const name of Object.keys(json).sort()) {
      this.members++;
      const isHole = this.#hole?.holder === json && this.#hole.member === name;
      const only = isMessage && name === 'content' && !isHole ? onlyText(json[name]) : undefined;
      if (without?.has(name) === true) this.#value(json[name], depth + 1);
      else parts.push(`${JSON.stringify(name)}:${isHole ? leftOut : this.#member(json[name], only, depth)}`);
    }
    return `{${parts.join(',')}}`;
  }

  /** A message of one text is the same as text and as a list of one part. */
  #member(value: unknown, only: JsonObject | undefined, depth: number): string {
    if (only === undefined) return this.#value(value, depth + 1);
    this.members += 2;
    const isHole = this.#hole?.holder === only && this.#hole.member === 'text';
    return isHole ? leftOut : JSON.stringify(only['text']);
  }
}

function onlyText(content: unknown): JsonObject | undefined {
  if (!Array.isArray(content) || content.length !== 1) return undefined;
  const [part] = content as unknown[];
  if (!isObject(part) || Object.keys(part).length !== 2 || typeof part['text'] !== 'string') return undefined;
  return part['type'] === 'text' || part['type'] === 'input_text' ? part : undefined;
}

function isExact(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** SHA-256 of these parts, none of which runs into the next. */
export function digestOf(parts: readonly (string | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

interface KnownModel {
  readonly version: unknown;
  readonly mark: string;
}

const marks = new WeakMap<Model, KnownModel>();

/** The model as it is served and priced now. */
export function modelMark(entry: Model, at: number): string {
  const version = entry.prices && versionAt(entry.prices, at);
  const known = marks.get(entry);
  if (known !== undefined && known.version === version) return known.mark;
  const { id, targets, multiplier, batch } = entry;
  const served = targets.map(({ provider, model }) => [provider, model]);
  const price = version && [
    version.name,
    version.from,
    version.until,
    version.base,
    version.tiers,
    version.image,
    version.second,
  ];
  const text = JSON.stringify([id, served, multiplier, batch, price], plain);
  const mark = createHash('sha256').update(text).digest('hex');
  marks.set(entry, { version, mark });
  return mark;
}

function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`;
  return value instanceof Map ? [...value] : typeof value === 'number' && !Number.isFinite(value) ? `${value}` : value;
}
