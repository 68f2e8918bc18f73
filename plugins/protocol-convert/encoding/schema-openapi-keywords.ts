/** Conversion of one schema without references and combinations to the keywords of the OpenAPI subset. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { describedWith } from '../../common/encoding/schema-walk.ts';

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

/** Keywords without a counterpart that are still useful to the model. */
const describedKeywords = [
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

/** `reduce` converts the inner schemas. */
export function encodeKeywords(
  schema: JsonObject,
  type: string | undefined,
  reduce: (inner: unknown) => JsonObject,
): JsonObject {
  const kind = kindOf(schema, type);
  const described = describedOf(schema);
  const members: Record<string, unknown> = { type: kind };
  if (typeof schema['title'] === 'string') members['title'] = schema['title'];
  if (schema['nullable'] === true || valuesOf(schema)?.includes(null)) members['nullable'] = true;
  encodeFormat(members, described, schema, kind);
  encodeEnum(members, described, schema, kind);
  for (const key of kinds[kind]) if (typeof schema[key] === 'number') members[key] = schema[key];
  if (kind === 'string' && typeof schema['pattern'] === 'string') members['pattern'] = schema['pattern'];
  if (kind === 'array') members['items'] = reduce(itemsOf(schema));
  if (kind === 'object') encodeProperties(members, described, schema, reduce);
  for (const key of ['default', 'example']) if (schema[key] !== undefined) members[key] = schema[key];
  const description = describedWith(schema['description'], described);
  return description === undefined ? members : { type: kind, description, ...members };
}

function describedOf(schema: JsonObject): Record<string, unknown> {
  const described: Record<string, unknown> = {};
  for (const key of describedKeywords)
    if (schema[key] !== undefined && schema[key] !== false) described[key] = schema[key];
  return described;
}

function kindOf(schema: JsonObject, type: string | undefined): Kind {
  if (type !== undefined && Object.hasOwn(kinds, type)) return type as Kind;
  if (isObject(schema['properties']) || isObject(schema['additionalProperties'])) return 'object';
  if (schema['items'] !== undefined || schema['prefixItems'] !== undefined) return 'array';
  const values = valuesOf(schema)?.filter((value) => value !== null) ?? [];
  if (values.length > 0) return kindOfValues(values);
  return typeof schema['minimum'] === 'number' || typeof schema['maximum'] === 'number' ? 'number' : 'string';
}

function kindOfValues(values: readonly unknown[]): Kind {
  if (values.every(Number.isInteger)) return 'integer';
  if (values.every((value) => typeof value === 'number')) return 'number';
  return values.every((value) => typeof value === 'boolean') ? 'boolean' : 'string';
}

/** The values that `enum` or `const` allow; undefined: any. */
function valuesOf(schema: JsonObject): readonly unknown[] | undefined {
  if (Array.isArray(schema['enum'])) return schema['enum'] as readonly unknown[];
  return schema['const'] === undefined ? undefined : [schema['const']];
}

function encodeFormat(
  members: Record<string, unknown>,
  described: Record<string, unknown>,
  schema: JsonObject,
  kind: Kind,
) {
  const { format } = schema;
  if (typeof format !== 'string') return;
  if (formats[kind]?.includes(format)) members['format'] = format;
  else described['format'] = format;
}

/** Only non-empty strings may be enumerated: other values go into the description, so that their type stays. */
function encodeEnum(
  members: Record<string, unknown>,
  described: Record<string, unknown>,
  schema: JsonObject,
  kind: Kind,
) {
  const values = valuesOf(schema)?.filter((value) => value !== null) ?? [];
  if (values.length === 0) return;
  const scalars = values.filter((value) => typeof value !== 'object' && value !== '');
  if (kind === 'string' && scalars.length === values.length) members['enum'] = [...new Set(scalars.map(String))];
  else described['one of'] = values;
}

/** Tuples become lists of any of their element types. */
function itemsOf(schema: JsonObject): unknown {
  const { items, prefixItems } = schema;
  const tuple = [...listOf(prefixItems), ...listOf(items)];
  if (isObject(items)) tuple.push(items);
  const choices = tuple.filter((item) => isObject(item) && Object.keys(item).length > 0);
  return choices.length > 1 ? { anyOf: choices } : choices[0];
}

function encodeProperties(
  members: Record<string, unknown>,
  described: Record<string, unknown>,
  schema: JsonObject,
  reduce: (inner: unknown) => JsonObject,
) {
  const entries = Object.entries(objectOf(schema['properties']) ?? {}).filter(([, property]) => property !== false);
  const names = new Set(entries.map(([name]) => name));
  const { additionalProperties } = schema;
  if (entries.length === 0 && isObject(additionalProperties)) described['each value'] = additionalProperties;
  if (entries.length > 0)
    members['properties'] = Object.fromEntries(entries.map(([name, inner]) => [name, reduce(inner)]));
  const required = listOf(schema['required']).filter((name) => typeof name === 'string' && names.has(name));
  if (required.length > 0) members['required'] = [...new Set(required)];
  const order = listOf(schema['propertyOrdering']).filter((name) => typeof name === 'string' && names.has(name));
  if (order.length > 0) members['propertyOrdering'] = order;
}
