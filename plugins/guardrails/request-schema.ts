/** The JSON Schema that a request asks its answer to follow, as each protocol writes it. Pure. */
import { isObject, type JsonObject, objectOf } from '../../core/json/json.ts';

/** Where it stands: the names from the root. */
const places: readonly (readonly string[])[] = [
  ['response_format', 'json_schema', 'schema'],
  ['text', 'format', 'schema'],
  ['output_format', 'schema'],
  ['output_config', 'format', 'schema'],
  ...['generationConfig', 'generation_config'].flatMap((config) =>
    ['responseJsonSchema', 'response_json_schema', 'responseSchema', 'response_schema'].map((name) => [config, name]),
  ),
];

export function requestedSchema(json: JsonObject): JsonObject | undefined {
  for (const place of places) {
    let at: unknown = json;
    for (const name of place) at = objectOf(at)?.[name];
    if (isObject(at)) return /^response_?schema$/i.test(place.at(-1)!) ? plainSchema(at) : at;
  }
  return undefined;
}

/** Google's own form has types in capital letters, and `nullable`. */
function plainSchema(schema: JsonObject): JsonObject {
  const members = Object.entries(schema).filter(([name]) => name !== 'nullable' && name !== 'propertyOrdering');
  const plain = Object.fromEntries(members.map(([name, value]) => [name, plainMember(name, value)]));
  return schema['nullable'] === true ? { anyOf: [plain, { type: 'null' }] } : plain;
}

function plainMember(name: string, value: unknown): unknown {
  if (name === 'type' && typeof value === 'string') return value.toLowerCase();
  const inside = (one: unknown) => (isObject(one) ? plainSchema(one) : one);
  if (name === 'properties' && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inside(one)]));
  return Array.isArray(value) ? value.map(inside) : inside(value);
}
