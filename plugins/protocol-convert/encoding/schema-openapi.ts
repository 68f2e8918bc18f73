/** Conversion of JSON Schema to the OpenAPI subset that function declarations of some upstreams accept. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { repairSchema, rootObject } from '../../common/encoding/schema-repair.ts';
import { typesOf } from '../../common/encoding/schema-walk.ts';
import { mergedSchemas, pointedAt, withOptional } from './schema-merge.ts';
import { encodeKeywords } from './schema-openapi-keywords.ts';

/** Schemas in one result: references that fan out could make it endless. */
const maxSchemas = 5000;
/** Levels below the root; no upstream accepts more. */
const maxDepth = 32;

/**
 * The schema with nothing but type, format, title, description, nullable, enum, items, properties, required,
 * propertyOrdering, default, example, anyOf and the plain bounds. References are expanded and cut where they recur,
 * combinations are merged, conditions become optional properties; other keywords go into the description. The root is
 * an object unless the schema declares another type.
 */
export function openApiSubset(schema: JsonObject): JsonObject {
  const types = typesOf(schema);
  const isOther = types.length > 0 && !types.includes('object');
  const whole = isOther ? repairSchema(schema) : rootObject(schema);
  return new Reduction(whole).reduce(whole, 0);
}

class Reduction {
  readonly #root: JsonObject;
  /** References under expansion: a second occurrence inside is a recursion. */
  readonly #open = new Set<string>();
  #left = maxSchemas;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  reduce(schema: unknown, depth: number): JsonObject {
    this.#left -= 1;
    if (this.#left < 0 || depth > maxDepth) return { type: 'object' };
    if (!isObject(schema)) return { type: 'string' };
    const opened: string[] = [];
    try {
      return this.#choose(this.#flat(schema, opened), depth);
    } finally {
      for (const reference of opened) this.#open.delete(reference);
    }
  }

  /** Without `$ref`, `allOf`, `oneOf` and conditions. */
  #flat(schema: JsonObject, opened: string[]): JsonObject {
    const { $ref, allOf, oneOf, if: _if, then, else: otherwise, dependentSchemas, ...own } = schema;
    let flat: JsonObject = own;
    if (oneOf !== undefined && own['anyOf'] === undefined) flat = { ...flat, anyOf: oneOf };
    if (typeof $ref === 'string') flat = mergedSchemas(flat, this.#target($ref, opened));
    for (const part of listOf(allOf)) {
      if (!isObject(part) || !this.#affords(flat)) continue;
      flat = mergedSchemas(flat, this.#flat(part, opened));
    }
    for (const branch of [then, otherwise, ...Object.values(objectOf(dependentSchemas) ?? {})]) {
      if (!isObject(branch) || !this.#affords(flat)) continue;
      flat = withOptional(flat, this.#flat(branch, opened));
    }
    return flat;
  }

  /** Whether more may be merged into this schema: each merge copies it, so large schemas use up more. */
  #affords(schema: JsonObject): boolean {
    if (this.#left < 0) return false;
    const { properties, required, enum: values } = schema;
    const members = Object.keys(objectOf(properties) ?? {}).length + listOf(required).length + listOf(values).length;
    this.#left -= 1 + members / 10;
    return this.#left >= 0;
  }

  #target(reference: string, opened: string[]): JsonObject {
    if (this.#open.has(reference)) return { type: 'object' };
    const target = pointedAt(this.#root, reference);
    if (!isObject(target)) return {};
    this.#open.add(reference);
    opened.push(reference);
    return this.#flat(target, opened);
  }

  /** Decides between one schema and a choice of several. */
  #choose(flat: JsonObject, depth: number): JsonObject {
    const { anyOf, ...base } = flat;
    const branches = listOf(anyOf).filter(isObject);
    const others = branches.filter((branch) => !isNull(branch));
    const nullable = others.length < branches.length ? { nullable: true } : {};
    if (others.length === 0) return this.#typed({ ...base, ...nullable }, depth);
    if (others.length > 1 && !isObjectLike(base)) {
      return this.#choice(
        others.map((branch) => mergedSchemas({ ...base, ...nullable }, branch)),
        depth,
      );
    }
    const opened: string[] = [];
    const flats = others.map((branch) => this.#flat(branch, opened));
    try {
      if (flats.length === 1) return this.#choose({ ...mergedSchemas(base, flats[0]!), ...nullable }, depth);
      return this.#typed({ ...this.#hoisted(base, flats), ...nullable }, depth);
    } finally {
      for (const reference of opened) this.#open.delete(reference);
    }
  }

  /** One object that accepts every branch: their properties are optional, except those that all of them require. */
  #hoisted(base: JsonObject, branches: readonly JsonObject[]): JsonObject {
    let whole = base;
    let shared: readonly unknown[] | undefined;
    for (const branch of branches) {
      if (this.#affords(whole)) whole = withOptional(whole, branch);
      const names = new Set(listOf(branch['required']));
      shared = shared?.filter((name) => names.has(name)) ?? [...names];
    }
    return { ...whole, required: [...new Set([...listOf(base['required']), ...(shared ?? [])])] };
  }

  #typed(schema: JsonObject, depth: number): JsonObject {
    const types = typesOf(schema).filter((type) => type !== 'null');
    const nullable = types.length < typesOf(schema).length ? { nullable: true } : {};
    if (types.length > 1) {
      return this.#choice(
        types.map((type) => ({ ...schema, ...nullable, type })),
        depth,
      );
    }
    return encodeKeywords({ ...schema, ...nullable }, types[0], (inner) => this.reduce(inner, depth + 1));
  }

  /** A choice stands alone: sibling keywords go into each of its branches. */
  #choice(branches: readonly JsonObject[], depth: number): JsonObject {
    const reduced = branches.map((branch) => this.reduce(branch, depth + 1));
    const distinct = [...new Map(reduced.map((branch) => [JSON.stringify(branch), branch])).values()];
    return distinct.length === 1 ? distinct[0]! : { anyOf: distinct };
  }
}

function isNull(schema: JsonObject): boolean {
  if (schema['const'] === null) return true;
  const values = schema['enum'];
  if (Array.isArray(values)) return values.length > 0 && values.every((value) => value === null);
  const types = typesOf(schema);
  return types.length > 0 && types.every((type) => type === 'null');
}

function isObjectLike(schema: JsonObject): boolean {
  return typesOf(schema).includes('object') || isObject(schema['properties']);
}
