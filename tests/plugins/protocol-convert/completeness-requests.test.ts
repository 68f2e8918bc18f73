/** Every parameter, block and tool that a client may send stands in the upstream's request, is noted, or is refused by name. */
import { test } from 'node:test';
import { reasoning, structured } from './completeness/answers.ts';
import { calls, media, texts } from './completeness/blocks.ts';
import { parameters } from './completeness/parameters.ts';
import { check, names, type Row } from './completeness/table.ts';
import { tools } from './completeness/tools.ts';

function testRows(rows: readonly Row[]): void {
  for (const row of rows) {
    for (const target of names) {
      const outcome = row.to[target];
      if (outcome !== undefined) test(`${row.from} to ${target}: ${row.what}`, () => check(row, target, outcome));
    }
  }
}

testRows(parameters);
testRows(reasoning);
testRows(structured);
testRows(tools);
testRows(texts);
testRows(media);
testRows(calls);
