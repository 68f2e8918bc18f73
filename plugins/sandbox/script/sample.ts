/** A value that fits a JSON schema: arguments of tool calls and structured answers. Deterministic. Pure. */
import { table } from '../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.ts';

const deepest = 12;

/** JSON Schema and the OpenAPI subset alike (types in any case). `salt` varies free texts: 1, 2, … */
export function sampleOf(schema: unknown, salt = 1): unknown {
  return sample(schema, 'value', { root: objectOf(schema), salt, depth: 0 });
}

interface Place {
  readonly root: JsonObject;
  readonly salt: number;
  readonly depth: number;
}

function sample(schema: unknown, name: string, place: Place): unknown {
  if (!isObject(schema) || place.depth > deepest) return schema === true || !isObject(schema) ? name : null;
  const inner = { ...place, depth: place.depth + 1 };
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum']) && schema['enum'].length > 0) return schema['enum'][0];
  if (typeof schema['$ref'] === 'string') return sample(resolve(schema['$ref'], place.root), name, inner);
  const branches = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])];
  if (branches.length > 0)
    return sample(branches.find((branch) => typeOf(branch) !== 'null') ?? { type: 'null' }, name, inner);
  if (Array.isArray(schema['allOf'])) return sample(merged(schema, schema['allOf'], place.root), name, inner);
  if ('default' in schema && schema['default'] !== null) return schema['default'];
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, inner);
    case 'array':
      return sampleArray(schema, name, inner);
    case 'string':
      return sampleText(schema, name, place.salt);
    case 'integer':
    case 'number':
      return sampleNumber(schema, typeOf(schema) === 'integer');
    case 'boolean':
      return true;
    default:
      return null;
  }
}

/** The schema's first type other than null, in lower case; without a type, inferred from other members. */
function typeOf(schema: unknown): string {
  const type = objectOf(schema)['type'];
  const named = Array.isArray(type) ? (type.find((one) => one !== 'null') ?? 'null') : type;
  if (typeof named === 'string') return named.toLowerCase();
  const members = objectOf(schema);
  if ('properties' in members || 'additionalProperties' in members) return 'object';
  if ('items' in members || 'prefixItems' in members) return 'array';
  return 'minimum' in members || 'maximum' in members ? 'number' : 'string';
}

function resolve(reference: string, root: JsonObject): unknown {
  let found: unknown = root;
  for (const step of reference.split('/').slice(1)) {
    found = objectOf(found)[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return found;
}

function merged(schema: JsonObject, parts: readonly unknown[], root: JsonObject): JsonObject {
  const { allOf: _, ...own } = schema;
  let properties = { ...objectOf(own['properties']) };
  let required = [...listOf(own['required'])];
  let whole: JsonObject = own;
  for (const part of parts) {
    const reference = textOf(objectOf(part)['$ref']);
    const one = objectOf(reference === undefined ? part : resolve(reference, root));
    whole = { ...whole, ...one };
    properties = { ...properties, ...objectOf(one['properties']) };
    required = [...required, ...listOf(one['required'])];
  }
  return Object.keys(properties).length > 0 ? { ...whole, properties, required } : whole;
}

/** Its required members; all of them if none is required. */
function sampleObject(schema: JsonObject, place: Place): JsonObject {
  const properties = objectOf(schema['properties']);
  const required = listOf(schema['required']).filter((name) => typeof name === 'string');
  const names = required.length > 0 ? required : Object.keys(properties);
  const value: Record<string, unknown> = {};
  for (const name of names) value[name] = sample(properties[name] ?? { type: 'string' }, name, place);
  return value;
}

function sampleArray(schema: JsonObject, name: string, place: Place): unknown[] {
  const prefix = listOf(schema['prefixItems']);
  const least = Number(schema['minItems'] ?? 1);
  const most = Number(schema['maxItems'] ?? Number.POSITIVE_INFINITY);
  const length = Math.min(Math.max(least, prefix.length, 1), most, 64);
  return Array.from({ length }, (_, index) =>
    sample(prefix[index] ?? schema['items'] ?? { type: 'string' }, name, { ...place, salt: place.salt + index }),
  );
}

const formats: Record<string, string> = table({
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  email: 'someone@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000001',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  hostname: 'example.com',
});

function sampleText(schema: JsonObject, name: string, salt: number): string {
  const known = formats[textOf(schema['format']) ?? ''];
  if (known !== undefined) return known;
  const text = salt === 1 ? `sample ${name}` : `sample ${name} ${salt}`;
  const least = Math.min(Number(schema['minLength'] ?? 0), 10_000);
  const most = Number(schema['maxLength'] ?? Number.POSITIVE_INFINITY);
  return text.padEnd(least, '.').slice(0, most);
}

function sampleNumber(schema: JsonObject, whole: boolean): number {
  const step = Number(schema['multipleOf'] ?? (whole ? 1 : 0));
  const low = lowest(schema, whole);
  const high = highest(schema, whole);
  const start = low ?? (high === undefined ? 1 : Math.min(1, high));
  return step > 0 ? Math.ceil(start / step) * step : start;
}

function lowest(schema: JsonObject, whole: boolean): number | undefined {
  if (typeof schema['exclusiveMinimum'] === 'number') return schema['exclusiveMinimum'] + (whole ? 1 : 0.5);
  return typeof schema['minimum'] === 'number' ? schema['minimum'] : undefined;
}

function highest(schema: JsonObject, whole: boolean): number | undefined {
  if (typeof schema['exclusiveMaximum'] === 'number') return schema['exclusiveMaximum'] - (whole ? 1 : 0.5);
  return typeof schema['maximum'] === 'number' ? schema['maximum'] : undefined;
}
