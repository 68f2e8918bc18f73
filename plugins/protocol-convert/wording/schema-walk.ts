/** Where schemas stand inside a JSON Schema: by position, so that a property may have any keyword's name. Pure. */
import { isObject, type JsonObject } from '../json.ts';

/** Keywords whose value is a schema (`items` of old drafts: a list of them). */
const single = new Set([
  'items',
  'additionalItems',
  'additionalProperties',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contentSchema',
]);
const lists = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const maps = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);

/** Whether the keyword holds schemas, however it holds them. */
export function holdsSchemas(keyword: string): boolean {
  return single.has(keyword) || lists.has(keyword) || maps.has(keyword);
}

/** The same schema with each schema right inside it replaced by what `change` makes of it; `keyword` holds it. */
export function mapSubschemas(schema: JsonObject, change: (inner: unknown, keyword: string) => unknown): JsonObject {
  // `fromEntries` makes a member of its own even of `__proto__`.
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, changed(key, value, change)]));
}

function changed(key: string, value: unknown, change: (inner: unknown, keyword: string) => unknown): unknown {
  if (maps.has(key) && isObject(value)) {
    const entries = Object.entries(value);
    // The old `dependencies` may hold lists of names beside schemas.
    return Object.fromEntries(entries.map(([name, inner]) => [name, isList(inner) ? inner : change(inner, key)]));
  }
  if ((lists.has(key) || key === 'items') && isList(value)) return value.map((inner) => change(inner, key));
  if (single.has(key) && (isObject(value) || typeof value === 'boolean')) return change(value, key);
  return value;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** All schemas right inside this one, with the keyword that holds each. */
export function subschemas(schema: JsonObject): { readonly keyword: string; readonly inner: unknown }[] {
  const found: { keyword: string; inner: unknown }[] = [];
  mapSubschemas(schema, (inner, keyword) => {
    found.push({ keyword, inner });
    return inner;
  });
  return found;
}

/** The names in a `type`, lower-case; empty where there is none. */
export function typesOf(schema: JsonObject): string[] {
  const { type } = schema;
  const names = Array.isArray(type) ? (type as unknown[]) : [type];
  return names.filter((name) => typeof name === 'string').map((name) => name.toLowerCase());
}

/** A description with what the model should know although the target has no keyword for it. */
export function hinted(description: unknown, hints: JsonObject): string | undefined {
  const words = Object.entries(hints)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .filter((hint) => hint.length <= maxHintLength);
  const said = typeof description === 'string' && description !== '' ? description : undefined;
  if (words.length === 0) return said;
  return said === undefined ? `(${words.join(', ')})` : `${said} (${words.join(', ')})`;
}

const maxHintLength = 300;
