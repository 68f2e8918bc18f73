/** Tool schemas with a plain object at the root, for upstreams that refuse references and combinations there. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { rootObject } from '../../common/encoding/schema-repair.ts';
import { describedWith, typesOf } from '../../common/encoding/schema-walk.ts';
import { mergedSchemas, pointedAt } from './schema-merge.ts';

/** Keywords that upstreams refuse at the root of a tool's schema. */
const refused = ['$ref', 'allOf', 'anyOf', 'oneOf', 'not', 'enum', 'const'];
/** Maximum branches and members that are read; beyond them the tool accepts additional members. */
const maxWork = 20_000;
const maxDepth = 32;
/** Characters of JSON that the expansion of references may add. */
const maxReferred = 4_000_000;

/**
 * A schema for the arguments of a tool with `object` and `properties` at the root and no combinations: `allOf` is
 * merged, the properties of all branches of `anyOf` and `oneOf` are united, and the root requires what each branch
 * requires. The description says which members belong together. Schemas without such a root stay as `rootObject` makes
 * them.
 */
export function plainRoot(schema: JsonObject | undefined): JsonObject {
  const root = rootObject(schema);
  if (!refused.some((key) => root[key] !== undefined)) return root;
  const flat = new RootReduction(root).flat(root, 0);
  const properties = objectOf(flat['properties']) ?? {};
  return { ...flat, type: 'object', properties };
}

class RootReduction {
  readonly #root: JsonObject;
  readonly #open = new Set<string>();
  /** Characters of each reference's target. */
  readonly #sizes = new Map<string, number>();
  #left = maxWork;
  #leftReferred = maxReferred;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  flat(schema: JsonObject, depth: number): JsonObject {
    this.#left -= 1 + Object.keys(objectOf(schema['properties']) ?? {}).length;
    const { $ref, allOf, anyOf, oneOf, not, enum: values, const: value, ...own } = schema;
    if (depth > maxDepth) return own;
    let flat: JsonObject = own;
    if (typeof $ref === 'string') flat = this.#merged(flat, this.#target($ref, depth));
    for (const branch of listOf(allOf).filter(isObject)) {
      if (this.#left <= 0) break;
      flat = this.#merged(flat, this.flat(branch, depth + 1));
    }
    for (const choice of [anyOf, oneOf]) if (Array.isArray(choice)) flat = this.#chosen(flat, choice, depth);
    const described = { ...(not === undefined ? {} : { not }), ...fixed(values, value) };
    const description = describedWith(flat['description'], described);
    return description === undefined ? flat : { ...flat, description };
  }

  #target(reference: string, depth: number): JsonObject {
    const target = pointedAt(this.#root, reference);
    if (this.#open.has(reference) || !isObject(target)) return {};
    const size = this.#sizes.get(reference) ?? JSON.stringify(target).length;
    this.#sizes.set(reference, size);
    this.#leftReferred -= size;
    if (this.#left <= 0 || this.#leftReferred <= 0) return {};
    this.#open.add(reference);
    try {
      return this.flat(target, depth + 1);
    } finally {
      this.#open.delete(reference);
    }
  }

  #merged(one: JsonObject, other: JsonObject): JsonObject {
    this.#left -= Object.keys(objectOf(one['properties']) ?? {}).length;
    return mergedSchemas(one, other);
  }

  /** Branches of other types than object cannot hold arguments. */
  #chosen(base: JsonObject, choice: readonly unknown[], depth: number): JsonObject {
    const branches: JsonObject[] = [];
    for (const branch of choice) {
      if (this.#left <= 0) break;
      if (!isObject(branch)) continue;
      const flat = this.flat(branch, depth + 1);
      const types = typesOf(flat);
      if (types.length === 0 || types.includes('object')) branches.push(flat);
    }
    const [only] = branches;
    if (only === undefined) return base;
    return branches.length === 1 ? this.#merged(base, only) : hoisted(base, branches);
  }
}

/** One object that accepts every branch: all of their properties, and the intersection of their required ones. */
function hoisted(base: JsonObject, branches: readonly JsonObject[]): JsonObject {
  const variants = new Map<string, Map<string, unknown>>();
  for (const branch of branches) {
    for (const [name, property] of Object.entries(objectOf(branch['properties']) ?? {})) {
      const known = variants.get(name) ?? new Map<string, unknown>();
      variants.set(name, known.set(JSON.stringify(property), property));
    }
  }
  const own = objectOf(base['properties']) ?? {};
  const added = [...variants].flatMap(([name, known]): [string, unknown][] =>
    Object.hasOwn(own, name) ? [] : [[name, eitherOf([...known.values()])]],
  );
  const groups = branches.map((branch) => listOf(branch['required']).filter((name) => typeof name === 'string'));
  const shared = groups.reduce((common, group) => common.filter((name) => group.includes(name)));
  const required = [...new Set([...listOf(base['required']), ...shared])];
  const isClosed = branches.every((branch) => branch['additionalProperties'] === false);
  const description = withGroups(base['description'], groups, shared);
  return {
    ...base,
    properties: Object.fromEntries([...Object.entries(own), ...added]),
    ...(required.length === 0 ? {} : { required }),
    ...(isClosed ? { additionalProperties: false } : {}),
    ...(description === undefined ? {} : { description }),
  };
}

/** A property with several descriptions; a discriminator becomes a list of its values. */
function eitherOf(variants: readonly unknown[]): unknown {
  if (variants.length === 1) return variants[0];
  const values = variants.flatMap((variant) => (isObject(variant) ? valuesOf(variant) : [undefined]));
  if (values.includes(undefined)) return { anyOf: variants };
  const types = [...new Set(variants.flatMap((variant) => typesOf(variant as JsonObject)))];
  return { ...(types.length === 1 ? { type: types[0] } : {}), enum: [...new Set(values)] };
}

/** The values of a schema that is an enumeration without other constraints. */
function valuesOf(schema: JsonObject): readonly unknown[] {
  const isPlain = Object.keys(schema).every((key) => ['type', 'const', 'enum', 'title', 'default'].includes(key));
  if (!isPlain) return [undefined];
  if (schema['const'] !== undefined) return [schema['const']];
  return Array.isArray(schema['enum']) ? schema['enum'] : [undefined];
}

const maxGroupsLength = 1_000;

/** Describes the members that must be given together, where the branches differ in that. */
function withGroups(existing: unknown, groups: readonly string[][], shared: readonly string[]): string | undefined {
  const before = typeof existing === 'string' && existing !== '' ? existing : undefined;
  const names = groups.map((group) => group.filter((name) => !shared.includes(name)).join(', '));
  const distinct = [...new Set(names.filter((group) => group !== ''))];
  const needed = names.includes('') ? 'Give all or none of the members of one group' : 'Give all members of one group';
  const text = `${needed}: ${distinct.map((group) => `(${group})`).join(' or ')}.`;
  if (distinct.length === 0 || text.length > maxGroupsLength) return before;
  return before === undefined ? text : `${before} ${text}`;
}

function fixed(values: unknown, value: unknown): JsonObject {
  return { ...(values === undefined ? {} : { enum: values }), ...(value === undefined ? {} : { const: value }) };
}
