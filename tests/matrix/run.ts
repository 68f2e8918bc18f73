/** `npm run matrix`: plays all cells, prints the table, writes it to the page; fails when a cell fails. */
import { hold } from '../conformance/results.ts';
import { countVerdicts, nameOf, playMatrix, wordMatrix } from './matrix.ts';
import { writePage } from './page.ts';

const only = process.argv[2];
const cells = await playMatrix(only === undefined ? undefined : ({ name }) => name.includes(only));
const failed = cells.filter(({ verdict }) => verdict === 'failed');
if (only === undefined) {
  const page = wordMatrix(cells);
  process.stdout.write(`${page}\n`);
  writePage(page);
  if (failed.length === 0) hold('matrix', countVerdicts(cells), 'npm run matrix');
}
for (const cell of failed) process.stdout.write(`FAILED ${nameOf(cell)}\n  ${cell.note}\n`);
process.stdout.write(`${cells.length} cells, ${failed.length} failed\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
