/** Scans and parses a large JSON object in slices of bounded work, with the same result as `scanObject` and `JSON.parse`. Pure. */
import { parseJson } from './parse.ts';
import { type JsonNode, type JsonSpan, SliceScanner } from './scanner.ts';
import type { ObjectScan } from './splice.ts';

export interface SliceOptions {
  /** Members and elements, at all depths. More throw a BoundError when the scan meets the first that is too many. */
  readonly maxValues: number;
  readonly maxDepth: number;
  /** Called between two slices; what it returns is waited for. `bytes`: what the slice before it has worked on. */
  readonly pause: (bytes: number) => Promise<void>;
  readonly sizes?: SliceSizes;
}

/** Bytes of one slice, and of values that are not split further. */
export interface SliceSizes {
  /** Bytes that one slice scans. A long string counts as little: it is searched natively. */
  readonly scan: number;
  /** Runs of small values, and containers that are parsed as a whole. */
  readonly run: number;
  /** Scanned bytes that one slice parses. */
  readonly parse: number;
  /** Strings are parsed by pieces of this size. */
  readonly piece: number;
}

export const defaultSizes: SliceSizes = { scan: 128 * 1024, run: 64 * 1024, parse: 256 * 1024, piece: 512 * 1024 };
/** A string's text takes so many times less work than structure of the same size. */
const textWeight = 4;

export interface SlicedJson {
  readonly json: Record<string, unknown>;
  readonly scan: ObjectScan;
}

/** Throws SyntaxError, DepthError, BoundError. */
export async function parseInSlices(bytes: Uint8Array, options: SliceOptions): Promise<SlicedJson> {
  const sizes = options.sizes ?? defaultSizes;
  const scanner = new SliceScanner(bytes, options.maxValues, options.maxDepth, sizes.run);
  for (let from = scanner.position; !scanner.scan(sizes.scan); from = scanner.position)
    await options.pause(scanner.position - from);
  const builder = new Builder(bytes, sizes, options.pause);
  return { json: (await builder.build(scanner.root)) as Record<string, unknown>, scan: scanner.members() };
}

type Holder = Record<string, unknown> | unknown[];

/** Makes the value of a scanned span: small spans by JSON.parse, containers and strings that are larger part by part. */
class Builder {
  readonly #bytes: Buffer;
  readonly #sizes: SliceSizes;
  readonly #pause: SliceOptions['pause'];
  #worked = 0;

  constructor(bytes: Uint8Array, sizes: SliceSizes, pause: SliceOptions['pause']) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#sizes = sizes;
    this.#pause = pause;
  }

  async build(node: JsonNode): Promise<unknown> {
    const holder: Holder = node.isObject ? {} : [];
    for (const span of node.spans) {
      if (span.valueStart === -1) {
        await this.#spend(span.end - span.start);
        addAll(holder, this.#parseRun(span, node.isObject));
      } else add(holder, await this.#keyOf(span), await this.#valueOf(span));
    }
    return holder;
  }

  async #spend(bytes: number): Promise<void> {
    if (this.#worked > 0 && this.#worked + bytes > this.#sizes.parse) {
      const worked = this.#worked;
      this.#worked = 0;
      await this.#pause(worked);
    }
    this.#worked += bytes;
  }

  #parseRun({ start, end }: JsonSpan, isObject: boolean): Holder {
    const text = this.#bytes.toString('utf8', start, end);
    return parseJson(isObject ? `{${text}}` : `[${text}]`) as Holder;
  }

  /** undefined for elements of an array. */
  async #keyOf({ start, keyEnd }: JsonSpan): Promise<string | undefined> {
    return keyEnd === -1 ? undefined : this.#textOf(start, keyEnd);
  }

  async #valueOf({ valueStart, end, node }: JsonSpan): Promise<unknown> {
    if (node !== undefined) return this.build(node);
    if (this.#bytes[valueStart] === 0x22) return this.#textOf(valueStart, end);
    await this.#spend(end - valueStart);
    return parseJson(this.#bytes.toString('utf8', valueStart, end));
  }

  /** The string between the quotes at `start` and before `end`. */
  async #textOf(start: number, end: number): Promise<string> {
    const parts: string[] = [];
    for (let at = start + 1; at < end - 1; ) {
      const next = this.#cut(at, end - 1);
      await this.#spend(Math.ceil((next - at) / textWeight));
      parts.push(JSON.parse(`"${this.#bytes.toString('utf8', at, next)}"`) as string);
      at = next;
    }
    if (parts.length === 1) return parts[0]!;
    // To join them copies all of it: a slice of its own.
    await this.#spend(Math.ceil((end - start) / textWeight));
    return parts.join('');
  }

  /** Where a piece that begins at `from` may end: outside of an escape sequence and of a character. */
  #cut(from: number, end: number): number {
    const bytes = this.#bytes;
    const wanted = from + this.#sizes.piece;
    if (wanted >= end) return end;
    const escaped = bytes.indexOf(0x5c, from);
    let at = wanted;
    if (escaped !== -1 && escaped < wanted) {
      at = escaped;
      while (at < wanted) at += bytes[at] !== 0x5c ? 1 : bytes[at + 1] === 0x75 ? 6 : 2;
    }
    for (let tries = 0; tries < 3 && (bytes[at]! & 0xc0) === 0x80; tries++) at++;
    return Math.min(at, end);
  }
}

function addAll(holder: Holder, values: Holder): void {
  if (Array.isArray(holder)) for (const value of values as unknown[]) holder.push(value);
  else for (const key of Object.keys(values)) add(holder, key, (values as Record<string, unknown>)[key]);
}

function add(holder: Holder, key: string | undefined, value: unknown): void {
  if (Array.isArray(holder)) holder.push(value);
  else if (key === '__proto__')
    Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
  else holder[key!] = value;
}
