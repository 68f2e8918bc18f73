/** Positions of schemas inside a JSON Schema: by position, so that a property may have any keyword's name. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';

/** Keywords with a schema as value (`items` of old drafts: a list of schemas). */
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

/** Whether the value of the keyword contains schemas. */
export function holdsSchemas(keyword: string): boolean {
  return single.has(keyword) || lists.has(keyword) || maps.has(keyword);
}

/** The same schema with each direct subschema replaced by the result of `change`; `keyword` contains it. */
export function mapSubschemas(schema: JsonObject, change: (inner: unknown, keyword: string) => unknown): JsonObject {
  if (!Object.keys(schema).some(holdsSchemas)) return schema;
  // `fromEntries` creates an own member even for `__proto__`.
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

/** All direct subschemas, with the keyword that contains each. */
export function subschemas(schema: JsonObject): { readonly keyword: string; readonly inner: unknown }[] {
  const found: { keyword: string; inner: unknown }[] = [];
  mapSubschemas(schema, (inner, keyword) => {
    found.push({ keyword, inner });
    return inner;
  });
  return found;
}

/** The names in `type`, lower-case; empty if absent. */
export function typesOf(schema: JsonObject): string[] {
  const { type } = schema;
  const names = Array.isArray(type) ? (type as unknown[]) : [type];
  return names.filter((name) => typeof name === 'string').map((name) => name.toLowerCase());
}

/** A description with information for the model that the target has no keyword for. */
export function describedWith(description: unknown, information: JsonObject): string | undefined {
  const entries = Object.entries(information)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .filter((entry) => entry.length <= maxEntryLength);
  const existing = typeof description === 'string' && description !== '' ? description : undefined;
  if (entries.length === 0) return existing;
  return existing === undefined ? `(${entries.join(', ')})` : `${existing} (${entries.join(', ')})`;
}

const maxEntryLength = 300;
