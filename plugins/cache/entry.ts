/** An answer as it is kept, and its form in stores outside of the process. Pure. */
import type { Headers } from '../../core/contract/message.ts';
import { isObject, objectOf, tryParse } from '../../core/json/json.ts';
import { readCount, type Usage, usageClasses } from '../common/domain/usage.ts';

export interface Entry {
  /** The digest of its request. */
  readonly key: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** How it was sent; another form is made of it. */
  readonly form: string;
  readonly isStream: boolean;
  readonly usage: Usage;
  /** Wall-clock milliseconds. */
  readonly storedAt: number;
}

/** What stands beside the answer to a question that others are compared with. */
export interface Neighbour {
  /** The digest of all of the request but the question. */
  readonly group: string;
  readonly vector: Float32Array;
}

/** What an entry takes beside its body, about. */
const overhead = 600;

export function bytesOf({ body, headers }: Entry, neighbour: Neighbour | undefined): number {
  const head = Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, overhead);
  return body.length + head + (neighbour === undefined ? 0 : neighbour.vector.byteLength + neighbour.group.length);
}

/** Everything but the body, as JSON. */
export function encodeHead({ body: _, ...head }: Entry): string {
  return JSON.stringify(head);
}

/** undefined: it is not what `encodeHead` wrote for this key. */
export function decodeEntry(key: string, head: string, body: Uint8Array): Entry | undefined {
  const read = objectOf(tryParse(head));
  if (read === undefined || read['key'] !== key) return undefined;
  const { headers, form, isStream, usage, storedAt } = read;
  const isWhole =
    isObject(headers) &&
    Object.values(headers).every((value) => typeof value === 'string') &&
    isUsage(usage) &&
    [typeof form, typeof isStream, typeof storedAt].join() === 'string,boolean,number';
  return isWhole ? { ...(read as unknown as Omit<Entry, 'body'>), body } : undefined;
}

function isUsage(value: unknown): value is Usage {
  if (!isObject(value)) return false;
  const known: readonly string[] = usageClasses;
  return Object.entries(value).every(([name, count]) => known.includes(name) && readCount(count) === count);
}

export function vectorText({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength).toString('base64');
}

export function vectorIn(text: string): Float32Array {
  const bytes = Buffer.from(text, 'base64');
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~3)));
}
