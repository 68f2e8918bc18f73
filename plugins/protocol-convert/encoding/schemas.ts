/**
 * JSON Schema conversions for each protocol; every function walks by position, so that properties may have any name.
 * Pure.
 */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import type { DroppedParameters } from '../../common/canonical/dropped-parameters.ts';
import type { OutputForm } from '../../common/canonical/prompt.ts';
import { mapSubschemas, typesOf } from '../../common/encoding/schema-walk.ts';
import { isStrict } from './schema-closed.ts';

export { closedSchema, isStrict } from './schema-closed.ts';
export { openApiSubset } from './schema-openapi.ts';
export { plainRoot } from './schema-root.ts';

/** With one-value `enum` for `const`, and `{}` for `true`: for upstreams that accept all of JSON Schema but these. */
export function withoutConst(schema: JsonObject): JsonObject {
  return mapSubschemas(Object.hasOwn(schema, 'const') ? enumForConst(schema) : schema, (inner, keyword) => {
    if (isObject(inner)) return withoutConst(inner);
    if (typeof inner !== 'boolean' || /^(additional|unevaluated)/.test(keyword)) return inner;
    return inner ? {} : { not: {} };
  });
}

function enumForConst(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (key !== 'const') return [[key, value]];
    return schema['enum'] === undefined ? [['enum', [value]]] : [];
  });
  return Object.fromEntries(entries);
}

/** Members of an OpenAPI schema that may come in snake case. */
const camel: Readonly<Record<string, string>> = table({
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_length: 'minLength',
  max_length: 'maxLength',
  min_properties: 'minProperties',
  max_properties: 'maxProperties',
  additional_properties: 'additionalProperties',
  property_ordering: 'propertyOrdering',
});
const counts = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']);

/**
 * JSON Schema of the OpenAPI subset with its upper-case types: types in lower case, `nullable` as an additional type,
 * textual counts as numbers.
 */
export function lowerCaseTypes(schema: JsonObject): JsonObject {
  const members = new Map<string, unknown>();
  for (const [name, value] of Object.entries(schema)) {
    const key = camel[name] ?? name;
    if (isOpenApiOnly(key, value)) continue;
    if (key === 'type') setTypes(members, schema);
    else if (key === 'example') members.set('examples', [value]);
    else members.set(key, counts.has(key) && typeof value === 'string' ? Number(value) : value);
  }
  if (schema['nullable'] === true) makeNullable(members);
  return mapSubschemas(Object.fromEntries(members), (inner) => (isObject(inner) ? lowerCaseTypes(inner) : inner));
}

/** Keywords that JSON Schema does not have, or has in another form. */
function isOpenApiOnly(key: string, value: unknown): boolean {
  return key === 'nullable' || key === 'propertyOrdering' || (key === 'format' && value === 'enum');
}

function setTypes(members: Map<string, unknown>, schema: JsonObject): void {
  const types = typesOf(schema).filter((type) => type !== 'type_unspecified');
  if (types.length > 0) members.set('type', types.length === 1 ? types[0] : types);
}

function makeNullable(members: Map<string, unknown>): void {
  const type = members.get('type');
  if (typeof type === 'string') members.set('type', [type, 'null']);
  const values = members.get('enum');
  if (Array.isArray(values) && !values.includes(null)) members.set('enum', [...values, null]);
  const branches = members.get('anyOf');
  if (Array.isArray(branches)) members.set('anyOf', [...branches, { type: 'null' }]);
}

/** The schema of an answer with the client's description, for protocols without a separate member for it. */
export function describedSchema({ schema, description }: { schema: JsonObject; description?: string }): JsonObject {
  return description === undefined || schema['description'] !== undefined ? schema : { ...schema, description };
}

/**
 * Whether an answer uses strict mode. Upstreams refuse a schema that does not fit strict mode: it is sent without, and
 * recorded as dropped if the client asked for strict mode. The schema stays unchanged, as optional members would have
 * to come back as null.
 */
export function strictOutput(output: Extract<OutputForm, { form: 'schema' }>, dropped: DroppedParameters): boolean {
  if (output.strict === false) return false;
  if (isStrict(output.schema)) return true;
  if (output.strict === true) dropped.drop('strictOutput');
  return false;
}
