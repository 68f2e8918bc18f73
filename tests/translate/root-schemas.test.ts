/** Tools whose schema combines others at its root: messages and responses upstreams get one object. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../core/json/json.ts';
import { plainRoot } from '../../plugins/protocol-convert/encoding/schemas.ts';
import { fc } from '../helpers/properties.ts';
import type { Family } from '../helpers/recordings.ts';
import { translated } from './translated.ts';

const text = { type: 'string' };
const number = { type: 'number' };
const byName = { type: 'object', properties: { name: text, size: number }, required: ['name', 'size'] };
const byId = { type: 'object', properties: { id: number, size: number }, required: ['id', 'size'] };

const schemas: Readonly<Record<string, readonly [JsonObject, JsonObject]>> = {
  anyOf: [{ anyOf: [byName, byId] }, { properties: { name: text, size: number, id: number }, required: ['size'] }],
  oneOf: [
    { type: 'object', properties: { deep: { type: 'boolean' } }, required: ['deep'], oneOf: [byName, byId] },
    { properties: { deep: { type: 'boolean' }, name: text, size: number, id: number }, required: ['deep', 'size'] },
  ],
  allOf: [
    { allOf: [byName, { properties: { id: number }, required: ['id'] }] },
    { properties: { name: text, size: number, id: number }, required: ['name', 'size', 'id'] },
  ],
  'a reference': [
    { $ref: '#/$defs/a', $defs: { a: byName } },
    { properties: { name: text, size: number }, required: ['name', 'size'] },
  ],
  'references in branches': [
    { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }], $defs: { a: byName, b: byId } },
    { properties: { name: text, size: number, id: number }, required: ['size'] },
  ],
  'branches in branches': [
    { oneOf: [byName, { anyOf: [byId, { type: 'object', properties: { path: text }, required: ['path', 'size'] }] }] },
    { properties: { name: text, size: number, id: number, path: text }, required: ['size'] },
  ],
  'branches that only require': [
    { type: 'object', properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    { properties: { a: text, b: text } },
  ],
  'a tag': [
    {
      oneOf: [
        { type: 'object', properties: { kind: { const: 'a' }, x: text }, required: ['kind', 'x'] },
        { type: 'object', properties: { kind: { const: 'b' }, x: number }, required: ['kind'] },
      ],
    },
    { properties: { kind: { enum: ['a', 'b'] }, x: { anyOf: [text, number] } }, required: ['kind'] },
  ],
  'a branch that is null': [
    { anyOf: [byName, { type: 'null' }] },
    { properties: { name: text, size: number }, required: ['name', 'size'] },
  ],
};

function requestOf(client: Family, schema: JsonObject): JsonObject {
  const messages = [{ role: 'user', content: 'Hi' }];
  switch (client) {
    case 'chat':
      return { messages, tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] };
    case 'responses':
      return { input: 'Hi', tools: [{ type: 'function', name: 'f', parameters: schema }] };
    case 'messages':
      return { messages, max_tokens: 9, tools: [{ name: 'f', input_schema: schema }] };
    case 'gemini':
      return {
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
        tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }],
      };
  }
}

const refused = ['$ref', 'anyOf', 'oneOf', 'allOf', 'not', 'enum', 'const'];

for (const client of ['chat', 'responses', 'messages', 'gemini'] as const) {
  for (const upstream of ['messages', 'responses'] as const) {
    for (const stream of [false, true]) {
      test(`${client} on ${upstream}${stream ? ', streamed' : ''}: the root of a tool's schema is a plain object`, () => {
        for (const [name, [schema, wanted]] of Object.entries(schemas)) {
          const { body } = translated(client, requestOf(client, schema), upstream, { stream });
          const [tool] = body['tools'] as JsonObject[];
          const sent = (tool!['input_schema'] ?? tool!['parameters']) as JsonObject;
          const { type, properties, required = [] } = sent;
          assert.equal(type, 'object', name);
          assert.deepEqual({ properties, required }, { required: [], ...wanted }, name);
          for (const key of refused) assert.ok(!(key in sent), `${name}: ${key}`);
        }
      });
    }
  }
}

test('the description says which members belong together', () => {
  const schema = { description: 'Finds it.', anyOf: [byName, byId] };
  assert.equal(plainRoot(schema)['description'], 'Finds it. Give all members of one group: (name) or (id).');
});

test('a plain root stays as it is, combinations further in too', () => {
  const schema = { type: 'object', properties: { a: { anyOf: [text, number] }, anyOf: text }, required: ['a'] };
  assert.equal(JSON.stringify(plainRoot(schema)), JSON.stringify(schema));
});

test('a reference that leads back to itself, and one that leads nowhere, end', () => {
  for (const schema of [
    { $ref: '#' },
    { anyOf: [{ $ref: '#' }, byName] },
    { $ref: '#/$defs/none' },
    { allOf: [{ $ref: '#/$defs/a' }], $defs: { a: { allOf: [{ $ref: '#/$defs/a' }, byName] } } },
  ])
    assert.equal(plainRoot(schema)['type'], 'object');
});

test('references that fan out, and thousands of branches, cost little', () => {
  const fan = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [
      `d${index}`,
      { anyOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/d${index + 1}` })) },
    ]),
  );
  const many = Array.from({ length: 3_000 }, (_, index) => ({ properties: { [`p${index}`]: text } }));
  const before = performance.now();
  for (const schema of [{ $ref: '#/$defs/d0', $defs: fan }, { allOf: many }, { anyOf: many }]) plainRoot(schema);
  assert.ok(performance.now() - before < 10_000);
});

const word = fc.constantFrom('a', 'b', 'c', 'anyOf', '__proto__');
const { schema: anySchema } = fc.letrec<{ schema: JsonObject }>((tie) => {
  const inner = fc.oneof({ maxDepth: 3, depthIdentifier: 'schema' }, fc.constant(text), tie('schema'));
  const branches = fc.array(inner, { maxLength: 2 });
  return {
    schema: fc.record(
      {
        type: fc.constantFrom('object', 'string', 'null'),
        properties: fc.dictionary(word, inner, { maxKeys: 2 }),
        required: fc.array(word, { maxLength: 3 }),
        anyOf: branches,
        oneOf: branches,
        allOf: branches,
        $ref: fc.constantFrom('#', '#/anyOf/0', '#/properties/a'),
        not: fc.constant({ required: ['a'] }),
      },
      { requiredKeys: [], noNullPrototype: true },
    ) as fc.Arbitrary<JsonObject>,
  };
});

test('whatever the schema: a plain object at the root, and made again it stays the same', () => {
  fc.assert(
    fc.property(anySchema, (schema) => {
      const plain = plainRoot(schema);
      assert.equal(plain['type'], 'object');
      assert.equal(typeof plain['properties'], 'object');
      for (const key of refused) assert.ok(!Object.hasOwn(plain, key), key);
      assert.equal(JSON.stringify(plainRoot(plain)), JSON.stringify(plain));
    }),
    { numRuns: 500 },
  );
});
