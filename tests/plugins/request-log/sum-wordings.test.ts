/** The words by which batches add to rollups: made once for each statement, and the same as if made again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { keptWith } from '../../../plugins/common/rollups/table.ts';
import { requestSums as ofRequests } from '../../../plugins/request-log/request-sums.ts';

/** A table of this file alone: the words that are kept for one are bounded, and other files of the process have asked too. */
const requestSums = { ...ofRequests };

const textOf = (words: ReturnType<typeof keptWith>) => new PgDialect().sqlToQuery(words);

test('the text of a statement is made once for each combination that it depends on', () => {
  const after = sql`(select 1 from locks)`;
  const ways = [
    () => keptWith('main', requestSums, 'added'),
    () => keptWith('alt', requestSums, 'added'),
    () => keptWith('main', requestSums, 'reported'),
    () => keptWith('main', requestSums, 'added', after),
    () => keptWith('main', { ...requestSums, name: 'other_sums' }, 'added'),
  ];
  const texts = ways.map((way) => textOf(way()).sql);
  assert.equal(new Set(texts).size, ways.length);
  for (const way of ways.slice(0, 4)) assert.equal(way(), way());
  for (const [index, way] of ways.entries()) assert.equal(textOf(way()).sql, texts[index]);
  // A copy of the table has words of its own, so these are made again.
  assert.equal(textOf(keptWith('main', { ...requestSums }, 'added', sql`(select 1 from locks)`)).sql, texts[3]);
});

test('a value in a condition stays a parameter, in any number of queries and conditions', () => {
  for (let index = 0; index < 40; index++) {
    const { sql: text, params } = textOf(keptWith('main', requestSums, 'added', sql`${index} > 0`));
    assert.deepEqual(params, [index]);
    assert.match(text, /where \$1 > 0 for share/);
  }
});
