/** JSON Schemas as each protocol wants them; every function walks by position, so that properties may have any name. Pure. */
import { isObject, type JsonObject } from '../json.ts';
import { mapSubschemas, typesOf } from './schema-walk.ts';

export { closedSchema, isStrict } from './schema-closed.ts';
export { mendSchema, rootObject } from './schema-mend.ts';
export { openApiSubset } from './schema-openapi.ts';

/** With `enum` of one value for `const`, and `{}` for `true`: for upstreams that take all of JSON Schema but these. */
export function withoutConst(schema: JsonObject): JsonObject {
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (key !== 'const') return [[key, value]];
    return schema['enum'] === undefined ? [['enum', [value]]] : [];
  });
  return mapSubschemas(Object.fromEntries(entries), (inner, keyword) => {
    if (isObject(inner)) return withoutConst(inner);
    if (typeof inner !== 'boolean' || /^(additional|unevaluated)/.test(keyword)) return inner;
    return inner ? {} : { not: {} };
  });
}

/** Members of an OpenAPI schema that may come in snake case. */
const camel: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_length: 'minLength',
  max_length: 'maxLength',
  min_properties: 'minProperties',
  max_properties: 'maxProperties',
  additional_properties: 'additionalProperties',
  property_ordering: 'propertyOrdering',
};
const counts = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']);

/**
 * JSON Schema of the OpenAPI subset with its upper-case types: types in lower case, `nullable` as a type of its own,
 * counts that come as text as numbers.
 */
export function lowerCaseTypes(schema: JsonObject): JsonObject {
  const members = new Map<string, unknown>();
  for (const [name, value] of Object.entries(schema)) {
    const key = Object.hasOwn(camel, name) ? camel[name]! : name;
    if (key === 'type') {
      const types = typesOf(schema).filter((type) => type !== 'type_unspecified');
      if (types.length > 0) members.set(key, types.length === 1 ? types[0] : types);
    } else if (key === 'example') members.set('examples', [value]);
    else if (key === 'format' && value === 'enum') continue;
    else if (key === 'nullable' || key === 'propertyOrdering') continue;
    else members.set(key, counts.has(key) && typeof value === 'string' ? Number(value) : value);
  }
  if (schema['nullable'] === true) makeNullable(members);
  return mapSubschemas(Object.fromEntries(members), (inner) => (isObject(inner) ? lowerCaseTypes(inner) : inner));
}

function makeNullable(members: Map<string, unknown>): void {
  const type = members.get('type');
  if (typeof type === 'string') members.set('type', [type, 'null']);
  const values = members.get('enum');
  if (Array.isArray(values) && !values.includes(null)) members.set('enum', [...values, null]);
  const branches = members.get('anyOf');
  if (Array.isArray(branches)) members.set('anyOf', [...branches, { type: 'null' }]);
}

/** The schema of an answer with what the client says about it, for protocols that have no other place for that. */
export function describedSchema({ schema, description }: { schema: JsonObject; description?: string }): JsonObject {
  return description === undefined || schema['description'] !== undefined ? schema : { ...schema, description };
}
