/** Safe access to unknown JSON: a value of the wrong type counts as absent. Pure. */

export type JsonObject = { readonly [name: string]: unknown };

const nothing: JsonObject = {};

/** The value if it is a JSON object, else an empty one. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : nothing;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an array, else an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The value if it is a whole number of at least `least`, else undefined. */
export function wholeOf(value: unknown, least = 0): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least ? value : undefined;
}

/** A string as it is, a list of parts as the text of its `text` members, anything else as JSON. */
export function flatText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  if (!Array.isArray(value)) return JSON.stringify(value);
  return value.map((part) => textOf(objectOf(part)['text']) ?? '').join('');
}
