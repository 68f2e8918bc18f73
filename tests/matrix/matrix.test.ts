/** The matrix holds, and its page says what it does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold } from '../conformance/results.ts';
import { countVerdicts, nameOf, playMatrix, wordMatrix } from './matrix.ts';
import { readPage } from './page.ts';

test('every client protocol works with every upstream protocol, and the page says how', async () => {
  const cells = await playMatrix();
  const failed = cells.filter(({ verdict }) => verdict === 'failed').map((cell) => `${nameOf(cell)}: ${cell.note}`);
  assert.deepEqual(failed, []);
  assert.equal(readPage(), wordMatrix(cells).trim(), 'the page is out of date: run `npm run matrix`');
  hold('matrix', countVerdicts(cells), 'npm run matrix');
});
