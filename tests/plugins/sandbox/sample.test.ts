/** Values that fit JSON schemas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { sampleOf } from '../../../plugins/sandbox/script/sample.ts';
import { fc } from '../../helpers/properties.ts';

test('references, branches, constants and unions are followed', () => {
  const schema = {
    type: 'object',
    $defs: { side: { type: 'string', enum: ['left', 'right'] } },
    properties: {
      side: { $ref: '#/$defs/side' },
      kind: { const: 'door' },
      label: { anyOf: [{ type: 'null' }, { type: 'string', maxLength: 3 }] },
      both: { allOf: [{ type: 'object', properties: { a: { type: 'integer' } } }, { required: ['a'] }] },
      open: { type: ['null', 'boolean'] },
    },
    required: ['side', 'kind', 'label', 'both', 'open'],
  };
  assert.deepEqual(sampleOf(schema), { side: 'left', kind: 'door', label: 'sam', both: { a: 1 }, open: true });
});

test('types in capitals are accepted', () => {
  const schema = { type: 'OBJECT', properties: { list: { type: 'ARRAY', items: { type: 'NUMBER', minimum: 3 } } } };
  assert.deepEqual(sampleOf(schema), { list: [3] });
});

test('a recursive schema gives a finite sample', () => {
  const schema = {
    $ref: '#/$defs/node',
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
  };
  assert.ok(JSON.stringify(sampleOf(schema)).length < 1_000);
});

const schemas = fc.letrec<{ any: z.ZodType }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.constant(z.boolean()),
    fc.constant(z.null()),
    fc.tuple(fc.integer({ min: -50, max: 50 }), fc.nat(50)).map(([low, span]) =>
      z
        .int()
        .min(low)
        .max(low + span),
    ),
    fc.tuple(fc.nat(9), fc.nat(9)).map(([least, more]) =>
      z
        .string()
        .min(least)
        .max(least + more),
    ),
    fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 }).map((values) => z.enum(values)),
    fc.tuple(tie('any'), fc.nat(3)).map(([item, least]) => z.array(item).min(least)),
    fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), tie('any'), { maxKeys: 4 }).map((shape) => z.strictObject(shape)),
    fc.tuple(tie('any'), tie('any')).map((options) => z.union(options)),
  ),
}));

test('with any schema, the sample fits it', () => {
  fc.assert(
    fc.property(schemas.any, fc.integer({ min: 1, max: 5 }), (schema, salt) => {
      schema.parse(sampleOf(z.toJSONSchema(schema), salt));
    }),
    { numRuns: 500 },
  );
});
