/** The lines of a batch that did not succeed are found, in the files of both protocols, however these are cut into pieces. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failedLines } from '../../../../plugins/console/web/src/pages/client/batches/again.ts';
import { fc } from '../../../helpers/properties.ts';

const ends = {
  chat: [{ response: { status_code: 200, body: {} }, error: null }, true],
  refused: [{ response: { status_code: 400, body: { error: {} } }, error: null }, false],
  expired: [{ response: null, error: { code: 'batch_expired' } }, false],
  messages: [{ result: { type: 'succeeded', message: {} } }, true],
  errored: [{ result: { type: 'errored', error: {} } }, false],
  canceled: [{ result: { type: 'canceled' } }, false],
  missing: [undefined, false],
} as const;

async function* pieces(text: string, size: number): AsyncGenerator<string> {
  for (let from = 0; from < text.length; from += size) yield text.slice(from, from + size);
}

test('the lines of an input that have no success in the results are those that are made again', async () => {
  const kinds = fc.constantFrom(...(Object.keys(ends) as (keyof typeof ends)[]));
  await fc.assert(
    fc.asyncProperty(
      fc.array(kinds, { maxLength: 12 }),
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      async (all, size, hasEnd) => {
        const lines = all.map((_, index) => JSON.stringify({ custom_id: `line ${index}`, body: { text: '漢\n' } }));
        const results = all.flatMap((kind, index) => {
          const [result] = ends[kind];
          return result === undefined ? [] : [`${JSON.stringify({ custom_id: `line ${index}`, ...result })}\n`];
        });
        const input = lines.join('\n\n') + (hasEnd ? '\n' : '');
        const found = await failedLines(pieces(input, size), pieces(results.reverse().join(''), size));
        assert.deepEqual(
          found,
          lines.filter((_, index) => !ends[all[index]!][1]),
        );
      },
    ),
  );
});
