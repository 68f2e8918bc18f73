/** One schema without references and combinations, in the keywords of the OpenAPI subset. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../json.ts';
import { hinted } from './schema-walk.ts';

const kinds = {
  string: ['minLength', 'maxLength'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  boolean: [],
  array: ['minItems', 'maxItems'],
  object: ['minProperties', 'maxProperties'],
} as const;
type Kind = keyof typeof kinds;

const formats: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  string: ['date-time', 'enum'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
};

/** Keywords without a counterpart that still tell the model something. */
const hints = [
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'uniqueItems',
  'contains',
  'minContains',
  'maxContains',
  'propertyNames',
  'patternProperties',
  'dependentRequired',
  'not',
  'contentEncoding',
  'contentMediaType',
];

/** `reduce` words the schemas inside. */
export function worded(
  schema: JsonObject,
  type: string | undefined,
  reduce: (inner: unknown) => JsonObject,
): JsonObject {
  const kind = kindOf(schema, type);
  const told: Record<string, unknown> = {};
  for (const key of hints) if (schema[key] !== undefined && schema[key] !== false) told[key] = schema[key];
  const words: Record<string, unknown> = { type: kind };
  if (typeof schema['title'] === 'string') words['title'] = schema['title'];
  if (schema['nullable'] === true || valuesOf(schema)?.includes(null)) words['nullable'] = true;
  wordFormat(words, told, schema, kind);
  wordEnum(words, told, schema, kind);
  for (const key of kinds[kind]) if (typeof schema[key] === 'number') words[key] = schema[key];
  if (kind === 'string' && typeof schema['pattern'] === 'string') words['pattern'] = schema['pattern'];
  if (kind === 'array') words['items'] = reduce(itemsOf(schema));
  if (kind === 'object') wordProperties(words, told, schema, reduce);
  for (const key of ['default', 'example']) if (schema[key] !== undefined) words[key] = schema[key];
  const description = hinted(schema['description'], told);
  return description === undefined ? words : { type: kind, description, ...words };
}

function kindOf(schema: JsonObject, type: string | undefined): Kind {
  if (type !== undefined && Object.hasOwn(kinds, type)) return type as Kind;
  if (isObject(schema['properties']) || isObject(schema['additionalProperties'])) return 'object';
  if (schema['items'] !== undefined || schema['prefixItems'] !== undefined) return 'array';
  const values = valuesOf(schema)?.filter((value) => value !== null) ?? [];
  if (values.length > 0) {
    if (values.every(Number.isInteger)) return 'integer';
    if (values.every((value) => typeof value === 'number')) return 'number';
    if (values.every((value) => typeof value === 'boolean')) return 'boolean';
    return 'string';
  }
  return typeof schema['minimum'] === 'number' || typeof schema['maximum'] === 'number' ? 'number' : 'string';
}

/** What `enum` or `const` allow; undefined: anything. */
function valuesOf(schema: JsonObject): readonly unknown[] | undefined {
  if (Array.isArray(schema['enum'])) return schema['enum'] as readonly unknown[];
  return schema['const'] === undefined ? undefined : [schema['const']];
}

function wordFormat(words: Record<string, unknown>, told: Record<string, unknown>, schema: JsonObject, kind: Kind) {
  const { format } = schema;
  if (typeof format !== 'string') return;
  if (formats[kind]?.includes(format)) words['format'] = format;
  else told['format'] = format;
}

/** Only texts may be enumerated, and no empty ones: other values are told in words, so that their type stays. */
function wordEnum(words: Record<string, unknown>, told: Record<string, unknown>, schema: JsonObject, kind: Kind) {
  const values = valuesOf(schema)?.filter((value) => value !== null) ?? [];
  if (values.length === 0) return;
  const scalars = values.filter((value) => typeof value !== 'object' && value !== '');
  if (kind === 'string' && scalars.length === values.length) words['enum'] = [...new Set(scalars.map(String))];
  else told['one of'] = values;
}

/** Tuples become lists of whatever may stand in them. */
function itemsOf(schema: JsonObject): unknown {
  const { items, prefixItems } = schema;
  const tuple = [...listOf(prefixItems), ...listOf(items)];
  if (isObject(items)) tuple.push(items);
  const choices = tuple.filter((item) => isObject(item) && Object.keys(item).length > 0);
  return choices.length > 1 ? { anyOf: choices } : choices[0];
}

function wordProperties(
  words: Record<string, unknown>,
  told: Record<string, unknown>,
  schema: JsonObject,
  reduce: (inner: unknown) => JsonObject,
) {
  const entries = Object.entries(objectOf(schema['properties']) ?? {}).filter(([, property]) => property !== false);
  const names = new Set(entries.map(([name]) => name));
  const { additionalProperties } = schema;
  if (entries.length === 0 && isObject(additionalProperties)) told['each value'] = additionalProperties;
  if (entries.length > 0)
    words['properties'] = Object.fromEntries(entries.map(([name, inner]) => [name, reduce(inner)]));
  const required = listOf(schema['required']).filter((name) => typeof name === 'string' && names.has(name));
  if (required.length > 0) words['required'] = [...new Set(required)];
  const order = listOf(schema['propertyOrdering']).filter((name) => typeof name === 'string' && names.has(name));
  if (order.length > 0) words['propertyOrdering'] = order;
}
