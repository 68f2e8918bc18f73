/** Mends schemas of tools that are no JSON Schema, as some tool servers send them; leaves right ones as they are. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../json.ts';
import { holdsSchemas, mapSubschemas } from './schema-walk.ts';

/** Type names of other languages. */
const typeAliases: Readonly<Record<string, string>> = {
  str: 'string',
  text: 'string',
  int: 'integer',
  long: 'integer',
  float: 'number',
  double: 'number',
  bool: 'boolean',
  dict: 'object',
  map: 'object',
  list: 'array',
};
const types = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']);

/** Keywords of text: an object in their place is a property of that name. */
const textual = new Set(['type', 'title', 'description', 'format', 'pattern', '$ref', '$schema', '$id', '$comment']);
const known = new Set([
  ...textual,
  ...[
    'enum',
    'const',
    'default',
    'example',
    'examples',
    'nullable',
    'required',
    'discriminator',
    'xml',
    'externalDocs',
  ],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['deprecated', 'readOnly', 'writeOnly', 'contentEncoding', 'contentMediaType', 'dependentRequired'],
]);

/** Keywords where `true` and `false` are said by every dialect. */
const takesBoolean = new Set(['additionalProperties', 'additionalItems', 'unevaluatedProperties', 'unevaluatedItems']);

/**
 * A schema for the arguments of a tool: an object. What is missing or misplaced is put right: no schema at all, no type,
 * a bare map of properties, `required: true` on a property, names of types from elsewhere.
 */
export function rootObject(schema: JsonObject | undefined): JsonObject {
  const mended = isObject(schema) ? mendSchema(schema) : {};
  const isWhole = mended['type'] === 'object' && isObject(mended['properties']);
  if (isWhole) return mended;
  const { type: _type, properties, ...rest } = mended;
  return { type: 'object', properties: objectOf(properties) ?? {}, ...rest };
}

/** Any schema, mended. `true` becomes `{}`, which says the same. */
export function mendSchema(value: unknown): JsonObject {
  if (value === false) return { not: {} };
  if (!isObject(value)) return {};
  const schema = gathered(value);
  const required = requiredOf(schema);
  const entries: [string, unknown][] = [];
  let hasRequired = false;
  for (const [key, member] of Object.entries(schema)) {
    if (key === 'required') {
      hasRequired = true;
      if (required !== undefined) entries.push([key, required]);
    } else if (key === 'type') {
      const type = mendedType(member);
      if (type !== undefined) entries.push([key, type]);
    } else if (key === 'properties') {
      entries.push([key, mendedProperties(member)]);
    } else if (!isMisplaced(key, member)) {
      entries.push([key, member]);
    }
  }
  if (!hasRequired && required !== undefined) entries.push(['required', required]);
  return mapSubschemas(Object.fromEntries(entries), (inner, keyword) =>
    takesBoolean.has(keyword) && typeof inner === 'boolean' ? inner : mendSchema(inner),
  );
}

/** With properties that stand bare, beside the keywords, where they belong. */
function gathered(schema: JsonObject): JsonObject {
  if (isObject(schema['properties'])) return schema;
  const loose = Object.entries(schema).filter(([key, value]) => isObject(value) && isLoose(key, value));
  if (loose.length === 0) return schema;
  const names = new Set(loose.map(([name]) => name));
  const rest = Object.entries(schema).filter(([key]) => !names.has(key));
  return { type: 'object', ...Object.fromEntries(rest), properties: Object.fromEntries(loose) };
}

function isLoose(key: string, value: JsonObject): boolean {
  if (textual.has(key)) return true;
  if (known.has(key) || holdsSchemas(key) || key.startsWith('$') || key.startsWith('x-')) return false;
  return ['type', 'description', 'enum', '$ref', 'properties', 'items', 'anyOf'].some((word) => word in value);
}

function isMisplaced(key: string, value: unknown): boolean {
  return (textual.has(key) && typeof value !== 'string') || (holdsSchemas(key) && value === null);
}

/** Names of required properties, also those that say it themselves; undefined: none are named. */
function requiredOf(schema: JsonObject): readonly string[] | undefined {
  const { required, properties } = schema;
  const named = typeof required === 'string' ? [required] : listOf(required).filter((name) => typeof name === 'string');
  const own = Object.entries(objectOf(properties) ?? {})
    .filter(([, property]) => isObject(property) && property['required'] === true)
    .map(([name]) => name);
  if (!Array.isArray(required) && named.length === 0 && own.length === 0) return undefined;
  return [...new Set([...named, ...own])];
}

function mendedProperties(properties: unknown): JsonObject {
  const entries = Object.entries(objectOf(properties) ?? {});
  // `city: "string"` for `city: {"type": "string"}`.
  return Object.fromEntries(
    entries.map(([name, property]) => [name, typeof property === 'string' ? { type: property } : property]),
  );
}

function mendedType(type: unknown): unknown {
  if (typeof type === 'string') return typeNamed(type);
  if (!Array.isArray(type)) return undefined;
  const names = [...new Set(type.map((name) => (typeof name === 'string' ? typeNamed(name) : undefined)))];
  const kept = names.filter((name) => name !== undefined);
  return kept.length === 0 ? undefined : kept;
}

function typeNamed(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (types.has(lower)) return lower;
  return Object.hasOwn(typeAliases, lower) ? typeAliases[lower] : undefined;
}
