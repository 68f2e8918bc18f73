/** Reads JSON from outside without trusting its form. Pure. */
import { parseJson } from './parse.ts';

/** An object of parsed JSON, of which nothing is known yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether the value is an object: neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value when it is an object, else undefined. */
export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The value when it is a list, else an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value when it is a list, a list of it when it is an object, else an empty one. */
export function oneOrMany(value: unknown): readonly unknown[] {
  return isObject(value) ? [value] : listOf(value);
}

/** The value when it is a string that is not empty, else undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The parsed text; undefined when it is no JSON. */
export function tryParse(text: string, parse: (text: string) => unknown = parseJson): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

export function tryParseBytes(bytes: Uint8Array): unknown {
  try {
    return parseJson(asBuffer(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The same bytes; most are a buffer already. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
