/** The input of a batch, cut anywhere: each line is found where it stands, and what is wrong is named by its line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InputLine } from '../../../plugins/batches/batch.ts';
import { readInput } from '../../../plugins/batches/input.ts';
import { fc } from '../../helpers/properties.ts';

const endpoint = '/v1/embeddings';
const line = (custom_id: unknown, body: unknown = { model: 'm' }) =>
  JSON.stringify({ custom_id, method: 'POST', url: endpoint, body });

async function read(bytes: Buffer, sizes: readonly number[], limits = { lines: 1_000, lineBytes: 1_000 }) {
  const found: InputLine[] = [];
  async function* chunks() {
    for (let at = 0, index = 0; at < bytes.length; index++) {
      const size = sizes[index % sizes.length]!;
      yield bytes.subarray(at, at + size);
      at += size;
    }
  }
  const { total, errors } = await readInput(chunks(), endpoint, limits, async (group) => void found.push(...group));
  return { total, errors, found };
}

test('each line is found at its place, in any chunks and with any line ends', async () => {
  const ids = fc.uniqueArray(
    fc.string({ minLength: 1, maxLength: 8 }).filter((id) => !id.includes('\0')),
    { maxLength: 20 },
  );
  const ends = fc.constantFrom('\n', '\r\n', '\n\n');
  await fc.assert(
    fc.asyncProperty(
      ids,
      ends,
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (names, end, sizes, closed) => {
        const bytes = Buffer.from(names.map((name) => line(name)).join(end) + (closed ? end : ''));
        const { total, errors, found } = await read(bytes, sizes);
        if (names.length === 0) {
          assert.deepEqual([errors.length, found.length], [1, 0]);
          return;
        }
        assert.deepEqual([total, errors, found.map(({ customId }) => customId)], [names.length, [], names]);
        for (const [index, { number, firstByte, bytes: length }] of found.entries()) {
          assert.equal(number, index + 1);
          assert.equal(bytes.toString('utf8', firstByte, firstByte + length).trim(), line(names[index]));
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('lines, their length and the listed errors are bounded', async () => {
  const many = await read(
    Buffer.from(`${Array.from({ length: 20 }, (_, index) => line(`${index}`)).join('\n')}`),
    [100],
    {
      lines: 10,
      lineBytes: 1_000,
    },
  );
  assert.equal(many.errors.at(-1)!.code, 'too_many_lines');
  const long = await read(Buffer.from(`${line('a')}\n${line('b', { model: 'x'.repeat(2_000) })}\n${line('c')}`), [100]);
  assert.deepEqual(
    long.errors.map(({ line, code }) => [line, code]),
    [[2, 'line_too_long']],
  );
  const wrong = await read(Buffer.from('x\n'.repeat(500)), [100]);
  assert.equal(wrong.errors.length, 100);
});
