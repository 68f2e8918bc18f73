/** Repair of tool schemas that are no JSON Schema, as some tool servers send them; valid ones stay unchanged. Pure. */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { holdsSchemas, mapSubschemas } from './schema-walk.ts';

/** Type names of other languages. */
const typeAliases: Readonly<Record<string, string>> = table({
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
});
const types = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']);

/** Keywords with text values: an object in their place is a property of that name. */
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

/** Keywords that allow `true` and `false` in every dialect. */
const takesBoolean = new Set(['additionalProperties', 'additionalItems', 'unevaluatedProperties', 'unevaluatedItems']);

/**
 * A schema for the arguments of a tool: an object. Repairs missing and misplaced keywords: no schema at all, no type,
 * a bare map of properties, `required: true` on a property, type names of other languages.
 */
export function rootObject(schema: JsonObject | undefined): JsonObject {
  const repaired = isObject(schema) ? repairSchema(schema) : {};
  const isWhole = repaired['type'] === 'object' && isObject(repaired['properties']);
  if (isWhole) return repaired;
  const { type: _type, properties, ...rest } = repaired;
  return { type: 'object', properties: objectOf(properties) ?? {}, ...rest };
}

/**
 * Closes a schema without members: strict mode accepts it, and the meaning for a tool without arguments is the same.
 */
export function withoutMembers(schema: JsonObject): JsonObject {
  const isEmpty = Object.keys(objectOf(schema['properties']) ?? {}).length === 0;
  return isEmpty && schema['additionalProperties'] === undefined
    ? { ...schema, required: [], additionalProperties: false }
    : schema;
}

/** Any schema, repaired. `true` becomes the equivalent `{}`. */
export function repairSchema(value: unknown): JsonObject {
  if (value === false) return { not: {} };
  if (!isObject(value)) return {};
  if (isSound(value)) return value;
  const schema = gathered(value);
  const entries = Object.entries({ ...schema, required: requiredOf(schema) })
    .map(([key, member]) => [key, repairedMember(key, member)] as const)
    .filter(([, member]) => member !== undefined);
  return mapSubschemas(Object.fromEntries(entries), (inner, keyword) =>
    takesBoolean.has(keyword) && typeof inner === 'boolean' ? inner : repairSchema(inner),
  );
}

/** Whether it needs no repair at first sight: a schema without schemas inside, as most properties are. */
function isSound(schema: JsonObject): boolean {
  return Object.keys(schema).every((key) => {
    const value = schema[key];
    if (key === 'type') return typeof value === 'string' && types.has(value);
    if (key === 'required' || value === undefined || holdsSchemas(key)) return false;
    return textual.has(key) ? typeof value === 'string' : known.has(key) || !isObject(value);
  });
}

/** undefined: the schema is better off without it. */
function repairedMember(key: string, member: unknown): unknown {
  if (key === 'type') return repairedType(member);
  if (key === 'properties') return repairedProperties(member);
  return isMisplaced(key, member) ? undefined : member;
}

/** Moves properties that are siblings of the keywords to `properties`. */
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

/** Names of required properties, including those that declare it themselves; undefined: none. */
function requiredOf(schema: JsonObject): readonly string[] | undefined {
  const { required, properties } = schema;
  const named = typeof required === 'string' ? [required] : listOf(required).filter((name) => typeof name === 'string');
  const own = Object.entries(objectOf(properties) ?? {})
    .filter(([, property]) => isObject(property) && property['required'] === true)
    .map(([name]) => name);
  if (!Array.isArray(required) && named.length === 0 && own.length === 0) return undefined;
  return [...new Set([...named, ...own])];
}

function repairedProperties(properties: unknown): JsonObject {
  const entries = Object.entries(objectOf(properties) ?? {});
  // `city: "string"` for `city: {"type": "string"}`.
  return Object.fromEntries(
    entries.map(([name, property]) => [name, typeof property === 'string' ? { type: property } : property]),
  );
}

function repairedType(type: unknown): unknown {
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
