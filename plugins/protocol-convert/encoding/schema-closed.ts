/**
 * JSON Schemas for upstreams with strict mode: checks whether a schema fits, and conversion of one that does not.
 * Pure.
 */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { describedWith, mapSubschemas, subschemas, typesOf } from '../../common/encoding/schema-walk.ts';

/** Keywords of https://platform.openai.com/docs/guides/structured-outputs#supported-schemas and annotations. */
const strictKeywords = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', '$ref', '$defs'],
  ...['definitions', 'title', 'description', '$schema', '$id', '$comment', 'pattern', 'format', 'default', 'examples'],
  ...['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minItems', 'maxItems'],
  ...['minLength', 'maxLength'],
]);
const maxStrictDepth = 10;

/**
 * Whether the schema can be marked strict unchanged: the root is an object, every object is closed and requires all
 * its properties, and all keywords are known to strict mode.
 */
export function isStrict(schema: JsonObject): boolean {
  return schema['type'] === 'object' && schema['anyOf'] === undefined && isStrictAt(schema, 0);
}

function isStrictAt(schema: unknown, depth: number): boolean {
  if (!isObject(schema) || depth > maxStrictDepth) return false;
  if (!Object.keys(schema).every((key) => strictKeywords.has(key))) return false;
  const types = typesOf(schema);
  const isDescribed = types.length > 0 || ['anyOf', '$ref', 'enum', 'const'].some((key) => schema[key] !== undefined);
  if (!isDescribed || (types.includes('array') && !isObject(schema['items']))) return false;
  const isObjectSchema = types.includes('object') || schema['properties'] !== undefined;
  if (isObjectSchema && !isClosed(schema)) return false;
  return subschemas(schema).every(
    ({ keyword, inner }) => keyword === 'additionalProperties' || isStrictAt(inner, depth + depthOf(keyword)),
  );
}

function isClosed(schema: JsonObject): boolean {
  const names = Object.keys(objectOf(schema['properties']) ?? {});
  const required = listOf(schema['required']);
  return schema['additionalProperties'] === false && names.every((name) => required.includes(name));
}

/** Definitions are not schemas of their position. */
function depthOf(keyword: string): number {
  return keyword === '$defs' || keyword === 'definitions' ? 0 : 1;
}

/** Keywords of https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations. */
const closedKeywords = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', 'allOf', '$ref'],
  ...['$defs', 'definitions', 'title', 'description', 'default', 'format', 'minItems'],
]);
const closedFormats = new Set(
  ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'].map(String),
);
/** Left out of descriptions: they do not restrict the answer. */
const silent = new Set(['$schema', '$id', '$comment', '$anchor', 'deprecated', 'readOnly', 'writeOnly', 'examples']);

/**
 * The schema for an answer in strict mode: every object closed, bounds and patterns in descriptions instead of being
 * enforced, `oneOf` as `anyOf`.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const { oneOf, ...rest } = schema;
  const source = oneOf !== undefined && rest['anyOf'] === undefined ? { ...rest, anyOf: oneOf } : schema;
  const kept: [string, unknown][] = [];
  const described = table<Record<string, unknown>>({});
  for (const [key, value] of Object.entries(source)) {
    if (isClosedMember(key, value)) kept.push([key, value]);
    else if (!silent.has(key)) described[key] = value;
  }
  const members = new Map(kept);
  if (typesOf(schema).includes('object') || isObject(schema['properties'])) closeObject(members, described);
  const description = describedWith(schema['description'], described);
  if (description !== undefined) members.set('description', description);
  return mapSubschemas(Object.fromEntries(members), (inner) => (isObject(inner) ? closedSchema(inner) : inner));
}

function isClosedMember(key: string, value: unknown): boolean {
  if (key === 'format') return typeof value === 'string' && closedFormats.has(value);
  if (key === 'minItems') return value === 0 || value === 1;
  return closedKeywords.has(key);
}

function closeObject(members: Map<string, unknown>, described: Record<string, unknown>): void {
  const before = members.get('additionalProperties');
  if (isObject(before)) described['additionalProperties'] = before;
  if (!members.has('type') && !members.has('anyOf')) members.set('type', 'object');
  members.set('additionalProperties', false);
}
