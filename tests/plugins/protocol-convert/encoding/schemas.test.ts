/** JSON Schemas for tools and answers: what each protocol takes, and nothing said that it does not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rootObject } from '../../../../plugins/common/encoding/schema-repair.ts';
import { subschemas } from '../../../../plugins/common/encoding/schema-walk.ts';
import {
  closedSchema,
  isStrict,
  lowerCaseTypes,
  openApiSubset,
  withoutConst,
} from '../../../../plugins/protocol-convert/encoding/schemas.ts';
import { fc } from '../../../helpers/properties.ts';

type Schema = Record<string, unknown>;
const object = (properties: Schema, more: Schema = {}): Schema => ({ type: 'object', properties, ...more });
/** The subset of one property. */
const reduced = (property: unknown, more: Schema = {}) =>
  (openApiSubset(object({ it: property }, more))['properties'] as Schema)['it'] as Schema;

test('pitfall 078: keywords that are not known go at every depth, properties of their names stay', () => {
  const schema = object(
    {
      $schema: { type: 'string' },
      propertyNames: { type: 'string', $comment: 'x' },
      list: { type: 'array', items: { type: 'object', $id: 'y', properties: { $id: { type: 'string' } } } },
    },
    { $schema: 'https://json-schema.org/draft/2020-12/schema', $id: 'x', $comment: 'c', required: ['$schema'] },
  );
  assert.deepEqual(openApiSubset(schema), {
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      propertyNames: { type: 'string' },
      list: { type: 'array', items: { type: 'object', properties: { $id: { type: 'string' } } } },
    },
    required: ['$schema'],
  });
});

test('pitfall 078: a keyword without an equivalent is written into the description', () => {
  const schema = { type: 'integer', description: 'Even.', multipleOf: 2, exclusiveMinimum: 0 };
  assert.deepEqual(reduced(schema), { type: 'integer', description: 'Even. (exclusiveMinimum: 0, multipleOf: 2)' });
  assert.deepEqual(reduced({ type: 'string', format: 'uri' }), { type: 'string', description: '(format: "uri")' });
});

test('pitfall 079: additionalProperties goes from the subset and stays in full JSON Schema', () => {
  const schema = object({ a: object({}, { additionalProperties: false }) }, { additionalProperties: false });
  assert.deepEqual(openApiSubset(schema), { type: 'object', properties: { a: { type: 'object' } } });
  assert.deepEqual(withoutConst(schema), schema);
});

test('pitfall 080: references are put in place and cut where they recur', () => {
  const schema = object(
    { tree: { $ref: '#/$defs/node', description: 'The root.' }, whole: { $ref: '#' }, lost: { $ref: '#/nowhere' } },
    {
      $defs: {
        node: object({ name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } }),
      },
    },
  );
  const { tree, whole, lost } = openApiSubset(schema)['properties'] as Record<string, Schema>;
  const children = { type: 'array', items: { type: 'object' } };
  assert.deepEqual(tree, {
    type: 'object',
    description: 'The root.',
    properties: { name: { type: 'string' }, children },
  });
  assert.equal((whole!['properties'] as Record<string, Schema>)['whole']!['type'], 'object');
  assert.deepEqual(lost, { type: 'string' });
});

test('pitfall 080: references that fan out without end are cut', () => {
  const $defs: Schema = { d30: { type: 'string' } };
  for (let level = 0; level < 30; level++) {
    const $ref = `#/$defs/d${level + 1}`;
    $defs[`d${level}`] = object({ a: { $ref }, b: { $ref } });
  }
  const size = JSON.stringify(openApiSubset(object({ it: { $ref: '#/$defs/d0' } }, { $defs }))).length;
  assert.ok(size < 500_000, String(size));
});

test('pitfall 081: a type that may be null is nullable, several types are a choice', () => {
  assert.deepEqual(reduced({ type: ['string', 'null'] }), { type: 'string', nullable: true });
  assert.deepEqual(reduced({ anyOf: [{ type: 'string', minLength: 1 }, { type: 'null' }], description: 'd' }), {
    type: 'string',
    description: 'd',
    nullable: true,
    minLength: 1,
  });
  assert.deepEqual(reduced({ type: ['string', 'integer'], minimum: 2 }), {
    anyOf: [{ type: 'string' }, { type: 'integer', minimum: 2 }],
  });
});

test('a choice stands alone: keywords beside it go into its branches', () => {
  const choice = { description: 'd', oneOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] };
  assert.deepEqual(reduced(choice), {
    anyOf: [
      { type: 'string', description: 'd', nullable: true },
      { type: 'integer', description: 'd', nullable: true },
    ],
  });
});

test('pitfall 082: const becomes an enum, and only texts are enumerated', () => {
  assert.deepEqual(reduced({ const: 'a' }), { type: 'string', enum: ['a'] });
  assert.deepEqual(reduced({ enum: ['a', null] }), { type: 'string', nullable: true, enum: ['a'] });
  assert.deepEqual(reduced({ type: 'string', enum: [1, 'a'] }), { type: 'string', enum: ['1', 'a'] });
  assert.deepEqual(reduced({ type: 'integer', enum: [1, 2] }), { type: 'integer', description: '(one of: [1,2])' });
  assert.deepEqual(reduced({ type: 'string', enum: ['', 'a'] }), { type: 'string', description: '(one of: ["","a"])' });
  assert.deepEqual(withoutConst(object({ const: { const: 1 }, b: { anyOf: [{ const: null }] } })), {
    type: 'object',
    properties: { const: { enum: [1] }, b: { anyOf: [{ enum: [null] }] } },
  });
});

test('pitfall 083: required names without a property are left out', () => {
  const schema = object({ a: { type: 'string' } }, { required: ['a', 'b', 'a', 3] });
  assert.deepEqual(openApiSubset(schema)['required'], ['a']);
  assert.equal('required' in openApiSubset(object({ a: true }, { required: ['b'] })), false);
});

test('pitfall 084: an array without items holds texts', () => {
  const expected = { type: 'array', items: { type: 'string' } };
  for (const items of [{}, true, undefined, []]) assert.deepEqual(reduced({ type: 'array', items }), expected);
  assert.deepEqual(reduced({ type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] }), {
    type: 'array',
    items: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
  });
});

test('pitfall 085: branches of conditions become optional properties, allOf is merged, the root is an object', () => {
  const schema = {
    allOf: [object({ a: { type: 'string' } }, { required: ['a'] }), { $ref: '#/$defs/more' }],
    if: { properties: { a: { const: 'x' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: { c: { type: 'boolean' } }, required: ['c'] },
    else: { properties: { d: { type: 'number' } } },
    $defs: { more: object({ b: { type: 'integer' } }, { required: ['b'] }) },
  };
  assert.deepEqual(openApiSubset(schema), {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'integer' }, c: { type: 'boolean' }, d: { type: 'number' } },
    required: ['a', 'b'],
  });
});

test('pitfall 085: a choice at the root becomes one object that fits each branch', () => {
  const schema = {
    anyOf: [
      object({ id: { type: 'integer' }, x: { type: 'string' } }, { required: ['id', 'x'] }),
      object({ id: { type: 'integer' } }, { required: ['id'] }),
    ],
  };
  assert.deepEqual(openApiSubset(schema), {
    type: 'object',
    properties: { id: { type: 'integer' }, x: { type: 'string' } },
    required: ['id'],
  });
});

test('two demands on one property are merged, the stricter bound counts', () => {
  const schema = {
    allOf: [object({ n: { type: 'number', maximum: 9 } }), object({ n: { type: 'integer', maximum: 5 } })],
  };
  assert.deepEqual(openApiSubset(schema)['properties'], { n: { type: 'integer', maximum: 5 } });
});

test('pitfall 086: malformed schemas of tools are mended', () => {
  const empty = { type: 'object', properties: {} };
  assert.deepEqual(rootObject(undefined), empty);
  assert.deepEqual(rootObject({}), empty);
  assert.deepEqual(rootObject({ type: 'object' }), empty);
  assert.deepEqual(rootObject({ type: null, properties: null, required: null }), empty);
  const city = { type: 'string', description: 'Where.' };
  const whole = { type: 'object', properties: { city }, required: ['city'] };
  assert.deepEqual(rootObject({ city: { ...city, required: true } }), whole);
  assert.deepEqual(rootObject({ type: 'object', city, required: 'city' }), whole);
  assert.deepEqual(rootObject({ type: 'object', properties: { city: { ...city, required: true } } }), whole);
  assert.deepEqual(rootObject({ properties: { a: 'string', b: { type: 'int', required: false } } }), {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'integer' } },
  });
  assert.deepEqual(rootObject({ type: { type: 'string' } }), {
    type: 'object',
    properties: { type: { type: 'string' } },
  });
});

test('a right schema stays as it is, down to the order of its members', () => {
  const schema = {
    $schema: 'x',
    required: ['a'],
    type: 'object',
    properties: { a: { $ref: '#/$defs/a' }, m: { type: 'object', additionalProperties: true } },
    $defs: { a: { enum: [1, 'x'], default: { type: 'string' } } },
    additionalProperties: false,
  };
  assert.equal(JSON.stringify(rootObject(schema)), JSON.stringify(schema));
});

test('pitfall 087: a property may be called like any keyword', () => {
  const names = ['type', 'encrypted', '$ref', 'required', 'properties', 'enum', 'anyOf', 'items', 'const', '__proto__'];
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const schema = object(properties, { required: names, additionalProperties: false });
  for (const made of [rootObject(schema), openApiSubset(schema), withoutConst(schema), closedSchema(schema)]) {
    assert.deepEqual(Object.keys(made['properties'] as Schema), names);
    assert.deepEqual(Object.values(made['properties'] as Schema), Object.values(properties));
    assert.deepEqual(made['required'], names);
  }
  assert.equal(isStrict(schema), true);
});

test('pitfall 088: boolean schemas are no obstacle', () => {
  const schema = object({ yes: true, no: false, all: { allOf: [true, { type: 'string' }] } }, { items: false });
  assert.deepEqual(rootObject(schema)['properties'], {
    yes: {},
    no: { not: {} },
    all: { allOf: [{}, { type: 'string' }] },
  });
  assert.deepEqual((openApiSubset(schema)['properties'] as Schema)['yes'], { type: 'string' });
  assert.deepEqual((withoutConst(schema)['properties'] as Schema)['yes'], {});
  assert.doesNotThrow(() => [closedSchema(schema), lowerCaseTypes(schema)]);
  assert.equal(isStrict(schema), false);
});

test('pitfall 089: only a schema that closes every object and requires all of it is strict', () => {
  const closed = { additionalProperties: false };
  const inner = object({ b: { type: ['string', 'null'] } }, { required: ['b'], ...closed });
  assert.equal(isStrict(object({ a: inner }, { required: ['a'], ...closed })), true);
  assert.equal(isStrict(object({ a: inner }, { required: [], ...closed })), false);
  assert.equal(isStrict(object({ a: inner }, { required: ['a'] })), false);
  assert.equal(isStrict(object({ a: object({}) }, { required: ['a'], ...closed })), false);
  assert.equal(isStrict(object({ a: { allOf: [inner] } }, { required: ['a'], ...closed })), false);
  assert.equal(isStrict(object({ a: {} }, { required: ['a'], ...closed })), false);
  assert.equal(isStrict({ anyOf: [inner] }), false);
  const recursive = object({ next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }, { required: ['next'], ...closed });
  assert.equal(isStrict(recursive), true);
});

test('pitfall 090: bounds and patterns of an answer’s schema go into the description, objects are closed', () => {
  const schema = object(
    {
      n: { type: 'number', minimum: 1, maximum: 5, description: 'Stars.' },
      s: { type: 'string', pattern: '^a', format: 'email' },
      l: { type: 'array', items: object({}), minItems: 3 },
      o: { oneOf: [{ type: 'string' }, { type: 'null' }] },
    },
    { $schema: 'x' },
  );
  assert.deepEqual(closedSchema(schema), {
    type: 'object',
    properties: {
      n: { type: 'number', description: 'Stars. (minimum: 1, maximum: 5)' },
      s: { type: 'string', format: 'email', description: '(pattern: "^a")' },
      l: {
        type: 'array',
        items: { type: 'object', properties: {}, additionalProperties: false },
        description: '(minItems: 3)',
      },
      o: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    additionalProperties: false,
  });
});

test('upper-case types become JSON Schema', () => {
  const schema = {
    type: 'OBJECT',
    properties: {
      nullable: { type: 'STRING', nullable: true, enum: ['a'], format: 'enum' },
      list: { type: 'ARRAY', items: { type: 'INTEGER' }, min_items: '2' },
      either: { any_of: [{ type: 'STRING' }, { type: 'NUMBER' }], nullable: true },
      free: { type: 'TYPE_UNSPECIFIED', example: 3 },
    },
    propertyOrdering: ['list'],
    required: ['list'],
  };
  assert.deepEqual(lowerCaseTypes(schema), {
    type: 'object',
    properties: {
      nullable: { type: ['string', 'null'], enum: ['a', null] },
      list: { type: 'array', items: { type: 'integer' }, minItems: 2 },
      either: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
      free: { examples: [3] },
    },
    required: ['list'],
  });
});

// ------------------------------------------------------------------------------------------------- whatever is sent

const allowed = new Set([
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'minItems', 'maxItems', 'properties'],
  ...['required', 'minProperties', 'maxProperties', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'],
  ...['example', 'anyOf', 'propertyOrdering', 'default'],
]);
const kinds = ['string', 'integer', 'number', 'boolean', 'object', 'array'];

function assertSubset(schema: unknown): void {
  assert.ok(typeof schema === 'object' && schema !== null && !Array.isArray(schema));
  const { type, anyOf, items, properties, required, ...rest } = schema as Schema;
  for (const key of Object.keys(rest)) assert.ok(allowed.has(key), key);
  if (anyOf !== undefined) {
    assert.deepEqual(Object.keys(schema), ['anyOf']);
    assert.ok((anyOf as unknown[]).length > 1);
    (anyOf as unknown[]).forEach(assertSubset);
    return;
  }
  assert.ok(kinds.includes(type as string), String(type));
  assert.equal(items !== undefined, type === 'array');
  if (items !== undefined) assertSubset(items);
  for (const inner of Object.values((properties as Schema) ?? {})) assertSubset(inner);
  for (const name of (required as string[]) ?? []) assert.ok(Object.hasOwn(properties as Schema, name), name);
  for (const value of (rest['enum'] as unknown[]) ?? []) assert.ok(typeof value === 'string' && value !== '');
  if (rest['enum'] !== undefined) assert.equal(type, 'string');
}

const name = fc.constantFrom('a', 'b', 'type', '$ref', 'required', '__proto__', 'properties');
const member = (key: string, value: fc.Arbitrary<unknown>) => value.map((drawn): [string, unknown] => [key, drawn]);
const types = fc.constantFrom(...kinds, 'null', 'STRING', 'int', 'file', null, 7);
const { schema: anything, object: anySchema } = fc.letrec((tie) => ({
  schema: fc.oneof({ maxDepth: 5, depthSize: 'medium' }, fc.constantFrom(true, false, {}, null, 3), tie('object')),
  map: fc.dictionary(name, tie('schema'), { maxKeys: 3 }),
  list: fc.array(tie('schema'), { maxLength: 3 }),
  member: fc.oneof(
    member('type', types),
    member('type', fc.array(fc.constantFrom(...kinds, 'null'), { maxLength: 3 })),
    ...['properties', 'properties', '$defs', 'patternProperties', 'dependentSchemas'].map((key) =>
      member(key, tie('map')),
    ),
    ...['items', 'prefixItems', 'anyOf', 'anyOf', 'oneOf', 'allOf'].map((key) => member(key, tie('list'))),
    ...['items', 'not', 'if', 'then', 'else', 'additionalProperties', 'a'].map((key) => member(key, tie('schema'))),
    member('properties', fc.constantFrom(null, [])),
    member('required', fc.oneof(fc.array(name, { maxLength: 3 }), fc.constantFrom(true, 'a', null))),
    member('$ref', fc.constantFrom('#', '#/$defs/a', '#/properties/b', '#/$defs/%zz', 'https://example.com', 3)),
    member('enum', fc.array(fc.constantFrom('a', '', 1, null, true, {}), { maxLength: 3 })),
    member('const', fc.constantFrom('a', '', 1, null, false)),
    member('description', fc.constantFrom('words', '', 3)),
    member('minimum', fc.constantFrom(1, '1')),
    member('minLength', fc.constantFrom(1, null)),
  ),
  object: fc
    .array(tie('member') as fc.Arbitrary<[string, unknown]>, { minLength: 1, maxLength: 6 })
    .map(Object.fromEntries),
}));

test('whatever schema is sent, the subset holds nothing but its own keywords, each in its place', () => {
  fc.assert(
    fc.property(anySchema, (schema) => assertSubset(openApiSubset(schema as Schema))),
    { numRuns: 4000 },
  );
});

test('whatever schema is sent, the root is an object, and mending mends all at once', () => {
  fc.assert(
    fc.property(anything, (schema) => {
      const root = rootObject(schema as Schema);
      assert.equal(root['type'], 'object');
      assert.ok(typeof root['properties'] === 'object' && root['properties'] !== null);
      assert.deepEqual(rootObject(root), root);
    }),
    { numRuns: 2000 },
  );
});

test('whatever schema is sent, no const is left, every object of an answer is closed, and nothing throws', () => {
  const visit = (schema: unknown, check: (schema: Schema) => void) => {
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return;
    check(schema as Schema);
    for (const { inner } of subschemas(schema as Schema)) visit(inner, check);
  };
  fc.assert(
    fc.property(anySchema, (schema) => {
      const root = rootObject(schema as Schema);
      visit(withoutConst(root), (inner) => assert.equal('const' in inner, false));
      visit(closedSchema(root), (inner) => {
        if (inner['type'] === 'object') assert.equal(inner['additionalProperties'], false);
      });
      isStrict(root);
      lowerCaseTypes(root);
    }),
    { numRuns: 2000 },
  );
});
