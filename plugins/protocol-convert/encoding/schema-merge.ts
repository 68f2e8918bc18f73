/** Merging of references and combinations into one flat schema, for targets that support neither. Pure. */
import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { typesOf } from '../../common/encoding/schema-walk.ts';

/** The larger of both counts. */
const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];

/** A schema that satisfies both. Where one schema cannot express that, the first one wins. */
export function mergedSchemas(one: JsonObject, other: JsonObject): JsonObject {
  const merged = new Map<string, unknown>(Object.entries(one));
  for (const [key, value] of Object.entries(other)) {
    merged.set(key, merged.has(key) ? mergedMember(key, merged.get(key), value, one, other) : value);
  }
  return Object.fromEntries(merged);
}

function mergedMember(key: string, mine: unknown, theirs: unknown, one: JsonObject, other: JsonObject): unknown {
  if (key === 'properties' && isObject(mine) && isObject(theirs)) return mergedProperties(mine, theirs);
  if (key === 'required') return [...new Set([...listOf(mine), ...listOf(theirs)])];
  if (key === 'enum') return common(listOf(mine), listOf(theirs));
  if (key === 'type') return mergedType(one, other);
  if (key === 'items' && isObject(mine) && isObject(theirs)) return { allOf: [mine, theirs] };
  if (typeof mine === 'number' && typeof theirs === 'number') {
    if (lowerBounds.includes(key)) return Math.max(mine, theirs);
    if (upperBounds.includes(key)) return Math.min(mine, theirs);
  }
  return mine;
}

function mergedProperties(mine: JsonObject, theirs: JsonObject): JsonObject {
  const merged = new Map<string, unknown>(Object.entries(mine));
  for (const [name, property] of Object.entries(theirs)) {
    const before = merged.get(name);
    merged.set(name, before === undefined || before === true ? property : { allOf: [before, property] });
  }
  return Object.fromEntries(merged);
}

function common(mine: readonly unknown[], theirs: readonly unknown[]): readonly unknown[] {
  const texts = new Set(theirs.map((value) => JSON.stringify(value)));
  const both = mine.filter((value) => texts.has(JSON.stringify(value)));
  return both.length === 0 ? mine : both;
}

function mergedType(one: JsonObject, other: JsonObject): unknown {
  const [mine, theirs] = [typesOf(one), typesOf(other)];
  const both = mine.filter((type) => theirs.includes(type));
  if (both.length > 0) return both.length === 1 ? both[0] : both;
  // An integer is a number.
  if (mine.includes('number') && theirs.includes('integer')) return 'integer';
  return one['type'];
}

/** With the branch's properties as optional ones: for conditions with an unknown outcome. */
export function withOptional(schema: JsonObject, branch: JsonObject): JsonObject {
  const mine = objectOf(schema['properties']) ?? {};
  const added = Object.entries(objectOf(branch['properties']) ?? {}).filter(([name]) => !Object.hasOwn(mine, name));
  if (added.length === 0) return schema;
  return { ...schema, properties: Object.fromEntries([...Object.entries(mine), ...added]) };
}

/** The target of a reference within the document, by RFC 6901; undefined: it does not exist or is outside. */
export function pointedAt(root: JsonObject, reference: string): unknown {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let position: unknown = root;
  for (const step of reference.slice(2).split('/')) {
    const name = unescaped(step);
    const holder = Array.isArray(position) ? (position as unknown as JsonObject) : objectOf(position);
    if (holder === undefined || !Object.hasOwn(holder, name)) return undefined;
    position = holder[name];
  }
  return position;
}

function unescaped(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}
