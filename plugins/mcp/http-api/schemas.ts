/** Schemas of OpenAPI as JSON Schema that stands alone: what they refer to comes along under `$defs`. Pure. */
import { isObject, type JsonObject, listOf } from '../../../core/json/json.ts';
import { mapSubschemas } from '../../common/encoding/schema-walk.ts';
import { WrongDocument } from './document.ts';

/** Schemas of one tool; one with more is left out. */
const mostSchemas = 2_000;
const deepest = 48;
const longestChain = 8;
/** Not of JSON Schema, or of no use to who fills in arguments. */
const dropped = new Set([
  'nullable',
  'xml',
  'externalDocs',
  'discriminator',
  'example',
  '$schema',
  '$id',
  '$anchor',
  'readOnly',
  'writeOnly',
]);

/** What a reference inside the document leads to. Throws WrongDocument. */
export function resolved(document: JsonObject, value: unknown): unknown {
  let found = value;
  for (let steps = 0; isObject(found) && typeof found['$ref'] === 'string'; steps++) {
    if (steps === longestChain) throw new WrongDocument('references lead to one another');
    found = pointed(document, found['$ref']);
  }
  return found;
}

function pointed(document: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#/')) throw new WrongDocument('references to other documents are not followed');
  let found: unknown = document;
  for (const part of reference.slice(2).split('/')) {
    const name = decoded(part);
    if (!isObject(found) || !Object.hasOwn(found, name)) throw new WrongDocument('a reference leads nowhere');
    found = found[name];
  }
  return found;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    throw new WrongDocument('a reference is malformed');
  }
}

/** The schemas of one tool. */
export class Schemas {
  readonly definitions: Record<string, unknown> = {};
  readonly #document: JsonObject;
  readonly #names = new Map<string, string>();
  #count = 0;

  constructor(document: JsonObject) {
    this.#document = document;
  }

  /** Throws WrongDocument. */
  converted(schema: unknown, depth = 0): JsonObject | boolean {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) return {};
    if (++this.#count > mostSchemas || depth > deepest) throw new WrongDocument('its schemas are too large');
    const { $ref: reference, ...others } = schema;
    const plain = mapSubschemas(plainOf(others, this.#document), (inner) => this.converted(inner, depth + 1));
    return typeof reference === 'string' ? { ...plain, $ref: `#/$defs/${this.#named(reference)}` } : plain;
  }

  #named(reference: string): string {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    const target = pointed(this.#document, reference);
    const word = reference.slice(reference.lastIndexOf('/') + 1).replaceAll(/[^A-Za-z0-9_-]/g, '_') || 'schema';
    let name = word;
    for (let number = 2; Object.hasOwn(this.definitions, name); number++) name = `${word}_${number}`;
    this.#names.set(reference, name);
    // Set before it is converted: it may refer to itself.
    this.definitions[name] = {};
    this.definitions[name] = this.converted(target);
    return name;
  }
}

/** Without what OpenAPI 3.0 says otherwise than JSON Schema, and without properties that only answers have. */
function plainOf(schema: JsonObject, document: JsonObject): JsonObject {
  const plain: Record<string, unknown> = Object.fromEntries(
    Object.entries(schema).filter(([key]) => !dropped.has(key) && !key.startsWith('x-')),
  );
  if (schema['nullable'] === true) Object.assign(plain, nullable(plain));
  for (const [is, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof plain[is] !== 'boolean') continue;
    if (plain[is]) plain[is] = plain[limit];
    else delete plain[is];
    if (plain[is] !== undefined) delete plain[limit];
  }
  const { properties } = schema;
  if (!isObject(properties)) return plain;
  const entries = Object.entries(properties);
  const readOnly = new Set(entries.filter(([, one]) => isReadOnly(one, document)).map(([name]) => name));
  if (readOnly.size === 0) return plain;
  plain['properties'] = Object.fromEntries(entries.filter(([name]) => !readOnly.has(name)));
  if (Array.isArray(schema['required']))
    plain['required'] = schema['required'].filter((name) => !readOnly.has(name as string));
  return plain;
}

function isReadOnly(schema: unknown, document: JsonObject): boolean {
  const found = resolved(document, schema);
  return isObject(found) && found['readOnly'] === true;
}

function nullable({ type, enum: values }: JsonObject): JsonObject {
  return {
    ...(typeof type === 'string' ? { type: [type, 'null'] } : {}),
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...listOf(values), null] } : {}),
  };
}
