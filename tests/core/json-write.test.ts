/** JSON written in slices: the same text as JSON.stringify writes, and no slice with more work than is allowed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeInSlices } from '../../core/json/write.ts';
import { fc } from '../helpers/properties.ts';

const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

async function written(value: object, sizes?: { slice: number; piece: number }) {
  const slices: number[] = [];
  const pause = async (units: number) => void slices.push(units);
  const parts = await writeInSlices(value, sizes === undefined ? { pause } : { pause, sizes });
  return { text: Buffer.concat(parts).toString(), parts, slices };
}

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('\ud83d', '\ude00', '"', '\\', '\0', 'é', 'a') }),
    fc.double(),
    fc.constantFrom(null, true, undefined, rawJSON('12345678901234567890')),
    fc.array(tie('value')),
    fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { noNullPrototype: true }),
  ),
}));

test('the text equals that of JSON.stringify, and so do the bytes, at any sizes', async () => {
  const sizes = fc.record({ slice: fc.integer({ min: 60, max: 300 }), piece: fc.integer({ min: 1, max: 30 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(json.value), sizes, async (list, given) => {
      for (const value of [list, { list, list2: { more: list } }]) {
        const { parts } = await written(value, given);
        assert.deepEqual(Buffer.concat(parts), Buffer.from(JSON.stringify(value)));
      }
    }),
    { numRuns: 400 },
  );
});

test('no slice exceeds its bound, with long strings, many values and long names', async () => {
  const sizes = { slice: 4_000, piece: 1_000 };
  const values = [
    { image: 'A'.repeat(100_000) },
    { list: Array.from({ length: 5_000 }, (_, index) => ({ role: 'user', content: `${index}` })) },
    { nested: Array.from({ length: 50 }, () => Array.from({ length: 500 }, () => [])) },
    Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`name ${index}`, index])),
    { ['n'.repeat(50_000)]: 1 },
  ];
  for (const value of values) {
    const { text, parts, slices } = await written(value, sizes);
    assert.equal(text, JSON.stringify(value));
    assert.ok(slices.length >= text.length / sizes.slice - 1);
    assert.ok(Math.max(...slices) <= sizes.slice, `${Math.max(...slices)} in a slice`);
    assert.ok(Math.max(...parts.map(({ length }) => length)) <= 2 * sizes.slice);
  }
});

test('a body that fits into one slice is one part, without a pause', async () => {
  const { parts, slices } = await written({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
  assert.deepEqual([parts.length, slices.length], [1, 0]);
});
